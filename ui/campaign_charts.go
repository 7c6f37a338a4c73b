package ui

import (
	"html/template"
	"strings"
	"time"

	"github.com/postroom/postroom/ui/chart"
)

// HourChart returns the emails, opens and clicks of the last run by hour.
func (v campaignView) HourChart() (template.HTML, error) {
	c := chart.Bars{ID: "hours", Title: "Emails, opens and clicks by hour", Step: time.Hour,
		Names: []string{"sent", "opens", "clicks"}}
	for _, h := range v.Stats.Hours {
		c.Points = append(c.Points, chart.Point{At: h.Hour, Values: []int{h.Sent, h.Opens, h.Clicks}})
	}
	return c.HTML()
}

// VariantChart returns the shares of each variant's recipients who opened it and clicked in it.
func (v campaignView) VariantChart() (template.HTML, error) {
	c := chart.Shares{ID: "outcomes", Title: "Opens and clicks by variant, as shares of its recipients",
		Of: "Variant", Names: []string{"opened", "clicked"}, Relative: true}
	for _, o := range v.Stats.Variants {
		c.Rows = append(c.Rows, chart.Share{Label: o.Variant, Values: []int{o.Opened, o.Clicked},
			Whole: o.States.Sent})
	}
	return c.HTML()
}

// LinkChart returns the clicks of each link.
func (v campaignView) LinkChart() (template.HTML, error) {
	c := chart.Shares{ID: "links", Title: "Clicks by link", Of: "Link",
		Names: []string{"clicks"}}
	for _, l := range v.Stats.Links {
		c.Rows = append(c.Rows, chart.Share{Label: strings.TrimPrefix(l.URL, "https://"), Values: []int{l.Clicks},
			Whole: v.Stats.ClickedTotal})
	}
	return c.HTML()
}

// DomainChart returns the results by recipient domain.
func (v campaignView) DomainChart() (template.HTML, error) {
	c := chart.Shares{ID: "domains", Title: "Recipients by domain", Of: "Domain",
		Names: []string{"sent", "bounced or failed", "opened", "clicked"}}
	for _, d := range v.Stats.Domains {
		c.Rows = append(c.Rows, chart.Share{Label: d.Domain, Values: []int{d.Sent,
			d.Bounced + d.Failed, d.Opened, d.Clicked},
			Whole: d.Sent + d.Bounced + d.Failed})
	}
	return c.HTML()
}
