package ui

import (
	"html/template"
	"time"

	"github.com/postroom/postroom/ui/chart"
)

// step returns the time that a bar of the numbers is of, so that 30 bars at most are drawn.
func (v endpointView) step() time.Duration {
	switch {
	case v.Hours <= 24:
		return time.Hour
	case v.Hours <= 168:
		return 6 * time.Hour
	}
	return 24 * time.Hour
}

// ResultChart returns what came of the requests, over time.
func (v endpointView) ResultChart() (template.HTML, error) {
	c := chart.Bars{ID: "results", Title: "Requests by result", Step: v.step(),
		Names: []string{"delivered", "retried", "failed"}}
	for _, h := range v.Stats.Hours {
		c.Points = append(c.Points, chart.Point{At: h.Hour, Values: []int{h.Delivered, h.Retried, h.Failed}})
	}
	return c.HTML()
}

// LatencyChart returns how long requests took, over time: a millisecond at least, so that each has a bar.
func (v endpointView) LatencyChart() (template.HTML, error) {
	c := chart.Bars{ID: "latency", Title: "Mean time of an answer", Step: v.step(), Names: []string{"ms"},
		Levels: true}
	var at time.Time
	requests, took := 0, 0
	add := func() {
		if requests > 0 {
			c.Points = append(c.Points, chart.Point{At: at, Values: []int{max(1, took/requests)}})
		}
	}
	for _, h := range v.Stats.Hours {
		if slot := h.Hour.Truncate(v.step()); !slot.Equal(at) {
			add()
			at, requests, took = slot, 0, 0
		}
		requests, took = requests+h.Requests, took+h.Requests*h.Latency
	}
	add()
	return c.HTML()
}
