package search

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

// Rebuild requests a rebuild from the indexer and returns immediately. If one is already requested or
// running, it returns that one.
func (d *Documents) Rebuild(ctx context.Context) (api.DocumentRebuild, error) {
	if d.opts.Kind == kindNone {
		return api.DocumentRebuild{}, errOff()
	}
	return d.keys.want(ctx, d.opts.Now())
}

// noteEvery is the interval at which the progress is stored.
const noteEvery = time.Second

// rebuildIfWanted rebuilds the index if a rebuild was requested or was interrupted. It reports whether it
// did.
func (d *Documents) rebuildIfWanted(ctx context.Context) (bool, error) {
	k, err := d.keys.read(ctx)
	if err != nil {
		return false, err
	}
	behind := 0.0
	if !k.behind.IsZero() {
		behind = d.opts.Now().Sub(k.behind).Seconds()
	}
	d.metrics.behind.Set(behind)
	if k.build == nil || k.build.Status != "wanted" && k.build.Status != "running" {
		return false, nil
	}
	b, now := *k.build, d.opts.Now().UTC().Truncate(time.Millisecond)
	b.Status, b.Started, b.Done, b.Total = "running", &now, 0, 0
	if err := d.keys.noteBuild(ctx, b); err != nil {
		return true, err
	}
	d.log.Info("the search index is being rebuilt")
	err = d.rebuild(ctx, &b)
	if ctx.Err() != nil {
		return true, ctx.Err() // the next indexer starts again
	}
	ended := d.opts.Now().UTC().Truncate(time.Millisecond)
	b.Status, b.Ended = "done", &ended
	if err != nil {
		d.log.Error("the search index could not be rebuilt; the old one stays in use", "error", err)
		b.Status, b.Error = "failed", "The rebuild failed; the log has the reason"
	} else {
		d.log.Info("the search index is rebuilt", "messages", b.Done, "took", ended.Sub(*b.Started))
	}
	return true, d.keys.noteBuild(ctx, b)
}

// rebuild builds a second index and swaps them. It first copies the old index, which has the only copy of
// some texts, then the current messages of the log. Changes during the rebuild go to both indexes.
func (d *Documents) rebuild(ctx context.Context, b *api.DocumentRebuild) (err error) {
	w, err := d.Store.Build(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Store.Drop(context.WithoutCancel(ctx)))
		}
	}()
	size, err := d.Store.Size(ctx)
	if err != nil {
		return err
	}
	log, err := d.Outbox.Messages(ctx, api.LogQuery{PageSize: 1})
	if err != nil {
		return fmt.Errorf("count the log for the search index: %w", err)
	}
	noted := time.Time{}
	progress := func(carried, filled, logged int) error {
		b.Done, b.Total = rebuilt(carried, size.Documents, filled, logged)
		if time.Since(noted) < noteEvery {
			return nil
		}
		noted = time.Now()
		return d.keys.noteBuild(ctx, *b)
	}
	carried, err := d.carryOver(ctx, w, func(done int) error { return progress(done, 0, log.Total) })
	if err != nil {
		return err
	}
	if _, err := d.fill(ctx, time.Time{}, func(done, total int) error {
		return progress(carried, done, total)
	}); err != nil {
		return err
	}
	if err := d.Store.Swap(ctx); err != nil {
		return err
	}
	// an erasure during the rebuild has rewritten the former index only
	if some, err := d.keys.anyErased(ctx); err != nil {
		return err
	} else if some {
		if err := reclaim(ctx, d.Store); err != nil {
			return err
		}
	}
	if size, err = d.Store.Size(ctx); err != nil {
		return err
	}
	b.Done, b.Total = size.Documents, size.Documents
	return nil
}

// rebuilt returns how many messages are done, of how many. Most are read twice, from the old index and from
// the log: each is counted once, and is half done in between.
func rebuilt(carried, documents, filled, logged int) (done, total int) {
	read, all := carried+filled, documents+logged
	total = max(documents, logged)
	if all == 0 {
		return 0, total
	}
	return min(int(int64(read)*int64(total)/int64(all)), total), total
}

// carryOver copies the documents of the index in use that are within the retention.
func (d *Documents) carryOver(ctx context.Context, w Writer, progress func(done int) error) (int, error) {
	oldest, carried := d.oldest(), 0
	err := d.Store.Walk(ctx, func(docs []Document) error {
		began, kept := time.Now(), make([]Document, 0, len(docs))
		for _, doc := range docs {
			if !doc.Created.Before(oldest) {
				kept = append(kept, doc)
			}
		}
		if err := d.put(ctx, w, kept); err != nil {
			return err
		}
		carried += len(docs)
		if err := progress(carried); err != nil {
			return err
		}
		redisdb.Pause(ctx, time.Since(began)/2)
		return ctx.Err()
	})
	return carried, err
}

const kindNone = "none"

func errOff() error {
	return fault.New(fault.NotFound, "SearchOff",
		"There is no search index: the setting documents.store is none")
}

// complete runs a requested rebuild, or fills the index once the queue is short.
func (d *Documents) complete(ctx context.Context) error {
	if done, err := d.rebuildIfWanted(ctx); done || err != nil {
		return err
	}
	queue, err := d.waiting(ctx)
	if err != nil {
		return err
	}
	if queue.paused || queue.tasks > d.opts.MaxWaiting/2 {
		return nil
	}
	since, err := d.keys.beginFilling(ctx)
	if err != nil || since.IsZero() {
		return err
	}
	began := time.Now()
	n, err := d.fill(ctx, since.Add(-skew), func(int, int) error { return nil })
	if err != nil {
		return err
	}
	d.log.Info("the search index is complete again", "since", since, "messages", n, "took", time.Since(began))
	return d.keys.filled(ctx)
}

// skew is the maximum clock difference between processes that write events.
const skew = time.Minute

// fillBatch is the number of messages of the log that are read and indexed together.
const fillBatch = 500

// fill indexes messages of the log that changed since a time: live messages, and messages accepted or ended
// since. It skips messages beyond the retention, pauses as long as it works, and returns the number of
// indexed messages.
func (d *Documents) fill(ctx context.Context, since time.Time, progress func(done, total int) error) (int,
	error) {
	put, seen, cursor, oldest := 0, 0, "", d.oldest()
	for {
		began := time.Now()
		page, err := d.Outbox.Messages(ctx, api.LogQuery{PageSize: fillBatch, Cursor: cursor})
		if err != nil {
			return put, fmt.Errorf("read the log for the search index: %w", err)
		}
		var ids []string
		for _, m := range page.Messages {
			if m.Ended == nil || !m.Created.Before(oldest) && (!m.Ended.Before(since) || !m.Created.Before(since)) {
				ids = append(ids, m.QueueID)
			}
		}
		if len(ids) > 0 {
			if err := d.inTurn(ctx, func() error { return d.index(ctx, ids, nil) }); err != nil {
				return put, err
			}
		}
		put, seen = put+len(ids), seen+len(page.Messages)
		if err := progress(seen, page.Total); err != nil {
			return put, err
		}
		if cursor = page.Cursor; cursor == "" {
			return put, nil
		}
		if !redisdb.Pause(ctx, time.Since(began)) {
			return put, ctx.Err()
		}
	}
}
