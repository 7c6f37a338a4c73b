package outbox

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// clock is the clock of Redis, so that machines with different clocks agree on leases and due times.
type clock struct {
	now    func() time.Time // the machine's clock
	offset atomic.Int64     // what to add to it, in nanoseconds
	known  atomic.Bool      // the offset was measured
	fixed  bool             // now is given by a test: Redis is not asked
}

func newClock(now func() time.Time) *clock {
	if now != nil {
		return &clock{now: now, fixed: true}
	}
	return &clock{now: time.Now}
}

// Now is the time for records.
func (c *clock) Now() time.Time { return c.now().Add(time.Duration(c.offset.Load())) }

// ready compares the clock with Redis unless that was done. It is called before times are written into
// records, because a process may work before its sweeper has run.
func (c *clock) ready(ctx context.Context, rdb redis.UniversalClient) error {
	if c.fixed || c.known.Load() {
		return nil
	}
	return c.calibrate(ctx, rdb)
}

// stalled is the longest round trip that calibrate uses.
const stalled = time.Second

// calibrate compares the machine's clock with that of Redis. It takes the answer to be from the middle of the
// round trip. An answer that took too long changes nothing. It is an error if there was no other one before.
func (c *clock) calibrate(ctx context.Context, rdb redis.UniversalClient) error {
	if c.fixed {
		return nil
	}
	sent := c.now()
	theirs, err := rdb.Time(ctx).Result()
	if err != nil {
		return fmt.Errorf("ask Redis for its time: %w", err)
	}
	took := c.now().Sub(sent)
	if took > stalled && !c.known.Load() {
		return fmt.Errorf("ask Redis for its time: the answer took %s: %w", took.Round(time.Millisecond),
			context.DeadlineExceeded)
	}
	if took <= stalled {
		c.offset.Store(int64(theirs.Sub(sent.Add(took / 2))))
		c.known.Store(true)
	}
	return nil
}
