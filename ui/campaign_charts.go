package ui

import (
	"html/template"
	"strings"
	"time"

	"github.com/postroom/postroom/ui/chart"
)

// HourChart returns the mails, opens and clicks of the last run by hour.
func (v campaignView) HourChart() (template.HTML, error) {
	c := chart.Bars{ID: "hours", Title: "Mails, opens and clicks by hour", Step: time.Hour,
		Names: []string{"sent", "opens", "clicks"}}
	for _, h := range v.Stats.Hours {
		c.Points = append(c.Points, chart.Point{At: h.Hour, Values: []int{h.Sent, h.Opens, h.Clicks}})
	}
	return c.HTML()
}

// VariantChart returns which share of the people of each variant opened and clicked it.
func (v campaignView) VariantChart() (template.HTML, error) {
	c := chart.Shares{ID: "outcomes", Title: "Who opened and clicked each variant, of those who got it",
		Of: "Variant", Names: []string{"opened", "clicked"}, Relative: true}
	for _, o := range v.Stats.Variants {
		c.Rows = append(c.Rows, chart.Share{Label: o.Variant, Values: []int{o.Opened, o.Clicked},
			Whole: o.States.Sent})
	}
	return c.HTML()
}

// LinkChart returns the clicks of each link.
func (v campaignView) LinkChart() (template.HTML, error) {
	c := chart.Shares{ID: "links", Title: "Clicks by link, the most clicked first", Of: "Link",
		Names: []string{"clicks"}}
	for _, l := range v.Stats.Links {
		c.Rows = append(c.Rows, chart.Share{Label: strings.TrimPrefix(l.URL, "https://"), Values: []int{l.Clicks},
			Whole: v.Stats.ClickedTotal})
	}
	return c.HTML()
}

// DomainChart returns what became of the mail to each domain.
func (v campaignView) DomainChart() (template.HTML, error) {
	c := chart.Shares{ID: "domains", Title: "Recipients by the domain of their address", Of: "Domain",
		Names: []string{"sent", "bounced or failed", "opened", "clicked"}}
	for _, d := range v.Stats.Domains {
		c.Rows = append(c.Rows, chart.Share{Label: d.Domain, Values: []int{d.Sent,
			d.Bounced + d.Failed, d.Opened, d.Clicked},
			Whole: d.Sent + d.Bounced + d.Failed})
	}
	return c.HTML()
}
