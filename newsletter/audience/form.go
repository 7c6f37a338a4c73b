package audience

import (
	"cmp"
	"context"
	"html/template"
	"net/url"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/outbox/suppression"
)

// FormRequest is a public form that a visitor sent in.
type FormRequest struct {
	ListIDs                 []string // 1 to 10
	Email, Name, Locale, TZ string
	Website                 string // a field that people do not see; only a program fills it in
	RemoteAddress           string // IP address; only its network is kept
}

// Public returns the public lists of ids, each once. NotFound: there is no such list, or it is not public.
func (c *Confirmations) Public(ctx context.Context, ids []string) ([]*List, error) {
	if len(ids) == 0 || len(ids) > linkLists {
		return nil, invalid("listId", "is required, at most 10 times")
	}
	var lists []*List
	for _, id := range ids {
		list, err := c.Subscribers.Lists.Find(ctx, id)
		if err == nil && !list.Public {
			err = listNotFound(id)
		}
		if err != nil {
			return nil, err
		}
		if !slices.Contains(lists, list) {
			lists = append(lists, list)
		}
	}
	return lists, nil
}

// Ask takes a public form. The result does not depend on whether the address is known, suppressed or new:
// nil, or an error about the form or this Postroom. Lists with double opt-in send an email that asks. Other
// lists send it only to people who unsubscribed: an anonymous client can't resubscribe anyone.
func (c *Confirmations) Ask(ctx context.Context, in FormRequest) error {
	lists, err := c.Public(ctx, in.ListIDs)
	if err != nil {
		return err
	}
	if _, err := c.base(); err != nil {
		return err
	}
	var f faults
	in.Email = f.email(in.Email)
	f.fill(&record{}, in.request(nil))
	if err := fault.InvalidFields(f.Fields); err != nil {
		return err
	}
	if in.Website != "" {
		c.metrics.forms.WithLabelValues("caught").Inc()
		return nil
	}
	of := map[string][]*List{}
	for _, list := range lists {
		of[list.Account] = append(of[list.Account], list)
	}
	for account, lists := range of {
		if err := c.take(ctx, account, in, lists); err != nil {
			c.metrics.forms.WithLabelValues("failed").Inc()
			return err
		}
	}
	c.metrics.forms.WithLabelValues("taken").Inc()
	return nil
}

// FormLimited counts a form that was refused because its network sent too many.
func (c *Confirmations) FormLimited() { c.metrics.forms.WithLabelValues("limited").Inc() }

// request returns the form as an API request. It changes nothing else of a known address.
func (in FormRequest) request(known *record) api.SubscriberRequest {
	if known != nil {
		return api.SubscriberRequest{Email: in.Email, Upsert: true}
	}
	return api.SubscriberRequest{Email: in.Email, Name: in.Name, Locale: in.Locale, TZ: in.TZ, Upsert: true}
}

// take subscribes the address of a form to lists of one account.
func (c *Confirmations) take(ctx context.Context, account string, in FormRequest, lists []*List) error {
	s := c.Subscribers
	if err := refuseErased(ctx, s.Suppressions, account, in.Email); err != nil {
		if fault.Is(err, fault.Conflict) { // the visitor learns as little as everybody
			return nil
		}
		return err
	}
	_, _, known, err := s.find(ctx, account, folded(in.Email))
	if err != nil {
		return err
	}
	all := make([]wish, len(lists))
	for i, list := range lists {
		all[i] = wish{list: list, state: Pending}
	}
	stopped, err := s.stops(ctx, account, in.Email, all)
	if err != nil {
		return err
	}
	var asked, direct []wish
	for i, w := range all {
		was := cmp.Or(known, &record{}).stateOn(w.list.Number)
		switch {
		case was == Subscribed || stopped[i] != nil && !mayAsk(stopped[i]):
		case w.list.Double() || was == Left || stopped[i] != nil:
			asked = append(asked, w)
		default:
			direct = append(direct, wish{list: w.list, state: Subscribed})
		}
	}
	t := terms{source: SourceForm, consent: &api.Consent{Source: SourceForm, IP: in.RemoteAddress}}
	if len(direct) > 0 {
		if _, _, err := s.put(ctx, account, in.request(known), direct, t); err != nil {
			return err
		}
	}
	if len(asked) == 0 {
		return nil
	}
	t.resubscribe = true // the confirmation is the consent
	_, _, err = s.put(ctx, account, in.request(known), asked, t)
	return err
}

// mayAsk reports whether a confirmation would take a suppression back.
func mayAsk(stop *suppression.Entry) bool {
	return stop.Reason == suppression.Unsubscribe && stop.Account != ""
}

// embedded is a form for pages of other sites. It has no script and no style.
var embedded = template.Must(template.New("").Parse(`<form method="post" action="{{.Action}}" accept-charset="utf-8">
<input type="hidden" name="listId" value="{{.ListID}}">
<p><label>Email <input type="email" name="email" required maxlength="254" autocomplete="email"></label></p>
<p><label>Name <input type="text" name="name" maxlength="256" autocomplete="name"></label></p>
<div hidden aria-hidden="true"><label>Website <input type="text" name="website" tabindex="-1" autocomplete="off"></label></div>
<p><button type="submit">Subscribe</button></p>
</form>
`))

// Form returns a list's public form, to link or to embed. It returns Conflict, code ListNotPublic, if there
// is none, and Unprocessable, code NoPublicUrl, if no one could reach it.
func (c *Confirmations) Form(ctx context.Context, bound, id string) (api.ListForm, error) {
	list, err := c.Subscribers.Lists.Get(ctx, bound, id)
	if err != nil {
		return api.ListForm{}, err
	}
	base := strings.TrimRight(c.ServiceURL(), "/")
	switch {
	case !list.Public:
		return api.ListForm{}, fault.New(fault.Conflict, "ListNotPublic",
			"List %q has no form, because it isn't public. Set public", list.ListID)
	case base == "":
		return api.ListForm{}, fault.New(fault.Unprocessable, "NoPublicUrl",
			"A form requires Postroom's public URL. Set serviceUrl")
	}
	var html strings.Builder
	err = embedded.Execute(&html, struct{ Action, ListID string }{base + "/subscribers", list.ListID})
	return api.ListForm{URL: base + "/subscribers?listId=" + url.QueryEscape(list.ListID), HTML: html.String()},
		err
}
