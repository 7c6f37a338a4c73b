package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

func campaignVerbs() []verb {
	return []verb{
		{name: "list", help: "List the campaigns (the default).",
			run: list(api.ListCampaigns, "no campaigns; to add one: postroom campaign add --help", campaignsGrid)},
		{name: "show", help: "Show one campaign.", run: show(api.GetCampaign, campaignFacts)},
		{name: "add", help: "Create the draft of a campaign.", run: &campaignAddCmd{},
			more: `Examples:
  postroom campaign add 'Spring news' --list news --subject 'Spring is here' --html spring.html
  postroom campaign add Offer --list news --segment customers --markdown offer.md --rate 20
  postroom campaign send spring-news --at 2030-03-20T08:00`},
		{name: "update", help: "Change a campaign.", run: &campaignUpdateCmd{}},
		{name: "delete", help: "Delete a campaign and its recipient data.",
			run: &deleteCmd[api.Deleted]{route: api.DeleteCampaign, what: "campaign",
				consequence: " with all that is known of its recipients"}},
		{name: "copy", help: "Copy a campaign's content and audience to a draft.", run: &campaignCopyCmd{}},
		{name: "check", help: "Check whether a campaign is ready to send.", run: asks(campaignCheck)},
		{name: "preview", help: "Render the email for one subscriber.", run: &campaignPreviewCmd{}},
		{name: "test", help: "Send a test email to some addresses.", run: &campaignTestCmd{}},
		{name: "send", help: "Send a campaign now or later.", run: &campaignSendCmd{}},
		{name: "watch", help: "Show the progress of a campaign until it finishes.", run: asks(campaignWatch),
			more: `It ends when the campaign does, with exit code 0 if it was sent; and when it is held, which needs
somebody to look at it. Ctrl-C ends the watching, not the campaign.`},
		{name: "pause", help: "Pause a campaign.",
			run: &campaignRunCmd{route: api.PauseCampaign}},
		{name: "resume", help: "Resume a campaign.",
			run: &campaignRunCmd{route: api.ResumeCampaign}},
		{name: "cancel", help: "Cancel a campaign for everyone who hasn't received it yet.",
			run: &campaignRunCmd{route: api.CancelCampaign}},
		{name: "recipients", help: "Show the result for each recipient of a campaign.",
			run: &campaignRecipientsCmd{filter: filterOf[api.CampaignRecipientQuery]()}},
		{name: "winner", help: "Choose the winner of a campaign's test.", run: &campaignWinnerCmd{}},
		{name: "resend", help: "Send a campaign again to some of its recipients.", run: &campaignResendCmd{}},
		{name: "stats", help: "Show the statistics of a campaign.", run: &campaignStatsCmd{}},
	}
}

func campaignsGrid(list []api.CampaignInfo, now time.Time) grid {
	g := newGrid("campaign", "name", "account", "state", "done", "sent", "bounced", "failed", "when")
	for _, c := range list {
		n := c.States
		g.add(c.Campaign.Campaign, clip(c.Name, 40), c.Account, c.State, campaignDone(n), n.Sent, n.Bounced,
			n.Failed, moment(*campaignWhen(c), now))
	}
	return g
}

// campaignDone returns how many of the recipients have an end.
func campaignDone(n api.CampaignStates) string {
	total := n.Total()
	if total == 0 {
		return "-"
	}
	return fmt.Sprintf("%d of %d", total-n.Open(), total)
}

// campaignWhen returns the time of a campaign that its list shows: when it ended, began or begins, else when
// it was changed.
func campaignWhen(c api.CampaignInfo) *time.Time {
	if c.State == api.CampaignScheduled && c.At != nil {
		return c.At
	}
	return cmp.Or(c.Ended, c.Started, &c.Updated)
}

func campaignFacts(c api.CampaignInfo, now time.Time) grid {
	g := newGrid("campaign", c.Campaign.Campaign)
	g.add("name", c.Name)
	g.add("account", c.Account)
	g.add("state", c.State+noteIf(c.Reason != "", ", %s", c.Reason)+colon(c.Detail)+waitWords(c.Waits))
	when := func(name string, at *time.Time) {
		if at != nil {
			g.add(name, stamp(*at, now))
		}
	}
	g.fact("run", noteIf(c.Run > 0, "%d", c.Run))
	when("begins", c.At)
	when("began", c.Started)
	when("ended", c.Ended)
	campaignContent(&g, c.CampaignContent)
	for _, names := range []struct {
		fact string
		ids  []string
	}{{"lists", c.Lists}, {"segments", c.Segments}, {"without lists", c.ExcludeLists},
		{"without segments", c.ExcludeSegments}, {"without campaigns", c.ExcludeCampaigns}} {
		g.fact(names.fact, strings.Join(names.ids, ", "))
	}
	g.fact("rate", noteIf(c.Rate > 0, "%g mails a second at most", c.Rate))
	g.fact("window", windowWords(c.Window))
	when("ends at", c.EndAt)
	g.fact("events", c.Events)
	g.fact("email log", noteIf(c.KeepLog, "its mail enters it"))
	g.fact("public page", cmp.Or(c.ArchiveURL, noteIf(c.Archive && len(c.Warnings) == 0, "once it was sent")))
	for _, w := range c.Warnings {
		g.fact("warning", w.Message)
	}
	for _, n := range campaignNumbers(c.States) {
		g.fact(n.state, noteIf(n.n > 0, "%d", n.n))
	}
	g.add("version", c.Version)
	g.add("created", moment(c.Created, now))
	g.add("changed", moment(c.Updated, now))
	return g
}

func campaignContent(g *grid, c api.CampaignContent) {
	if c.From != nil {
		g.add("from", strings.TrimSpace(c.From.Name+" <"+c.From.Address+">"))
	}
	for _, a := range c.ReplyTo {
		g.add("replies to", a.Address)
	}
	g.fact("subject", c.Subject)
	g.fact("preview text", c.PreviewText)
	g.fact("template", c.Template)
	format := "html"
	if c.Render != nil {
		format = cmp.Or(c.Render.Format, format)
	}
	g.fact(format, noteIf(c.HTML != "", "%s", plural(len(c.HTML), "byte")))
	g.fact("text", noteIf(c.Text != "", "%s", plural(len(c.Text), "byte")))
	g.fact("gateway", c.Gateway)
	g.fact("locale", c.Locale)
	g.fact("time zone", c.TZ)
	g.fact("tags", strings.Join(c.Tags, ", "))
	g.fact("metadata", string(c.Metadata))
	g.fact("fallbacks", string(c.Fallbacks))
	for _, tracked := range []struct {
		what string
		on   *bool
	}{{"opens", c.TrackOpens}, {"clicks", c.TrackClicks}} {
		if tracked.on != nil {
			g.add(tracked.what, map[bool]string{true: "tracked", false: "not tracked"}[*tracked.on])
		}
	}
}

// windowWords says when a campaign is sent; empty: at any time.
func windowWords(w *api.CampaignWindow) string {
	if w == nil {
		return ""
	}
	text := w.From + " to " + w.Until
	if len(w.Days) > 0 {
		text = strings.Join(w.Days, " ") + ", " + text
	}
	return text + noteIf(w.Of == "recipient", ", by the clock of each recipient")
}

type stateNumber struct {
	state string
	n     int
}

// campaignNumbers returns the recipients of all states, in the order in which mail goes through them.
func campaignNumbers(s api.CampaignStates) []stateNumber {
	return []stateNumber{{"waiting", s.Waiting}, {"sending", s.Sending}, {"deferred", s.Deferred},
		{"sent", s.Sent}, {"suppressed", s.Suppressed}, {"unsubscribed", s.Unsubscribed}, {"bounced", s.Bounced},
		{"failed", s.Failed}, {"in doubt", s.InDoubt}, {"cancelled", s.Cancelled}}
}

// numbersLine returns the numbers that are not zero in one line.
func numbersLine(s api.CampaignStates) string {
	var words []string
	for _, n := range campaignNumbers(s) {
		if n.n > 0 {
			words = append(words, strconv.Itoa(n.n)+" "+n.state)
		}
	}
	return cmp.Or(strings.Join(words, ", "), "no recipients")
}
