package webhooks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
)

// ReplayTaskType is the type of the tasks that [Webhooks.ContinueReplay] handles. They wait in queue.Notify.
const ReplayTaskType = "webhook-replay"

const (
	replayKept  = 7 * 24 * time.Hour // how long the state of a replay is shown
	replayPause = time.Minute        // while too many deliveries wait
)

// The states of a replay in the background.
const (
	replayRunning     = "running"     // its task works, or waits for room
	replayDone        = "done"        // it has finished
	replayStopped     = "stopped"     // the endpoint was switched off or deleted in between
	replayInterrupted = "interrupted" // nothing happened for so long that its task must be gone; never stored
)

// replayRef is the payload of a replay's task.
type replayRef struct {
	Endpoint string `json:"endpoint"`
	Run      string `json:"run"`
}

// StartReplay is [Webhooks.Replay] in the background, as a task that survives crashes, and that waits while
// too many deliveries do. Events that come after its start are not part of it. [Webhooks.ReplayState] returns
// its progress.
func (w *Webhooks) StartReplay(ctx context.Context, endpoint string, since time.Time) error {
	if err := w.active(ctx, endpoint); err != nil {
		return err
	}
	run := newID()[:10]
	if got, err := w.store.lock(endpoint, run).Claim(ctx); err != nil || !got {
		return cmp.Or(err, replaying())
	}
	now := w.now()
	err := w.store.startReplay(ctx, endpoint, map[string]any{"run": run, "state": replayRunning,
		"since": max(since.UnixMilli(), 0), "started": now.UnixMilli(), "updated": now.UnixMilli(),
		"partition": 0, "from": strconv.FormatInt(max(since.UnixMilli(), 0), 10), "replayed": 0})
	if err != nil {
		return redisdb.Away(err)
	}
	payload, err := json.Marshal(replayRef{endpoint, run})
	if err != nil {
		return fmt.Errorf("write the task of a replay: %w", err)
	}
	return errors.Join(w.enqueue(ctx, queue.Task{Queue: queue.Notify, Type: ReplayTaskType, ID: "replay." + run,
		Payload: payload})...)
}

func replaying() error {
	return fault.New(fault.Conflict, "ReplayInProgress", "A replay for this webhook endpoint is already "+
		"in progress")
}

// ContinueReplay handles a task of type [ReplayTaskType]. It continues where the task ended when it ran last.
// A chunk of events that is done twice makes each delivery once, because the run is part of its id.
func (w *Webhooks) ContinueReplay(ctx context.Context, task queue.Task) queue.Verdict {
	var r replayRef
	if err := json.Unmarshal(task.Payload, &r); err != nil || r.Endpoint == "" || r.Run == "" {
		return queue.Bury(fmt.Errorf("task %s names no replay", task.ID))
	}
	record, err := w.store.replay(ctx, r.Endpoint)
	if err != nil {
		return queue.RetryAt(w.now().Add(soon), err)
	}
	if record["run"] != r.Run || record["state"] != replayRunning {
		return queue.Done() // a newer replay has its place, or it has finished
	}
	state := replayRunning
	for p := number(record["partition"]); p < w.db.Partitions(); p++ {
		from := record["from"]
		if p != number(record["partition"]) {
			from = record["since"]
		}
		if state, err = w.replayOn(ctx, r, record, p, from); err != nil || state != replayRunning {
			break
		}
	}
	switch {
	case err != nil && fault.Is(err, fault.Limited):
		return queue.NotNow(w.now().Add(replayPause))
	case err != nil && fault.Is(err, fault.Conflict):
		state = replayStopped
	case err != nil:
		return queue.RetryAt(w.now().Add(soon), err)
	case state == replayRunning:
		state = replayDone
	}
	if err := w.endReplay(ctx, r, state, err); err != nil {
		return queue.RetryAt(w.now().Add(soon), err)
	}
	return queue.Done()
}

// replayOn replays the rest of a partition's events, and records each chunk.
func (w *Webhooks) replayOn(ctx context.Context, r replayRef, record map[string]string, partition int,
	from string) (state string, err error) {
	for from != "" {
		if err := ctx.Err(); err != nil {
			return replayRunning, err
		}
		if err := w.store.holdReplay(ctx, r, w.now()); err != nil {
			return replayRunning, err
		}
		lines, next, err := w.store.past(ctx, partition, from, record["started"], replayChunk)
		if err != nil {
			return replayRunning, err
		}
		orders, err := w.matchOne(ctx, r.Endpoint, lines, r.Run)
		if err != nil {
			return replayRunning, err
		}
		if _, full, err := w.create(ctx, orders); err != nil || len(full) > 0 {
			if err == nil {
				err = tooMany()
			}
			return replayRunning, err
		}
		fields := map[string]any{"partition": partition, "from": next}
		if next == "" {
			fields["partition"], fields["from"] = partition+1, record["since"]
		}
		if n := len(lines); n > 0 {
			if e, err := event.Parse([]byte(lines[n-1])); err == nil {
				fields["reached"] = e.Time.UnixMilli()
			}
		}
		if err := w.store.noteReplay(ctx, r.Endpoint, fields, len(orders)); err != nil {
			return replayRunning, err
		}
		from = next
	}
	return replayRunning, nil
}

// endReplay records the end of a replay.
func (w *Webhooks) endReplay(ctx context.Context, r replayRef, state string, why error) error {
	now := w.now()
	fields := map[string]any{"state": state, "ended": now.UnixMilli(), "updated": now.UnixMilli()}
	if why != nil {
		fields["error"] = why.Error()
	}
	if err := w.store.noteReplay(ctx, r.Endpoint, fields, 0); err != nil {
		return err
	}
	w.log.Info("webhook replay over", "endpoint", r.Endpoint, "state", state)
	return w.store.lock(r.Endpoint, r.Run).Release(ctx)
}

// ReplayState returns how far the last replay in the background is, or NotFound if there was none within a
// week.
func (w *Webhooks) ReplayState(ctx context.Context, endpoint string) (api.EndpointReplayState, error) {
	if _, err := w.exists(ctx, endpoint); err != nil {
		return api.EndpointReplayState{}, err
	}
	record, err := w.store.replay(ctx, endpoint)
	if err != nil {
		return api.EndpointReplayState{}, redisdb.Away(err)
	}
	if len(record) == 0 {
		return api.EndpointReplayState{}, fault.New(fault.NotFound, "ReplayNotFound",
			"Webhook endpoint %q has had no background replay in the last 7 days", endpoint)
	}
	s := api.EndpointReplayState{State: record["state"], Since: redisdb.ParseTime(record["since"]),
		Started: redisdb.ParseTime(record["started"]), Replayed: number(record["replayed"]), Error: record["error"]}
	if reached := redisdb.ParseTime(record["reached"]); !reached.IsZero() {
		s.Reached = &reached
	}
	if ended := redisdb.ParseTime(record["ended"]); !ended.IsZero() {
		s.Ended = &ended
	}
	if s.State == replayRunning && w.now().Sub(redisdb.ParseTime(record["updated"])) > replayLock+replayPause {
		s.State = replayInterrupted
	}
	s.Progress = progressOf(s, number(record["partition"]), w.db.Partitions())
	return s, nil
}

// progressOf returns the share of the events that were read, in percent: by their time, and partition by
// partition.
func progressOf(s api.EndpointReplayState, partition, partitions int) int {
	if s.State == replayDone {
		return 100
	}
	within := 0.0
	if all := s.Started.Sub(s.Since); s.Reached != nil && all > 0 && partition < partitions {
		within = min(1, max(0, float64(s.Reached.Sub(s.Since))/float64(all)))
	}
	return min(99, int(100*(float64(partition)+within)/float64(max(partitions, 1))))
}

// startReplay writes a replay's record, and so replaces the last replay's.
func (s store) startReplay(ctx context.Context, endpoint string, fields map[string]any) error {
	pipe := s.client.TxPipeline()
	pipe.Del(ctx, replayStateKey(endpoint))
	pipe.HSet(ctx, replayStateKey(endpoint), fields)
	pipe.Expire(ctx, replayStateKey(endpoint), replayKept)
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("begin the replay of webhook endpoint %s: %w", endpoint, err)
	}
	return nil
}

// noteReplay writes how far a replay is.
func (s store) noteReplay(ctx context.Context, endpoint string, fields map[string]any, replayed int) error {
	pipe := s.client.TxPipeline()
	pipe.HSet(ctx, replayStateKey(endpoint), fields)
	pipe.HIncrBy(ctx, replayStateKey(endpoint), "replayed", int64(replayed))
	pipe.Expire(ctx, replayStateKey(endpoint), replayKept)
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("note the replay of webhook endpoint %s: %w", endpoint, err)
	}
	return nil
}

// holdReplay keeps the lock of a replay that works, and takes it again after a pause. It returns Limited
// while another replay has it.
func (s store) holdReplay(ctx context.Context, r replayRef, now time.Time) error {
	if got, err := s.lock(r.Endpoint, r.Run).Claim(ctx); err != nil || !got {
		return cmp.Or[error](err, tooMany())
	}
	err := s.client.HSet(ctx, replayStateKey(r.Endpoint), "updated", now.UnixMilli()).Err()
	return redisdb.Failed(err, "hold the replay of webhook endpoint %s", r.Endpoint)
}

// replay reads the record of the last replay; empty if there is none.
func (s store) replay(ctx context.Context, endpoint string) (map[string]string, error) {
	record, err := s.client.HGetAll(ctx, replayStateKey(endpoint)).Result()
	if err != nil {
		return nil, fmt.Errorf("read the replay of webhook endpoint %s: %w", endpoint, err)
	}
	return record, nil
}
