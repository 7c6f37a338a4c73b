package outbox

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox/suppression"
	"github.com/postroom/postroom/smtpsend"
)

// endings counts the scripts that acknowledge a task, alone or with its message. It loses the first answers
// of the latter, and of those that take a task.
type endings struct{ acks, both, lost, lostTakes atomic.Int32 }

func (*endings) DialHook(next redis.DialHook) redis.DialHook { return next }

func (e *endings) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			if lost := e.note(cmd); lost != nil {
				cmd.SetErr(lost)
			}
		}
		return err
	}
}

func (e *endings) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil {
			err = e.note(cmd)
		}
		return err
	}
}

// note counts a call that was executed. It returns an error if its answer is lost.
func (e *endings) note(cmd redis.Cmder) error {
	args := fmt.Sprint(cmd.Args()...)
	if strings.Contains(args, "}:pending") && strings.Contains(args, "}:message:") {
		if reply, _ := cmd.(*redis.Cmd).Slice(); len(reply) > 1 && e.lostTakes.Add(-1) >= 0 {
			return errCut
		}
	}
	if cmd.Err() != nil || !strings.Contains(args, "}:lease") || !strings.Contains(args, "}:processed") {
		return nil
	}
	if !strings.Contains(args, `"message`) {
		e.acks.Add(1)
		return nil
	}
	e.both.Add(1)
	if e.lost.Add(-1) >= 0 {
		return errCut
	}
	return nil
}

// delivers runs a worker until done.
func (b *bundle) delivers(t *testing.T, take func(context.Context, queue.Take) (queue.Taken, error),
	handle queue.Handler, done func() bool) {
	t.Helper()
	s, err := queue.NewServer(b.store.DB.Client(), map[string]queue.Handler{TaskDeliver: handle},
		queue.ServerOptions{Pools: []queue.Pool{{Name: "all", Queues: map[string]int{queue.Submit: 1}, Take: take}},
			Keep: func(string) int { return 5 }, Scripts: b.store.DB.Shared()})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	for began := time.Now(); !done(); time.Sleep(time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatal("not all are done")
		}
	}
	cancel()
	must(t, <-ended)
}

// tasks counts the tasks that wait or run.
func (b *bundle) tasks(t *testing.T) int {
	t.Helper()
	counts, err := b.store.Control.Counts(t.Context(), queue.Submit)
	must(t, err)
	return counts[0].Waiting + counts[0].Active
}

// left returns what is in Redis, without ids and times.
func (b *bundle) left(t *testing.T, ids map[string]string) map[string]string {
	t.Helper()
	left, c := map[string]string{}, b.store.DB.Client()
	for _, key := range c.Keys(t.Context(), "*").Val() {
		var value any
		switch c.Type(t.Context(), key).Val() {
		case "hash":
			hash := c.HGetAll(t.Context(), key).Val()
			delete(hash, "msg")
			value = slices.Sorted(maps.Keys(hash))
		case "zset":
			value = c.ZRange(t.Context(), key, 0, -1).Val()
		case "list":
			value = len(c.LRange(t.Context(), key, 0, -1).Val())
		case "stream":
			value = c.XLen(t.Context(), key).Val()
		case "string":
			value = strings.HasPrefix(key, "asynq:") && c.Get(t.Context(), key).Val() != ""
		}
		key, text := key, fmt.Sprint(value, c.TTL(t.Context(), key).Val() > 0)
		for id, name := range ids {
			key, text = strings.ReplaceAll(key, id, name), strings.ReplaceAll(text, id, name)
		}
		left[key] = text
	}
	return left
}

// TestBeginAndFinishWithTheirTasks: a message is begun with the script that takes its task, and ends with the
// script that ends it. This leaves what two scripts leave. What doesn't end returns its verdict as always.
func TestBeginAndFinishWithTheirTasks(t *testing.T) {
	t.Parallel()
	var apart map[string]string
	for _, form := range []string{"apart", "end", "take", "take and end"} {
		b := setup(t, Options{})
		b.sifts(t, suppression.Options{})
		b.store.Queue = queue.NewClient(b.store.DB.Client(), queue.Options{Keep: func(string) int { return 5 }})
		b.sender.replies["dead@x.test"] = "550 5.1.1 nobody"
		b.sender.replies["later@x.test"] = "451 4.7.1 later"
		ids := map[string]string{}
		for _, name := range []string{"ann", "bob", "dead", "later", "stopped", "gone"} {
			ids[b.submit(t, api.SubmitRequest{To: for1(name + "@x.test")})] = name
		}
		b.suppress(t, suppression.Entry{Address: "stopped@x.test", Reason: suppression.Manual})
		for id, name := range ids {
			if name == "gone" {
				b.store.DB.Client().Del(t.Context(), redisdb.Key(0, "message:"+id))
			}
		}
		take, e, begins := b.Delivery.Take, &endings{}, atomic.Int32{}
		if !strings.HasPrefix(form, "take") {
			take = nil
		}
		b.store.DB.Client().AddHook(e)
		b.delivers(t, take, func(ctx context.Context, k queue.Task) queue.Verdict {
			if queue.Begun(ctx) != nil {
				begins.Add(1)
			}
			switch form {
			case "apart":
				ctx = context.Background() // asynq isn't asked for its acknowledgement
			case "take":
				ctx = context.WithoutCancel(ctx)
				c, verdict, err := b.Delivery.begin(ctx, messageOf(k.ID))
				must(t, err)
				if c == nil {
					return verdict
				}
				return b.Delivery.record(context.Background(), c, b.Delivery.attempt(ctx, c, b.clock.Now()))
			}
			return b.Delivery.Deliver(ctx, k)
		}, func() bool { return b.tasks(t) == 0 })
		if n, taken := begins.Load(), take != nil; taken && n != 6 || !taken && n != 0 {
			t.Errorf("%s: %d messages begun with their tasks", form, n)
		}
		if both, acks, ends := e.both.Load(), e.acks.Load(), strings.HasSuffix(form, "end"); !ends && both != 0 ||
			ends && (both != 3 || acks != 3) {
			t.Errorf("%s: %d scripts ended message and task, %d the task alone", form, both, acks)
		}
		left := b.left(t, ids)
		if apart == nil {
			apart = left
		}
		if d := cmp.Diff(apart, left); d != "" {
			t.Errorf("apart (-) and %s (+) differ:\n%s", form, d)
		}
	}
}

// sentOnce checks that a message was sent once, and that its task was done once.
func (b *bundle) sentOnce(t *testing.T, id string, asked int32) {
	t.Helper()
	if n := eventsOf(t, b, "messageSent"); n != 1 || asked != 1 {
		t.Errorf("%d events of one message, of which the relay was asked %d times", n, asked)
	}
	if n := b.store.DB.Client().Exists(t.Context(), redisdb.Key(0, "message:"+id)).Val(); n != 0 {
		t.Error("the message is still there")
	}
	counts, err := b.store.Control.Counts(t.Context(), queue.Submit)
	must(t, err)
	if counts[0].ProcessedTotal != 1 {
		t.Errorf("counts: %+v", counts)
	}
}

// TestAnEndWithoutAnAnswer: the call is repeated, and finds that the message has ended. It is sent once, and
// its task is done.
func TestAnEndWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	asked, e := atomic.Int32{}, &endings{}
	b.sender.got = func(smtpsend.Message) { asked.Add(1) }
	id := one(t, b)
	e.lost.Store(1)
	b.store.DB.Client().AddHook(e)
	b.delivers(t, b.Delivery.Take, b.Delivery.Deliver, func() bool { return b.tasks(t) == 0 })
	if n := e.both.Load(); n != 2 {
		t.Errorf("%d calls", n)
	}
	b.sentOnce(t, id, asked.Load())
}

// TestATakeWithoutAnAnswer: nobody has the message until its lease runs out. Then it has a new task, and is
// sent once.
func TestATakeWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{Lease: time.Second})
	asked, e := atomic.Int32{}, &endings{}
	b.sender.got = func(smtpsend.Message) { asked.Add(1) }
	id := one(t, b)
	e.lostTakes.Store(1)
	b.store.DB.Client().AddHook(e)
	lapsed := false
	b.delivers(t, b.Delivery.Take, b.Delivery.Deliver, func() bool {
		if !lapsed && e.lostTakes.Load() == 0 {
			if state := b.recordOf(t, id)["state"]; state != stateActive || asked.Load() != 0 {
				t.Errorf("the message is %s, and the relay was asked %d times", state, asked.Load())
			}
			b.clock.Advance(2 * time.Second)
			sweep(t, b)
			lapsed = true
		}
		return asked.Load() > 0 && b.recordOf(t, id)["state"] == ""
	})
	b.sentOnce(t, id, asked.Load())
}

// TestFollowersAreQueuedWithTheEnd: the tasks of the messages that leave the backlog are there once the
// message before them has left, and none of them is noted as not queued.
func TestFollowersAreQueuedWithTheEnd(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{Window: 3})
	ids := submitAs(t, b, "", 9)
	if n := b.tasks(t); n != 3 {
		t.Fatalf("%d of the window have tasks", n)
	}
	e := &endings{}
	e.lost.Store(2)
	b.store.DB.Client().AddHook(e)
	for i, id := range ids[:3] {
		b.Delivery.Deliver(t.Context(), queue.Task{ID: taskID(id, firstEpoch)})
		if n := b.tasks(t); n != 4+i { // the tasks of the test are never done
			t.Errorf("after %d messages there are %d tasks", i+1, n)
		}
	}
	if n := b.store.DB.Client().Exists(t.Context(), redisdb.Key(0, "unqueued")).Val(); n != 0 {
		t.Error("some are noted as not queued")
	}
	b.delivers(t, b.Delivery.Take, b.Delivery.Deliver, func() bool { return b.tasks(t) == 0 })
	if n := eventsOf(t, b, "messageSent"); n != 9 {
		t.Errorf("%d of 9 were sent", n)
	}
}
