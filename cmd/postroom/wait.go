package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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

// endingOf reads how a message ended out of an answer; not ok: the answer says something else.
func endingOf(id string, f *api.Failure) (e ending, ok bool) {
	state, ok := map[string]string{codeSent: "sent", codeFailed: "failed", codeCancelled: "cancelled"}[f.Problem.Code]
	e = ending{QueueID: id, State: state}
	e.Response, _ = f.Problem.Details["response"].(string)
	text, _ := f.Problem.Details["at"].(string)
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		e.At = &at
	}
	return e, ok
}

// follow waits until a message has ended and says how: sent, failed or cancelled, and the relay's last word. An ending that is not sent
// is also an error.
func (s *sendCmd) follow(ctx context.Context, con *console, client *api.Client, id string) (result, reply string, err error) {
	told := ""
	for pause := firstLook; ; pause = min(pause*3/2, seldomLook) {
		m, err := api.GetMessage.Do(ctx, client, id)
		if f, ok := errors.AsType[*api.Failure](err); ok && f.Problem.StatusCode == http.StatusNotFound {
			return s.ended(ctx, con, client, id, f)
		}
		if err != nil {
			return "", "", err
		}
		if line := progress(m, time.Now()); line != told && !s.JSON {
			con.note("%s", line)
			told = line
		}
		if err := sleep(ctx, pause); err != nil {
			return "", "", err
		}
	}
}

// ended tells how a message ended.
func (s *sendCmd) ended(ctx context.Context, con *console, client *api.Client, id string, f *api.Failure) (result, reply string, err error) {
	e, ok := endingOf(id, f)
	if !ok {
		return "", "", f
	}
	switch e.State {
	case "sent":
		if !s.JSON {
			con.say("sent%s", colon(e.Response))
		}
		return e.State, e.Response, nil
	case "failed":
		if letter, err := api.GetDeadLetter.Do(ctx, client, id); err == nil && letter.Progress.Error != nil {
			e.Response = letter.Progress.Error.Message
		}
		return e.State, e.Response, fmt.Errorf("message %s failed for good%s", id, colon(e.Response))
	}
	return e.State, e.Response, fmt.Errorf("message %s was cancelled%s", id, colon(e.Response))
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
			line = fmt.Sprintf("attempt %d of %d failed: %s", m.AttemptsMade, m.Attempts, clean(m.Progress.Error.Message))
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
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
