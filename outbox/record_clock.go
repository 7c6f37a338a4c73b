package outbox

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// clock tells the time as Redis has it, so that machines whose own clocks differ agree on leases and due
// times.
type clock struct {
	now    func() time.Time // the machine's clock
	offset atomic.Int64     // what to add to it, in nanoseconds
	known  atomic.Bool      // the offset has been found out
	fixed  bool             // now is given by a test: never ask Redis
}

func newClock(now func() time.Time) *clock {
	if now != nil {
		return &clock{now: now, fixed: true}
	}
	return &clock{now: time.Now}
}

// Now is the time to write into records.
func (c *clock) Now() time.Time { return c.now().Add(time.Duration(c.offset.Load())) }

// ready makes sure that the clock can be relied on. Whoever writes times into records asks first: a process
// may be at work before its sweeper has made a round.
func (c *clock) ready(ctx context.Context, rdb redis.UniversalClient) error {
	if c.fixed || c.known.Load() {
		return nil
	}
	return c.calibrate(ctx, rdb)
}

// stalled is how long an answer may take and still say something about the clock.
const stalled = time.Second

// calibrate compares the machine's clock with Redis'. The answer is taken to be from the middle of the round
// trip. One that took too long leaves the clock as it was, and is an error only if it was never compared
// before.
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
