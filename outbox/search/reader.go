package search

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
)

const (
	stream = "events" // package outbox's
	field  = "e"
	group  = "documents"
)

const (
	readBatch = 4000
	// gather is how long the reader collects events while somebody searches, and gatherMost while nobody does. A
	// batch of one costs nearly as much as one of a hundred, and small ones are merged later. Most messages are
	// accepted and sent within that time, so they are indexed once instead of twice.
	gather     = time.Second
	gatherMost = 10 * time.Second
	// countEvery is the interval at which waiting tasks are counted.
	countEvery = time.Second
)

// job is the payload of a task.
type job struct {
	At  int64    `json:"at"` // Unix milliseconds of the earliest event
	IDs []string `json:"ids"`
	// Again lists messages that something happened to after they ended, such as a bounce.
	Again []string `json:"again,omitempty"`
	// Ends are the ended messages, if only events report their end.
	Ends map[string]end `json:"ends,omitempty"`
}

// end is the status of an ended message, and its time in Unix milliseconds.
type end struct {
	Status api.MessageStatus `json:"s"`
	At     int64             `json:"at"`
}

// endings are the statuses of events that end a message.
var endings = map[event.Type]api.MessageStatus{
	event.MessageSent: api.StatusSent, event.MessageFailed: api.StatusFailed,
	event.MessageCancelled: api.StatusCancelled, event.MessageSuppressed: api.StatusSuppressed,
}

// outcomes are the events of outcomes that are in the index.
var outcomes = map[event.Type]bool{event.MessageBounce: true, event.MessageComplaint: true,
	event.ListUnsubscribe: true}

// read reads events until ctx ends.
func (d *Documents) read(ctx context.Context) error {
	return d.DB.Follow(ctx, redisdb.Follow{Stream: stream, Group: group, Batch: readBatch, Gather: gather,
		More: func(ctx context.Context, gathered time.Duration) bool {
			if gathered >= gatherMost {
				return false
			}
			asked, err := d.keys.asked(ctx)
			return err == nil && !asked
		}}, d.pass)
}

// pass turns events into a task. It never waits for the index: the stream is not trimmed before all groups
// have read it.
func (d *Documents) pass(ctx context.Context, entries []redisdb.Entry) error {
	j := d.job(entries)
	if len(j.IDs) == 0 {
		return nil
	}
	full, err := d.tooMany(ctx)
	if err != nil {
		return err
	}
	if full {
		return d.keys.fallBehind(ctx, time.UnixMilli(j.At))
	}
	payload, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("write a task: %w", err)
	}
	return errors.Join(d.Tasks.Enqueue(ctx, queue.Task{Queue: queue.Documents, Type: TaskType,
		ID: taskID(entries), Payload: payload})...)
}

// job returns the messages of events, each once.
func (d *Documents) job(entries []redisdb.Entry) job {
	j, named := job{}, make(map[string]bool, len(entries))
	for _, entry := range entries {
		e, err := event.Parse([]byte(entry.Text(field)))
		if err != nil {
			d.log.Error("can't read an event for the search index", "event_id", e.ID, "error", err)
			continue
		}
		if e.Type.Later() && !outcomes[e.Type] || e.Quiet {
			continue // the former do not change what the index has of the message
		}
		var about struct {
			QueueID string `json:"queueId"`
		}
		if err := json.Unmarshal(e.Data, &about); err != nil || about.QueueID == "" {
			continue // an account's event, or the instance's
		}
		if at := e.Time.UnixMilli(); j.At == 0 || at < j.At {
			j.At = at
		}
		if status, ended := endings[e.Type]; ended && d.opts.NoLog {
			if j.Ends == nil {
				j.Ends = make(map[string]end)
			}
			j.Ends[about.QueueID] = end{status, e.Time.UnixMilli()}
		}
		if !named[about.QueueID] {
			named[about.QueueID] = true
			j.IDs = append(j.IDs, about.QueueID)
		}
		if e.Type.Later() || e.Type == event.MessageReplayed {
			j.Again = append(j.Again, about.QueueID)
		}
	}
	return j
}

// taskID is derived from the events: the same events make no second task, and different events never get the
// same id.
func taskID(entries []redisdb.Entry) string {
	sum := sha256.New()
	for _, e := range entries {
		sum.Write([]byte(e.ID + "\n"))
	}
	return fmt.Sprintf("%d-%s.%s", entries[0].Partition, entries[0].ID,
		base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:9]))
}

// tooMany reports whether MaxWaiting is reached. It is called for every batch and counts once a second.
func (d *Documents) tooMany(ctx context.Context) (bool, error) {
	d.mu.Lock()
	full, fresh := d.full, time.Since(d.counted) < countEvery
	d.mu.Unlock()
	if fresh {
		return full, nil
	}
	waiting, err := d.waiting(ctx)
	if err != nil {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if full := waiting.tasks >= d.opts.MaxWaiting; full != d.full {
		d.full = full
		if full {
			d.log.Warn("the search index does not keep up: changes from now on are taken from the email log once the queue is short again", "waiting", waiting.tasks)
		}
	}
	d.counted = time.Now()
	return d.full, nil
}

// backlog is the waiting tasks.
type backlog struct {
	tasks  int
	paused bool
	age    time.Duration // the oldest task's
}

func (d *Documents) waiting(ctx context.Context) (backlog, error) {
	counts, err := d.Queues.Counts(ctx, queue.Documents)
	if err != nil {
		return backlog{}, redisdb.Away(err)
	}
	c := counts[0]
	return backlog{tasks: c.Waiting + c.Active + c.Scheduled + c.Retrying, paused: c.Paused, age: c.Latency}, nil
}
