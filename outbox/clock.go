package outbox

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// clock tells the time as Redis has it, so that machines whose own clocks differ agree on leases and due times.
type clock struct {
	now    func() time.Time // the machine's clock
	offset atomic.Int64     // what to add to it, in nanoseconds
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

// calibrate compares the machine's clock with Redis'. The answer is taken to be from the middle of the round trip.
func (c *clock) calibrate(ctx context.Context, rdb redis.UniversalClient) error {
	if c.fixed {
		return nil
	}
	sent := time.Now()
	theirs, err := rdb.Time(ctx).Result()
	if err != nil {
		return fmt.Errorf("ask Redis for its time: %w", err)
	}
	took := time.Since(sent)
	if took > time.Second {
		return nil // a stalled answer says nothing about the clock
	}
	c.offset.Store(int64(theirs.Sub(sent.Add(took / 2))))
	return nil
}
