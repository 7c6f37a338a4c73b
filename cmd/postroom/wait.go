package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
)

// How often a message that is followed is asked about: often at first, since most are sent at once.
const (
	firstLook  = 50 * time.Millisecond
	seldomLook = 2 * time.Second
)

// The codes by which Postroom says that a message is no longer queued.
const (
	codeSent      = "MessageSent"
	codeFailed    = "MessageFailed"
	codeCancelled = "MessageCancelled"
)

// ending is what is remembered of a message that is no longer queued.
type ending struct {
	QueueID  string     `json:"queueId"`
	State    string     `json:"state"` // sent, failed or cancelled
	At       *time.Time `json:"at,omitempty"`
	Response string     `json:"response,omitempty"` // the relay's last word
}

// endingOf reads how a message ended out of a refusal; not ok: the refusal says something else.
func endingOf(id string, err error) (e ending, ok bool) {
	f, _ := errors.AsType[*api.Failure](err)
	if f == nil {
		return e, false
	}
	state, ok := map[string]string{codeSent: "sent", codeFailed: "failed",
		codeCancelled: "cancelled"}[f.Problem.Code]
	e = ending{QueueID: id, State: state}
	e.Response, _ = f.Problem.Details["response"].(string)
	text, _ := f.Problem.Details["at"].(string)
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		e.At = &at
	}
	return e, ok
}

// follow waits until a message has ended: sent, failed or cancelled. An ending that is not sent is also an
// error. An ending without a state is not known.
func (s *session) follow(id string) (ending, error) {
	last := ""
	for pause := firstLook; ; pause = min(pause*3/2, seldomLook) {
		m, err := api.GetMessage.Do(s, s.client, id)
		if e, ok := endingOf(id, err); ok {
			return s.ended(e)
		}
		if err != nil {
			return ending{}, err
		}
		if line := progress(m, time.Now()); line != last && !s.json {
			s.note("%s", line)
			last = line
		}
		if err := sleep(s, pause); err != nil {
			return ending{}, err
		}
	}
}

// ended prints how a message ended.
func (s *session) ended(e ending) (ending, error) {
	switch e.State {
	case "sent":
		if !s.json {
			s.say("sent%s", colon(e.Response))
		}
		return e, nil
	case "failed":
		if letter, err := api.GetDeadLetter.Do(s, s.client, e.QueueID); err == nil && letter.Progress.Error != nil {
			e.Response = letter.Progress.Error.Message
		}
		return e, fmt.Errorf("message %s failed for good%s", e.QueueID, colon(e.Response))
	}
	return e, fmt.Errorf("message %s was cancelled%s", e.QueueID, colon(e.Response))
}

// progress is where a message stands, in one line. It changes only when the message does.
func progress(m api.OutboxMessage, now time.Time) string {
	switch m.State {
	case api.Active:
		return fmt.Sprintf("attempt %d of %d under way", m.AttemptsMade+1, m.Attempts)
	case api.Paused:
		return "waiting, because the queue is paused; to go on: postroom queue resume"
	case api.Delayed:
		line := "waiting for its time"
		if m.Progress.Error != nil {
			line = fmt.Sprintf("attempt %d of %d failed: %s", m.AttemptsMade, m.Attempts,
				clean(m.Progress.Error.Message))
		}
		if m.Reason != "" {
			line = "waiting: " + clean(m.Reason)
		}
		if t := m.NextAttempt.Time; t != nil {
			line += "; next attempt at " + t.Local().Format(time.TimeOnly)
			if t.Sub(now) > 24*time.Hour {
				line += t.Local().Format(" on " + time.DateOnly)
			}
		}
		return line
	}
	return string(m.State)
}

// colon puts a text, where there is one, behind another.
func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + clean(text)
}

// sleep waits, unless ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
