package main

import (
	"context"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
)

// feedbackCmd shows who told what about sent mail.
type feedbackCmd struct{ reachFlags }

// Run shows who told what.
func (f *feedbackCmd) Run(ctx context.Context, con *console) error {
	client, err := f.client()
	if err != nil {
		return err
	}
	status, err := api.GetFeedback.Do(ctx, client)
	if err != nil {
		return err
	}
	if f.JSON {
		return con.printJSON(status)
	}
	con.feedback(status, time.Now())
	return nil
}

func (c *console) feedback(s api.FeedbackStatus, now time.Time) {
	c.line("Waiting", fmt.Sprintf("%d bounces, complaints and unsubscriptions; %d deliveries; %d opens and clicks", s.Inbox.Urgent, s.Inbox.Deliveries, s.Inbox.Hits))
	if s.Inbox.Waiting > 0 {
		c.line("Looked for", fmt.Sprintf("the messages of %d facts, which nobody knows yet", s.Inbox.Waiting))
	}
	for _, r := range s.Reconciliation {
		c.line("Asked "+r.Source, askedLine(r, now))
	}
	if len(s.Sources) == 0 {
		c.line("Told", "nothing by anybody; see docs/provider-webhooks.md for how to have providers tell")
		return
	}
	g := grid{headings: []string{"source", "taken", "received", "applied", "duplicates", "unknown", "full", "failed", "last"}}
	for _, source := range s.Sources {
		taken, last := "–", "never"
		if source.Configured {
			taken = "yes"
		}
		if source.Last != nil {
			last = moment(*source.Last, now)
		}
		g.add(source.Source, taken, fmt.Sprint(source.Received), fmt.Sprint(source.Applied), fmt.Sprint(source.Duplicates), fmt.Sprint(source.Unknown),
			fmt.Sprint(source.Full), fmt.Sprint(source.Failed), last)
	}
	c.show(g)
}

// askedLine says how far an events API was read.
func askedLine(r api.FeedbackReconciliation, now time.Time) string {
	if r.Ran == nil {
		return "not yet"
	}
	line := fmt.Sprintf("%s, %d events", moment(*r.Ran, now), r.Events)
	if r.Broken > 0 {
		line += fmt.Sprintf(", %d of them not readable", r.Broken)
	}
	if r.Position != nil {
		line += "; all is known until " + moment(*r.Position, now)
	}
	if r.Error != "" {
		line += "; " + r.Error
	}
	return line
}
