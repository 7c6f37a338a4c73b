package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/lease"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
)

// soon is how long a delivery waits if Redis or the settings cannot be read.
const soon = 5 * time.Second

// Deliver handles one task of type [TaskType]: it makes one attempt of a delivery, or returns when to
// retry. It runs in the worker pool of queue.Notify.
func (w *Webhooks) Deliver(ctx context.Context, task queue.Task) queue.Verdict {
	r, ok := refOf(task.Payload)
	if !ok {
		return queue.Bury(fmt.Errorf("task %s names no delivery", task.ID))
	}
	t, err := w.dir.findSurely(ctx, r.Endpoint)
	switch {
	case err != nil:
		return queue.RetryAt(w.now().Add(soon), err)
	case t == nil:
		return w.skip(ctx, r, "the endpoint was deleted")
	case t.off != "":
		return w.skip(ctx, r, "the endpoint is switched off: "+t.off)
	case t.broken != nil:
		w.log.Error("can't use webhook endpoint", "endpoint", r.Endpoint, "delivery", r.Delivery, "error", t.broken)
		return queue.RetryAt(w.now().Add(longestAway), errors.New("the endpoint's secrets can't be opened"))
	}
	if t.woken != "" {
		w.breaker.wake(t.breakerKey(), t.woken)
	}
	if back, ok := w.breaker.enter(t.breakerKey(), w.now()); !ok {
		w.metrics.deliveries.WithLabelValues("held").Inc()
		return queue.NotNow(back)
	}
	return w.attempt(ctx, r, t)
}

// attempt makes an attempt that the breaker admitted.
func (w *Webhooks) attempt(ctx context.Context, r ref, t *target) queue.Verdict {
	b, wait, err := w.begin(ctx, r, t)
	switch {
	case err != nil:
		w.breaker.abandon(t.breakerKey())
		return queue.RetryAt(w.now().Add(soon), err)
	case !wait.IsZero():
		w.breaker.abandon(t.breakerKey())
		w.metrics.deliveries.WithLabelValues("limited").Inc()
		return queue.NotNow(wait)
	case b == nil:
		w.breaker.abandon(t.breakerKey())
		return queue.Drop()
	}
	got := w.poster.post(ctx, *b, w.now())
	if ctx.Err() != nil && got.err != nil { // this process stops; the endpoint is not the cause
		w.breaker.abandon(t.breakerKey())
		return w.giveBack(ctx, r, b.attempt)
	}
	now := w.now()
	d := w.policy.decide(got, b.attempt, now)
	next := w.breaker.exit(t.breakerKey(), got, min(got.retryAfter, w.policy.maxRetryAfter), now)
	w.noteRest(ctx, t, next, d.err)
	return w.settle(ctx, r, b, got, d)
}

// begin opens an attempt. It returns nil if nothing is left to do, and a time if the endpoint's rate limit
// requires to wait until then.
func (w *Webhooks) begin(ctx context.Context, r ref, t *target) (*posting, time.Time, error) {
	now := w.now()
	b, err := beginScript.Run(ctx, w.store.client, []string{deliveryKey(r)},
		beginArgs{r.Endpoint, r.Delivery, now, t.rate, now.Add(w.options.Timeout)})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("begin webhook delivery %s to %s: %w", r.Delivery, r.Endpoint, err)
	}
	if b.Word != "GO" {
		return nil, b.At, nil
	}
	e, err := event.Parse(b.Event)
	next := &posting{to: t, event: e, delivery: r.Delivery, attempt: b.Attempt, created: b.Created}
	return next, time.Time{}, err
}

// settle records the outcome of an attempt, switches the endpoint off if due, and returns the verdict.
func (w *Webhooks) settle(ctx context.Context, r ref, b *posting, got reply, d decision) queue.Verdict {
	t := b.to
	w.metrics.deliveries.WithLabelValues(string(d.outcome)).Inc()
	w.metrics.latency.Observe(got.latency.Seconds())
	since, err := w.finish(ctx, r, finishing{attempt: b.attempt, status: d.outcome.status(), reply: got,
		err: d.err, next: d.next, url: t.url})
	if err != nil { // the outcome is not recorded: the request will be repeated with the same webhook-id
		w.log.Error("can't record webhook delivery", "endpoint", r.Endpoint, "delivery", r.Delivery, "outcome",
			d.outcome, "error", err)
		return queue.RetryAt(w.now().Add(soon), err)
	}
	w.report(ctx, r, b, got, d)
	if reason := w.disableReason(d, since); reason != "" {
		if err := w.disable(ctx, t, reason, since); err != nil {
			w.log.Error("can't switch off webhook endpoint", "endpoint", t.id, "error", err)
		}
	}
	switch d.outcome {
	case delivered:
		return queue.Done()
	case retrying:
		return queue.RetryAt(d.next, d.err)
	}
	return queue.Bury(d.err)
}

// finishing is the input of finish.lua.
type finishing struct {
	attempt int    // 0 means any
	status  string // the delivery's from now on
	reply   reply
	err     error
	next    time.Time
	url     string // the endpoint's, if the attempt counts for its health
}

// finish records the end of an attempt, even while this process stops, and retries for a few seconds while
// Redis is unavailable. It returns the time since when the endpoint has been failing, or zero if it has
// not.
func (w *Webhooks) finish(ctx context.Context, r ref, f finishing) (since time.Time, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), soon)
	defer cancel()
	reason := ""
	if f.err != nil {
		reason = message.Clip(printable(f.err.Error()), 1024)
	}
	args := finishArgs{
		Endpoint: r.Endpoint, ID: r.Delivery, Attempt: f.attempt, Status: f.status, Code: f.reply.status,
		Latency: f.reply.latency.Milliseconds(), Response: f.reply.head, Failure: reason, Next: f.next,
		KeepFor: w.options.LogAge.Milliseconds(), KeepMost: w.options.LogSize, URL: f.url,
		Tries: keptTries,
	}
	if f.attempt > 1 || f.attempt == 1 && f.status != statusDelivered {
		if args.Try, err = f.try(w.now(), reason); err != nil {
			return time.Time{}, err
		}
	}
	err = lease.Persist(ctx, w.log, "webhook delivery "+r.Delivery, soon, func() error {
		args.Now = w.now()
		args.Day, args.Hour = args.Now.UTC().Format(time.DateOnly), args.Now.UTC().Hour()
		since, err = finishScript.Run(ctx, w.store.client, []string{deliveryKey(r)}, args)
		return err
	})
	return since, redisdb.Failed(err, "record webhook delivery %s to %s", r.Delivery, r.Endpoint)
}

// skip ends a delivery whose endpoint no longer subscribes to it. It can be replayed later.
func (w *Webhooks) skip(ctx context.Context, r ref, why string) queue.Verdict {
	if _, err := w.finish(ctx, r, finishing{status: statusSkipped, err: errors.New(why)}); err != nil {
		return queue.RetryAt(w.now().Add(soon), err)
	}
	w.metrics.deliveries.WithLabelValues(statusSkipped).Inc()
	return queue.Drop()
}

// giveBack returns an attempt that the stop of this process interrupted.
func (w *Webhooks) giveBack(ctx context.Context, r ref, attempt int) queue.Verdict {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), soon)
	defer cancel()
	now := w.now()
	_, err := givebackScript.Run(ctx, w.store.client, []string{deliveryKey(r)},
		givebackArgs{r.Endpoint, r.Delivery, attempt, now})
	if err != nil {
		w.log.Warn("can't give back a webhook attempt", "endpoint", r.Endpoint, "delivery", r.Delivery, "error",
			err)
	}
	return queue.NotNow(now)
}

// report logs the outcome of an attempt. URLs are not logged, because they may hold tokens.
func (w *Webhooks) report(ctx context.Context, r ref, b *posting, got reply, d decision) {
	level, line := slog.LevelWarn, "webhook failed"
	switch d.outcome {
	case delivered:
		level, line = slog.LevelDebug, "webhook delivered"
	case retrying:
		level, line = slog.LevelInfo, "webhook deferred"
	}
	if !w.log.Enabled(ctx, level) {
		return
	}
	attrs := []any{
		"message_id", aboutMessage(b.event), "event_id", b.event.ID, "endpoint", r.Endpoint, "delivery", r.Delivery,
		"attempt", b.attempt, "status_code", got.status, "latency_ms", got.latency.Milliseconds(),
	}
	if d.err != nil {
		attrs = append(attrs, "error", d.err)
	}
	if !d.next.IsZero() {
		attrs = append(attrs, "next_attempt", d.next)
	}
	w.log.Log(ctx, level, line, attrs...)
}

// aboutMessage returns the id of the message that an event is about, or "" for other events.
func aboutMessage(e event.Event) string {
	var data struct {
		QueueID string `json:"queueId"`
	}
	_ = json.Unmarshal(e.Data, &data) // data of another shape is about no message
	return data.QueueID
}
