package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
)

// The intervals at which a followed message is read: short at first, because most are sent at once.
const (
	firstLook  = 50 * time.Millisecond
	seldomLook = 2 * time.Second
)

// ending is the result of a message that is no longer queued.
type ending struct {
	QueueID  string     `json:"queueId"`
	State    string     `json:"state"` // sent, failed or cancelled
	At       *time.Time `json:"at,omitempty"`
	Response string     `json:"response,omitempty"` // the relay's last reply
}

// endingOf reads the result of a message from a refusal. ok reports whether the refusal has one.
func endingOf(id string, err error) (e ending, ok bool) {
	f, _ := errors.AsType[*api.Failure](err)
	if f == nil {
		return e, false
	}
	state, ok := map[string]string{
		"MessageSent": "sent", "MessageFailed": "failed", "MessageCancelled": "cancelled"}[f.Problem.Code]
	e = ending{QueueID: id, State: state}
	e.Response, _ = f.Problem.Details["response"].(string)
	text, _ := f.Problem.Details["at"].(string)
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		e.At = &at
	}
	return e, ok
}

// follow waits until a message was sent, failed or was cancelled. The last two are also an error. Without a
// state the result is not known.
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
		return e, fmt.Errorf("message %s failed%s", e.QueueID, colon(e.Response))
	}
	return e, fmt.Errorf("message %s was cancelled%s", e.QueueID, colon(e.Response))
}

// progress returns the state of a message in one line. It changes only when the message does.
func progress(m api.OutboxMessage, now time.Time) string {
	switch m.State {
	case api.Active:
		return fmt.Sprintf("attempt %d of %d under way", m.AttemptsMade+1, m.Attempts)
	case api.Paused:
		return "waiting, because the queue is paused; to continue: postroom queue resume"
	case api.Scheduled, api.Delayed:
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

// colon returns the continuation of a sentence by a text, if there is one.
func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + clean(text)
}

// sleep waits, or returns the error of ctx if that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
