package search

import (
	"context"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
)

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

// fill indexes messages of the log that changed since a time: live ones, and those accepted or ended since.
// Messages beyond the retention are skipped. It rests as long as it works, and returns the number of indexed
// messages.
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
