package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

func outboxVerbs() []verb {
	return []verb{
		{name: "list", help: "List queued messages, oldest first (the default).",
			run: &outboxListCmd{filter: filterOf[api.OutboxQuery]()}},
		{name: "show", help: "Show one message and its attempts, or its result.", run: &outboxShowCmd{}},
		{name: "retry", help: "Attempt delivery now.", run: &outboxRetryCmd{chosenOf()}},
		{name: "replay", help: "Replay failed messages, like dead-letter replay.",
			run: &deadReplayCmd{}},
		{name: "cancel", help: "Cancel messages.", run: &outboxCancelCmd{chosenFlags: chosenOf()}},
		{name: "watch", help: "Watch the outbox. Finished messages stay as lines.",
			run: &outboxWatchCmd{filter: filterOf[api.OutboxQuery]()}},
	}
}

type outboxListCmd struct {
	filter[api.OutboxQuery]
	limitFlag
}

func (o *outboxListCmd) Run(s *session) error {
	q, err := o.query()
	if err != nil {
		return err
	}
	q.PageSize = o.pageSize(maxPage)
	messages, _, last, err := fetch(s, api.ListOutbox, q, o.limitFlag, nil)
	out := struct {
		Total    int                 `json:"total"`
		Messages []api.OutboxMessage `json:"messages"`
	}{last.Total, messages}
	return s.table(out, err, "no messages", messageGrid(messages, time.Now()),
		noteIf(last.Total > len(messages), "%d of %d; for all, use --limit 0", len(messages), last.Total))
}

func messageGrid(messages []api.OutboxMessage, now time.Time) grid {
	g := newGrid("id", "state", "to", "subject", "attempts", "next", "why")
	for _, m := range messages {
		g.add(m.QueueID, m.State, someOf(m.Envelope.To), clip(m.Subject, 40), tries(m.AttemptsMade, m.Attempts),
			next(m.NextAttempt, now), why(m))
	}
	return g
}

// someOf returns the first address and the number of others.
func someOf(addresses []string) string {
	switch n := len(addresses); n {
	case 0:
		return "-"
	case 1:
		return addresses[0]
	default:
		return fmt.Sprintf("%s +%d", addresses[0], n-1)
	}
}

// tries returns the attempts made, of all.
func tries(made, all int) string { return fmt.Sprintf("%d/%d", made, all) }

// next returns when the next attempt is due, if there is one.
func next(at api.TimeOrFalse, now time.Time) string {
	if at.Time == nil {
		return "-"
	}
	if !at.Time.After(now) {
		return "now"
	}
	return moment(*at.Time, now)
}

// why returns what a message waits for, or else its last error; and whether it may have arrived.
func why(m api.OutboxMessage) string {
	text := m.Reason
	if text == "" && m.Progress.Error != nil {
		text = m.Progress.Error.Message
	}
	return doubtful(text, m.InDoubt)
}

// doubtful puts before a text whether the message may have arrived.
func doubtful(text string, attempts int) string {
	if attempts > 0 {
		text = strings.TrimSuffix("in doubt: "+text, ": ")
	}
	return orDash(clip(text, 60))
}
