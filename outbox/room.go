package outbox

import (
	"context"
	"strconv"

	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb"
)

// lookEvery is how many bytes this process puts into Redis before it has Redis look at its memory as it takes the next message. What is
// known of the memory otherwise is a few seconds old, and a hundred clients with 20 MB each fill the last quarter of it in one second.
const lookEvery = 1 << 20

// beside is about what a message takes in Redis beside its content.
const beside = 2 << 10

// Admits refuses new work while Redis is so full that the work it has could no longer be done: at maxmemory not even a dequeue succeeds.
// Nil: Submit would take a message on.
func (b *Outbox) Admits(ctx context.Context) error {
	share, err := b.DB.MemoryShare(ctx)
	if err != nil {
		return away(err, "ask Redis for its memory")
	}
	if share >= b.opts.MaxMemoryShare {
		return full("Redis uses %.0f %% of its maxmemory (redis.maxMemoryShare)", share*100)
	}
	return nil
}

func full(format string, args ...any) error {
	f := fault.New(fault.Unavailable, "OutboxFull", format+"; try again when some of its mail has gone out", args...)
	f.RetryAfter = retryAfterOutage
	return f
}

// heed counts the bytes of a message on its way to Redis. It answers the share of the memory that accept.lua is to hold the message to, or
// nothing where it need not look.
func (b *Outbox) heed(size int) string {
	if b.unseen.Add(int64(size+beside)) < lookEvery || b.DB.Mode() == redisdb.Memory {
		return ""
	}
	return strconv.FormatFloat(b.opts.MaxMemoryShare, 'f', -1, 64)
}

// seen notes that accept.lua has looked and found room. Until it has, it looks for every message.
func (b *Outbox) seen() { b.unseen.Store(0) }

// limit is how many live messages a partition may hold, so that all of them hold no more than Options.MaxLive; nothing where there is no
// limit.
func (b *Outbox) limit(partition int) string {
	if b.opts.MaxLive == 0 {
		return ""
	}
	n, rest := b.opts.MaxLive/b.DB.Partitions(), b.opts.MaxLive%b.DB.Partitions()
	if partition < rest {
		n++
	}
	return strconv.Itoa(n)
}
