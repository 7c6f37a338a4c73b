package main

import (
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
)

// feedbackCmd shows the sources of feedback about sent mail.
type feedbackCmd struct{}

func (f *feedbackCmd) Run(s *session) error {
	status, err := api.GetFeedback.Do(s, s.client)
	return s.answer(status, err, func() { s.feedback(status, time.Now()) })
}

func (c *console) feedback(s api.FeedbackStatus, now time.Time) {
	c.line("Waiting", fmt.Sprintf(
		"%d bounces, complaints and unsubscriptions; %d deliveries; %d opens and clicks", s.Inbox.Urgent,
		s.Inbox.Deliveries, s.Inbox.Hits))
	if s.Inbox.Waiting > 0 {
		c.line("Looked for", fmt.Sprintf("the messages of %d reports, not found yet", s.Inbox.Waiting))
	}
	for _, r := range s.Reconciliation {
		c.line("Asked "+r.Source, askedLine(r, now))
	}
	if len(s.Sources) == 0 {
		c.line("Reports", "none yet; see docs/provider-webhooks.md")
		return
	}
	g := newGrid("source", "taken", "received", "applied", "duplicates", "unknown", "full", "failed", "last")
	for _, source := range s.Sources {
		taken := "–"
		if source.Configured {
			taken = "yes"
		}
		g.add(source.Source, taken, source.Received, source.Applied, source.Duplicates, source.Unknown, source.Full,
			source.Failed, orNever(source.Last, now))
	}
	c.show(g)
}

// askedLine describes the progress of reading an events API.
func askedLine(r api.FeedbackReconciliation, now time.Time) string {
	if r.Ran == nil {
		return "not yet"
	}
	line := fmt.Sprintf("%s, %s", moment(*r.Ran, now), plural(int(r.Events), "event"))
	if r.Broken > 0 {
		line += fmt.Sprintf(", %d of them not readable", r.Broken)
	}
	if r.Position != nil {
		line += "; all is known until " + moment(*r.Position, now)
	}
	for _, more := range []string{r.Note, r.Error} {
		if more != "" {
			line += "; " + more
		}
	}
	return line
}
