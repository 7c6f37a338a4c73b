package ui

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/newsletter"
)

// campaignStates are the choices of the filter.
var campaignStates = []string{api.CampaignDraft, api.CampaignScheduled, api.CampaignSending,
	api.CampaignPaused, api.CampaignHeld, api.CampaignSent, api.CampaignCancelled, api.CampaignFailed}

type campaignsView struct {
	Query     api.CampaignQuery
	States    []string
	Campaigns []api.CampaignInfo
	Stats     map[string]api.CampaignNumbers // by ID, of campaigns that were started
	Pager     pager
	Part      string // URL of the rows, for the script; empty if nothing changes
}

// Left returns how long a campaign needs for the rest of its recipients at its pace so far; "" if unknown.
func (v campaignsView) Left(c api.CampaignInfo) string {
	return timeLeft(c.State, v.Stats[c.Campaign.Campaign].Rate, c.States.Open())
}

func timeLeft(state string, perSecond float64, open int) string {
	if state != api.CampaignSending || perSecond <= 0 || open == 0 {
		return ""
	}
	return span(time.Duration(float64(open) / perSecond * float64(time.Second)))
}

// Any reports whether there is a filter.
func (v campaignsView) Any() bool {
	q := v.Query
	return q.Account != "" || q.State != "" || q.ListID != "" || q.Search != ""
}

func (u *UI) campaigns(w http.ResponseWriter, r *http.Request) error {
	in := r.URL.Query()
	text := func(name string) string { return clip(strings.TrimSpace(in.Get(name)), 256) }
	account, err := ownAccount(r, text("account"))
	if err != nil {
		return err
	}
	page := pageOf(in)
	v := campaignsView{States: campaignStates, Query: api.CampaignQuery{Account: account, State: text("state"),
		ListID: text("list"), Search: text("q"), PageQuery: api.PageQuery{Page: page, PageSize: rowsPerPage}}}
	if v.Query.State != "" && !slices.Contains(campaignStates, v.Query.State) {
		return wrongField("state", "is not a state")
	}
	got, err := u.Campaigns.Page(r.Context(), boundTo(r), v.Query)
	if err != nil {
		return err
	}
	v.Campaigns, v.Stats = got.Campaigns, map[string]api.CampaignNumbers{}
	for _, c := range got.Campaigns {
		if c.Run > 0 && collects(r) == nil {
			stats, err := u.Campaigns.Stats(r.Context(), boundTo(r), c.Campaign.Campaign, 0)
			if err != nil {
				return err
			}
			v.Stats[c.Campaign.Campaign] = stats.CampaignNumbers
		}
	}
	v.Pager = pager{got.PageNumbers, rowsPerPage, "/campaigns", values(map[string]string{"account": account,
		"state": v.Query.State, "list": v.Query.ListID, "q": v.Query.Search})}
	if slices.ContainsFunc(got.Campaigns, func(c api.CampaignInfo) bool {
		return api.CampaignUnderWay(c.State)
	}) {
		in.Set("part", "rows")
		v.Part = address("/campaigns", in)
	}
	return u.show(w, r, http.StatusOK, "campaigns", "Campaigns", v)
}

type campaignView struct {
	api.CampaignInfo
	Stats  api.CampaignStats      // zero if it was never started
	Only   int                    // the run whose numbers are shown; 0 for all together
	Check  *newsletter.Inspection // nil if it can't be sent now
	Asked  bool                   // the check has asked the DNS and the links
	Resend []resendChoice
}

// Left is Left of campaignsView.
func (v campaignView) Left() string { return timeLeft(v.State, v.Stats.Rate, v.Now().Open()) }

// ratio is a number of recipients with its share.
type ratio struct {
	Name  string
	Count int
	Share string // such as 12.5 %; "" if it has none
}

// Headline returns the five numbers that say how a campaign went.
func (v campaignView) Headline() []ratio {
	s, n := v.Stats, v.Now()
	reached, name := s.Delivered, "delivered"
	if reached == 0 {
		reached, name = n.Sent, "sent"
	}
	return []ratio{share(name, reached, n.Total()-n.Open()), share("opened", s.Opened, n.Sent),
		share("clicked", s.Clicked, n.Sent), share("bounced", n.Bounced, n.Sent+n.Bounced),
		share("unsubscribed", s.Left, n.Sent)}
}

func share(name string, count, whole int) ratio {
	r := ratio{Name: name, Count: count}
	if whole > 0 {
		r.Share = strconv.FormatFloat(100*float64(count)/float64(whole), 'f', 1, 64) + " %"
	}
	return r
}

// resendChoice is a group of people that a campaign can be sent to again.
type resendChoice struct{ To, Words string }

var resendChoices = []resendChoice{{"failed", "recipients whose email failed"},
	{"inDoubt", "recipients in doubt"}, {"notOpened", "recipients who haven’t opened it"},
	{"newcomers", "people who subscribed since then"}}

// verbsOf are the actions that the page offers in each state. You can read and copy a campaign in all states.
var verbsOf = map[string][]string{
	api.CampaignDraft:     {"send", "edit", "try", "delete"},
	api.CampaignScheduled: {"send", "edit", "try", "cancel", "delete"},
	api.CampaignSending:   {"pause", "cancel"},
	api.CampaignPaused:    {"resume", "edit", "try", "cancel"},
	api.CampaignHeld:      {"resume", "pause", "edit", "try", "cancel"},
	api.CampaignSent:      {"resend", "recount", "delete"},
	api.CampaignCancelled: {"resend", "recount", "delete"},
	api.CampaignFailed:    {"delete"},
}

// Can reports whether an action is possible now. A campaign that was never started has no recipients to count
// or to send it to again.
func (v campaignView) Can(verb string) bool {
	return slices.Contains(verbsOf[v.State], verb) && (v.Run > 0 || verb != "resend" && verb != "recount")
}

// Undecided reports whether you can still choose the winner.
func (v campaignView) Undecided() bool {
	return len(v.Stats.Variants) > 0 && v.Run == 1 && v.Stats.Winner == "" && api.CampaignUnderWay(v.State) &&
		(v.Test == nil || v.Test.Share < 1)
}

// Offered returns the segments that can be made from its recipients, if it was started.
func (v campaignView) Offered() []offeredSegment {
	if v.Run == 0 {
		return nil
	}
	return offeredSegments(v.ID())
}

// Live reports whether the numbers of the campaign may change without a visit.
func (v campaignView) Live() bool { return v.State != api.CampaignDraft }

func (v campaignView) PublicPath() string {
	return v.ArchiveURL[max(0, strings.LastIndex(v.ArchiveURL, "/archive/")):]
}

// ID returns the campaign's ID.
func (v campaignView) ID() string { return v.Campaign.Campaign }

// Now returns the numbers of recipients by state. It prefers the statistics, which are newer.
func (v campaignView) Now() api.CampaignStates {
	if v.Stats.Campaign == "" {
		return v.States
	}
	return v.Stats.States
}

// Numbers returns the number of recipients of each state that isn't empty.
func (v campaignView) Numbers() []stateCount {
	s := v.Now()
	all := []stateCount{{"waiting", s.Waiting}, {"sending", s.Sending}, {"deferred", s.Deferred},
		{"sent", s.Sent}, {"suppressed", s.Suppressed}, {"unsubscribed", s.Unsubscribed}, {"bounced", s.Bounced},
		{"failed", s.Failed}, {"inDoubt", s.InDoubt}, {"cancelled", s.Cancelled}}
	return slices.DeleteFunc(all, func(c stateCount) bool { return c.Count == 0 })
}

type stateCount struct {
	State string
	Count int
}

// Known returns what was reported about the emails, apart from the headline.
func (v campaignView) Known() []stateCount {
	s := v.Stats
	all := []stateCount{{"total opens", s.OpenedTotal}, {"opened by bots", s.OpenedBots},
		{"total clicks", s.ClickedTotal}, {"clicked by bots", s.ClickedBots}, {"complained", s.Complained}}
	return slices.DeleteFunc(all, func(c stateCount) bool { return c.Count == 0 })
}

func (u *UI) campaign(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	info, err := u.Campaigns.Get(r.Context(), boundTo(r), id)
	if err != nil {
		return err
	}
	v := campaignView{CampaignInfo: info, Resend: resendChoices}
	if info.Run > 0 {
		v.Only, _ = strconv.Atoi(r.URL.Query().Get("run")) // anything else: all runs
		if v.Stats, err = u.Campaigns.Stats(r.Context(), boundTo(r), id, v.Only); err != nil {
			return err
		}
	}
	if v.Can("send") {
		v.Asked = r.URL.Query().Has("check") || r.URL.Query().Get("part") == "check"
		if v.Check, err = u.inspect(r, id, v.Asked); err != nil {
			return err
		}
	}
	return u.show(w, r, http.StatusOK, "campaign", info.Name, v)
}

// inspect checks a campaign. asks also asks the DNS and the links, which takes longer.
func (u *UI) inspect(r *http.Request, id string, asks bool) (*newsletter.Inspection, error) {
	found, err := u.Campaigns.Inspect(r.Context(), boundTo(r), id)
	if err == nil && asks {
		found.CampaignCheck, err = u.Campaigns.Check(r.Context(), boundTo(r), id)
	}
	return &found, err
}

func campaignPath(id string) string { return "/campaigns/" + url.PathEscape(id) }

// sendCampaign starts a campaign, now or at a time.
func (u *UI) sendCampaign(w http.ResponseWriter, r *http.Request) error {
	at := campaignPath(r.PathValue("id"))
	when, err := readMoment(r.PostForm.Get("at"))
	if err != nil {
		return undone(w, r, at, wrongField("at", "must be a date and time such as 2026-01-31T08:30"))
	}
	start := api.CampaignStart{Token: grantOf(r).QuotaID, TokenQuota: grantOf(r).Quota}
	if !when.IsZero() {
		start.At = when.UTC().Format(time.RFC3339)
	}
	run, err := u.Campaigns.Send(r.Context(), boundTo(r), r.PathValue("id"), start)
	return u.ran(w, r, run, err)
}

// ran redirects to the campaign's page and shows its new state.
func (u *UI) ran(w http.ResponseWriter, r *http.Request, run api.CampaignRun, err error) error {
	at := campaignPath(r.PathValue("id"))
	return told(w, r, at, at, err, "The campaign is now %s.", run.State)
}

// simply returns a handler for an action that needs only the campaign's ID.
func (u *UI) simply(verb func(context.Context, string, string) (api.CampaignRun, error)) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		run, err := verb(r.Context(), boundTo(r), r.PathValue("id"))
		return u.ran(w, r, run, err)
	}
}

func (u *UI) decideCampaign(w http.ResponseWriter, r *http.Request) error {
	run, err := u.Campaigns.Winner(r.Context(), boundTo(r), r.PathValue("id"), api.CampaignWinner{
		Variant: r.PostForm.Get("variant")})
	return u.ran(w, r, run, err)
}

func (u *UI) resendCampaign(w http.ResponseWriter, r *http.Request) error {
	run, err := u.Campaigns.Resend(r.Context(), boundTo(r), r.PathValue("id"), api.CampaignResend{
		To: r.PostForm.Get("to"), Subject: strings.TrimSpace(r.PostForm.Get("subject")),
		Token: grantOf(r).QuotaID, TokenQuota: grantOf(r).Quota})
	if err == nil && run.Reason != "" {
		return done(w, r, campaignPath(r.PathValue("id")), "%s.", run.Reason)
	}
	return u.ran(w, r, run, err)
}

// testCampaign sends a campaign to the addresses of a form. Commas or spaces separate them.
func (u *UI) testCampaign(w http.ResponseWriter, r *http.Request) error {
	at := campaignPath(r.PathValue("id"))
	tested, err := u.Campaigns.Test(r.Context(), boundTo(r), r.PathValue("id"), api.CampaignTest{
		To: listed(r.PostForm.Get("to")), Variant: r.PostForm.Get("variant"),
		Subscriber: strings.TrimSpace(r.PostForm.Get("subscriber")),
		Token:      grantOf(r).QuotaID, TokenQuota: grantOf(r).Quota})
	if err != nil {
		return undone(w, r, at, err)
	}
	var barred []string
	for _, mail := range tested.Sent {
		if mail.QueueID == "" {
			barred = append(barred, mail.To)
		}
	}
	if len(barred) > 0 {
		return done(w, r, at, "Test sent, except to suppressed addresses: %s.", strings.Join(barred, ", "))
	}
	return done(w, r, at, "%s sent.", plural(len(tested.Sent), "test email", "test emails"))
}

// listed splits a field at commas, semicolons and spaces.
func listed(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' || r <= ' ' })
}

func (u *UI) settleCampaign(w http.ResponseWriter, r *http.Request) error {
	at := campaignPath(r.PathValue("id"))
	settled, err := u.Campaigns.Settle(r.Context(), boundTo(r), r.PathValue("id"),
		api.CampaignSettle{All: true})
	return told(w, r, at, at, err, "%s as sent.",
		plural(settled.Settled, "recipient marked", "recipients marked"))
}

func (u *UI) recountCampaign(w http.ResponseWriter, r *http.Request) error {
	at := campaignPath(r.PathValue("id"))
	got, err := u.Campaigns.Recount(r.Context(), boundTo(r), r.PathValue("id"))
	switch {
	case err != nil:
		return undone(w, r, at, err)
	case got.Changed:
		return done(w, r, at, "A counter was wrong. Postroom corrected it.")
	}
	return done(w, r, at, "The counters are correct.")
}

// archiveCampaign publishes a campaign as a web page, or removes the page.
func (u *UI) archiveCampaign(w http.ResponseWriter, r *http.Request) error {
	id, on := r.PathValue("id"), r.PostForm.Has("archive")
	_, err := u.Campaigns.Update(r.Context(), boundTo(r), id, api.CampaignPatch{Archive: &on})
	switch {
	case err != nil:
		return undone(w, r, campaignPath(id), err)
	case on:
		return done(w, r, campaignPath(id), "The campaign gets a public page after it is sent to a public list.")
	}
	return done(w, r, campaignPath(id), "The campaign has no public page.")
}

func (u *UI) deleteCampaign(w http.ResponseWriter, r *http.Request) error {
	deleted, err := u.Campaigns.Delete(r.Context(), boundTo(r), r.PathValue("id"))
	return removed(w, r, campaignPath(r.PathValue("id")), "/campaigns", deleted, err,
		"Campaign "+r.PathValue("id")+" deleted.")
}

func (u *UI) copyCampaign(w http.ResponseWriter, r *http.Request) error {
	made, err := u.Campaigns.Copy(r.Context(), boundTo(r), r.PathValue("id"), api.CampaignCopy{
		Name: strings.TrimSpace(r.PostForm.Get("name"))})
	if err != nil {
		return undone(w, r, campaignPath(r.PathValue("id")), err)
	}
	noteMade(r, made)
	return done(w, r, campaignPath(made.Campaign.Campaign), "Copy created. This is the draft.")
}
