package webhooks

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
)

const (
	fanOutBatch = 200 // events read from the stream together
	// how long to collect a batch under load: reading one event costs nearly as much as reading ten
	fanOutGather = 10 * time.Millisecond
	// the same after a batch that no endpoint wanted
	unwantedGather = 250 * time.Millisecond
)

// ref names a delivery. A task carries only this. The event itself is in the delivery's record. The record
// outlives the stream, which may be trimmed before the last attempt. It also outlives the task: the log shows
// sent events, and can send them again. Each attempt reads the record anyway, so the event costs no extra
// round trip.
type ref struct {
	Endpoint string `json:"endpoint"`
	Delivery string `json:"delivery"`
}

// order is a delivery to be made: one event for one endpoint. raw is the event as the stream has it.
type order struct {
	ref
	raw   string
	again string // the event's id, if it is sent again; empty if this is its first delivery
}

// fanOut turns events into deliveries: a record, then a task, for each endpoint that subscribes to the
// event. It runs again for events whose worker died before the acknowledgement, and then finds the existing
// records.
//
// It needs the current endpoints: with a second-old list, an endpoint that another process has just made
// would never get these events.
func (w *Webhooks) fanOut(ctx context.Context, entries []redisdb.Entry) error {
	w.unwanted.Store(true)
	s, err := w.dir.latest(ctx)
	if err != nil {
		return err
	}
	if len(s.list) == 0 && w.dir.named == nil {
		return nil
	}
	orders, err := w.match(ctx, s, entries)
	if err != nil || len(orders) == 0 {
		return err
	}
	w.unwanted.Store(false)
	_, full, err := w.create(ctx, orders)
	w.reportFull(full)
	return err
}

// reportFull logs one line for each endpoint whose events were left to a replay.
func (w *Webhooks) reportFull(full []order) {
	if len(full) == 0 {
		return
	}
	events := make(map[string]int)
	for _, o := range full {
		events[o.Endpoint]++
	}
	w.metrics.deliveries.WithLabelValues("overflow").Add(float64(len(full)))
	for endpoint, n := range events {
		w.log.Warn("webhook endpoint has too many deliveries waiting: events left to a replay", "endpoint",
			endpoint, "events", n)
	}
}

// match returns the endpoints that subscribe to each event. Events from before an endpoint was made are not
// for it, although they may be read afterwards. An event that cannot be parsed is logged and
// skipped: a retry does not help, and it must not block the events behind it.
func (w *Webhooks) match(ctx context.Context, s *snapshot, entries []redisdb.Entry) ([]order, error) {
	var orders []order
	implicit := make(map[string][]*target) // by account: most batches concern few accounts
	for _, entry := range entries {
		line := entry.Text(streamField)
		e, err := event.Parse([]byte(line))
		if err != nil || e.ID == "" {
			w.log.Error("can't deliver an event to webhooks", "event_id", e.ID, "error", err)
			continue
		}
		w.metrics.lag.Set(w.now().Sub(e.Time).Seconds())
		named, known := implicit[e.Account]
		if !known {
			if named, err = w.dir.implicit(ctx, s, e.Account); err != nil {
				return nil, err
			}
			implicit[e.Account] = named
		}
		for _, targets := range [][]*target{s.list, named} {
			for _, t := range targets {
				if t.wants(&e) && entry.Added().UnixMilli() >= t.from {
					orders = append(orders, order{ref: ref{Endpoint: t.id, Delivery: e.ID}, raw: line})
				}
			}
		}
	}
	return orders, nil
}

// create writes the records and then enqueues the tasks, in two round trips. In a Redis Cluster the two are
// on different nodes, and a task must not run before its record exists. It returns how many were enqueued,
// and the orders beyond the MaxPending of their endpoint.
func (w *Webhooks) create(ctx context.Context, orders []order) (created int, full []order, err error) {
	now := w.now()
	pipe := w.db.Pipeline()
	answers := make([]*redisdb.Reply[word], len(orders))
	for i, o := range orders {
		answers[i] = createScript.Add(pipe, []string{deliveryKey(o.ref)}, createArgs{o.Endpoint, o.Delivery,
			o.raw, now, w.options.MaxPending, w.options.pendingAge().Milliseconds(), o.again})
	}
	if err := pipe.Exec(ctx); err != nil {
		return 0, nil, fmt.Errorf("record %d webhook deliveries: %w", len(orders), err)
	}
	tasks := make([]queue.Task, 0, len(orders))
	for i, o := range orders {
		answer, err := answers[i].Read()
		if err != nil {
			return 0, nil, fmt.Errorf("record webhook delivery of event %s to %s: %w", o.Delivery, o.Endpoint, err)
		}
		switch answer.Word {
		case "CREATED", "PENDING":
			tasks = append(tasks, o.task())
		case "FULL":
			full = append(full, o)
		}
	}
	if len(tasks) == 0 {
		return 0, full, nil
	}
	return len(tasks), full, errors.Join(w.enqueue(ctx, tasks...)...)
}

// pendingAge is how long the record of an unfinished delivery lives if nothing else ends it. It is far longer
// than a delivery can wait for an endpoint, which is switched off after DisableAfter.
func (o *Options) pendingAge() time.Duration {
	return max(30*24*time.Hour, 2*o.DisableAfter)
}

// task returns the task of a delivery. Its id is derived from the delivery's, so that an event handled
// twice makes one task.
func (r ref) task() queue.Task {
	payload, _ := json.Marshal(r) // two strings: cannot fail
	return queue.Task{Queue: queue.Notify, Type: TaskType, ID: r.taskID(), Payload: payload}
}

func (r ref) taskID() string { return slug(r.Delivery) + "." + slug(r.Endpoint) }

// refOf returns the delivery that the payload of a task names.
func refOf(payload []byte) (r ref, ok bool) {
	err := json.Unmarshal(payload, &r)
	return r, err == nil && r.Endpoint != "" && r.Delivery != ""
}

// webhookID identifies an event at an endpoint for the receiver. It is the same in attempts, redeliveries
// and replays, so that a receiver can drop duplicates. It has no dots, because dots separate the signed
// parts.
func webhookID(eventID, endpoint string) string {
	return slug(eventID) + "_" + slug(endpoint)
}

// slug returns a name that is safe in task ids, headers and paths: the name itself if it is safe, a hash of
// it otherwise. Account names may contain any characters.
func slug(name string) string {
	if len(name) > 0 && len(name) <= 64 && strings.Trim(name, plain) == "" {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "h-" + base64.RawURLEncoding.EncodeToString(sum[:16])
}

// plain are the characters of a name that is safe.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_:"
