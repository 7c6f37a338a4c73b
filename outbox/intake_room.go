package outbox

import (
	"context"
	"strconv"

	"github.com/postroom/postroom/fault"
)

// Admits refuses new work while Redis is so full that the work it has could no longer be done: at maxmemory not even a dequeue succeeds.
// Nil: Submit would take a message on.
func (in *Intake) Admits(ctx context.Context) error {
	share, err := in.DB.MemoryShare(ctx)
	if err != nil {
		return away(err, "ask Redis for its memory")
	}
	if share >= in.opts.MaxMemoryShare {
		return full("Redis uses %.0f %% of its maxmemory (redis.maxMemoryShare)", share*100)
	}
	return nil
}

func full(format string, args ...any) error {
	f := fault.New(fault.Unavailable, "OutboxFull", format+"; try again when some of its mail has gone out", args...)
	f.RetryAfter = retryAfterOutage
	return f
}

// limit is how many live messages a partition may hold, so that all of them hold no more than Options.MaxLive; nothing where there is no
// limit.
func (in *Intake) limit(partition int) string {
	if in.opts.MaxLive == 0 {
		return ""
	}
	n, rest := in.opts.MaxLive/in.DB.Partitions(), in.opts.MaxLive%in.DB.Partitions()
	if partition < rest {
		n++
	}
	return strconv.Itoa(n)
}
