package queue

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestVerdicts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	soon := func() time.Time { return time.Now().Add(time.Hour) }
	tests := []struct {
		name     string
		verdict  func() Verdict
		state    State
		failures int
		text     string
	}{
		{"done", Done, "", 0, ""},
		{"drop", Drop, "", 0, ""},
		{"bury", func() Verdict { return Bury(errors.New("550 5.1.1 no such user")) }, Archived, 0,
			"550 5.1.1 no such user"},
		{"bury without a reason", func() Verdict { return Bury(nil) }, Archived, 0,
			"failed, and no reason was given"},
		{"retry", func() Verdict { return RetryAt(soon(), errors.New("451 4.7.1 later")) }, Retrying, 1,
			"451 4.7.1 later"},
		{"retry masks", func() Verdict { return RetryAt(soon(), errors.New("550 <jane.doe@example.com> unknown")) },
			Retrying, 1, "550 <***@example.com> unknown"},
		{"not now", func() Verdict { return NotNow(soon()) }, Retrying, 0, "not now: waits until "},
		{"panic", func() Verdict { panic("with jane@example.com inside") }, Retrying, 1,
			"the handler of panic panicked; the log has the stack"},
	}
	handlers := map[string]Handler{}
	for _, tt := range tests {
		handlers[tt.name] = func(context.Context, Task) Verdict { return tt.verdict() }
	}
	serve(t, b.redis, ServerOptions{}, handlers)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id := strings.ReplaceAll(tt.name, " ", "-")
			b.enqueue(t, Task{Queue: Submit, Type: tt.name, ID: id})
			until(t, "the verdict has its effect", func() bool { return b.state(t, id) == tt.state })
			if tt.state == "" {
				return
			}
			list, err := b.control.List(t.Context(), Submit, tt.state, 1, 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, info := range list {
				if info.ID == id && (info.Failures != tt.failures || !strings.HasPrefix(info.LastError, tt.text)) {
					t.Errorf("%d failures, %q; want %d, %q", info.Failures, info.LastError, tt.failures, tt.text)
				}
			}
		})
	}
}

func TestUnknownTypeIsBuried(t *testing.T) {
	t.Parallel()
	b := setup(t)
	serve(t, b.redis, ServerOptions{}, map[string]Handler{})
	b.enqueue(t, Task{Queue: Submit, Type: "from the future", ID: "u.1"})
	until(t, "it is archived", func() bool { return b.state(t, "u.1") == Archived })
	list, err := b.control.List(t.Context(), Submit, Archived, 1, 10)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v %v", list, err)
	}
	if want := `no handler for tasks of type "from the future" in this version`; list[0].LastError != want {
		t.Errorf("%q, want %q", list[0].LastError, want)
	}
}

func TestPanicIsLoggedWithItsStack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var out lockedBuffer
	serve(t, b.redis, ServerOptions{Logger: slog.New(slog.NewTextHandler(&out, nil))}, map[string]Handler{
		"send": func(context.Context, Task) Verdict {
			panic("out of paper")
		}})
	b.enqueue(t, task("p.1"))
	until(t, "the task waits to be tried again", func() bool { return b.state(t, "p.1") == Retrying })
	for _, want := range []string{"task handler panicked", "out of paper", "task_id=p.1", "server_test.go"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log lacks %q", want)
		}
	}
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// asynq archives a task without retries left even if its handler only said "not now".
func TestNotNowNeverRunsOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := logging(func(_ Task, call int) Verdict {
		if call < 3 {
			return NotNow(time.Now())
		}
		return Done()
	})
	serve(t, b.redis, ServerOptions{}, map[string]Handler{"send": l.handle})
	b.enqueue(t, task("n.1"))
	until(t, "it is done after all", func() bool { return l.count("n.1") == 3 && b.hashes(t) == 0 })
	if n := b.counts(t).FailedTotal; n != 0 {
		t.Errorf("%d failures counted", n)
	}
}

func TestPauseHoldsTasksBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := logging(nil)
	for range 2 { // a second time changes nothing
		if err := b.control.Pause(t.Context(), time.Now(), Submit); err != nil {
			t.Fatal(err)
		}
	}
	serve(t, b.redis, ServerOptions{}, map[string]Handler{"send": l.handle})
	b.enqueue(t, task("p.1"))
	if paused, err := b.control.Paused(t.Context(), Submit); paused[Submit].IsZero() || err != nil {
		t.Errorf("paused: %v, %v", paused, err)
	}
	if c := b.counts(t); !c.Paused || c.Waiting != 1 {
		t.Errorf("counts: %+v", c)
	}
	for range 2 {
		if err := b.control.Resume(t.Context(), Submit); err != nil {
			t.Fatal(err)
		}
	}
	if paused, err := b.control.Paused(t.Context(), Submit); len(paused) > 0 || err != nil {
		t.Errorf("still paused: %v, %v", paused, err)
	}
	until(t, "the task has run", func() bool { return l.count("p.1") == 1 })
}

func TestWeights(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var order []string
	var mu sync.Mutex
	var tasks []Task
	// enough for chance: none of the light queue among the first 160 would happen once in twenty million times
	for _, k := range many(200) {
		tasks = append(tasks, k)
		k.Queue = Bulk
		tasks = append(tasks, k)
	}
	b.enqueue(t, tasks...)
	serve(t, b.redis, ServerOptions{Pools: []Pool{{Queues: map[string]int{Submit: 9, Bulk: 1}, Workers: 1}}},
		map[string]Handler{
			"send": func(_ context.Context, k Task) Verdict {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, k.Queue)
				return Done()
			},
		})
	until(t, "all have run", func() bool { mu.Lock(); defer mu.Unlock(); return len(order) == 400 })
	first := strings.Count(strings.Join(order[:160], " "), Submit)
	if first < 120 || first == 160 {
		t.Errorf("of the first 160 tasks %d are of the queue with nine tenths of the weight", first)
	}
}

func TestStopWaitsForHandlers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started, release := make(chan struct{}), make(chan struct{})
	var cancelled atomic.Bool
	stop := serve(t, b.redis, ServerOptions{Grace: time.Minute}, map[string]Handler{
		"send": func(ctx context.Context, _ Task) Verdict {
			close(started)
			<-release
			cancelled.Store(ctx.Err() != nil)
			return Done()
		}})
	b.enqueue(t, task("s.1"))
	<-started
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	time.AfterFunc(300*time.Millisecond, func() { close(release) })
	<-stopped
	if cancelled.Load() {
		t.Error("the handler was cancelled within the grace")
	}
	if n := b.hashes(t); n != 0 {
		t.Error("the finished task was not acknowledged")
	}
}

func TestStopCancelsHandlersAfterTheGrace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := make(chan struct{})
	stop := serve(t, b.redis, ServerOptions{Grace: 50 * time.Millisecond}, map[string]Handler{
		"send": func(ctx context.Context, _ Task) Verdict {
			close(started)
			<-ctx.Done()
			return NotNow(time.Now().Add(time.Hour))
		}})
	b.enqueue(t, task("s.1"))
	<-started
	stop()
	if s := b.state(t, "s.1"); s != Retrying {
		t.Errorf("the verdict of the cancelled handler is lost: the task is %q", s)
	}
}

func TestStopGivesBackTasksOfDeafHandlers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started, release := make(chan struct{}), make(chan struct{})
	stop := serve(t, b.redis, ServerOptions{Grace: 10 * time.Millisecond}, map[string]Handler{
		"send": func(context.Context, Task) Verdict {
			close(started)
			<-release
			return Done()
		}})
	b.enqueue(t, task("s.1"))
	<-started
	stop()
	close(release)
	if s := b.state(t, "s.1"); s != Waiting {
		t.Errorf("the task is %q, want %q", s, Waiting)
	}
}

func TestCancelEndsTheHandlersContext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	started := make(chan struct{}, 10)
	l := logging(nil)
	serve(t, b.redis, ServerOptions{}, map[string]Handler{"send": func(ctx context.Context, k Task) Verdict {
		v := l.handle(ctx, k)
		if l.count(k.ID) > 1 {
			return v
		}
		started <- struct{}{}
		<-ctx.Done()
		return Drop()
	}})
	b.enqueue(t, task("cancel-me.1"))
	<-started
	until(t, "the cancelled task comes back", func() bool {
		if err := b.control.Cancel(t.Context(), "cancel-me.1"); err != nil {
			t.Fatal(err)
		}
		return b.state(t, "cancel-me.1") == Retrying || l.count("cancel-me.1") > 1
	})
	if n := b.counts(t).FailedTotal; n != 0 {
		t.Errorf("a cancelled task counts %d failures", n)
	}
}

func TestServersShareAPool(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var at, most atomic.Int64
	l := logging(nil)
	b.enqueue(t, many(300)...)
	serve(t, b.redis, ServerOptions{Pools: []Pool{{Queues: map[string]int{Submit: 1}, Workers: 7, Servers: 3}}},
		map[string]Handler{
			"send": func(ctx context.Context, k Task) Verdict {
				n := at.Add(1)
				defer at.Add(-1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				time.Sleep(time.Millisecond)
				return l.handle(ctx, k)
			},
		})
	until(t, "all have run", func() bool { return l.total() == 300 })
	if n := most.Load(); n > 7 {
		t.Errorf("%d handlers at once, want 7 at most", n)
	}
}

func TestPoolDefaults(t *testing.T) {
	tests := []struct {
		name string
		pool Pool
		want Pool
	}{
		{"nothing is set", Pool{Queues: map[string]int{Notify: 1}}, Pool{Workers: 50, Servers: 1}},
		{"no more servers than workers", Pool{Queues: map[string]int{Submit: 1}, Workers: 2, Servers: 9},
			Pool{Workers: 2, Servers: 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.pool.filled()
			got.Queues = nil
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestServerOptionsThatCannotBe(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, pools := range map[string][]Pool{
		"none":      nil,
		"no queues": {{Name: "x"}},
		"no name":   {{Queues: map[string]int{"": 1}}},
		"no weight": {{Queues: map[string]int{Submit: 0}}},
	} {
		if _, err := NewServer(b.redis, nil, ServerOptions{Pools: pools}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// After a FLUSHALL asynq continues to enqueue into a queue that, according to its inspector and the
// dashboard, does not exist.
func TestQueuesAreKnownAgainAfterAFlush(t *testing.T) {
	t.Parallel()
	b := setup(t)
	serve(t, b.redis, ServerOptions{}, map[string]Handler{})
	known := func() bool { return b.redis.SIsMember(t.Context(), allQueuesKey, Submit).Val() }
	until(t, "the queue is registered", known)
	b.redis.FlushDB(t.Context())
	until(t, "the queue is registered again", known)
}
