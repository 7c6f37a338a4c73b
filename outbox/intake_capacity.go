package outbox

import (
	"context"
	"strconv"

	"github.com/postroom/postroom/fault"
)

// Admits returns an error while Redis is so full that it needs its memory for the work it has: at maxmemory
// not even a dequeue succeeds. Without an error a message would be accepted.
func (in *Intake) Admits(ctx context.Context) error {
	share, err := in.DB.MemoryShare(ctx)
	if err != nil {
		return redisError(err, "ask Redis for its memory")
	}
	if share >= in.opts.MaxMemoryShare {
		return full("Redis uses %.0f %% of its maxmemory (redis.maxMemoryShare)", share*100)
	}
	return nil
}

func full(format string, args ...any) error {
	f := fault.New(fault.Unavailable, "OutboxFull", format+"; try again when some of its mail has gone out",
		args...)
	f.RetryAfter = retryAfterOutage
	return f
}

// limit is how many live messages a partition may hold, as an argument of accept.lua; "": no limit. The
// limits of all partitions add up to Options.MaxLive.
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
