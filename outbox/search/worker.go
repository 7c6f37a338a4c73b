package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox/search/query"
)

// backoff is the retry delay of tasks while the index fails.
var backoff = queue.Backoff{Base: time.Second, Factor: 2, Jitter: 0.2, Max: time.Minute}

// Handle handles one task: it indexes the current state of its messages.
func (d *Documents) Handle(ctx context.Context, t queue.Task) queue.Verdict {
	var j job
	if err := json.Unmarshal(t.Payload, &j); err != nil || len(j.IDs) == 0 {
		return queue.Bury(fmt.Errorf("task %s names no messages", t.ID))
	}
	for ids := range slices.Chunk(d.unsettled(j), putBatch) {
		err := d.yielding(ctx, func() error { return d.index(ctx, ids, endsOf(ids, j.Ends)) })
		if err == nil {
			continue
		}
		if ctx.Err() != nil { // the process stops: not an index failure
			return queue.NotNow(d.opts.Now())
		}
		return d.later(err)
	}
	d.failures.Store(0)
	d.metrics.lag.Set(max(0, d.opts.Now().Sub(time.UnixMilli(j.At)).Seconds()))
	return queue.Done()
}

// endsOf returns the ends of the given messages.
func endsOf(ids []string, all map[string]end) map[string]end {
	if len(all) == 0 {
		return nil
	}
	some := make(map[string]end, len(ids))
	for _, id := range ids {
		if e, ok := all[id]; ok {
			some[id] = e
		}
	}
	return some
}

// putBatch is the number of messages indexed together.
const putBatch = 500

// settledMost is how many ended messages are remembered as indexed. Beyond it all of them are forgotten.
const settledMost = 20_000

// settle notes messages that were indexed after they ended. Tasks that are still queued for earlier changes
// of them have nothing new.
func (d *Documents) settle(ids []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.settled == nil || len(d.settled)+len(ids) > settledMost {
		d.settled = make(map[string]bool, len(ids))
	}
	for _, id := range ids {
		d.settled[id] = true
	}
}

// unsettled returns the messages of a job that the index may not be up to date about.
func (d *Documents) unsettled(j job) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range j.Again {
		delete(d.settled, id)
	}
	return slices.DeleteFunc(j.IDs, func(id string) bool { return d.settled[id] })
}

// Indexing rests restPer times its working time for each message per second of this process, at most restMost
// times. At 600 messages a second it uses a ninth of a CPU, at 1,500 a twentieth.
const (
	restPer  = 1.0 / 75
	restMost = 19
	calm     = 100 // messages a second; below, indexing never rests
)

// yielding runs indexing work, one at a time, and pauses for sending. The remaining tasks wait in the queue.
func (d *Documents) yielding(ctx context.Context, work func() error) error {
	return d.inTurn(ctx, func() error {
		began := time.Now()
		err := work()
		redisdb.Pause(ctx, time.Duration(restFor(d.Pace)*float64(time.Since(began))))
		return err
	})
}

// inTurn does work when no other does: an erasure waits for what others read before it.
func (d *Documents) inTurn(ctx context.Context, work func() error) error {
	if err := d.turn.Take(ctx); err != nil {
		return err
	}
	defer d.turn.Give()
	return work()
}

// restFor returns the ratio of rest to working time at a pace.
func restFor(pace func() float64) float64 {
	if pace == nil || pace() < calm {
		return 0
	}
	return min(pace()*restPer, restMost)
}

// later returns the retry of a task. The delay grows with the consecutive failures.
func (d *Documents) later(err error) queue.Verdict {
	n := d.failures.Add(1)
	d.metrics.failures.Inc()
	if n == 1 {
		d.log.Error("the search index takes no documents; trying again", "error", err)
	} else {
		d.log.Debug("the search index takes no documents", "failures", n, "error", err)
	}
	wait := backoff.Delay(int(min(n, 20))+1, rand.Float64())
	if f, ok := errors.AsType[*fault.Error](err); ok {
		wait = max(wait, f.RetryAfter)
	}
	return queue.RetryAt(d.opts.Now().Add(wait), err)
}

// index indexes the current state of messages. Messages that the outbox forgot stay unchanged, or get their
// ends.
func (d *Documents) index(ctx context.Context, ids []string, ends map[string]end) error {
	revision, err := d.keys.revision(ctx)
	if err != nil {
		return err
	}
	messages, err := d.Outbox.Documents(ctx, ids)
	if err != nil {
		return fmt.Errorf("read %d messages for the search index: %w", len(ids), err)
	}
	docs, ended, oldest := make([]Document, 0, len(messages)), []string(nil), d.oldest()
	for _, m := range messages {
		delete(ends, m.QueueID)
		if m.Ended != nil && m.Status != api.StatusDead { // a dead letter may be sent again, and needs its text
			ended = append(ended, m.QueueID)
		}
		if !m.Created.Before(oldest) { // otherwise beyond the retention
			docs = append(docs, documentOf(m, d.opts.MaxText, revision))
		}
	}
	forgotten, err := d.ended(ctx, ends, revision)
	if err != nil {
		return err
	}
	docs = append(docs, forgotten...)
	if err := d.put(ctx, d.Store, docs); err != nil {
		return err
	}
	d.metrics.indexed.Add(float64(len(docs)))
	if len(ended) == 0 {
		return nil
	}
	if err := d.Outbox.Indexed(ctx, ended); err != nil {
		return fmt.Errorf("report that %d messages are in the search index: %w", len(ended), err)
	}
	d.settle(ended)
	return nil
}

// ended sets the ends of indexed messages. Messages not in the index are skipped: they ended before they were
// read.
func (d *Documents) ended(ctx context.Context, ends map[string]end, revision int64) ([]Document, error) {
	if len(ends) == 0 {
		return nil, nil
	}
	var named query.Or
	for id := range ends {
		named = append(named, query.Term{Field: query.ID, Value: query.FoldID(id)})
	}
	found, err := d.Store.Search(ctx, Query{Where: named, Size: len(ends)})
	if err != nil {
		return nil, fmt.Errorf("find %d messages that ended: %w", len(ends), err)
	}
	var docs []Document
	for _, hit := range found.Hits {
		how, ok := ends[hit.QueueID]
		if !ok {
			continue // an idempotency key equal to an id
		}
		doc, at := hit.Document, time.UnixMilli(how.At).UTC()
		doc.Status, doc.Ended, doc.Revision = how.Status, &at, revision
		docs = append(docs, doc)
	}
	return docs, nil
}
