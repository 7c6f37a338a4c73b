package ui

import (
	"cmp"
	"html/template"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/smtpsend/replies"
	"github.com/postroom/postroom/ui/chart"
)

// overviewView is the first page: whether mail flows, what is wrong, and where to fix it.
type overviewView struct {
	api.Overview
	Asked string            // account of the URL; empty: none
	names map[string]string // descriptions of endpoints, by id
}

// section returns the menu entry of the page.
func (overviewView) section() string { return "overview" }

// Periods returns the choices of the period.
func (overviewView) Periods() []struct {
	Days int
	Text string
} {
	return []struct {
		Days int
		Text string
	}{{1, "24 hours"}, {7, "7 days"}, {30, "30 days"}}
}

// overviewDays are the periods, as queries have them.
var overviewDays = map[string]int{"": 1, "1": 1, "7": 7, "30": 30}

// overview shows the overview, or the part of it that follows the mail.
func (u *UI) overview(w http.ResponseWriter, r *http.Request) error {
	v := r.URL.Query()
	days := overviewDays[v.Get("days")]
	if days == 0 {
		return fault.InvalidField("days", "must be 1, 7 or 30")
	}
	asked := strings.TrimSpace(v.Get("account"))
	account, err := ownAccount(r, asked)
	if err != nil {
		return err
	}
	found, err := u.Overview.Of(r.Context(), account, days)
	if err != nil {
		return err
	}
	view := overviewView{found, asked, map[string]string{}}
	for _, t := range found.Troubles {
		if t.Kind != "endpoint" {
			continue
		}
		e, err := u.Webhooks.Endpoint(r.Context(), t.ID)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
		view.names[t.ID] = e.Description
	}
	return u.show(w, r, http.StatusOK, "overview", "Overview", view)
}

// Name returns the name of what has a problem: an endpoint's description, else the id.
func (v overviewView) Name(t api.OverviewTrouble) string { return cmp.Or(v.names[t.ID], t.ID) }

// Colour returns the class of the chip for the flow.
func (v overviewView) Colour() string {
	return map[string]string{api.FlowSending: "sent", api.FlowIdle: "waiting", api.FlowLate: "failed",
		api.FlowStuck: "failed", api.FlowPaused: "paused"}[v.Flow.State]
}

// AcceptedChart returns the recipients that Postroom accepted.
func (v overviewView) AcceptedChart() (template.HTML, error) {
	c := chart.Bars{ID: "accepted", Title: "Recipients of accepted mail", Step: v.step(),
		Names: []string{"accepted"}}
	for _, b := range v.Bars {
		c.Points = append(c.Points, chart.Point{At: b.Time, Values: []int{b.Accepted}})
	}
	return c.HTML()
}

// ResultChart returns the results of sending.
func (v overviewView) ResultChart() (template.HTML, error) {
	c := chart.Bars{ID: "results", Title: "Recipients whose mail was sent, failed or bounced", Step: v.step(),
		Names: []string{"sent", "failed", "bounced"}}
	for _, b := range v.Bars {
		c.Points = append(c.Points, chart.Point{At: b.Time, Values: []int{b.Sent, b.Failed, b.Bounced}})
	}
	return c.HTML()
}

// failureRow is a row of the failures: what the replies mean, with the newest of them.
type failureRow struct {
	api.OverviewReason
	Why api.Explanation
}

// Why returns the reasons of failures by what the replies mean, most frequent first. Replies without an
// explanation stay apart.
func (v overviewView) Why() (rows []failureRow) {
	for _, r := range v.Failures.Reasons {
		why := replies.Explain(r.Text)
		i := slices.IndexFunc(rows, func(row failureRow) bool {
			return row.Why.Reason == why.Reason && why.Reason != "unknown"
		})
		if i < 0 {
			rows = append(rows, failureRow{r, why})
			continue
		}
		rows[i].Messages += r.Messages
	}
	slices.SortStableFunc(rows, func(a, b failureRow) int { return cmp.Compare(b.Messages, a.Messages) })
	return rows
}

// Replay returns the URL of the page that replays the failed messages of a row.
func (v overviewView) Replay(row failureRow) string {
	f := replayFilter{filter: filter{State: api.Failed, Account: v.Account}}
	if row.Why.Reason == "unknown" {
		return f.Because("")
	}
	return f.Because(row.Why.Reason)
}

func (v overviewView) step() time.Duration { return v.Bars[1].Time.Sub(v.Bars[0].Time) }

// rateStates are the states of rates: the class and the text of their chip.
var rateStates = map[string]struct{ Class, Text string }{
	"good": {"sent", "good"}, "few": {"waiting", "too few to judge"}, "high": {"delayed", "high"},
	"over": {"failed", "over the limit"},
}

type playbooksView struct {
	Sections []playbook
	HTML     template.HTML
}

// playbook is a section of the playbooks; its title is HTML.
type playbook struct {
	ID    string
	Title template.HTML
}

// section returns the entry of the navigation that the page belongs to.
func (playbooksView) section() string { return "overview" }

var sectionHeading = regexp.MustCompile(`<h2 id="([^"]+)">(.+)</h2>`)

// playbooks shows what to do about each problem, as the guide does.
func (u *UI) playbooks(w http.ResponseWriter, r *http.Request) error {
	page, err := readGuide("playbooks")
	if err != nil {
		return err
	}
	v := playbooksView{HTML: page.HTML}
	for _, found := range sectionHeading.FindAllStringSubmatch(string(page.HTML), -1) {
		v.Sections = append(v.Sections, playbook{found[1], template.HTML(found[2])})
	}
	return u.show(w, r, http.StatusOK, "playbooks", page.Title, v)
}
