package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

func TestEnqueueReachesTheHandler(t *testing.T) {
	t.Parallel()
	b := setup(t)
	seen := make(chan Task, 1)
	serve(t, b.redis, ServerOptions{}, map[string]Handler{"send": func(_ context.Context, t Task) Verdict {
		seen <- t
		return Done()
	}})
	b.enqueue(t, Task{Queue: Submit, Type: "send", ID: "m1.1", Payload: []byte("m1")})
	select {
	case got := <-seen:
		want := Task{Queue: Submit, Type: "send", ID: "m1.1", Payload: []byte("m1")}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	case <-time.After(patience):
		t.Fatal("the handler was not called")
	}
	until(t, "the task is gone", func() bool { return b.hashes(t) == 0 })
}

// The queue counts in whole seconds and asynq cuts off the rest, so that a task would be handed out up to a
// second too early.
func TestFiresNeverEarly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	due := map[string]time.Time{}
	var tasks []Task
	for i, ahead := range []time.Duration{300 * time.Millisecond, 700 * time.Millisecond, 999 * time.Millisecond,
		1500 * time.Millisecond} {
		k := task("e" + string(rune('0'+i)))
		k.At = time.Now().Add(ahead)
		due[k.ID] = k.At
		tasks = append(tasks, k)
	}
	type early struct {
		id string
		by time.Duration
	}
	fired := make(chan early, 10)
	serve(t, b.redis, ServerOptions{}, map[string]Handler{"send": func(_ context.Context, k Task) Verdict {
		fired <- early{k.ID, time.Until(due[k.ID])}
		return Done()
	}})
	b.enqueue(t, tasks...)
	for range tasks {
		select {
		case f := <-fired:
			if f.by > 0 {
				t.Errorf("%s fired %v before its time", f.id, f.by)
			}
		case <-time.After(patience):
			t.Fatal("not all tasks fired")
		}
	}
}

func TestRetryNeverEarly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var again time.Time
	early := make(chan time.Duration, 1)
	l := logging(nil)
	l.says = func(_ Task, call int) Verdict {
		if call == 1 {
			again = time.Now().Add(650 * time.Millisecond)
			return RetryAt(again, errors.New("451 try later"))
		}
		early <- time.Until(again)
		return Done()
	}
	serve(t, b.redis, ServerOptions{}, map[string]Handler{"send": l.handle})
	b.enqueue(t, task("r.1"))
	select {
	case by := <-early:
		if by > 0 {
			t.Errorf("retried %v before its time", by)
		}
	case <-time.After(patience):
		t.Fatal("not retried")
	}
}

func TestPastIsNow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	k := task("p.1")
	k.At = time.Now().Add(-time.Hour)
	b.enqueue(t, k)
	if got := b.state(t, "p.1"); got != Waiting {
		t.Errorf("a task of the past is %q, want %q", got, Waiting)
	}
}

func TestExistingIDIsSuccess(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.enqueue(t, task("x.1"), task("x.1"))
	b.enqueue(t, task("x.1"))
	if n := b.counts(t).Waiting; n != 1 {
		t.Errorf("%d tasks wait, want 1", n)
	}
	b.enqueue(t, task("x.1"), task("x.2"))
	if n := b.counts(t).Waiting; n != 2 {
		t.Errorf("%d tasks wait, want x.1 and x.2", n)
	}
}

// An archived task blocks its id, so a fresh wake-up for the same record takes the next epoch.
func TestBusyTaskIDDoesNotBlock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := logging(func(t Task, _ int) Verdict {
		if strings.HasSuffix(t.ID, ".1") {
			return Bury(errors.New("550 no"))
		}
		return Done()
	})
	serve(t, b.redis, ServerOptions{}, map[string]Handler{"send": l.handle})
	b.enqueue(t, task("m.1"))
	until(t, "m.1 is archived", func() bool { return b.state(t, "m.1") == Archived })
	b.enqueue(t, task("m.1"), task("m.2"))
	until(t, "m.2 has run", func() bool { return l.count("m.2") == 1 })
	if n := l.count("m.1"); n != 1 {
		t.Errorf("the archived task ran %d times, want once", n)
	}
}

func TestTasksThatCannotBe(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tests := []struct {
		name string
		task Task
	}{
		{"no queue", Task{Type: "send", ID: "1"}},
		{"no type", Task{Queue: Submit, ID: "1"}},
		{"no id", Task{Queue: Submit, Type: "send"}},
		{"slash", Task{Queue: Submit, Type: "send", ID: "a/b"}},
		{"blank", Task{Queue: Submit, Type: "send", ID: "a b"}},
		{"umlaut", Task{Queue: Submit, Type: "send", ID: "ä"}},
		{"type of another alphabet than UTF-8", Task{Queue: Submit, Type: "\xff", ID: "1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			errs := b.client.Enqueue(t.Context(), tt.task, task("ok.1"))
			if errs[0] == nil {
				t.Error("no error")
			}
			if errs[1] != nil {
				t.Errorf("the good one beside it: %v", errs[1])
			}
		})
	}
}

// The enqueue must survive a Redis that has forgotten its scripts, in a pipeline where nothing can fall back.
func TestEnqueueAfterScriptsAreLost(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.enqueue(t, task("s.1"))
	if err := b.redis.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	b.enqueue(t, task("s.2"))
	if n := b.counts(t).Waiting; n != 2 {
		t.Errorf("%d tasks wait, want 2", n)
	}
}

// TestAStepWritesWhatEnqueueWrites: a script that runs a step leaves the same keys as Enqueue, and writes
// nothing before that.
func TestAStepWritesWhatEnqueueWrites(t *testing.T) {
	t.Parallel()
	for _, k := range []Task{task("now"), {Queue: Submit, Type: "send", ID: "later",
		At: time.Now().Add(time.Hour)}} {
		b := setup(t)
		s, err := b.client.Step(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		if n := b.redis.DBSize(t.Context()).Val(); n != 0 {
			t.Errorf("%s: %d keys written before the script ran", k.ID, n)
		}
		if err := b.redis.Eval(t.Context(), StepLua+"return "+s.Name+"(KEYS, ARGV)", s.Keys[:], s.Values[0],
			s.Values[1], s.Values[2]).Err(); err != nil {
			t.Fatal(err)
		}
		got := written(t, b, k)
		b.redis.FlushDB(t.Context())
		b.enqueue(t, k)
		if want := written(t, b, k); !cmp.Equal(got, want) {
			t.Errorf("%s: wrote %v, want %v", k.ID, got, want)
		}
	}
}

// TestAFormMakesWhatEnqueueWrites: a script that knows only the ID leaves the same keys as Enqueue, whether
// tasks stay visible or not.
func TestAFormMakesWhatEnqueueWrites(t *testing.T) {
	t.Parallel()
	for _, keep := range []int{0, 5} {
		b := setup(t)
		b.client = NewClient(b.redis, Options{Keep: func(string) int { return keep }})
		for range 2 { // the second one is remembered
			for _, id := range []string{"1", "01M8KF0DPTGJ0AMF3J47CG2C00.12", strings.Repeat("x", 127)} {
				k := Task{Queue: Submit, Type: "send", ID: id}
				f, err := b.client.Form(t.Context(), k.Queue, k.Type)
				if err != nil {
					t.Fatal(err)
				}
				if err := b.redis.Eval(t.Context(), StepLua+"return enqueue_form({unpack(ARGV, 2)}, ARGV[1])", nil, id,
					f.Tasks, f.Prefix, f.Head, f.Tail, f.Now).Err(); err != nil {
					t.Fatal(err)
				}
				got := written(t, b, k)
				b.redis.FlushDB(t.Context())
				b.enqueue(t, k)
				if want := written(t, b, k); !cmp.Equal(got, want) {
					t.Errorf("%s: wrote %q, want %q", k.ID, got, want)
				}
				b.redis.FlushDB(t.Context())
			}
		}
	}
}

// written returns what an enqueued task left in Redis, but not when.
func written(t *testing.T, b bench, k Task) []any {
	t.Helper()
	hash := b.redis.HGetAll(t.Context(), taskKey(Submit, k.ID)).Val()
	_, dated := hash["pending_since"]
	delete(hash, "pending_since")
	return []any{hash, dated, b.redis.LRange(t.Context(), stateKey(Submit, Waiting), 0, -1).Val(),
		b.redis.ZRangeWithScores(t.Context(), stateKey(Submit, Scheduled), 0, -1).Val()}
}

func TestEnqueueWithRedisAway(t *testing.T) {
	t.Parallel()
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: t.TempDir() + "/none", MaxRetries: -1})
	defer c.Close()
	errs := NewClient(c, Options{}).Enqueue(t.Context(), task("a.1"), task("a.2"))
	if errs[0] == nil || errs[1] == nil {
		t.Errorf("errors %v, want two", errs)
	}
}

// TestKeepBuried: with KeepBuried as many buried tasks stay as done ones, for 24 hours; else all do.
func TestKeepBuried(t *testing.T) {
	t.Parallel()
	for _, limited := range []bool{true, false} {
		b := setup(t)
		l := logging(func(Task, int) Verdict { return Bury(errors.New("no")) })
		for i := range 5 {
			b.enqueue(t, task(fmt.Sprintf("bad.%d", i)))
		}
		stop := serve(t, b.redis, ServerOptions{}, map[string]Handler{"send": l.handle})
		until(t, "all are buried", func() bool { return b.counts(t).Archived == 5 })
		stop()
		old := float64(time.Now().Add(-keepFor - time.Minute).Unix())
		b.redis.ZAdd(t.Context(), stateKey(Submit, Archived), redis.Z{Score: old, Member: "bad.4"})
		serve(t, b.redis, ServerOptions{Keep: func(string) int { return 6 }, KeepBuried: limited},
			map[string]Handler{"send": l.handle})
		if !limited {
			b.enqueue(t, task("bad.5"))
			until(t, "one more is buried", func() bool { return b.counts(t).Archived == 6 })
			continue
		}
		until(t, "the old one is gone", func() bool { return b.counts(t).Archived == 4 && b.hashes(t) == 4 })
	}
	b := setup(t)
	l := logging(func(Task, int) Verdict { return Bury(errors.New("no")) })
	b.enqueue(t, task("bad.1"), task("bad.2"), task("bad.3"))
	keep := atomic.Int64{}
	keep.Store(2)
	serve(t, b.redis, ServerOptions{Keep: func(string) int { return int(keep.Load()) }, KeepBuried: true},
		map[string]Handler{"send": l.handle})
	until(t, "two are left", func() bool { c := b.counts(t); return c.Waiting+c.Active == 0 && c.Archived == 2 })
	keep.Store(0)
	until(t, "none is left", func() bool { return b.counts(t).Archived == 0 && b.hashes(t) == 0 })
}

func TestKeepCompleted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.client = NewClient(b.redis, Options{Keep: func(string) int { return 2 }})
	l := logging(func(t Task, _ int) Verdict {
		if t.ID == "stale.1" {
			return Drop()
		}
		return Done()
	})
	serve(t, b.redis, ServerOptions{Keep: func(string) int { return 2 }}, map[string]Handler{"send": l.handle})
	b.enqueue(t, task("kept.1"), task("stale.1"))
	until(t, "one is completed, the other gone", func() bool {
		return b.state(t, "kept.1") == Completed && b.state(t, "stale.1") == ""
	})
	for i := range 10 {
		b.enqueue(t, task(fmt.Sprintf("more.%d", i)))
	}
	until(t, "two are left", func() bool {
		c := b.counts(t)
		return c.Waiting+c.Active == 0 &&
			c.Completed == 2 && b.hashes(t) == 2
	})
}
