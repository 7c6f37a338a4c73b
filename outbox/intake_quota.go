package outbox

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// room returns an error if a quota has no room for all entries of a batch together, so that nothing is queued
// of a mail merge that does not fit. Entries that were accepted before need none. The room may be taken by
// others before the entries come to it: accept.lua counts each message again.
func (b *Batch) room(ctx context.Context, entries []Entry) error {
	if len(b.quotas) == 0 {
		return nil
	}
	fresh, err := b.fresh(ctx, entries)
	if err != nil || fresh == 0 {
		return err
	}
	now := b.in.clock.Now()
	all, err := b.in.usage(ctx, b.quotas, now)
	if err != nil {
		return err
	}
	more := used{fresh, fresh * (b.light + b.files), fresh}
	for i, q := range b.quotas {
		have := total(all[i])
		if name := q.over(have.plus(more)); name != "" {
			return b.in.Accounts.Exceeded(ctx, q.excess(name, have, more, now))
		}
	}
	return nil
}

// over returns the name of the first limit of a quota that is exceeded; "": none is.
func (q quota) over(u used) string {
	switch {
	case q.limit.messages > 0 && u.messages > q.limit.messages:
		return "messages"
	case q.limit.bytes > 0 && u.bytes > q.limit.bytes:
		return "bytes"
	case q.limit.perDay > 0 && u.perDay > q.limit.perDay:
		return "perDay"
	}
	return ""
}

// fresh returns how many entries of a batch were not accepted before, by their idempotency keys.
func (b *Batch) fresh(ctx context.Context, entries []Entry) (n int, _ error) {
	pipe := b.in.DB.Client().Pipeline()
	var known []*redis.IntCmd
	for _, e := range entries {
		if e.Key != "" {
			p, key, _ := keyOf(b.account.ID, e, b.in.DB.Partitions())
			known = append(known, pipe.Exists(ctx, b.in.keys.idempotency(p, key)))
		}
	}
	if len(known) > 0 {
		if _, err := pipe.Exec(ctx); err != nil {
			return 0, redisError(err, "look up the keys of a mail merge")
		}
	}
	n = len(entries)
	for _, k := range known {
		n -= int(k.Val())
	}
	return n, nil
}
