package webhooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
)

const (
	sweepEvery   = 5 * time.Second
	sweepOverdue = 5 * time.Second // a delivery overdue by more than this is checked for its task
	// between checks of a delivery whose task waits: the queue is behind, or the breaker holds it
	sweepAgain = 30 * time.Second
	sweepBatch = 500
)

// takenOut is why a delivery was skipped.
const takenOut = "its task was taken out of the queue"

// sweep looks for deliveries whose task is gone, until ctx ends.
func (w *Webhooks) sweep(ctx context.Context) error {
	owed := w.db.Looks().For(dueKey())
	for owed.Pause(ctx, sweepEvery) {
		if err := w.sweepOnce(ctx); err != nil && ctx.Err() == nil {
			w.log.Warn("can't look after webhook deliveries", "error", err)
		}
	}
	return nil
}

// sweepOnce checks the deliveries that are overdue the longest. A delivery whose task is still to run is
// postponed. A delivery without a task gets a new one: a lost task must not withhold an event. A delivery
// whose task was archived has been put away by an operator; its record says so.
func (w *Webhooks) sweepOnce(ctx context.Context) error {
	now := w.now()
	w.breaker.tidy(now)
	refs, err := w.store.overdue(ctx, now.Add(-sweepOverdue), sweepBatch)
	if err != nil || len(refs) == 0 {
		return err
	}
	states, err := w.taskStates(ctx, refs)
	if err != nil {
		return err
	}
	var alive []ref
	for i, r := range refs {
		if toRun(states[i]) {
			alive = append(alive, r)
		} else {
			err = errors.Join(err, w.resolve(ctx, r, states[i], now))
		}
	}
	if len(alive) > 0 {
		err = errors.Join(err, w.store.postpone(ctx, alive, now.Add(sweepAgain)))
	}
	return err
}

// taskStates returns the states of deliveries' tasks.
func (w *Webhooks) taskStates(ctx context.Context, refs []ref) ([]queue.State, error) {
	ids := make([]string, len(refs))
	for i, r := range refs {
		ids[i] = r.taskID()
	}
	states, err := w.states(ctx, queue.Notify, ids...)
	if err != nil {
		return nil, fmt.Errorf("look for the tasks of %d webhook deliveries: %w", len(refs), err)
	}
	return states, nil
}

// resolve decides about a delivery whose task will not run.
func (w *Webhooks) resolve(ctx context.Context, r ref, state queue.State, now time.Time) error {
	pending, err := orphanScript.Run(ctx, w.store.client, []string{deliveryKey(r)},
		orphanArgs{r.Endpoint, r.Delivery, now.Add(sweepAgain)})
	switch {
	case err != nil:
		return fmt.Errorf("look after webhook delivery %s to %s: %w", r.Delivery, r.Endpoint, err)
	case !pending: // it has ended
		return nil
	case state == "":
		w.log.Warn("webhook delivery had no task: queued again", "endpoint", r.Endpoint, "delivery", r.Delivery)
		return errors.Join(w.enqueue(ctx, r.task())...)
	}
	w.log.Warn("webhook delivery's task was put away: skipped", "endpoint", r.Endpoint, "delivery", r.Delivery)
	return w.skip(ctx, r, takenOut).Err()
}

// TaskDeleted ends the delivery of a task that an operator is about to delete in the queue's dashboard. It
// takes the payload of the task. Without it the sweeper would make a new task.
func (w *Webhooks) TaskDeleted(ctx context.Context, payload []byte) error {
	r, ok := refOf(payload)
	if !ok {
		return nil // it names no delivery: nothing depends on it
	}
	return redisdb.Away(w.skip(ctx, r, takenOut).Err())
}

// toRun reports whether a task in this state will be given to a worker.
func toRun(s queue.State) bool {
	return s != "" && s != queue.Archived && s != queue.Completed
}
