package outbox

import (
	"context"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/lease"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

// tasksOf returns the state of a message's task at an epoch.
func tasksOf(t *testing.T, b *bundle, id, epoch string) queue.State {
	t.Helper()
	states, err := b.store.Control.States(t.Context(), queue.Submit, taskID(id, epoch))
	if err != nil {
		t.Fatal(err)
	}
	return states[0]
}

func one(t *testing.T, b *bundle) string {
	t.Helper()
	a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{To: api.Addresses{{Address: "ann@x.test"}},
		Text: "x"})
	if err != nil {
		t.Fatal(err)
	}
	return a.QueueID
}

func sweep(t *testing.T, b *bundle) {
	t.Helper()
	b.store.queued.flush(t.Context())
	if err := b.Outbox.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestAcceptedButNotQueuedIsQueued loses the task between accept and enqueue, as in a crash. Those are two
// steps on a Cluster.
func TestAcceptedButNotQueuedIsQueued(t *testing.T) {
	t.Parallel()
	b := setupOn(t, testredis.Connect(t, redisdb.Options{Partitions: 1,
		URL: testredis.Cluster(t, testredis.Topology{}).URL()}), Options{})
	id := one(t, b)
	if err := b.store.Control.Delete(t.Context(), queue.Submit, taskID(id, "1"))[0]; err != nil {
		t.Fatal(err)
	}
	b.store.queued.notes = map[int][]any{} // the process died before it could note the task
	sweep(t, b)
	if got := tasksOf(t, b, id, "1"); got != "" {
		t.Fatalf("queued again at once (%s): the process may still be at it", got)
	}
	b.clock.Advance(owedAfter + time.Millisecond)
	sweep(t, b)
	if got := tasksOf(t, b, id, "1"); got != queue.Waiting {
		t.Errorf("task is %q, want it queued", got)
	}
}

// TestATaskOutlivesItsMessage: the task of a message that has ended, or is unknown, is dropped.
func TestATaskOutlivesItsMessage(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	none := queue.Task{Queue: queue.Submit, ID: taskID(newID(b.clock.Now(), 0), firstEpoch)}
	if v := b.Delivery.Deliver(t.Context(), none).String(); v != "drop" {
		t.Errorf("the task of a message that was never accepted: %s", v)
	}
	id := b.submit(t, api.SubmitRequest{To: for1("ann@x.test")})
	b.deliver(t, id)
	late := queue.Task{Queue: queue.Submit, ID: taskID(id, firstEpoch)}
	if v := b.Delivery.Deliver(t.Context(), late).String(); v != "drop" {
		t.Errorf("the task of a message that has ended: %s", v)
	}
}

// TestFlushedQueueComesBack drops all keys of the queue: every waiting and delayed message gets a new task.
func TestFlushedQueueComesBack(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	id := one(t, b)
	later := b.clock.Now().Add(time.Hour)
	a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{To: api.Addresses{{Address: "bob@x.test"}},
		Text:   "x",
		SendAt: &later})
	if err != nil {
		t.Fatal(err)
	}
	b.store.queued.flush(t.Context())
	rdb := b.store.DB.Client()
	keys, err := rdb.Keys(t.Context(), "asynq:*").Result()
	if err != nil {
		t.Fatal(err)
	}
	if err := rdb.Del(t.Context(), keys...).Err(); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(waitBefore + time.Millisecond)
	sweep(t, b)
	if got := tasksOf(t, b, id, "2"); got != queue.Waiting {
		t.Errorf("the waiting message's task is %q", got)
	}
	if got := tasksOf(t, b, a.QueueID, "2"); got != queue.Scheduled {
		t.Errorf("the scheduled message's task is %q", got)
	}
	sweep(t, b)
	if got := tasksOf(t, b, id, "3"); got != "" {
		t.Errorf("woken a second time: %q", got)
	}
}

// TestHugeQueueComesBack flushes a queue of more messages, all accepted in one millisecond, than the sweeper
// compares in a round.
func TestHugeQueueComesBack(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	const many = 2*matchBatch + 100
	for range many {
		one(t, b)
	}
	b.store.queued.flush(t.Context())
	rdb := b.store.DB.Client()
	keys, err := rdb.Keys(t.Context(), "asynq:*").Result()
	if err != nil {
		t.Fatal(err)
	}
	if err := rdb.Del(t.Context(), keys...).Err(); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(waitBefore + time.Millisecond)
	sweep(t, b)
	if n := rdb.LLen(t.Context(), "asynq:{submit}:pending").Val(); n != many {
		t.Errorf("%d tasks after one round, want %d", n, many)
	}
}

// TestSweepLeavesLiveLeasesAlone: a message that is being sent stays with its worker.
func TestSweepLeavesLiveLeasesAlone(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{Lease: 8 * time.Second})
	id := one(t, b)
	c, _, err := b.Delivery.begin(t.Context(), id)
	if err != nil || c == nil {
		t.Fatalf("begin: %v", err)
	}
	_, release := b.Delivery.leases.Hold(t.Context(), leased{c.partition, id, c.fence})
	defer release()
	b.clock.Advance(7 * time.Second)
	b.Delivery.leases.Renew(t.Context())
	b.clock.Advance(7 * time.Second)
	sweep(t, b)
	if m, err := b.Reader.Get(t.Context(), id); err != nil || m.State != api.Active {
		t.Errorf("state %s, %v; want active", m.State, err)
	}
}

// TestStoppedWorkerCannotFinish: a worker was stopped until after its lease, and another one has sent the
// message.
func TestStoppedWorkerCannotFinish(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	id := one(t, b)
	ctx := t.Context()
	frozen, _, err := b.Delivery.begin(ctx, id)
	if err != nil || frozen == nil {
		t.Fatalf("begin: %v", err)
	}
	held, release := b.Delivery.leases.Hold(ctx, leased{frozen.partition, id, frozen.fence})
	defer release()
	b.clock.Advance(9 * time.Second)
	sweep(t, b)
	other, _, err := b.Delivery.begin(ctx, id)
	if err != nil || other == nil {
		t.Fatalf("the other worker's begin: %v", err)
	}
	if err := b.Delivery.doubt(ctx, frozen); err == nil {
		t.Error("the frozen worker may write its dot")
	}
	b.Delivery.leases.Renew(ctx)
	if context.Cause(held) != lease.ErrLost { //nolint:errorlint // the very sentinel
		t.Error("the frozen worker was not told that its lease is lost")
	}
	d := decision{outcome: sent, at: b.clock.Now(), status: frozen.status}
	if v := b.Delivery.record(ctx, frozen, d); v.String() != "drop" {
		t.Errorf("the frozen worker's result was taken: %s", v)
	}
	if m, err := b.Reader.Get(ctx, id); err != nil || m.State != api.Active {
		t.Errorf("state %s, %v; want the other worker's active", m.State, err)
	}
}

// TestAnswerOutlivesLease: the result of a worker whose lease ended is recorded if no one else began.
func TestAnswerOutlivesLease(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	id := one(t, b)
	c, _, err := b.Delivery.begin(t.Context(), id)
	if err != nil || c == nil {
		t.Fatalf("begin: %v", err)
	}
	b.clock.Advance(time.Minute)
	sweep(t, b)
	started := b.clock.Now()
	d := b.Delivery.attempt(t.Context(), c, started)
	// The lease is gone, so the dot must not have been written, and nothing was delivered.
	if d.outcome != released {
		t.Fatalf("outcome %s, want released: the mark before the dot must fail", d.outcome)
	}
	b.Delivery.record(t.Context(), c, d)
	if m, err := b.Reader.Get(t.Context(), id); err != nil || m.State != api.Waiting || m.AttemptsMade != 0 {
		t.Errorf("%s after %d attempts, %v; want waiting after none", m.State, m.AttemptsMade, err)
	}
}

// TestRetentionForgets: dead letters and log entries are deleted by age and by number.
func TestRetentionForgets(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{KeepDeadLetters: time.Hour, MaxDeadLetters: 2, KeepEnded: time.Hour, MaxEnded: 2})
	b.sender.replies["ann@x.test"] = "550 5.1.1 no such user"
	var ids []string
	for range 4 {
		id := one(t, b)
		b.Delivery.Deliver(t.Context(), queue.Task{ID: taskID(id, "1")})
		b.clock.Advance(time.Minute)
		ids = append(ids, id)
	}
	sweep(t, b)
	page, err := b.Reader.List(t.Context(), api.OutboxQuery{State: api.Failed})
	if err != nil || page.Total != 2 || page.Messages[0].QueueID != ids[2] {
		t.Errorf("%d dead letters, %v; want the last two", page.Total, err)
	}
	b.clock.Advance(time.Hour)
	sweep(t, b)
	if n := len(messageKeys(t, b.store.DB)); n != 0 {
		t.Errorf("%d keys of messages are left after their retention", n)
	}
}

// messageKeys lists the keys that belong to single messages.
func messageKeys(t *testing.T, db *redisdb.DB) []string {
	t.Helper()
	var all []string
	for _, kind := range []string{"message", "envelope", "content", "status"} {
		keys, err := db.Client().Keys(t.Context(), redisdb.Key(0, kind, "*")).Result()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, keys...)
	}
	return all
}

// TestSentMessageLeavesNoContent: a sent message leaves a log entry without its content.
func TestSentMessageLeavesNoContent(t *testing.T) {
	t.Parallel()
	b := setupOn(t, testredis.New(t), Options{})
	id := one(t, b)
	b.Delivery.Deliver(t.Context(), queue.Task{ID: taskID(id, "1")})
	if keys := messageKeys(t, b.store.DB); len(keys) != 0 {
		t.Errorf("left: %v", keys)
	}
	if account, err := b.Reader.AccountOf(t.Context(), id); err != nil || account != "default" {
		t.Errorf("account of an ended message: %q, %v", account, err)
	}
}

// TestEventsAreTrimmed: the stream is trimmed to its bound, except events that a reader has not read.
func TestEventsAreTrimmed(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{MaxEvents: 100})
	key, rdb := b.store.keys.events(0), b.store.DB.Client()
	for range 500 {
		one(t, b)
	}
	if err := rdb.XGroupCreate(t.Context(), key, "slow", "0").Err(); err != nil {
		t.Fatal(err)
	}
	sweep(t, b)
	if n := rdb.XLen(t.Context(), key).Val(); n != 500 {
		t.Errorf("%d events left, want all 500: the slow reader has read none", n)
	}
	if err := rdb.XGroupSetID(t.Context(), key, "slow", "$").Err(); err != nil {
		t.Fatal(err)
	}
	sweep(t, b)
	if n := rdb.XLen(t.Context(), key).Val(); n < 100 || n > 300 {
		t.Errorf("%d events left, want about 100", n)
	}
}

// TestLostAttemptsAreCounted: attemptsMade is the number of attempts in the log, and a lost one uses up none
// of those that the submit asked for.
func TestLostAttemptsAreCounted(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name          string
		kills         int
		doubt, lives  bool
		made, allowed int
	}{
		{name: "killed before the dot", kills: 1, made: 2, allowed: 2},
		{name: "killed after the dot", kills: 1, doubt: true, made: 2, allowed: 2},
		{name: "killed twice", kills: 2, made: 3, allowed: 3},
		{name: "its lease ran out, and it lives", kills: 1, lives: true, made: 1, allowed: 1},
		{name: "a stop in good order", made: 1, allowed: 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, Options{KeepEnded: time.Hour})
			id := b.submit(t, api.SubmitRequest{To: for1("ann@x.test"), DeliveryAttempts: 1})
			for range row.kills {
				c, _, err := b.Delivery.begin(t.Context(), id)
				if err == nil && row.doubt {
					err = b.Delivery.doubt(t.Context(), c)
				}
				if err != nil {
					t.Fatal(err)
				}
				finish := func() {}
				if row.lives {
					dec := b.Delivery.attempt(t.Context(), c, b.clock.Now())
					finish = func() { b.Delivery.record(t.Context(), c, dec) }
				}
				b.clock.Advance(time.Minute)
				sweep(t, b)
				finish()
			}
			if row.kills == 0 {
				stopping, stop := context.WithCancel(t.Context())
				stop()
				b.Delivery.Deliver(stopping, queue.Task{ID: taskID(id, "1")})
			}
			b.deliver(t, id)
			m, err := b.Reader.Message(t.Context(), id)
			if err != nil || m.Status != api.StatusSent || m.AttemptsMade != row.made || m.Attempts != row.allowed ||
				len(m.Log) != row.made {
				t.Errorf("%s after %d of %d attempts, %d in the log, %v", m.Status, m.AttemptsMade, m.Attempts,
					len(m.Log), err)
			}
		})
	}
}
