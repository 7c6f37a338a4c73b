package feedback

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox"
)

const (
	workBatch = 50 // facts applied together: more would keep a core busy, and clicks would wait
	maxTries  = 3  // for a fact that fails while others succeed
)

// After each batch a worker pauses restPer times as long as it worked, for each message a second of this
// process, and at most restMost times as long. Bounces, complaints and unsubscribes never wait for that.
const (
	restPer  = 1.0 / 150
	restMost = 9
	calm     = 100 // messages a second below which it never pauses
)

// item is an entry that is being applied.
type item struct {
	entry
	// the recipients of its message, by the log or a proof; nil if not read, or unknown
	sent   *outbox.Addressed
	proof  string  // by the reference that found its message
	ours   bool    // found by a reference that Postroom wrote itself
	result outcome // empty if not settled yet
}

// outcome is the result of a fact, as it is counted.
type outcome string

const (
	countReceived = "received" // taken into the inbox

	applied   outcome = "applied"
	duplicate outcome = "duplicates"
	full      outcome = "full" // its message has too many facts to take more
	unknown   outcome = "unknown"
	postponed outcome = "waiting" // looked up again later; not counted
	failed    outcome = "failed"
)

// follow applies the facts of a stream.
func (f *Feedback) follow(ctx context.Context, stream string) error {
	return f.DB.Follow(ctx, redisdb.Follow{Stream: stream, Group: group, Batch: workBatch},
		func(work context.Context, entries []redisdb.Entry) error {
			began := time.Now()
			if err := f.handle(work, stream, entries); err != nil {
				return err
			}
			if stream != urgent {
				redisdb.Pause(ctx, time.Duration(f.restFor()*float64(time.Since(began))))
			}
			return nil
		})
}

// restFor returns the pause, as a multiple of the work before it.
func (f *Feedback) restFor() float64 {
	if f.opts.Pace == nil {
		return 0
	}
	pace := f.opts.Pace()
	if pace < calm {
		return 0
	}
	return min(pace*restPer, restMost)
}

// handle applies entries. An entry that fails alone again and again is dropped, because it would block the
// stream.
func (f *Feedback) handle(ctx context.Context, stream string, entries []redisdb.Entry) error {
	err := f.guarded(ctx, stream, entries)
	switch {
	case err == nil:
		if len(entries) == 1 {
			f.forget(stream, entries[0])
		}
		return nil
	case len(entries) > 1, ctx.Err() != nil, redisdb.Unavailable(err), fault.Is(err, fault.Unavailable):
		return err
	case f.countFailure(stream, entries[0]) < maxTries:
		return err
	}
	one := entries[0]
	source := "other"
	if e, perr := parseEntry(one.Text(field)); perr == nil {
		source = e.source()
	}
	f.log.Error("report dropped: applying it failed", "stream", stream, "id", one.ID, "tries", maxTries,
		"error", err)
	f.metrics.applied.WithLabelValues(source, string(failed)).Inc()
	if err := f.keys.done(ctx, one.Partition, stream, []string{one.ID}, nil,
		change{add: map[string]int64{source + ":" + string(failed): 1}}); err != nil {
		return err
	}
	f.forget(stream, one)
	return nil
}

// guarded calls apply, and turns a panic into an error.
func (f *Feedback) guarded(ctx context.Context, stream string, entries []redisdb.Entry) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f.apply(ctx, stream, entries)
}

func tryKey(stream string, e redisdb.Entry) string {
	return fmt.Sprintf("%s %d %s", stream, e.Partition, e.ID)
}

// countFailure counts a failure of one entry, and returns how many there were.
func (f *Feedback) countFailure(stream string, e redisdb.Entry) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tries[tryKey(stream, e)]++
	return f.tries[tryKey(stream, e)]
}

func (f *Feedback) forget(stream string, e redisdb.Entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.tries, tryKey(stream, e))
}

// apply finds the messages of facts, puts the facts onto their timelines and suppresses. Only then it removes
// the entries.
func (f *Feedback) apply(ctx context.Context, stream string, entries []redisdb.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	items, places := f.read(entries)
	if err := f.place(ctx, items); err != nil {
		return err
	}
	if err := f.suppress(ctx, items); err != nil {
		return err
	}
	p := entries[0].Partition
	again, err := f.postpone(ctx, p, stream, items)
	if err != nil {
		return err
	}
	if err := f.keys.done(ctx, p, stream, places, again, f.count(items)); err != nil {
		return err
	}
	f.metrics.lag.WithLabelValues(stream).Set(max(0, f.lagOf(items).Seconds()))
	return nil
}

// read returns entries as items, and the ids of all of them. An unreadable entry, of a newer version or
// written by hand, is logged, counted and dropped.
func (f *Feedback) read(entries []redisdb.Entry) ([]*item, []string) {
	var items []*item
	places := make([]string, len(entries))
	for i, e := range entries {
		places[i] = e.ID
		parsed, err := parseEntry(e.Text(field))
		if err != nil {
			f.log.Error("report dropped: it can't be read", "id", e.ID, "error", err)
			f.metrics.applied.WithLabelValues("other", string(failed)).Inc()
			continue
		}
		items = append(items, &item{entry: parsed})
	}
	return items, places
}

// postpone returns the facts whose message is not found yet, with the time of the next lookup. When too many
// wait, they count as unknown.
func (f *Feedback) postpone(ctx context.Context, p int, stream string, items []*item) ([]redis.Z, error) {
	var again []redis.Z
	for _, it := range items {
		if it.result != postponed {
			continue
		}
		e := it.entry
		e.Looks++
		line, err := e.line()
		if err != nil {
			return nil, err
		}
		again = append(again, redis.Z{Score: float64(f.opts.Now().Add(f.opts.LookupDelays[it.Looks]).UnixMilli()),
			Member: line})
	}
	if len(again) == 0 {
		return nil, nil
	}
	n, err := f.keys.waiting(ctx, p, stream)
	if err != nil {
		return nil, err
	}
	if n < maxWaiting {
		return again, nil
	}
	for _, it := range items {
		if it.result == postponed {
			it.result = unknown
		}
	}
	return nil, nil
}

// count adds up the outcomes of facts.
func (f *Feedback) count(items []*item) change {
	c := change{add: map[string]int64{}}
	for _, it := range items {
		if it.result == postponed {
			continue
		}
		c.add[it.source()+":"+string(it.result)]++
		f.metrics.applied.WithLabelValues(it.source(), string(it.result)).Inc()
		if it.result == unknown {
			f.log.Debug("report about an unknown message", "source", it.source(), "type", it.Type, "refs",
				len(it.Refs), "message_id", it.MessageID)
		}
	}
	return c
}

// lagOf is the age of the oldest fact.
func (f *Feedback) lagOf(items []*item) time.Duration {
	var lag time.Duration
	for _, it := range items {
		if it.Looks == 0 {
			lag = max(lag, f.opts.Now().Sub(it.Received))
		}
	}
	return lag
}

// lookEvery bounds the delay of a second lookup.
const lookEvery = 2 * time.Second

// lookAgain puts facts back into the inbox when they are due.
func (f *Feedback) lookAgain(ctx context.Context) {
	every := lookEvery
	if len(f.opts.LookupDelays) > 0 {
		every = min(every, f.opts.LookupDelays[0])
	}
	postponed := f.DB.Looks().For(f.keys.postponed()...)
	for postponed.Pause(ctx, every) {
		for more := true; more && ctx.Err() == nil; {
			var err error
			if more, err = f.keys.again(ctx, f.opts.Now(), workBatch); err != nil {
				f.log.Debug("retrying reports failed", "error", err)
			}
		}
	}
}
