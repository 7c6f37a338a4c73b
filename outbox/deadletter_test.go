package outbox

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
)

// fail submits a message that its relay refuses permanently.
func fail(t *testing.T, b *bundle) string {
	t.Helper()
	b.sender.replies["ann@x.test"] = "550 5.1.1 no such user"
	id := one(t, b)
	b.Delivery.Deliver(t.Context(), queue.Task{ID: taskID(id, "1")})
	return id
}

func TestDeadLetterTellsWhy(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	id := fail(t, b)
	d, err := b.Reader.DeadLetter(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if d.Progress.Error == nil || !strings.Contains(d.Progress.Error.Message, "no such user") ||
		len(d.Log) != 1 || !strings.Contains(string(d.Content), "To: ann@x.test") {
		t.Errorf("dead letter %+v", d)
	}
	page, err := b.Reader.DeadLetters(t.Context(), api.OutboxQuery{State: api.Waiting})
	if err != nil || page.Total != 1 || page.DeadLetters[0].QueueID != id {
		t.Errorf("dead letters %+v, %v", page, err)
	}
	live := one(t, b)
	if _, err := b.Reader.DeadLetter(t.Context(), live); !fault.Is(err, fault.NotFound) {
		t.Errorf("a live message as a dead letter: %v", err)
	}
	if _, err := b.Operations.Replay(t.Context(), live, api.Corrections{}); !fault.Is(err, fault.Conflict) {
		t.Errorf("replay of a live message: %v", err)
	}
	if a, err := b.Operations.DeleteDeadLetter(t.Context(), live); err != nil || a.Deleted {
		t.Errorf("a live message was deleted as a dead letter: %v", err)
	}
	if a, err := b.Operations.DeleteDeadLetter(t.Context(), id); err != nil || !a.Deleted {
		t.Errorf("delete: %+v, %v", a, err)
	}
}

// TestManyReplaysSendOnce replays one dead letter from many clients at once.
func TestManyReplaysSendOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	id := fail(t, b)
	var mu sync.Mutex
	replayed, conflicts := 0, 0
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			_, err := b.Operations.Replay(t.Context(), id, api.Corrections{})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				replayed++
			case fault.Is(err, fault.Conflict):
				conflicts++
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if replayed != 1 || conflicts != 19 {
		t.Errorf("%d replays, %d conflicts; want 1 and 19", replayed, conflicts)
	}
}

// TestReasonOfALostRecipientStays: one recipient is refused permanently, the other gets the message at the
// next attempt. The message has failed, and says why.
func TestReasonOfALostRecipientStays(t *testing.T) {
	t.Parallel()
	for _, letters := range []time.Duration{0, -1} {
		b := setup(t, Options{KeepDeadLetters: letters})
		b.sender.replies = map[string]string{"dead@x.test": "550 5.1.1 nobody", "later@x.test": "451 4.7.1 later"}
		id := b.submit(t, api.SubmitRequest{To: append(for1("dead@x.test"), for1("later@x.test")...)})
		b.deliver(t, id)
		m, err := b.Reader.Get(t.Context(), id)
		if err != nil || m.Progress.Error == nil || m.Progress.Error.Message != "451 4.7.1 later" {
			t.Errorf("while one is left: %+v, %v", m.Progress.Error, err)
		}
		delete(b.sender.replies, "later@x.test")
		b.clock.Advance(time.Hour)
		b.deliver(t, id)
		logged, err := b.Reader.Message(t.Context(), id)
		if err != nil || logged.Error == nil || logged.Error.Message != "550 5.1.1 nobody" {
			t.Errorf("the log has %+v, %v", logged.Error, err)
		}
		if letters < 0 {
			continue
		}
		page, err := b.Reader.List(t.Context(), api.OutboxQuery{State: api.Failed})
		if err != nil || len(page.Messages) != 1 || page.Messages[0].Progress.Status != "error" ||
			page.Messages[0].Progress.Error.Message != "550 5.1.1 nobody" {
			t.Errorf("the list has %+v, %v", page, err)
		}
		code := page.Messages[0].Progress.Error.Code
		if all, err := b.Operations.ReplayAll(t.Context(), api.ReplayRequest{Code: code}); err != nil ||
			all.Replayed != 1 {
			t.Errorf("replayed by code %q: %+v, %v", code, all, err)
		}
		if m, err = b.Reader.Get(t.Context(), id); err != nil || m.Progress.Error != nil ||
			m.Progress.Status != "queued" {
			t.Errorf("after the replay: %+v, %v", m.Progress, err)
		}
	}
}
