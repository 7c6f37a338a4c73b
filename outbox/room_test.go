package outbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/queue"
	"github.com/postroom/postroom/redisdb"
)

// TestABurstBetweenTwoLooksAtTheMemory submits so much within a second that what is known of Redis' memory is old news: the burst is
// refused all the same before Redis is full, at which point not even a task could be taken off its queue.
func TestABurstBetweenTwoLooksAtTheMemory(t *testing.T) {
	t.Parallel()
	small := testredis.Server(t, "--maxmemory", "64mb", "--maxmemory-policy", "noeviction", "--appendonly", "no")
	db, err := redisdb.Open(t.Context(), redisdb.Options{URL: small.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	b := setupOn(t, db, Options{})
	content := make([]byte, 500<<10)
	if _, err := rand.Read(content); err != nil {
		t.Fatal(err)
	}
	var accepted, refused tally
	var group sync.WaitGroup
	for range 5 {
		group.Go(func() {
			for range 40 {
				_, err := b.Submit(t.Context(), api.SubmitRequest{
					To: api.Addresses{{Address: "ann@x.test"}}, Attachments: []api.Attachment{{Filename: "x", Content: content}},
				})
				f, _ := errors.AsType[*fault.Error](err)
				switch {
				case err == nil:
					accepted.add()
				case f != nil && f.Code == "OutboxFull" && f.RetryAfter > 0:
					refused.add()
				default:
					t.Errorf("submit: %v", err)
				}
			}
		})
	}
	group.Wait()
	used, err := db.Client().InfoMap(t.Context(), "memory").Result()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d accepted, %d refused; Redis uses %s", accepted.n, refused.n, used["Memory"]["used_memory_human"])
	if accepted.n < 40 || accepted.n > 110 || refused.n == 0 {
		t.Errorf("%d accepted, %d refused", accepted.n, refused.n)
	}
}

// TestNeverMoreLiveMessagesThanAllowed submits from all sides to an outbox in several partitions. Those refused leave nothing behind, not
// even a task.
func TestNeverMoreLiveMessagesThanAllowed(t *testing.T) {
	t.Parallel()
	const limit = 20
	b := setupOn(t, testredis.Open(t, redisdb.Options{Partitions: 3}), Options{MaxLive: limit})
	var accepted tally
	parallel(t, 10, 200, func(i int) error {
		req := api.SubmitRequest{To: api.Addresses{{Address: "ann@x.test"}}, Text: "x"}
		if i%2 == 0 {
			req.IdempotencyKey = fmt.Sprint("key", i)
		}
		_, err := b.Submit(t.Context(), req)
		if err == nil {
			accepted.add()
		}
		if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == "OutboxFull" {
			return nil
		}
		return err
	})
	page, err := b.List(t.Context(), api.OutboxQuery{})
	if err != nil || page.Total != limit || accepted.n != limit {
		t.Errorf("%d messages of %d accepted, %v; want %d", page.Total, accepted.n, err, limit)
	}
	tasks := 0
	for p := range 3 {
		counts, err := b.Control.Counts(t.Context(), queue.Lane(queue.Submit, p))
		if err != nil {
			t.Fatal(err)
		}
		tasks += counts[0].Waiting
	}
	if tasks != limit {
		t.Errorf("%d tasks for %d messages", tasks, limit)
	}
}

// tally counts from several sides.
type tally struct {
	mu sync.Mutex
	n  int
}

func (c *tally) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}
