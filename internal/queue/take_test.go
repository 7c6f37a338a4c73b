package queue

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// begins is a Take that notes its tasks in Redis, in the step that takes them. Its first call fails.
func (b bench) begins() func(context.Context, Take) (Taken, error) {
	var calls atomic.Int32
	return func(ctx context.Context, look Take) (t Taken, err error) {
		if calls.Add(1) == 1 {
			return t, errors.New("not now")
		}
		args := make([]any, len(look.Values))
		for i, value := range look.Values {
			args[i] = value
		}
		answer, err := b.redis.Eval(ctx, look.Lua+`
local task, left = take(KEYS, ARGV)
if not task then return {} end
local id = taken(KEYS)
redis.call("RPUSH", "begun", id)
return {task, id, left}`, look.Keys, args...).Slice()
		if len(answer) < 3 {
			return t, err
		}
		return Taken{Task: fmt.Sprint(answer[0]), ID: fmt.Sprint(answer[1]), Left: int(answer[2].(int64)),
			Begun: "begun " + look.Queue + " " + fmt.Sprint(answer[1])}, err
	}
}

// TestATakeBeginsTheWork of each task once, and of none while its queue is paused. Its handler gets the work.
func TestATakeBeginsTheWork(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if err := b.control.Pause(t.Context(), time.Now(), Submit); err != nil {
		t.Fatal(err)
	}
	b.enqueue(t, task("a.1"), task("a.2"), task("a.3"))
	got, polls := make(chan string, 3), atomic.Int32{}
	begins := b.begins()
	serve(t, b.redis, ServerOptions{Pools: []Pool{{Queues: map[string]int{Submit: 1},
		Take: func(ctx context.Context, look Take) (Taken, error) {
			polls.Add(1)
			return begins(ctx, look)
		}}}}, map[string]Handler{"send": func(ctx context.Context, k Task) Verdict {
		got <- fmt.Sprint(Begun(ctx), " for ", k.ID)
		return Done()
	}})
	until(t, "it looks again after an error", func() bool { return polls.Load() > 1 })
	if n := b.redis.LLen(t.Context(), "begun").Val(); n != 0 || b.counts(t).Waiting != 3 {
		t.Errorf("%d tasks of a paused queue begun", n)
	}
	if err := b.control.Resume(t.Context(), Submit); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for range 3 {
		select {
		case one := <-got:
			seen[one] = true
		case <-time.After(patience):
			t.Fatalf("only %v", seen)
		}
	}
	if d := cmp.Diff(map[string]bool{"begun submit a.1 for a.1": true, "begun submit a.2 for a.2": true,
		"begun submit a.3 for a.3": true}, seen); d != "" {
		t.Error(d)
	}
	until(t, "all are done", func() bool { return b.hashes(t) == 0 })
	if n := b.redis.LLen(t.Context(), "begun").Val(); n != 3 {
		t.Errorf("%d begun", n)
	}
	if Begun(t.Context()) != nil {
		t.Error("something is begun outside of a handler")
	}
}
