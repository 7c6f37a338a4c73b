package webhooks

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/queue"
	"github.com/postroom/postroom/redisdb"
)

const (
	fanOutBatch  = 200                   // events taken from the stream at once
	fanOutGather = 10 * time.Millisecond // and how long they gather while there are many: reading one costs nearly as much as reading ten
)

// ref names a delivery. It is all that a task carries: the event itself is in the delivery's record, which outlives the stream (it may
// be trimmed before the last attempt) and the task (the log shows what was sent, and sends it again), and which each attempt must read
// anyway. So the event is in memory once for each endpoint, and an attempt takes no extra round trip for it.
type ref struct {
	Endpoint string `json:"endpoint"`
	Delivery string `json:"delivery"`
}

// order is a delivery to be made: which event goes where. raw is the event as the stream has it.
type order struct {
	ref
	raw string
}

// fanOut turns events into deliveries: a record, then a task, for each endpoint that wants the event. It is run again for events whose
// worker died before they were acknowledged, and then finds what it has written.
func (w *Webhooks) fanOut(ctx context.Context, entries []redisdb.Entry) error {
	s, err := w.dir.current(ctx)
	if err != nil {
		return err
	}
	if len(s.list) == 0 && w.dir.named == nil {
		return nil
	}
	lines := make([]string, len(entries))
	for i, e := range entries {
		lines[i] = e.Text(streamField)
	}
	orders, err := w.match(ctx, s, lines)
	if err != nil || len(orders) == 0 {
		return err
	}
	_, full, err := w.create(ctx, orders)
	w.reportFull(full)
	return err
}

// reportFull logs, in one line for each endpoint, that events were left to a replay.
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
		w.log.Warn("webhook endpoint has too many deliveries waiting: events left to a replay", "endpoint", endpoint, "events", n)
	}
}

// match finds the endpoints that want each event. An event that can't be read is logged and passed over: it will not get better, and
// must not stop those behind it.
func (w *Webhooks) match(ctx context.Context, s *snapshot, lines []string) ([]order, error) {
	var orders []order
	implicit := make(map[string][]*target) // by account: a batch mostly is about few
	for _, line := range lines {
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
				if t.wants(&e) {
					orders = append(orders, order{ref: ref{Endpoint: t.id, Delivery: e.ID}, raw: line})
				}
			}
		}
	}
	return orders, nil
}

// create writes the records and then enqueues the tasks, in two round trips: in a Redis Cluster the two live on different nodes, and a
// task must not run before its record is there. It returns how many were enqueued, and the orders beyond the MaxPending of their endpoint.
func (w *Webhooks) create(ctx context.Context, orders []order) (created int, full []order, err error) {
	now := w.now()
	pipe := w.db.Pipeline()
	answers := make([]interface{ Int() (int, error) }, len(orders))
	for i, o := range orders {
		answers[i] = pipe.Script(createScript, []string{deliveryKey(o.ref)},
			o.Endpoint, o.Delivery, o.raw, now.UnixMilli(), w.options.MaxPending, w.pendingAge().Milliseconds())
	}
	if err := pipe.Exec(ctx); err != nil {
		return 0, nil, fmt.Errorf("record %d webhook deliveries: %w", len(orders), err)
	}
	tasks := make([]queue.Task, 0, len(orders))
	for i, o := range orders {
		switch n, err := answers[i].Int(); {
		case err != nil:
			return 0, nil, fmt.Errorf("record webhook delivery of event %s to %s: %w", o.Delivery, o.Endpoint, err)
		case n > 0:
			tasks = append(tasks, o.task(1))
		case n < 0:
			full = append(full, o)
		}
	}
	if len(tasks) == 0 {
		return 0, full, nil
	}
	return len(tasks), full, errors.Join(w.enqueue(ctx, tasks...)...)
}

// pendingAge is how long the record of a delivery that is not over is kept, as a bound for those that nothing else ends: far longer
// than a delivery can wait for an endpoint that is switched off after DisableAfter.
func (w *Webhooks) pendingAge() time.Duration {
	return max(30*24*time.Hour, 2*w.options.DisableAfter)
}

// task is the wake-up of a delivery. Its id follows from the delivery's, so that handling an event twice makes one task; a second
// epoch is for a task that got lost.
func (r ref) task(epoch int) queue.Task {
	payload, _ := json.Marshal(r) // two strings: can't fail
	return queue.Task{Queue: queue.Notify, Type: TaskType, ID: r.taskID(epoch), Payload: payload}
}

func (r ref) taskID(epoch int) string {
	id := slug(r.Delivery) + "." + slug(r.Endpoint)
	if epoch > 1 {
		id += "." + strconv.Itoa(epoch)
	}
	return id
}

// webhookID is what a receiver knows a delivery by: the event and where it goes. It stays the same over attempts, redeliveries and
// replays, so that a receiver who has seen it can tell. Dots are not allowed in it, as they separate what is signed.
func webhookID(eventID, endpoint string) string {
	return slug(eventID) + "_" + slug(endpoint)
}

// slug gives a name that is safe in task ids, headers and paths: the name itself where it is, a hash of it otherwise. Account names may
// hold anything.
func slug(name string) string {
	if len(name) > 0 && len(name) <= 64 && plainName(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "h-" + base64.RawURLEncoding.EncodeToString(sum[:16])
}

func plainName(name string) bool {
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == ':':
		default:
			return false
		}
	}
	return true
}
