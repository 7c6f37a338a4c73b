package outbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

// TestABurstBetweenTwoLooksAtTheMemory submits so much within a second that the known memory share is out of
// date. The burst is still refused before Redis is full; then not even a task could be dequeued.
func TestABurstBetweenTwoLooksAtTheMemory(t *testing.T) {
	t.Parallel()
	small := testredis.Server(t, "--maxmemory", "32mb", "--maxmemory-policy", "noeviction", "--appendonly", "no")
	db, err := redisdb.Open(t.Context(), redisdb.Options{URL: small.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	b := setupOn(t, db, Options{})
	s := newMessage{
		envelope: envelope{Account: "default", MessageID: "<1@x.test>", From: "shop@x.test",
			To: []string{"ann@x.test"}, Size: 2 << 20},
		content: make([]byte, 2<<20), lane: api.Transactional, attempts: 10,
	}
	if _, err := rand.Read(s.content); err != nil { // what can't be compressed
		t.Fatal(err)
	}
	accepted, refused := 0, 0
	for range 50 {
		m := s
		m.id = newID(b.clock.Now(), 0)
		b.Intake.accept(t.Context(), []*newMessage{&m}, time.Minute)
		err := m.result.Err
		f, _ := errors.AsType[*fault.Error](err)
		switch {
		case err == nil:
			accepted++
		case f != nil && f.Code == "OutboxFull" && f.RetryAfter > 0:
			refused++
		default:
			t.Fatalf("after %d messages: %v", accepted, err)
		}
	}
	if accepted < 6 || accepted > 12 || refused != 50-accepted { // 24 MB are three quarters
		t.Errorf("%d accepted, %d refused", accepted, refused)
	}
}

// TestNeverMoreLiveMessagesThanAllowed submits concurrently to an outbox with several partitions. Refused
// messages leave nothing behind, not even a task.
func TestNeverMoreLiveMessagesThanAllowed(t *testing.T) {
	t.Parallel()
	const limit = 20
	b := setupOn(t, spread(t), Options{MaxLive: limit})
	var accepted atomic.Int64
	parallel(t, 10, 200, func(i int) error {
		req := api.SubmitRequest{To: api.Addresses{{Address: "ann@x.test"}}, Text: "x"}
		if i%2 == 0 {
			req.IdempotencyKey = fmt.Sprint("key", i)
		}
		_, err := b.Intake.Submit(t.Context(), req)
		if err == nil {
			accepted.Add(1)
		}
		if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == "OutboxFull" {
			return nil
		}
		return err
	})
	page, err := b.Reader.List(t.Context(), api.OutboxQuery{})
	if err != nil || page.Total != limit || accepted.Load() != limit {
		t.Errorf("%d messages of %d accepted, %v; want %d", page.Total, accepted.Load(), err, limit)
	}
	tasks := 0
	for p := range 3 {
		counts, err := b.store.Control.Counts(t.Context(), queue.Lane(queue.Submit, p))
		if err != nil {
			t.Fatal(err)
		}
		tasks += counts[0].Waiting
	}
	if tasks != limit {
		t.Errorf("%d tasks for %d messages", tasks, limit)
	}
}
