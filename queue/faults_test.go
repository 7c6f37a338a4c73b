package queue

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/redisdb"
)

// failing is a go-redis hook that fails the next calls that match, after sending them or instead.
type failing struct {
	left  atomic.Int32
	match func(cmd redis.Cmder) bool
	send  bool // the call is executed and its reply lost
}

func (f *failing) DialHook(next redis.DialHook) redis.DialHook { return next }
func (f *failing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (f *failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !f.match(cmd) || f.left.Add(-1) < 0 {
			return next(ctx, cmd)
		}
		if f.send {
			_ = next(ctx, cmd)
		}
		err := &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}
		cmd.SetErr(err)
		return err
	}
}

// acknowledges recognises the script by which asynq says that a task is done.
func acknowledges(cmd redis.Cmder) bool {
	if !strings.HasPrefix(cmd.Name(), "eval") {
		return false
	}
	args := fmt.Sprint(cmd.Args()...)
	return strings.Contains(args, ":lease") && strings.Contains(args, ":processed")
}

// asynq repeats a failed acknowledgement under a context it has cancelled itself: the finished task stayed active and ran again.
func TestAckFailureDoesNotRunTwice(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		fails int32
		send  bool
	}{
		{"once", 1, false},
		{"for a while", 12, false},
		{"reply lost", 1, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			f := &failing{match: acknowledges, send: tt.send}
			f.left.Store(tt.fails)
			b.redis.(*redis.Client).AddHook(f)
			l := logging(nil)
			serve(t, b.redis, ServerOptions{}, map[string]Handler{"send": l.handle})
			b.enqueue(t, task("a.1"))
			until(t, "the acknowledgement is repeated until it succeeds", func() bool { return b.hashes(t) == 0 && f.left.Load() <= 0 })
			if n := l.count("a.1"); n != 1 {
				t.Errorf("the handler ran %d times", n)
			}
			if c := b.counts(t); c.Active != 0 || c.ProcessedTotal != 1 {
				t.Errorf("counts: %+v", c)
			}
		})
	}
}

// The repetitions asynq makes itself, five seconds apart, go through as well: the context they come under is cancelled.
func TestAckUnderACancelledContext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := ackClient{UniversalClient: b.redis}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Minute))
	cancel()
	if err := redis.NewScript("return 1").Run(ctx, c, nil).Err(); err != nil {
		t.Errorf("under a cancelled context: %v", err)
	}
	ctx, cancel = context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if err := (uncancelled{ctx}).Err(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the lease: %v, want deadline exceeded", err)
	}
}

// A worker killed with SIGKILL: asynq alone takes one to two minutes to notice.
func TestRecoveryAfterKillIsQuick(t *testing.T) {
	t.Parallel()
	url := testredis.URL(t)
	b := on(testredis.Connect(t, redisdb.Options{URL: url}).Client())
	b.enqueue(t, task("k.1"))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	victim := exec.Command(self)
	victim.Env = append(os.Environ(), "QUEUE_TEST_VICTIM="+url)
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	defer victim.Wait()
	defer victim.Process.Kill()
	until(t, "the victim has the task", func() bool { return b.state(t, "k.1") == Active })
	l := logging(nil)
	serve(t, b.redis, ServerOptions{}, map[string]Handler{"send": l.handle})
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	until(t, "the task has run elsewhere", func() bool { return l.count("k.1") == 1 })
	if took := time.Since(killed); took > 15*time.Second {
		t.Errorf("recovered after %v", took)
	}
	until(t, "the task is gone", func() bool { return b.hashes(t) == 0 })
	if c := b.counts(t); c.FailedTotal != 0 {
		t.Errorf("the crash counts as %d failures", c.FailedTotal)
	}
}

// victim is a worker that takes a task and never finishes it; TestMain runs it in a process to be killed.
func victim(url string) {
	db, err := redisdb.Open(context.Background(), redisdb.Options{URL: url})
	if err != nil {
		panic(err)
	}
	s, err := NewServer(db.Client(), map[string]Handler{"send": func(context.Context, Task) Verdict { select {} }},
		ServerOptions{Pools: []Pool{{Queues: map[string]int{Submit: 1}}}})
	if err != nil {
		panic(err)
	}
	panic(s.Run(context.Background()))
}

// Live workers keep their tasks, however long a handler takes.
func TestReaperLeavesLiveWorkersAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	release := make(chan struct{})
	l := logging(nil)
	serve(t, b.redis, ServerOptions{Pools: []Pool{{Queues: map[string]int{Submit: 1}, Workers: 20}}}, map[string]Handler{
		"send": func(ctx context.Context, k Task) Verdict {
			<-release
			return l.handle(ctx, k)
		},
	})
	b.enqueue(t, many(20)...)
	until(t, "all are active", func() bool { return b.counts(t).Active == 20 })
	time.Sleep(9 * time.Second) // longer than a lease may be silent; there is no condition to wait for where nothing is to happen
	close(release)
	until(t, "all are done", func() bool { return b.hashes(t) == 0 })
	for _, k := range many(20) {
		if n := l.count(k.ID); n != 1 {
			t.Errorf("%s ran %d times", k.ID, n)
		}
	}
}

func TestReaper(t *testing.T) {
	t.Parallel()
	now := time.Now()
	tests := []struct {
		name              string
		lease             time.Duration // left of it
		prepare           func(b bench)
		returned, removed int64
		state             State
	}{
		{"fresh lease", 29 * time.Second, nil, 0, 0, Active},
		{"lease renewed 7 s ago", 23 * time.Second, nil, 0, 0, Active},
		{"silent lease", 21 * time.Second, nil, 1, 0, Waiting},
		{"expired lease", -time.Hour, nil, 1, 0, Waiting},
		{"no lease", 29 * time.Second, func(b bench) { b.redis.Del(context.Background(), leaseKey(Submit)) }, 1, 0, Waiting},
		{"lease without a place", time.Second, func(b bench) { b.redis.Del(context.Background(), stateKey(Submit, Active)) }, 1, 0, Waiting},
		{"no hash", 29 * time.Second, func(b bench) { b.redis.Del(context.Background(), taskKey(Submit, "r.1")) }, 0, 1, ""},
		{"hash without a message", time.Second, func(b bench) { b.redis.HDel(context.Background(), taskKey(Submit, "r.1"), "msg") }, 0, 1, ""},
		{"neither lease nor hash", time.Second, func(b bench) {
			b.redis.Del(context.Background(), taskKey(Submit, "r.1"), leaseKey(Submit))
		}, 0, 1, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.enqueue(t, task("r.1"))
			b.activate(t, "r.1", now.Add(tt.lease))
			if tt.prepare != nil {
				tt.prepare(b)
			}
			returned, removed, err := reap(t.Context(), b.redis, Submit, now)
			if err != nil || returned != tt.returned || removed != tt.removed {
				t.Errorf("returned %d, removed %d, %v; want %d, %d", returned, removed, err, tt.returned, tt.removed)
			}
			if got := b.state(t, "r.1"); got != tt.state {
				t.Errorf("the task is %q, want %q", got, tt.state)
			}
			if n := b.redis.ZCard(t.Context(), leaseKey(Submit)).Val(); (n == 1) != (tt.state == Active) {
				t.Errorf("%d leases left", n)
			}
			b.redis.Del(t.Context(), taskKey(Submit, "r.1"), stateKey(Submit, Waiting))
			if tt.state == "" {
				b.enqueue(t, task("r.1")) // the id is free again
			}
		})
	}
}

// activate does what a worker does that takes a task and then dies.
func (b bench) activate(t *testing.T, id string, lease time.Time) {
	t.Helper()
	ctx := t.Context()
	b.redis.LRem(ctx, stateKey(Submit, Waiting), 0, id)
	b.redis.LPush(ctx, stateKey(Submit, Active), id)
	b.redis.ZAdd(ctx, leaseKey(Submit), redis.Z{Score: float64(lease.Unix()), Member: id})
	b.redis.HSet(ctx, taskKey(Submit, id), "state", "active")
}

// While Redis stalls no lease can be renewed. Old leases right after a stall say nothing about workers.
func TestReaperWaitsAfterAStall(t *testing.T) {
	t.Parallel()
	at := func(s float64) time.Time { return time.Unix(1_000_000, 0).Add(time.Duration(s * float64(time.Second))) }
	type tick struct {
		begun, ended float64
		ok, trusted  bool
	}
	tests := []struct {
		name  string
		ticks []tick
	}{
		{"a new process trusts at once", []tick{{0, 0.1, true, true}, {1, 1.1, true, true}}},
		{"an error", []tick{{0, 0, true, true}, {1, 1, false, false}, {2, 2, true, false}, {6, 6.5, true, false}, {8, 8.6, true, false}}},
		{"after it", []tick{{0, 0, false, false}, {2, 2, true, false}, {4, 4, true, false}, {6, 6, true, true}}},
		{"a slow answer", []tick{{0, 9, true, false}, {10, 10, true, false}, {12, 12, true, false}, {14, 14, true, false}, {15, 15, true, true}}},
		{"this process slept", []tick{{0, 0, true, true}, {30, 30, true, false}, {33, 33, true, false}, {36, 36, true, true}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s steadiness
			for _, k := range tt.ticks {
				if got := s.observe(at(k.begun), at(k.ended), k.ok); got != k.trusted {
					t.Errorf("at %v: trusted %v, want %v", k.ended, got, k.trusted)
				}
			}
		})
	}
}

// A task whose hash is gone is taken off its queue by asynq and stuck in active for ever.
func TestMissingHashDoesNotBreakCounts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.enqueue(t, task("h.1"), later("h.2"))
	b.redis.Del(t.Context(), taskKey(Submit, "h.1"), taskKey(Submit, "h.2"))
	if c := b.counts(t); c.Waiting != 1 || c.Scheduled != 1 {
		t.Errorf("counts: %+v", c)
	}
	if _, err := b.control.Memory(t.Context(), Submit); err != nil {
		t.Error(err)
	}
	for _, s := range []State{Waiting, Scheduled} {
		if list, err := b.control.List(t.Context(), Submit, s, 1, 10); err != nil || len(list) != 0 {
			t.Errorf("%s: %v %v", s, list, err)
		}
	}
	l := logging(nil)
	serve(t, b.redis, ServerOptions{}, map[string]Handler{"send": l.handle})
	until(t, "the empty tasks are gone", func() bool {
		c := b.counts(t)
		return c.Waiting+c.Active+c.Scheduled == 0 && b.hashes(t) == 0
	})
	b.enqueue(t, task("h.1"))
	until(t, "the id works again", func() bool { return l.count("h.1") == 1 })
}

// asynq's own "archive all" cuts the archive to 9,999 and leaves the hashes of the rest, whose ids are blocked for ever.
func TestOperatorArchiveAllLeaksNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for tasks := many(10_050); len(tasks) > 0; tasks = tasks[min(500, len(tasks)):] {
		b.enqueue(t, tasks[:min(500, len(tasks))]...)
	}
	n, err := b.control.ArchiveAll(t.Context(), Submit, Waiting, nil)
	if err != nil || n != 10_050 {
		t.Fatalf("%d tasks, %v", n, err)
	}
	if c := b.counts(t); c.Waiting != 0 || c.Archived != archiveMost || b.hashes(t) != archiveMost {
		t.Errorf("%d wait, %d are archived, %d take memory", c.Waiting, c.Archived, b.hashes(t))
	}
}

// Where asynq's "archive all" was used all the same, from its command line say, Prune cleans up after it.
func TestPruneCleansUpAfterAsynq(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for tasks := many(10_050); len(tasks) > 0; tasks = tasks[min(500, len(tasks)):] {
		b.enqueue(t, tasks[:min(500, len(tasks))]...)
	}
	if err := b.control.Register(t.Context(), Submit); err != nil {
		t.Fatal(err)
	}
	if _, err := asynq.NewInspectorFromRedisClient(b.redis).ArchiveAllPendingTasks(Submit); err != nil {
		t.Fatal(err)
	}
	pruned, err := b.control.Prune(t.Context(), Submit)
	if err != nil {
		t.Fatal(err)
	}
	if pruned.Orphans != 51 || pruned.Expired != 9_999-archiveMost {
		t.Errorf("pruned %+v", pruned)
	}
	if c := b.counts(t); c.Archived != archiveMost || b.hashes(t) != archiveMost {
		t.Errorf("%d are archived, %d take memory", c.Archived, b.hashes(t))
	}
	if again, err := b.control.Prune(t.Context(), Submit); err != nil || again != (Pruned{}) {
		t.Errorf("the second time it pruned %+v, %v", again, err)
	}
}

func TestPruneMends(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	b.enqueue(t, task("waits.1"), task("lost.1"), later("lost.2"), later("unnamed.1"), later("fine.1"), task("half.1"))
	b.redis.LRem(ctx, stateKey(Submit, Waiting), 0, "lost.1")
	b.redis.ZRem(ctx, stateKey(Submit, Scheduled), "lost.2")
	b.redis.Del(ctx, taskKey(Submit, "unnamed.1"))
	b.redis.LRem(ctx, stateKey(Submit, Waiting), 0, "half.1")
	b.redis.HSet(ctx, taskKey(Submit, "half.1"), "state", "completed")
	pruned, err := b.control.Prune(ctx, Submit)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Pruned{Orphans: 1, Returned: 2, Unnamed: 1}); pruned != want {
		t.Errorf("%+v, want %+v", pruned, want)
	}
	for id, want := range map[string]State{
		"waits.1": Waiting, "lost.1": Waiting, "lost.2": Waiting, "unnamed.1": "", "fine.1": Scheduled, "half.1": "",
	} {
		if got := b.state(t, id); got != want {
			t.Errorf("%s is %q, want %q", id, got, want)
		}
	}
	if n := b.counts(t).Waiting; n != 3 {
		t.Errorf("%d wait, want 3", n)
	}
}

// asynq's archiving fails, after it has removed the task from active, when about 8,000 archived tasks are past their 90 days at once.
func TestNineThousandExpiredArchivedTasks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	old := float64(time.Now().Add(-100 * 24 * time.Hour).Unix())
	_, err := b.redis.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range 9000 {
			id := fmt.Sprintf("old%d", i)
			p.HSet(t.Context(), taskKey(Submit, id), "msg", "m", "state", "archived")
			p.ZAdd(t.Context(), stateKey(Submit, Archived), redis.Z{Score: old, Member: id})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.enqueue(t, task("new.1"))
	l := logging(func(Task, int) Verdict { return Bury(errors.New("550 no")) })
	serve(t, b.redis, ServerOptions{}, map[string]Handler{"send": l.handle})
	until(t, "the new one is buried", func() bool { return b.state(t, "new.1") == Archived })
	until(t, "the old ones are gone", func() bool { return b.hashes(t) == 1 && b.counts(t).Archived == 1 })
}

// With Redis full asynq cannot take tasks off a queue. Nothing moves, nothing is lost, and an operator still sees and can delete.
func TestFullMemory(t *testing.T) {
	t.Parallel()
	p := testredis.Server(t, "--maxmemory-policy", "noeviction", "--appendonly", "no")
	b := on(testredis.Connect(t, redisdb.Options{URL: p.URL()}).Client())
	b.enqueue(t, many(200)...)
	b.redis.ConfigSet(t.Context(), "maxmemory", "1mb")
	l := logging(nil)
	serve(t, b.redis, ServerOptions{}, map[string]Handler{"send": l.handle})
	if err := b.client.Enqueue(t.Context(), task("more.1"))[0]; err == nil || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("enqueue: %v, want OOM", err)
	}
	if c := b.counts(t); c.Waiting != 200 || l.total() != 0 {
		t.Errorf("%d wait, %d handled", c.Waiting, l.total())
	}
	if _, err := b.control.Memory(t.Context(), Submit); err != nil {
		t.Error(err)
	}
	if err := b.control.Delete(t.Context(), Submit, "t00000.1")[0]; err != nil {
		t.Errorf("delete: %v", err)
	}
	b.redis.ConfigSet(t.Context(), "maxmemory", "0")
	until(t, "the others have run", func() bool { return l.total() == 199 && b.hashes(t) == 0 })
}

// Redis killed and started again under running workers: everything accepted is handled.
func TestRedisRestart(t *testing.T) {
	t.Parallel()
	p := testredis.Server(t)
	b := on(testredis.Connect(t, redisdb.Options{URL: p.URL()}).Client())
	l := logging(func(Task, int) Verdict { time.Sleep(5 * time.Millisecond); return Done() })
	b.enqueue(t, many(500)...)
	serve(t, b.redis, ServerOptions{}, map[string]Handler{"send": l.handle})
	until(t, "some have run", func() bool { return l.total() > 50 })
	time.Sleep(1100 * time.Millisecond) // the append-only file is synced once a second
	p.Kill()
	p.Restart(t)
	until(t, "all have run", func() bool {
		for _, k := range many(500) {
			if l.count(k.ID) == 0 {
				return false
			}
		}
		return b.redis.Exists(t.Context(), stateKey(Submit, Active)).Val() == 0
	})
}

// What asynq is told of a task: no end to its retries, and a timeout beyond any delivery, in whole seconds.
func TestTaskLimits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.enqueue(t, task("l.1"))
	info, err := asynq.NewInspectorFromRedisClient(b.redis).GetTaskInfo(Submit, "l.1")
	if err != nil {
		t.Fatal(err)
	}
	if info.MaxRetry < 1_000_000_000 || info.Timeout != time.Hour || info.Retention != 0 {
		t.Errorf("max retry %d, timeout %v, retention %v", info.MaxRetry, info.Timeout, info.Retention)
	}
}
