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
)

// campaignStates are the choices of the filter.
var campaignStates = []string{api.CampaignDraft, api.CampaignScheduled, api.CampaignSending,
	api.CampaignPaused, api.CampaignHeld, api.CampaignSent, api.CampaignCancelled, api.CampaignFailed}

type campaignsView struct {
	Query     api.CampaignQuery
	States    []string
	Campaigns []api.CampaignInfo
	Pager     pager
	Part      string // URL of the rows, for the script; empty: nothing changes by itself
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
	v.Campaigns = got.Campaigns
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
	Stats  api.CampaignStats  // zero if it was never begun
	Only   int                // the run that the numbers are of; 0: all together
	Check  *api.CampaignCheck // nil: the visitor did not ask
	Resend []resendChoice
}

// resendChoice is a group of people whom a campaign may be sent to again.
type resendChoice struct{ To, Words string }

var resendChoices = []resendChoice{{"failed", "those it failed for"}, {"inDoubt", "those in doubt"},
	{"notOpened", "those not known to have opened it"}, {"newcomers", "those who subscribed since"}}

// verbsOf are what the page of a campaign offers in a state, besides reading and copying it.
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

// Can reports whether something can be done with the campaign now. One that was never begun has nobody to
// send it to again or to count.
func (v campaignView) Can(verb string) bool {
	return slices.Contains(verbsOf[v.State], verb) && (v.Run > 0 || verb != "resend" && verb != "recount")
}

// Undecided reports whether a winner can be chosen by hand.
func (v campaignView) Undecided() bool {
	return len(v.Stats.Variants) > 0 && v.Run == 1 && v.Stats.Winner == "" && api.CampaignUnderWay(v.State) &&
		(v.Test == nil || v.Test.Share < 1)
}

// Offered returns the segments that can be made of its people, if it was begun.
func (v campaignView) Offered() []offeredSegment {
	if v.Run == 0 {
		return nil
	}
	return offeredSegments(v.ID())
}

// Live reports whether the numbers of the campaign may change by themselves.
func (v campaignView) Live() bool { return v.State != api.CampaignDraft }

func (v campaignView) PublicPath() string {
	return v.ArchiveURL[max(0, strings.LastIndex(v.ArchiveURL, "/archive/")):]
}

// ID returns the id of the campaign.
func (v campaignView) ID() string { return v.Campaign.Campaign }

// Now returns the numbers of recipients by state: of the statistics, which are newer, if there are any.
func (v campaignView) Now() api.CampaignStates {
	if v.Stats.Campaign == "" {
		return v.States
	}
	return v.Stats.States
}

// Numbers returns the recipients of all states that have some.
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

// Known returns what became known of the mail after it was sent.
func (v campaignView) Known() []stateCount {
	s := v.Stats
	all := []stateCount{{"delivered", s.Delivered}, {"opened", s.Opened}, {"opens in all", s.OpenedTotal},
		{"opened by programs", s.OpenedBots}, {"clicked", s.Clicked}, {"clicks in all", s.ClickedTotal},
		{"clicked by programs", s.ClickedBots}, {"complained", s.Complained}, {"left", s.Left}}
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
	if r.URL.Query().Has("check") {
		check, err := u.Campaigns.Check(r.Context(), boundTo(r), id)
		if err != nil {
			return err
		}
		v.Check = &check
	}
	return u.show(w, r, http.StatusOK, "campaign", info.Name, v)
}

func campaignPath(id string) string { return "/campaigns/" + url.PathEscape(id) }

// sendCampaign begins a campaign, now or at a time.
func (u *UI) sendCampaign(w http.ResponseWriter, r *http.Request) error {
	at := campaignPath(r.PathValue("id"))
	when, err := readMoment(r.PostForm.Get("at"))
	if err != nil {
		return undone(w, r, at, wrongField("at", "is not a date and time such as 2026-01-31T08:30"))
	}
	start := api.CampaignStart{Token: grantOf(r).QuotaID, TokenQuota: grantOf(r).Quota}
	if !when.IsZero() {
		start.At = when.UTC().Format(time.RFC3339)
	}
	run, err := u.Campaigns.Send(r.Context(), boundTo(r), r.PathValue("id"), start)
	return u.ran(w, r, run, err)
}

// ran leads to the page of a campaign, and says in which state a verb left it.
func (u *UI) ran(w http.ResponseWriter, r *http.Request, run api.CampaignRun, err error) error {
	at := campaignPath(r.PathValue("id"))
	return told(w, r, at, at, err, "The campaign is %s.", run.State)
}

// simply runs a verb of campaigns that needs no more than their id.
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

// testCampaign mails a campaign to the addresses of a form, which are separated by commas or spaces.
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
		return done(w, r, at, "Mailed, but not to %s: suppressed.", strings.Join(barred, ", "))
	}
	return done(w, r, at, "%s on the way.", plural(len(tested.Sent), "mail is", "mails are"))
}

// listed returns the words of a field.
func listed(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' || r <= ' ' })
}

func (u *UI) settleCampaign(w http.ResponseWriter, r *http.Request) error {
	at := campaignPath(r.PathValue("id"))
	settled, err := u.Campaigns.Settle(r.Context(), boundTo(r), r.PathValue("id"),
		api.CampaignSettle{All: true})
	return told(w, r, at, at, err, "%s as sent now.",
		plural(settled.Settled, "recipient counts", "recipients count"))
}

func (u *UI) recountCampaign(w http.ResponseWriter, r *http.Request) error {
	at := campaignPath(r.PathValue("id"))
	got, err := u.Campaigns.Recount(r.Context(), boundTo(r), r.PathValue("id"))
	switch {
	case err != nil:
		return undone(w, r, at, err)
	case got.Changed:
		return done(w, r, at, "A counter was wrong, and is right now.")
	}
	return done(w, r, at, "The counters are right.")
}

// archiveCampaign gives a campaign a public page, or takes it away.
func (u *UI) archiveCampaign(w http.ResponseWriter, r *http.Request) error {
	id, on := r.PathValue("id"), r.PostForm.Has("archive")
	_, err := u.Campaigns.Update(r.Context(), boundTo(r), id, api.CampaignPatch{Archive: &on})
	switch {
	case err != nil:
		return undone(w, r, campaignPath(id), err)
	case on:
		return done(w, r, campaignPath(id), "It has a public page, once it was sent to a public list.")
	}
	return done(w, r, campaignPath(id), "It has no public page.")
}

func (u *UI) deleteCampaign(w http.ResponseWriter, r *http.Request) error {
	deleted, err := u.Campaigns.Delete(r.Context(), boundTo(r), r.PathValue("id"))
	return removed(w, r, campaignPath(r.PathValue("id")), "/campaigns", deleted, err,
		"The campaign "+r.PathValue("id")+" was deleted.")
}

func (u *UI) copyCampaign(w http.ResponseWriter, r *http.Request) error {
	made, err := u.Campaigns.Copy(r.Context(), boundTo(r), r.PathValue("id"), api.CampaignCopy{
		Name: strings.TrimSpace(r.PostForm.Get("name"))})
	if err != nil {
		return undone(w, r, campaignPath(r.PathValue("id")), err)
	}
	noteMade(r, made)
	return done(w, r, campaignPath(made.Campaign.Campaign), "This is the copy.")
}
