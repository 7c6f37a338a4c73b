package queue

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

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
	if took := time.Since(killed); took > 45*time.Second { // 9 on a machine with nothing else to do
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
	s, err := NewServer(db.Client(), map[string]Handler{"send": func(context.Context, Task) Verdict {
		select {}
	}},
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
	serve(t, b.redis, ServerOptions{Pools: []Pool{{Queues: map[string]int{Submit: 1}, Workers: 20}}},
		map[string]Handler{
			"send": func(ctx context.Context, k Task) Verdict {
				<-release
				return l.handle(ctx, k)
			},
		})
	b.enqueue(t, many(20)...)
	until(t, "all are active", func() bool { return b.counts(t).Active == 20 })
	// longer than a lease may be silent; there is no condition to wait for where nothing is to happen
	time.Sleep(9 * time.Second)
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
		{"no lease", 29 * time.Second, func(b bench) { b.redis.Del(context.Background(), leaseKey(Submit)) }, 1, 0,
			Waiting},
		{"lease without a place", time.Second,
			func(b bench) { b.redis.Del(context.Background(), stateKey(Submit, Active)) }, 1, 0, Waiting},
		{"no hash", 29 * time.Second, func(b bench) { b.redis.Del(context.Background(), taskKey(Submit, "r.1")) },
			0, 1, ""},
		{"hash without a message", time.Second,
			func(b bench) { b.redis.HDel(context.Background(), taskKey(Submit, "r.1"), "msg") }, 0, 1, ""},
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
			if n := b.redis.LLen(t.Context(), stateKey(Submit, Waiting)).Val(); (n == 1) != (tt.state == Waiting) {
				t.Errorf("%d tasks wait", n)
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
	at := func(s float64) time.Time {
		return time.Unix(1_000_000, 0).Add(time.Duration(s * float64(time.Second)))
	}
	type tick struct {
		begun, ended float64
		ok, trusted  bool
	}
	tests := []struct {
		name  string
		ticks []tick
	}{
		{"a new process trusts at once", []tick{{0, 0.1, true, true}, {1, 1.1, true, true}}},
		{"an error", []tick{{0, 0, true, true}, {1, 1, false, false}, {2, 2, true, false}, {6, 6.5, true, false},
			{8, 8.6, true, false}}},
		{"after it", []tick{{0, 0, false, false}, {2, 2, true, false}, {4, 4, true, false}, {6, 6, true, true}}},
		{"a slow answer", []tick{{0, 9, true, false}, {10, 10, true, false}, {12, 12, true, false},
			{14, 14, true, false}, {15, 15, true, true}}},
		{"this process slept", []tick{{0, 0, true, true}, {30, 30, true, false}, {33, 33, true, false},
			{36, 36, true, true}}},
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
