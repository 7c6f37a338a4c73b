package ui

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/newsletter/audience"
)

// mostPicks is how many lists, segments, campaigns and templates a form offers. Its page stays small; the
// IDs of others can be typed.
const mostPicks = 50

// pick is something that a form offers: its ID, its name, and a few words about it.
type pick struct{ ID, Name, About string }

// campaignChoices are what the form of a campaign offers in its account.
type campaignChoices struct {
	accounts, lists, segments, campaigns, templates, gateways []pick

	from        string   // the account's own address
	senders     []string // addresses that the account may send from
	sendersHint string
}

// picked returns the IDs of a picker, from its boxes and from its text field.
func picked(f url.Values, name string) []string { return listed(strings.Join(f[name], ",")) }

// picker returns a field with a box for each choice, and a text field for IDs that aren't among them. It
// writes them into the form as single values, as the boxes have them.
func picker(f url.Values, name, label, hint string, choices []pick) formField {
	field := formField{Name: name, Label: label, Kind: "picker", Hint: hint, Picks: choices,
		Required: len(choices) == mostPicks}
	ids := picked(f, name)
	if len(ids) > 0 {
		f[name] = ids
	}
	for _, id := range ids {
		if !slices.ContainsFunc(choices, func(p pick) bool { return p.ID == id }) {
			field.Others = append(field.Others, id)
		}
	}
	return field
}

// oneOf makes a field a choice of one, or of none. The value that the form has stays possible.
func oneOf(f url.Values, field formField, none string, choices []pick) formField {
	field.Kind, field.Placeholder, field.Choices = "choice", none, []string{""}
	field.Words = map[string]string{}
	for _, p := range choices {
		field.Choices = append(field.Choices, p.ID)
		if p.Name != "" && p.Name != p.ID {
			field.Words[p.ID] = p.Name + " (" + p.ID + ")"
		}
	}
	if v := f.Get(field.Name); !slices.Contains(field.Choices, v) {
		field.Choices = append(field.Choices, v)
	}
	return field
}

// campaignChoices returns the choices of a form in the account that it names.
func (u *UI) campaignChoices(r *http.Request, f url.Values) (c campaignChoices, err error) {
	account := cmp.Or(boundTo(r), strings.TrimSpace(f.Get("account")), audience.DefaultAccount)
	if c.lists, err = u.listPicks(r, account); err != nil {
		return c, err
	}
	if c.segments, err = u.segmentPicks(r, account); err != nil {
		return c, err
	}
	campaigns, err := u.Campaigns.Page(r.Context(), boundTo(r), api.CampaignQuery{Account: account,
		PageQuery: api.PageQuery{PageSize: mostPicks}})
	if err != nil {
		return c, err
	}
	for _, one := range campaigns.Campaigns {
		if one.Run > 0 {
			c.campaigns = append(c.campaigns, pick{one.Campaign.Campaign, one.Name,
				plural(one.States.Sent, "recipient", "recipients")})
		}
	}
	templates, err := u.Templates.List(r.Context(), account, api.TemplateQuery{Kind: "template",
		PageSize: mostPicks})
	if err != nil {
		return c, err
	}
	for _, t := range templates.Templates {
		c.templates = append(c.templates, pick{t.ID, t.Name, ""})
	}
	if err = u.senderPicks(r, account, &c); err != nil || boundTo(r) != "" {
		return c, err
	}
	return c, u.instancePicks(r, &c)
}

func (u *UI) listPicks(r *http.Request, account string) (all []pick, _ error) {
	lists, err := u.Audience.Lists.Page(r.Context(), boundTo(r), api.ListQuery{Account: account,
		PageQuery: api.PageQuery{PageSize: mostPicks}})
	for _, l := range lists.Lists {
		all = append(all, pick{l.ListID, l.Name, plural(l.Counts.Subscribed, "subscriber", "subscribers")})
	}
	return all, err
}

func (u *UI) segmentPicks(r *http.Request, account string) (all []pick, _ error) {
	segments, err := u.Audience.Segments.Page(r.Context(), boundTo(r), api.SegmentQuery{Account: account,
		PageQuery: api.PageQuery{PageSize: mostPicks}})
	for _, s := range segments.Segments {
		about := "not counted yet"
		count, err := u.Audience.Segments.Count(r.Context(), boundTo(r), s.Segment.Segment)
		switch {
		case fault.Is(err, fault.NotFound):
		case err != nil:
			return nil, err
		case count.State == "done":
			about = plural(count.Count, "subscriber", "subscribers")
		}
		all = append(all, pick{s.Segment.Segment, s.Name, about})
	}
	return all, err
}

// senderPicks adds what an account may send from, and through. There is nothing if there is no such account:
// the form says so when it is saved.
func (u *UI) senderPicks(r *http.Request, account string, c *campaignChoices) error {
	info, err := u.Accounts.Get(r.Context(), account)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	c.from = info.Email
	for _, route := range info.Gateways {
		c.gateways = append(c.gateways, pick{ID: route.Gateway})
	}
	senders, err := u.Accounts.Senders(r.Context(), account)
	if err != nil {
		return err
	}
	var domains []string
	for _, s := range senders.Senders {
		switch {
		case s.Status == api.SenderPending:
		case strings.Contains(s.Sender, "@"):
			c.senders = append(c.senders, s.Sender)
		default:
			domains = append(domains, s.Sender)
		}
	}
	if c.from != "" && !slices.Contains(c.senders, c.from) {
		c.senders = append([]string{c.from}, c.senders...)
	}
	if len(domains) > 0 {
		c.sendersHint = "You can use any address at " + strings.Join(domains, ", ") + "."
	}
	return nil
}

// instancePicks adds the accounts and gateways of the whole instance.
func (u *UI) instancePicks(r *http.Request, c *campaignChoices) error {
	accounts, err := u.Accounts.List(r.Context(), 0, mostPicks)
	if err != nil {
		return err
	}
	for _, a := range accounts.Accounts {
		if a.Account.Account != audience.DefaultAccount {
			c.accounts = append(c.accounts, pick{a.Account.Account, a.Name, ""})
		}
	}
	gateways, err := u.Gateways.List(r.Context(), 0, mostPicks)
	if err != nil {
		return err
	}
	c.gateways = nil
	for _, g := range gateways.Gateways {
		c.gateways = append(c.gateways, pick{g.Gateway.Gateway, g.Name, ""})
	}
	return nil
}
