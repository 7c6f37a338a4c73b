package webhooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postroom/postroom/queue"
	"github.com/postroom/postroom/redisdb"
)

const (
	sweepEvery   = 5 * time.Second
	sweepOverdue = 5 * time.Second // a delivery overdue by more than this is checked for its task
	// between checks of a delivery whose task waits: the queue is behind, or the gate holds it
	sweepAgain = 30 * time.Second
	sweepBatch = 500
)

// sweeper finds the deliveries whose task is gone.
type sweeper struct{ *Webhooks }

// sweep looks for them until ctx ends.
func (w sweeper) sweep(ctx context.Context) error {
	for redisdb.Pause(ctx, sweepEvery) {
		if err := w.sweepOnce(ctx); err != nil && ctx.Err() == nil {
			w.log.Warn("can't look after webhook deliveries", "error", err)
		}
	}
	return nil
}

// sweepOnce checks the deliveries that are overdue the longest. A delivery with a live task is postponed.
// One that was never tried gets a new task, once: the process may have died between record and task. For
// any other, an operator deleted or archived the task in the dashboard; its record says so.
func (w sweeper) sweepOnce(ctx context.Context) error {
	now := w.now()
	w.gate.tidy(now)
	refs, err := w.store.overdue(ctx, now.Add(-sweepOverdue), sweepBatch)
	if err != nil || len(refs) == 0 {
		return err
	}
	alive, lost, err := w.inspect(ctx, refs)
	if err != nil {
		return err
	}
	if len(alive) > 0 {
		if err := w.store.postpone(ctx, alive, now.Add(sweepAgain)); err != nil {
			return err
		}
	}
	for _, r := range lost {
		err = errors.Join(err, w.adopt(ctx, r, now))
	}
	return err
}

// inspect splits deliveries into those that have a task still to run and those that have none.
func (w sweeper) inspect(ctx context.Context, refs []ref) (alive, lost []ref, err error) {
	ids := make([]string, 0, 2*len(refs))
	for _, r := range refs {
		ids = append(ids, r.taskID(1), r.taskID(2))
	}
	states, err := w.states(ctx, queue.Notify, ids...)
	if err != nil {
		return nil, nil, fmt.Errorf("look for the tasks of %d webhook deliveries: %w", len(refs), err)
	}
	for i, r := range refs {
		if toRun(states[2*i]) || toRun(states[2*i+1]) {
			alive = append(alive, r)
		} else {
			lost = append(lost, r)
		}
	}
	return alive, lost, nil
}

// adopt decides about a delivery without a task.
func (w sweeper) adopt(ctx context.Context, r ref, now time.Time) error {
	verdict, err := orphanScript.Run(ctx, w.store.client, []string{deliveryKey(r)},
		orphanArgs{r.Endpoint, r.Delivery, now.Add(sweepAgain)})
	if err != nil {
		return fmt.Errorf("look after webhook delivery %s to %s: %w", r.Delivery, r.Endpoint, err)
	}
	switch verdict.Word {
	case "ENQUEUE":
		w.log.Warn("webhook delivery had no task: queued again", "endpoint", r.Endpoint, "delivery", r.Delivery)
		return errors.Join(w.enqueue(ctx, r.task(2))...)
	case "SKIP":
		w.log.Warn("webhook delivery lost its task: skipped", "endpoint", r.Endpoint, "delivery", r.Delivery)
		w.metrics.deliveries.WithLabelValues(statusSkipped).Inc()
		_, err := w.finish(ctx, r, finishing{status: statusSkipped,
			err: errors.New("its task was taken out of the queue")})
		return err
	}
	return nil
}

// toRun reports whether a task in this state will be given to a worker.
func toRun(s queue.State) bool {
	return s != "" && s != queue.Archived && s != queue.Completed
}
