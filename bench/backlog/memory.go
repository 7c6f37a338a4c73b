package main

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/redisdb"
)

// mostBeside is the limit for a waiting message without its content, in bytes.
const mostBeside = 1200

// expiry is the size of an entry in the table of expiries, which MEMORY USAGE does not count.
const expiry = 40

// kind is the memory of all keys of one kind.
type kind struct {
	keys    int
	sampled int
	bytes   int64 // of those sampled
}

func (k kind) total() int64 {
	if k.sampled == 0 {
		return 0
	}
	return int64(float64(k.bytes) / float64(k.sampled) * float64(k.keys))
}

// memory prints what a waiting message takes in Redis.
func (h *house) memory(ctx context.Context) error {
	if err := h.settle(ctx); err != nil {
		return err
	}
	used, err := h.used(ctx)
	if err != nil {
		return err
	}
	kinds, err := h.kinds(ctx)
	if err != nil {
		return err
	}
	n := float64(h.o.messages)
	each := func(bytes int64) float64 { return float64(bytes) / n }
	all := each(used - h.empty)
	content, events := each(kinds["content"].total()), each(kinds["events"].total())
	key := 0.0
	if k := kinds["idempotency"]; k.keys > 0 {
		key = float64(k.total())/float64(k.keys) + expiry
	}
	keys := key * float64(kinds["idempotency"].keys) / n
	rig.Title("Memory of Redis, for each waiting message")
	rig.Tell("in all", bytes(all-keys))
	rig.Tell("its content, compressed", bytes(content))
	rig.Tell("its event in the stream, until the stream is trimmed", bytes(events))
	beside := all - keys - content - events
	rig.Row("beside content and event", bytes(beside), fmt.Sprintf("at most %d", mostBeside),
		beside <= mostBeside)
	if key > 0 {
		rig.Tell("an idempotency key", bytes(key))
	}
	listed := 0.0
	for _, name := range slices.SortedFunc(maps.Keys(kinds), func(a, b string) int {
		return int(kinds[b].total() - kinds[a].total())
	}) {
		if total := each(kinds[name].total()); name != "content" && name != "events" && name != "idempotency" &&
			total >= 1 {
			rig.Tell("  "+name, bytes(total))
			listed += total
		}
	}
	rig.Tell("  the tables of keys, and the rest", bytes(beside-listed))
	return h.forgetWorst(ctx)
}

// settle waits until every task is noted as queued.
func (h *house) settle(ctx context.Context) error {
	return rig.Until(ctx, time.Minute, often, func() (bool, error) {
		n, err := h.DB.ZCard(ctx, redisdb.Key(0, "unqueued")).Result()
		return n == 0, err
	})
}

// kinds reads all keys and measures a sample of each kind. Kinds with few keys are the collections; all of
// those are measured.
func (h *house) kinds(ctx context.Context) (map[string]kind, error) {
	kinds := map[string]kind{}
	var cursor uint64
	for {
		keys, next, err := h.DB.Scan(ctx, cursor, "", 2000).Result()
		if err != nil {
			return nil, err
		}
		pipe, sizes := h.DB.Pipeline(), map[string][]*redis.IntCmd{}
		for _, key := range keys {
			name := kindOf(key)
			k := kinds[name]
			if k.keys++; k.keys <= 100 || k.keys%500 == 0 {
				sizes[name] = append(sizes[name], pipe.MemoryUsage(ctx, key))
			}
			kinds[name] = k
		}
		if _, err := pipe.Exec(ctx); err != nil && err != redis.Nil { //nolint:errorlint // as go-redis says
			return nil, err
		}
		for name, cmds := range sizes {
			k := kinds[name]
			for _, cmd := range cmds {
				k.bytes, k.sampled = k.bytes+cmd.Val(), k.sampled+1
			}
			kinds[name] = k
		}
		if cursor = next; cursor == 0 {
			return kinds, nil
		}
	}
}

var tag = regexp.MustCompile(`^(postroom|asynq):\{[^}]*\}:`)

// kindOf is the kind of a key: its name without partition and id.
func kindOf(key string) string {
	program, _, _ := strings.Cut(key, ":")
	name, _, _ := strings.Cut(tag.ReplaceAllString(key, ""), ":")
	switch {
	case program == "asynq" && name == "t":
		return "task"
	case program == "asynq":
		return "queue " + name
	}
	return name
}

func bytes(n float64) string { return fmt.Sprintf("%.0f bytes", n) }
