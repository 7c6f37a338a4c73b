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

// follow waits until a message has ended and says how: sent, failed or cancelled, and the relay's last word. An ending that is not sent
// is also an error.
func (s *sendCmd) follow(ctx context.Context, con *console, client *api.Client, id string) (result, reply string, err error) {
	told := ""
	for pause := firstLook; ; pause = min(pause*3/2, seldomLook) {
		m, err := client.Message(ctx, id)
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
	reply, _ = f.Problem.Details["response"].(string)
	switch f.Problem.Code {
	case codeSent:
		if !s.JSON {
			con.say("sent%s", colon(reply))
		}
		return "sent", reply, nil
	case codeFailed:
		if m, err := failedMessage(ctx, client, id); err == nil && m.Progress.Error != nil {
			reply = m.Progress.Error.Message
		}
		return "failed", reply, fmt.Errorf("message %s failed for good%s", id, colon(reply))
	case codeCancelled:
		return "cancelled", reply, fmt.Errorf("message %s was cancelled%s", id, colon(reply))
	}
	return "", "", f
}

// failedMessage finds a message that failed for good in the outbox, which goes on listing it.
func failedMessage(ctx context.Context, client *api.Client, id string) (api.OutboxMessage, error) {
	for m, err := range client.AllOutbox(ctx, api.OutboxQuery{State: api.Failed, PageSize: 1000}) {
		if err != nil || m.QueueID == id {
			return m, err
		}
	}
	return api.OutboxMessage{}, fmt.Errorf("message %s is not among the failed ones", id)
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
