package webhooks

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

const (
	replayChunk = 500             // events read from the stream together
	replayLock  = 5 * time.Minute // a replay that takes longer gives up
)

// Replay sends an endpoint all events since a time that it subscribes to and that are still in the event
// stream, whether they were delivered before or not. A receiver recognizes repeated events by their
// webhook-id. Replay returns Conflict while another replay of the endpoint runs. It returns Limited if the
// endpoint has too many waiting deliveries, with the number of replayed events and the time to continue
// from.
func (w *Webhooks) Replay(ctx context.Context, endpoint string, since time.Time) (api.Replayed, error) {
	if err := w.active(ctx, endpoint); err != nil {
		return api.Replayed{}, err
	}
	token := newID()
	lock := w.store.lock(endpoint, token)
	if got, err := lock.Claim(ctx); err != nil || !got {
		return api.Replayed{}, cmp.Or(err, replaying())
	}
	ctx, cancel := context.WithTimeout(ctx, replayLock)
	defer cancel()
	defer func() {
		if err := lock.Release(ctx); err != nil {
			w.log.Warn("releasing a replay's lock failed; it expires", "endpoint", endpoint, "error", err)
		}
	}()
	done := 0
	for p := range w.db.Partitions() {
		n, err := w.replayPartition(ctx, endpoint, p, since, token[:10])
		done += n
		if err != nil {
			return api.Replayed{Replayed: done}, redisdb.Away(withCount(err, done))
		}
	}
	w.log.Info("webhook events replayed", "endpoint", endpoint, "since", since, "events", done)
	return api.Replayed{Replayed: done}, nil
}

// replayPartition reads the stream of one partition in chunks.
func (w *Webhooks) replayPartition(ctx context.Context, endpoint string, partition int, since time.Time,
	run string) (int, error) {
	done := 0
	// a stream id begins with the time it was written at
	from := strconv.FormatInt(max(since.UnixMilli(), 0), 10)
	for from != "" {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		lines, next, err := w.store.past(ctx, partition, from, "+", replayChunk)
		if err != nil {
			return done, err
		}
		orders, err := w.matchOne(ctx, endpoint, lines, run)
		if err != nil {
			return done, err
		}
		n, full, err := w.create(ctx, orders)
		done += n
		if err != nil {
			return done, err
		}
		if len(full) > 0 {
			return done, stopAt(full[0])
		}
		from = next
	}
	return done, nil
}

// matchOne returns the events that one endpoint subscribes to.
func (w *Webhooks) matchOne(ctx context.Context, endpoint string, lines []string, run string) ([]order,
	error) {
	t, err := w.dir.find(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	if t == nil || t.off != "" {
		return nil, fault.New(fault.Conflict, "WebhookEndpointDisabled",
			"The webhook endpoint was disabled at the same time")
	}
	var orders []order
	for _, line := range lines {
		e, err := event.Parse([]byte(line))
		if err != nil || e.ID == "" || !t.wants(&e) {
			continue
		}
		orders = append(orders, order{ref: ref{Endpoint: endpoint, Delivery: e.ID + "-" + run}, raw: line,
			again: e.ID})
	}
	return orders, nil
}

// tooMany returns the error for an endpoint that has the maximum of waiting deliveries.
func tooMany() *fault.Error {
	e := fault.New(fault.Limited, "TooManyPending",
		"The webhook endpoint has too many pending deliveries. Try again later")
	e.RetryAfter = time.Minute
	return e
}

// stopAt is tooMany with the time of the event to continue from.
func stopAt(o order) error {
	e := tooMany()
	if ev, err := event.Parse([]byte(o.raw)); err == nil {
		e.Details = map[string]any{"since": ev.Time.UTC().Format(time.RFC3339Nano)}
	}
	return e
}

// withCount adds the number of events replayed before the error.
func withCount(err error, done int) error {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		if e.Details == nil {
			e.Details = make(map[string]any)
		}
		e.Details["replayed"] = done
	}
	return err
}
