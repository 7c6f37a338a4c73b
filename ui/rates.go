package ui

import (
	"html/template"
	"net/http"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/ui/chart"
)

// ratesView is the page with the results of sent messages.
type ratesView struct {
	Query  api.RatesQuery
	Days   string
	Groups []pick // what the numbers can be grouped by
	Rates  api.Rates
	Times  api.Rates // the same over time, for the charts
}

// ratePeriods are the choices of how far back the page looks, in days.
var ratePeriods = map[string]int{"1": 1, "7": 7, "30": 30, "90": 90, "365": 365}

// rateGroups are the choices of what the numbers are grouped by.
var rateGroups = []pick{{ID: "", Name: "nothing"}, {ID: "tag", Name: "tag"}, {ID: "list", Name: "list"},
	{ID: "gateway", Name: "gateway"}, {ID: "domain", Name: "recipient domain"}, {ID: "lane", Name: "stream"},
	{ID: "localAddress", Name: "sending IP address"}}

func (u *UI) rates(w http.ResponseWriter, r *http.Request) error {
	v := r.URL.Query()
	view := ratesView{Days: v.Get("days"), Groups: rateGroups, Query: api.RatesQuery{Account: v.Get("account"),
		By: v.Get("by"), Name: v.Get("name"), Step: v.Get("step")}}
	if ratePeriods[view.Days] == 0 {
		view.Days = "30"
	}
	view.Query.From = time.Now().AddDate(0, 0, -ratePeriods[view.Days])
	var err error
	if view.Query.Account, err = ownAccount(r, view.Query.Account); err != nil {
		return err
	}
	if view.Rates, err = u.Outbox.Counts.Rates(r.Context(), view.Query); err != nil {
		return err
	}
	if collects(r) != nil {
		return u.show(w, r, http.StatusOK, "rates", "Rates", view)
	}
	over := view.Query
	if over.Step = view.step(); over.Name == "" {
		over.By = "" // every message once
	}
	if view.Times, err = u.Outbox.Counts.Rates(r.Context(), over); err != nil {
		return err
	}
	return u.show(w, r, http.StatusOK, "rates", "Rates", view)
}

// step returns the step of the charts.
func (v ratesView) step() string {
	if v.Query.Step == "hour" || v.Days == "1" {
		return "hour"
	}
	return "day"
}

// SentChart returns how many messages were sent over time, and how many bounced.
func (v ratesView) SentChart() (template.HTML, error) {
	return v.chart(chart.Bars{ID: "sent", Title: "Recipients sent to, and bounces",
		Names: []string{"sent", "bounced"}}, func(r api.Rate) []int {
		return []int{r.Sent, r.Hard + r.Soft + r.Blocked}
	})
}

// EngagementChart returns how many recipients reacted, over time.
func (v ratesView) EngagementChart() (template.HTML, error) {
	return v.chart(chart.Bars{ID: "engagement", Title: "Opens, clicks, complaints and unsubscribes",
		Names: []string{"opened", "clicked", "complained", "unsubscribed"}}, func(r api.Rate) []int {
		return []int{r.Opened, r.Clicked, r.Complained, r.Unsubscribed}
	})
}

func (v ratesView) chart(c chart.Bars, values func(api.Rate) []int) (template.HTML, error) {
	c.Step = map[string]time.Duration{"hour": time.Hour, "day": 24 * time.Hour}[v.step()]
	for _, r := range v.Times.Rates {
		if r.Time != nil {
			c.Points = append(c.Points, chart.Point{At: *r.Time, Values: values(r)})
		}
	}
	return c.HTML()
}

// Share returns a number as a share of those that were sent.
func (v ratesView) Share(n, sent int) string { return share("", n, sent).Share }

// Bounced returns the bounces of all kinds.
func (v ratesView) Bounced(r api.Rate) int { return r.Hard + r.Soft + r.Blocked }
