package redisdb

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// tails waits for streams to grow, for all of this process that have read them to the end. While none grows,
// one connection waits, or in a Cluster one for each partition.
type tails struct {
	client   redis.UniversalClient // for reads that wait
	together bool                  // one command may name the streams of all partitions
	began    time.Time
	reads    sync.WaitGroup

	mu     sync.Mutex
	bySlot map[string]*tail
	closed bool // no read begins any more
}

// tail is the waiting for the streams of one slot.
type tail struct {
	next  *tailRead   // about to begin; nil if none
	reads []*tailRead // under way
}

// tailRead is a read that waits for streams to have entries after an id each.
type tailRead struct {
	after   map[string]string // the ids, by the keys of the streams
	waiters []*tailWaiter
}

// tailWaiter waits for a stream to have entries after the one with an id.
type tailWaiter struct {
	key   string // empty if it gave up
	after string
	grown chan struct{}
}

const (
	// A read begins this much later, so that it serves all that come to rest together.
	tailGather = 20 * time.Millisecond
	// All reads end at multiples of it. So the next one serves all.
	tailRound = 5 * time.Second
)

// AwaitEntry waits until a stream has entries after the one with the given id. It reports false if it doesn't
// know of any when most has passed or ctx ends. If reading fails it returns true, so that the caller's own
// read shows the error.
func (db *DB) AwaitEntry(ctx context.Context, key, after string, most time.Duration) bool {
	t, slot := db.tails, ""
	if !t.together {
		slot = slotTag(key)
	}
	w := &tailWaiter{key: key, after: after, grown: make(chan struct{})}
	t.join(slot, w)
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-w.grown:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	w.key = ""
	return false
}

// join has a read wait for waiters that have not given up: a read that is under way, or the next one.
func (t *tails) join(slot string, waiters ...*tailWaiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bySlot[slot] == nil {
		t.bySlot[slot] = &tail{}
	}
	one := t.bySlot[slot]
	for _, w := range waiters {
		if w.key == "" {
			continue
		}
		at := slices.IndexFunc(one.reads, func(r *tailRead) bool { return r.covers(w) })
		if at >= 0 {
			one.reads[at].waiters = append(one.reads[at].waiters, w)
			continue
		}
		if t.closed {
			close(w.grown)
			continue
		}
		if one.next == nil {
			one.next = &tailRead{after: map[string]string{}}
			t.reads.Go(func() { t.read(slot) })
		}
		if !one.next.covers(w) {
			one.next.after[w.key] = w.after
		}
		one.next.waiters = append(one.next.waiters, w)
	}
}

// covers reports whether the read ends when w's stream has the entries that w waits for.
func (r *tailRead) covers(w *tailWaiter) bool {
	after, known := r.after[w.key]
	return known && !olderEntry(w.after, after)
}

// read waits for the streams of all that joined, until one of them grows or the round ends. The remaining
// waiters join another read.
func (t *tails) read(slot string) {
	time.Sleep(tailGather)
	t.mu.Lock()
	one := t.bySlot[slot]
	r := one.next
	one.next, one.reads = nil, append(one.reads, r)
	t.mu.Unlock()

	keys := slices.Sorted(maps.Keys(r.after))
	streams := slices.Clone(keys)
	for _, key := range keys {
		streams = append(streams, r.after[key])
	}
	grown, err := t.client.XRead(context.Background(), &redis.XReadArgs{Streams: streams, Count: 1,
		Block: max(tailRound-time.Since(t.began)%tailRound, tailGather)}).Result()
	failed := err != nil && !errors.Is(err, redis.Nil)

	t.mu.Lock()
	one.reads = slices.DeleteFunc(one.reads, func(other *tailRead) bool { return other == r })
	left := slices.DeleteFunc(r.waiters, func(w *tailWaiter) bool {
		if !failed && !slices.ContainsFunc(grown, func(s redis.XStream) bool { return s.Stream == w.key }) {
			return false
		}
		close(w.grown)
		return true
	})
	t.mu.Unlock()
	t.join(slot, left...)
}

// close waits for the reads, which end because their client is closed.
func (t *tails) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.reads.Wait()
}

// olderEntry compares ids of entries.
func olderEntry(a, b string) bool {
	aTime, aSeq, _ := strings.Cut(a, "-")
	bTime, bSeq, _ := strings.Cut(b, "-")
	return cmp.Or(cmp.Compare(len(aTime), len(bTime)), strings.Compare(aTime, bTime),
		cmp.Compare(len(aSeq), len(bSeq)), strings.Compare(aSeq, bSeq)) < 0
}
