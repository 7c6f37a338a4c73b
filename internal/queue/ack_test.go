package queue

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
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// together records a result and the end of its task with one script. It answers whether it did.
const together = `
if redis.call("SETNX", KEYS[1], "sent") == 0 then return 0 end
acknowledge({unpack(KEYS, 2)}, ARGV)
return 1`

// recording is a handler that returns a verdict after it has recorded its result together with the end of the
// task. Like the outbox, it repeats a call whose answer was lost.
func (b bench) recording(v Verdict) Handler {
	return func(ctx context.Context, k Task) Verdict {
		ack := Acknowledge(ctx, v)
		if ack == nil {
			return v
		}
		for {
			args := make([]any, len(ack.Values))
			for i, value := range ack.Values {
				args[i] = value
			}
			n, err := b.redis.Eval(ctx, ack.Lua+together, append([]string{"result:" + k.ID}, ack.Keys...),
				args...).Int()
			if err != nil {
				time.Sleep(time.Millisecond)
				continue
			}
			if n == 1 {
				ack.Written()
			}
			return v
		}
	}
}

// left returns what is in Redis of the queue, without times of day.
func (b bench) left(t *testing.T) map[string]any {
	t.Helper()
	left := map[string]any{}
	for _, key := range b.redis.Keys(t.Context(), "asynq:{"+Submit+"}*").Val() {
		ttl := b.redis.TTL(t.Context(), key).Val()
		switch b.redis.Type(t.Context(), key).Val() {
		case "hash":
			hash := b.redis.HGetAll(t.Context(), key).Val()
			left[key] = slices.Sorted(maps.Keys(hash))
		case "zset":
			left[key] = slices.Sorted(slices.Values(b.redis.ZRange(t.Context(), key, 0, -1).Val()))
		case "list":
			left[key] = b.redis.LRange(t.Context(), key, 0, -1).Val()
		default:
			left[key] = b.redis.Get(t.Context(), key).Val()
		}
		left[key+" expires"] = ttl.Truncate(time.Hour) > 0
	}
	inspector := asynq.NewInspectorFromRedisClient(b.redis)
	completed, err := inspector.ListCompletedTasks(Submit)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range completed { // in any order: workers run side by side
		left["completed "+info.ID] = fmt.Sprint(info.State, info.Retention, info.Type, info.Retried,
			info.MaxRetry, info.Timeout, string(info.Payload), info.CompletedAt.IsZero())
	}
	return left
}

// TestAnAcknowledgementInAScript: a handler that writes the acknowledgement itself leaves what asynq would
// have left, and asynq makes no call itself.
func TestAnAcknowledgementInAScript(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		verdict Verdict
		keep    int
		state   State
	}{
		{"done", Done(), 0, ""},
		{"dropped", Drop(), 0, ""},
		{"stays visible", Done(), 5, Completed},
		{"dropped where others stay visible", Drop(), 5, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var left [2]map[string]any
			for i, apart := range []bool{true, false} {
				b := setup(t)
				keep := func(string) int { return tt.keep }
				b.client = NewClient(b.redis, Options{Keep: keep})
				var acks atomic.Int32
				b.redis.(*redis.Client).AddHook(&failing{match: func(cmd redis.Cmder) bool {
					if acknowledges(cmd) && !strings.Contains(fmt.Sprint(cmd.Args()...), "result:") {
						acks.Add(1)
					}
					return false
				}})
				handler := b.recording(tt.verdict)
				if apart {
					handler = func(context.Context, Task) Verdict { return tt.verdict }
				}
				stop := serve(t, b.redis, ServerOptions{Keep: keep}, map[string]Handler{"send": handler})
				for n := range 3 {
					b.enqueue(t, task(fmt.Sprintf("a.%d", n)))
				}
				until(t, "all have run", func() bool {
					c := b.counts(t)
					return c.ProcessedTotal == 3 && c.Active+c.Waiting == 0
				})
				stop()
				if s := b.state(t, "a.1"); s != tt.state {
					t.Errorf("the task is %q, want %q", s, tt.state)
				}
				if n := acks.Load(); (n > 0) != apart {
					t.Errorf("asynq made %d acknowledgements itself", n)
				}
				left[i] = b.left(t)
			}
			if d := cmp.Diff(left[0], left[1]); d != "" {
				t.Error("apart (-) and together (+) differ:\n", d)
			}
		})
	}
}

// TestAnAcknowledgementThatIsNotWritten goes out as usual: the handler's script found that the result isn't
// its own, or had run before and its answer was lost.
func TestAnAcknowledgementThatIsNotWritten(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		lost int32 // answers
		sent bool  // the result was recorded before
	}{
		{"not its own", 0, true},
		{"answer lost", 1, false},
		{"not executed", 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			f := &failing{send: tt.lost > 0, match: func(cmd redis.Cmder) bool {
				return strings.Contains(fmt.Sprint(cmd.Args()...), "result:a.1") && cmd.Name() == "eval"
			}}
			f.left.Store(1)
			if tt.sent {
				b.redis.Set(t.Context(), "result:a.1", "sent", 0)
				f.left.Store(0)
			}
			b.redis.(*redis.Client).AddHook(f)
			serve(t, b.redis, ServerOptions{}, map[string]Handler{"send": b.recording(Done())})
			b.enqueue(t, task("a.1"))
			until(t, "the task is gone", func() bool { return b.counts(t).ProcessedTotal > 0 && b.hashes(t) == 0 })
			if c := b.counts(t); c.Active != 0 || c.ProcessedTotal != 1 {
				t.Errorf("counts: %+v", c)
			}
		})
	}
}

// TestNoAcknowledgementOfACancelledTask: asynq has given the task back, so there is nothing to acknowledge.
func TestNoAcknowledgementOfACancelledTask(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started, got := make(chan struct{}), make(chan *Ack, 1)
	serve(t, b.redis, ServerOptions{}, map[string]Handler{"send": func(ctx context.Context, _ Task) Verdict {
		select {
		case <-started:
			return Done()
		default:
		}
		close(started)
		<-ctx.Done()
		until(t, "the task comes back", func() bool { return b.state(t, "a.1") != Active })
		got <- Acknowledge(ctx, Done())
		return Done()
	}})
	b.enqueue(t, task("a.1"))
	<-started
	until(t, "it is cancelled", func() bool {
		if err := b.control.Cancel(t.Context(), "a.1"); err != nil {
			t.Fatal(err)
		}
		return b.state(t, "a.1") != Active
	})
	if a := <-got; a != nil {
		t.Errorf("%+v", a)
	}
	if a := Acknowledge(t.Context(), Done()); a != nil {
		t.Errorf("outside of a handler: %+v", a)
	}
}
