package outbox

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
)

// In these tests queue and records disagree.

// stateOf reads the state of a message's record; "" if there is none.
func stateOf(t *testing.T, b *bundle, id string) string {
	t.Helper()
	state, err := b.store.DB.Client().HGet(t.Context(), b.store.keys.message(0, id), "state").Result()
	if err != nil && state != "" {
		t.Fatal(err)
	}
	return state
}

// oneIn brings a message into a state: waiting, scheduled, active or failed; "" means no message.
func oneIn(t *testing.T, b *bundle, state string) string {
	t.Helper()
	if state == "" {
		return newID(b.clock.Now(), 0)
	}
	if state == stateFailed {
		b.sender.replies["ann@x.test"] = "550 5.1.1 no such user"
		defer delete(b.sender.replies, "ann@x.test")
	}
	req := api.SubmitRequest{To: api.Addresses{{Address: "ann@x.test"}}, Text: "x"}
	if state == stateScheduled {
		at := b.clock.Now().Add(time.Hour)
		req.SendAt = &at
	}
	a, err := b.Intake.Submit(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	switch state {
	case stateFailed:
		b.Delivery.Deliver(t.Context(), queue.Task{ID: taskID(a.QueueID, "1")})
		b.store.Control.Archive(t.Context(), queue.Submit, taskID(a.QueueID, "1"))
	case stateActive:
		if c, _, err := b.Delivery.begin(t.Context(), a.QueueID); err != nil || c == nil {
			t.Fatalf("begin: %v", err)
		}
	}
	if got := stateOf(t, b, a.QueueID); got != state {
		t.Fatalf("the message is %s, want %s", got, state)
	}
	return a.QueueID
}

// TestTasksChangedBehindOurBack changes tasks with asynq's own tools. A deleted or archived task comes back
// within the time that the package promises. A task that is run early waits.
func TestTasksChangedBehindOurBack(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		state  string
		change func(*asynq.Inspector, string) error
		after  string      // state of the message
		task   queue.State // the task's at the epoch
		epoch  string
	}{
		"a waiting one deleted":    {stateWaiting, remove, stateWaiting, queue.Waiting, "2"},
		"a waiting one archived":   {stateWaiting, archive, stateWaiting, queue.Waiting, "2"},
		"a scheduled one deleted":  {stateScheduled, remove, stateScheduled, queue.Scheduled, "2"},
		"a scheduled one archived": {stateScheduled, archive, stateScheduled, queue.Scheduled, "2"},
		"a scheduled one run":      {stateScheduled, hurry, stateScheduled, queue.Waiting, "1"},
		"a dead letter's run":      {stateFailed, hurry, stateFailed, queue.Waiting, "1"},
		"a dead letter's deleted":  {stateFailed, remove, stateFailed, "", "2"},
		"a sender's archived":      {stateActive, archive, stateActive, queue.Archived, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, Options{Lease: time.Minute})
			if err := b.store.Control.Register(t.Context(), queue.Submit); err != nil {
				t.Fatal(err)
			}
			id := oneIn(t, b, row.state)
			if err := row.change(asynq.NewInspectorFromRedisClient(b.store.DB.Client()), taskID(id, "1")); err != nil {
				t.Fatal(err)
			}
			b.clock.Advance(waitBefore + sweepEvery)
			sweep(t, b)
			if got := tasksOf(t, b, id, row.epoch); got != row.task {
				t.Errorf("task %s is %q, want %q", row.epoch, got, row.task)
			}
			if row.task == queue.Waiting && row.state != stateWaiting {
				if v := b.Delivery.Deliver(t.Context(), queue.Task{ID: taskID(id, row.epoch)}); v.String() == "done" {
					t.Error("it was sent")
				}
			}
			if got := stateOf(t, b, id); got != row.after {
				t.Errorf("the message is %s, want %s", got, row.after)
			}
		})
	}
}

func remove(i *asynq.Inspector, id string) error  { return i.DeleteTask(queue.Submit, id) }
func archive(i *asynq.Inspector, id string) error { return i.ArchiveTask(queue.Submit, id) }
func hurry(i *asynq.Inspector, id string) error   { return i.RunTask(queue.Submit, id) }

// TestQueuePausedBehindOurBack: messages of a queue that asynq's own tools paused are shown as paused and
// keep their tasks.
func TestQueuePausedBehindOurBack(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	id := oneIn(t, b, stateWaiting)
	inspector := asynq.NewInspectorFromRedisClient(b.store.DB.Client())
	for _, step := range []struct {
		do   func(string) error
		want api.State
	}{{inspector.PauseQueue, api.Paused}, {inspector.UnpauseQueue, api.Waiting}} {
		if err := step.do(queue.Submit); err != nil {
			t.Fatal(err)
		}
		b.clock.Advance(time.Minute)
		sweep(t, b)
		if m, err := b.Reader.Get(t.Context(), id); err != nil || m.State != step.want {
			t.Errorf("the message reads %s, %v; want %s", m.State, err, step.want)
		}
		if first, second := tasksOf(t, b, id, "1"), tasksOf(t, b, id, "2"); first != queue.Waiting || second != "" {
			t.Errorf("its tasks are %q and %q", first, second)
		}
	}
}

// TestTasksChangedInTheDashboard does what the dashboard asks the outbox to do before it touches a task.
func TestTasksChangedInTheDashboard(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	for _, row := range []struct {
		action string
		do     func(context.Context, string) error
		after  map[string]string // state before: state after, or the code of a refusal
	}{
		{"delete", b.Operations.TaskDeleted, map[string]string{
			stateWaiting: "", stateScheduled: "", stateFailed: "",
			stateActive: "MessageActive", "": ""}},
		{"archive", b.Operations.TaskArchived, map[string]string{
			stateWaiting: stateFailed, stateScheduled: stateFailed, stateFailed: stateFailed,
			stateActive: "MessageActive", "": "",
		}},
		{"run", b.Operations.TaskRun, map[string]string{
			stateWaiting: stateWaiting, stateScheduled: stateWaiting, stateFailed: stateWaiting,
			stateActive: "MessageActive", "": "",
		}},
	} {
		for before, want := range row.after {
			t.Run(fmt.Sprintf("%s %s", row.action, cmp.Or(before, "nothing")), func(t *testing.T) {
				id := oneIn(t, b, before)
				err := row.do(t.Context(), taskID(id, "1"))
				if got := cmp.Or(fault.CodeOf(err), stateOf(t, b, id)); got != want {
					t.Errorf("%q, want %q", got, want)
				}
			})
		}
	}
}

// TestTaskWithoutMessage: a task that outlived its message, or never had one, does nothing and goes.
func TestTaskWithoutMessage(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	sent := oneIn(t, b, stateWaiting)
	b.Delivery.Deliver(t.Context(), queue.Task{ID: taskID(sent, "1")})
	for name, id := range map[string]string{
		"sent": taskID(sent, "1"), "sent, under a later epoch": taskID(sent, "7"),
		"never there":                 taskID(newID(b.clock.Now().Add(-time.Minute), 0), "1"),
		"of a partition there is not": taskID(newID(b.clock.Now(), 5), "1"), "no id": "lorem.ipsum", "empty": "",
	} {
		if v := b.Delivery.Deliver(t.Context(), queue.Task{ID: id}); v.String() != "drop" {
			t.Errorf("%s: %s, want drop", name, v)
		}
	}
}

// TestManyTasksLostComeBackAtOnce: if many tasks are missing, the sweeper continues after the first part of
// the index.
func TestManyTasksLostComeBackAtOnce(t *testing.T) {
	t.Parallel()
	b := setupOn(t, testredis.New(t), Options{})
	const messages = 2*matchBatch + 500
	for range messages {
		one(t, b)
		b.clock.Advance(time.Millisecond)
	}
	b.store.queued.flush(t.Context())
	if err := b.store.DB.Client().Eval(t.Context(),
		`for _, key in ipairs(redis.call('KEYS', 'asynq:*')) do redis.call('DEL', key) end return 1`,
		nil).Err(); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(waitBefore)
	s := newSweeper(b.Delivery)
	rounds := 0
	for back := 0; back < messages; rounds++ {
		if err := s.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		counts, err := b.store.Control.Counts(t.Context(), queue.Submit)
		if err != nil {
			t.Fatal(err)
		}
		back = counts[0].Waiting
	}
	if rounds > 2 { // one on a machine that is not busy
		t.Errorf("%d rounds, a second each", rounds)
	}
}

// busyRedis takes a second for each call.
type busyRedis struct {
	fates
	clock *testkit.Clock
}

// ProcessHook implements redis.Hook.
func (r busyRedis) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.clock.Advance(time.Second)
		return next(ctx, cmd)
	}
}

// TestLongRoundsEndLeases: a sweeper with long rounds still ends leases; a long round isn't an outage.
func TestLongRoundsEndLeases(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{Lease: time.Minute})
	id := oneIn(t, b, stateActive)
	s := newSweeper(b.Delivery)
	b.store.DB.Client().AddHook(busyRedis{clock: b.clock})
	for range 40 {
		if err := s.mend(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := stateOf(t, b, id); got != stateWaiting {
		t.Errorf("the message of a dead worker is still %s", got)
	}
}
