package main

import (
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
)

// webhookStatsCmd shows the numbers of an endpoint.
type webhookStatsCmd struct {
	ID    string `arg:"" help:"Id of the endpoint."`
	Hours int    `default:"24" help:"How many hours, back from now; 1 to 720."`
}

// Run shows the numbers of an endpoint.
func (w *webhookStatsCmd) Run(s *session) error {
	if w.Hours < 1 || w.Hours > 720 {
		return usage("--hours: %d is not from 1 to 720", w.Hours)
	}
	a, err := api.GetEndpointStats.Do(s, s.client, api.EndpointStatsQuery{Hours: w.Hours}, w.ID)
	g := newGrid("hour (UTC)", "requests", "delivered", "retried", "failed", "success", "mean", "slowest")
	add := func(when string, c api.EndpointCounts) {
		g.add(when, c.Requests, c.Delivered, c.Retried, c.Failed, fmt.Sprintf("%.1f %%", 100*c.SuccessRate),
			fmt.Sprintf("%d ms", c.Latency), fmt.Sprintf("%d ms", c.Slowest))
	}
	for _, h := range a.Hours {
		add(h.Hour.UTC().Format("2006-01-02 15:04"), h.EndpointCounts)
	}
	if len(a.Hours) > 0 {
		add("all", a.EndpointCounts)
	}
	return s.table(a, err, fmt.Sprintf("no request within the last %d hours", w.Hours), g, "")
}

// webhookReplayCmd replays events.
type webhookReplayCmd struct {
	ID    string `arg:"" help:"Id of the endpoint."`
	Since string `placeholder:"WHEN" help:"Send the events of this time and later: 2h, 7d, or 2026-11-21T10:00:00Z. Default: show how far the last replay is."`
	Wait  bool   `help:"Wait for the end."`
}

// Run starts a replay, or shows the last one.
func (w *webhookReplayCmd) Run(s *session) error {
	since, err := optionalTime("--since", w.Since, parseSince)
	if err == nil && since != nil {
		_, err = api.ReplayEndpoint.Do(s, s.client, api.EndpointReplay{Since: *since, Background: true}, w.ID)
	}
	if err != nil {
		return err
	}
	a, err := api.GetEndpointReplay.Do(s, s.client, w.ID)
	for w.Wait && err == nil && a.State == "running" {
		if !redisdb.Pause(s, time.Second) {
			return s.Err()
		}
		a, err = api.GetEndpointReplay.Do(s, s.client, w.ID)
	}
	return s.answer(a, err, func() {
		s.say("%s, %d %%: %d events since %s%s", a.State, a.Progress, a.Replayed,
			a.Since.UTC().Format(time.RFC3339), colon(a.Error))
	})
}

// webhookDeliveryCmd shows a delivery.
type webhookDeliveryCmd struct {
	ID       string `arg:"" help:"Id of the endpoint."`
	Delivery string `arg:"" help:"Id of the delivery."`
}

// Run shows a delivery.
func (w *webhookDeliveryCmd) Run(s *session) error {
	d, err := api.GetDelivery.Do(s, s.client, w.ID, w.Delivery)
	return s.answer(d, err, func() {
		s.say("%s of message %s: %s after %d attempts", d.Event, orDash(d.QueueID), d.Status, d.Attempts)
		g, now := newGrid("attempt", "at", "answer", "took", "error", "response"), time.Now()
		for _, a := range d.Log {
			g.add(a.Number, moment(a.Date, now), a.StatusCode, fmt.Sprintf("%d ms", a.Latency),
				orDash(clip(a.Error, 60)),
				orDash(clip(a.Response, 120)))
		}
		s.show(g)
		s.say("%s", d.Body)
	})
}

// webhookRedeliverCmd sends a delivery again.
type webhookRedeliverCmd struct {
	ID       string `arg:"" help:"Id of the endpoint."`
	Delivery string `arg:"" help:"Id of the delivery."`
}

// Run sends a delivery again.
func (w *webhookRedeliverCmd) Run(s *session) error {
	a, err := api.Redeliver.Do(s, s.client, w.ID, w.Delivery)
	return s.said(a, err, "on its way again as %s", a.ID)
}
