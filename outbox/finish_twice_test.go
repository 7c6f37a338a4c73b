package outbox

import (
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
)

// recordTwice makes an attempt, records it, lets something happen, and records it again: as if the answer of
// Redis was lost and the call repeated.
func recordTwice(t *testing.T, b *bundle, id string, between func()) (first, second finished) {
	t.Helper()
	c, _, err := b.Delivery.begin(t.Context(), id)
	if err != nil || c == nil {
		t.Fatalf("begin: %v", err)
	}
	args, err := b.Delivery.finishArgs(t.Context(), c, b.Delivery.attempt(t.Context(), c, b.clock.Now()))
	if err != nil {
		t.Fatal(err)
	}
	if first, err = run(t.Context(), b.Operations.store, finishScript, c.partition, id, args); err != nil {
		t.Fatal(err)
	}
	between()
	if second, err = run(t.Context(), b.Operations.store, finishScript, c.partition, id, args); err != nil {
		t.Fatal(err)
	}
	return first, second
}

func eventsOf(t *testing.T, b *bundle, kind string) int {
	t.Helper()
	entries, err := b.store.DB.Client().XRange(t.Context(), redisdb.Key(0, "events"), "-", "+").Result()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		if strings.Contains(e.Values["e"].(string), `"`+kind+`"`) {
			n++
		}
	}
	return n
}

// TestAttemptRecordedTwiceAfterItBecameDue: the message is due again when the repeated call arrives, and so
// reads as waiting.
func TestAttemptRecordedTwiceAfterItBecameDue(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.sender.replies["ann@x.test"] = "451 4.7.1 greylisted"
	id := one(t, b)
	recordTwice(t, b, id, func() {
		b.clock.Advance(time.Minute)
		if _, err := promoteScript.Run(t.Context(), b.store.DB.Client(), []string{b.store.keys.events(0)},
			promoteArgs{Now: b.clock.Now(), Most: sweepBatch, Window: 64}); err != nil {
			t.Fatal(err)
		}
	})
	if n := eventsOf(t, b, "messageDeliveryError"); n != 1 {
		t.Errorf("%d messageDeliveryError events of one attempt", n)
	}
}

// TestFailureRecordedTwiceAfterReplay: an operator has replayed the dead letter when the repeated call
// arrives.
func TestFailureRecordedTwiceAfterReplay(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.sender.replies["ann@x.test"] = "550 5.1.1 no such user"
	id := one(t, b)
	recordTwice(t, b, id, func() {
		if _, err := b.Operations.Replay(t.Context(), id, api.Corrections{}); err != nil {
			t.Fatal(err)
		}
	})
	if n := eventsOf(t, b, "messageFailed"); n != 1 {
		t.Errorf("%d messageFailed events of one failure", n)
	}
	m, err := b.Reader.Get(t.Context(), id)
	if err != nil {
		t.Errorf("the replay is undone: %v", err)
	} else if m.State != "waiting" {
		t.Errorf("the replay is undone: state %s", m.State)
	}
}
