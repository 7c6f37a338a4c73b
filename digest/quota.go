package digest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
)

// tally remembers how many events of each account wait, for the quota. Counting reads all of the account's
// recipients, so a count is good for ten times as long as it took. Events added in between count too.
type tally struct {
	mu       sync.Mutex
	accounts map[string]*counted
}

type counted struct {
	n    int
	till time.Time // the count is used until then
}

// mostCounted is how many accounts are remembered.
const mostCounted = 10_000

// admit reports whether the account's quota has room for more events, and counts them if it has. Processes
// count separately: together they may exceed a quota by the events that they add while a count is good.
func (r *Recipients) admit(ctx context.Context, account string, more int) error {
	if r.Room == nil {
		return nil
	}
	limited := false
	err := r.Room(ctx, account, func() (used, _ int, err error) {
		limited = true
		used, err = r.CountEvents(ctx, account)
		return used, more, err
	})
	if err == nil && limited {
		r.tally.add(account, more)
	}
	return err
}

// CountEvents returns how many events of an account wait.
func (r *Recipients) CountEvents(ctx context.Context, account string) (int, error) {
	if n, ok := r.tally.of(account); ok {
		return n, nil
	}
	began, total := time.Now(), 0
	var found [shards]*redis.StringSliceCmd
	_, err := r.DB.Client().Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for shard := range shards {
			found[shard] = pipe.ZRange(ctx, recipientsKey(shard, account), 0, -1)
		}
		return nil
	})
	for shard := 0; err == nil && shard < shards; shard++ {
		for part := range slices.Chunk(found[shard].Val(), 500) {
			n, failed := r.waitingOf(ctx, account, part)
			total, err = total+n, cmp.Or(err, failed)
		}
	}
	if err != nil {
		return 0, redisdb.Failed(err, "count the events of account %s", account)
	}
	r.tally.set(account, total, time.Now().Add(10*time.Since(began)))
	return total, nil
}

// waitingOf returns how many events of some recipients wait.
func (r *Recipients) waitingOf(ctx context.Context, account string, ids []string) (total int, _ error) {
	fields := make([]*redis.StringSliceCmd, len(ids))
	_, err := r.DB.Client().Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, id := range ids {
			fields[i] = pipe.HKeys(ctx, readerKey{account, id}.key())
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	var lens []*redis.IntCmd
	var older []*redis.StringCmd
	pipe := r.DB.Client().Pipeline()
	for i, id := range ids {
		for _, field := range fields[i].Val() {
			if category, ok := strings.CutPrefix(field, "c:"); ok {
				list := readerKey{account, id}.events(category)
				lens = append(lens, pipe.LLen(ctx, list))
				older = append(older, pipe.HGet(ctx, list+olderPart, "n"))
			}
		}
	}
	if len(lens) == 0 {
		return 0, nil
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return 0, err
	}
	for i := range lens {
		n, _ := older[i].Int() // 0 if there are none
		total += n + int(lens[i].Val())
	}
	return total, nil
}

func (t *tally) of(account string) (int, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.accounts[account]
	if c == nil || !time.Now().Before(c.till) {
		return 0, false
	}
	return c.n, true
}

func (t *tally) add(account string, more int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.accounts[account]; c != nil {
		c.n += more
	}
}

func (t *tally) set(account string, n int, till time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.accounts) >= mostCounted {
		clear(t.accounts)
	}
	t.accounts[account] = &counted{n, till}
}
