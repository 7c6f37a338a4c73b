package feedback

import (
	"context"
	"slices"
	"time"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox"
)

// putBatch bounds the facts of one script: a long script blocks every other client.
const putBatch = 500

// Append puts facts about messages into the inbox: opens, clicks, unsubscribes, and returned mail. They are
// in Redis when it returns nil. Each needs its key, type and message. If the inbox is full, it drops the
// oldest opens and clicks, and returns Unavailable with code InboxFull for other facts.
func (f *Feedback) Append(ctx context.Context, facts []outbox.Fact) error {
	now := f.opts.Now()
	entries := make([]entry, len(facts))
	for i, l := range facts {
		entries[i] = entryOf(l, now)
	}
	return f.put(ctx, entries)
}

func (f *Feedback) put(ctx context.Context, entries []entry) error {
	for _, stream := range streams() {
		mine := slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return e.stream() != stream })
		for some := range slices.Chunk(mine, putBatch) {
			if err := f.putSome(ctx, stream, some); err != nil {
				return err
			}
		}
	}
	return nil
}

// putSome puts entries into one stream. Any partition will do, so they stay together in one.
func (f *Feedback) putSome(ctx context.Context, stream string, entries []entry) error {
	lines := make([]string, len(entries))
	c := change{add: map[string]int64{}, latest: map[string]int64{}}
	for i := range entries {
		e := &entries[i]
		line, err := e.line()
		if err != nil {
			return err
		}
		lines[i] = line
		c.add[e.source()+":"+countReceived]++
		c.latest[e.source()+":"+countLast] = max(c.latest[e.source()+":"+countLast], e.Received.UnixMilli())
	}
	p := redisdb.PartitionFor(entries[0].Key, f.DB.Partitions())
	most := max(f.opts.MaxFacts/f.DB.Partitions(), len(lines))
	ok, dropped, err := f.keys.put(ctx, p, stream, most, lines, c)
	if err != nil {
		return err
	}
	if !ok {
		f.metrics.full.Inc()
		full := fault.New(fault.Unavailable, "InboxFull",
			"The inbox is full; try again shortly")
		full.RetryAfter = 30 * time.Second
		return full
	}
	f.metrics.dropped.Add(float64(dropped))
	for i := range entries {
		f.metrics.received.WithLabelValues(entries[i].source()).Inc()
	}
	return nil
}
