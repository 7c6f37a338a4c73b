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
// of the latter.
type endings struct{ acks, both, lost atomic.Int32 }

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

// delivers runs a worker until the messages have left their queue.
func (b *bundle) delivers(t *testing.T, handle queue.Handler) {
	t.Helper()
	s, err := queue.NewServer(b.store.DB.Client(), map[string]queue.Handler{TaskDeliver: handle},
		queue.ServerOptions{Pools: []queue.Pool{{Name: "all", Queues: map[string]int{queue.Submit: 1}}},
			Keep: func(string) int { return 5 }, Scripts: b.store.DB.Shared()})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		counts, err := b.store.Control.Counts(t.Context(), queue.Submit)
		must(t, err)
		if counts[0].Waiting+counts[0].Active == 0 {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("not all are done: %+v", counts)
		}
	}
	cancel()
	must(t, <-ended)
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

// TestFinishAcknowledgesTheTask: a message that ends, and its task, end with one script, and leave what two
// scripts leave. What doesn't end returns its verdict as always.
func TestFinishAcknowledgesTheTask(t *testing.T) {
	t.Parallel()
	var left [2]map[string]string
	for i, apart := range []bool{true, false} {
		b := setup(t, Options{})
		b.sifts(t, suppression.Options{})
		b.store.Queue = queue.NewClient(b.store.DB.Client(), queue.Options{Keep: func(string) int { return 5 }})
		b.sender.replies["dead@x.test"] = "550 5.1.1 nobody"
		b.sender.replies["later@x.test"] = "451 4.7.1 later"
		ids := map[string]string{}
		for _, name := range []string{"ann", "bob", "dead", "later", "stopped"} {
			ids[b.submit(t, api.SubmitRequest{To: for1(name + "@x.test")})] = name
		}
		b.suppress(t, suppression.Entry{Address: "stopped@x.test", Reason: suppression.Manual})
		e := &endings{}
		b.store.DB.Client().AddHook(e)
		b.delivers(t, func(ctx context.Context, k queue.Task) queue.Verdict {
			if apart {
				ctx = context.Background() // asynq isn't asked for its acknowledgement
			}
			return b.Delivery.Deliver(ctx, k)
		})
		if both, acks := e.both.Load(), e.acks.Load(); apart && both != 0 || !apart && (both != 3 || acks != 2) {
			t.Errorf("apart %v: %d scripts ended message and task, %d the task alone", apart, both, acks)
		}
		left[i] = b.left(t, ids)
	}
	if d := cmp.Diff(left[0], left[1]); d != "" {
		t.Error("apart (-) and together (+) differ:\n", d)
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
	b.delivers(t, b.Delivery.Deliver)
	if n := asked.Load(); n != 1 || e.both.Load() != 2 {
		t.Errorf("the relay was asked %d times; %d calls", n, e.both.Load())
	}
	if n := eventsOf(t, b, "messageSent"); n != 1 {
		t.Errorf("%d events of one message", n)
	}
	if n := b.store.DB.Client().Exists(t.Context(), "asynq:{submit}:t:"+taskID(id, firstEpoch),
		redisdb.Key(0, "message:"+id)).Val(); n != 0 {
		t.Errorf("%d keys are left of the message and its task", n)
	}
	counts, err := b.store.Control.Counts(t.Context(), queue.Submit)
	must(t, err)
	if counts[0].ProcessedTotal != 1 {
		t.Errorf("counts: %+v", counts)
	}
}
