package documents

import (
	"context"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
)

// complete does what is left to be done to the index: a rebuild that is wanted, or what it misses, once the queue is short.
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

// skew is how far the clocks of those who write events may be apart.
const skew = time.Minute

// fillBatch is how many messages of the log are read, and indexed, at once.
const fillBatch = 500

// fill puts into the index what the log remembers and what changed since a moment: what lives, and what was accepted or ended since then.
// What is too old for the index stays out. It leaves as much time to others as it takes, and returns how many messages it put.
func (d *Documents) fill(ctx context.Context, since time.Time, progress func(done, total int) error) (int, error) {
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
			if err := d.index(ctx, ids, nil); err != nil {
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
		if !pause(ctx, time.Since(began)) {
			return put, ctx.Err()
		}
	}
}
