package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
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

// asynq repeats a failed acknowledgement under a context it has cancelled itself: the finished task stayed
// active and ran again.
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
			until(t, "the acknowledgement is repeated until it succeeds", func() bool {
				return b.hashes(t) == 0 &&
					f.left.Load() <= 0
			})
			if n := l.count("a.1"); n != 1 {
				t.Errorf("the handler ran %d times", n)
			}
			if c := b.counts(t); c.Active != 0 || c.ProcessedTotal != 1 {
				t.Errorf("counts: %+v", c)
			}
		})
	}
}

// The repetitions asynq makes itself, five seconds apart, go through as well: the context they come under is
// cancelled.
func TestAckUnderACancelledContext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := &ackClient{UniversalClient: b.redis, scripts: b.redis, log: slog.New(slog.DiscardHandler)}
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

// With Redis full asynq cannot take tasks off a queue. Nothing moves, nothing is lost, and an operator still
// sees and can delete.
func TestFullMemory(t *testing.T) {
	t.Parallel()
	p := testredis.Server(t, "--maxmemory-policy", "noeviction", "--appendonly", "no")
	b := on(testredis.Connect(t, redisdb.Options{URL: p.URL()}).Client())
	b.enqueue(t, many(200)...)
	b.redis.ConfigSet(t.Context(), "maxmemory", "1mb")
	l := logging(nil)
	serve(t, b.redis, ServerOptions{}, map[string]Handler{"send": l.handle})
	if err := b.client.Enqueue(t.Context(), task("more.1"))[0]; err == nil ||
		!strings.Contains(err.Error(), "OOM") {
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

// What asynq knows about a task: no end to its retries, and a timeout beyond any delivery, in whole seconds.
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

// Workers may be started before Redis, and stopped after it.
func TestRedisComesAndGoes(t *testing.T) {
	t.Parallel()
	p := testredis.Server(t, "--appendonly", "no")
	b := on(testredis.Connect(t, redisdb.Options{URL: p.URL()}).Client())
	p.Kill()
	l := logging(nil)
	stop := serve(t, b.redis, ServerOptions{Grace: 10 * time.Millisecond}, map[string]Handler{"send": l.handle})
	p.Restart(t)
	b.enqueue(t, task("r.1"))
	until(t, "the task has run", func() bool { return l.count("r.1") == 1 })
	p.Kill()
	stop()
}

// A server left behind, for example by a stop with Redis frozen, must not crash the process when the program
// closes its connection. asynq takes the end of its subscription for a message.
func TestSubscriptionOutlivesTheConnection(t *testing.T) {
	t.Parallel()
	p := testredis.Server(t, "--appendonly", "no")
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: p.Socket()})
	other := redis.NewClient(&redis.Options{Network: "unix", Addr: p.Socket()})
	defer other.Close()
	topics, closeTopics := topicClient(c)
	sub := (&ackClient{UniversalClient: c, topics: topics}).Subscribe(t.Context(), cancelTopic)
	defer sub.Close()
	messages := sub.Channel()
	subscribed := func() bool { return other.PubSubNumSub(t.Context(), cancelTopic).Val()[cancelTopic] == 1 }
	until(t, "it is subscribed", subscribed)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := other.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err(); err != nil {
		t.Fatal(err)
	}
	until(t, "it is subscribed again", subscribed)
	other.Publish(t.Context(), cancelTopic, "x.1")
	select {
	case m := <-messages:
		if m == nil || m.Payload != "x.1" {
			t.Errorf("received %v", m)
		}
	case <-time.After(patience):
		t.Error("no message")
	}
	if err := closeTopics(); err != nil {
		t.Error(err)
	}
}

// A Redis that neither answers nor closes its connections must not keep the process from ending.
func TestStopWithRedisFrozen(t *testing.T) {
	t.Parallel()
	p := testredis.Server(t, "--appendonly", "no")
	b := on(redis.NewClient(&redis.Options{Network: "unix", Addr: p.Socket()}))
	l := logging(nil)
	s, err := NewServer(b.redis, map[string]Handler{"send": l.handle},
		ServerOptions{Grace: 10 * time.Millisecond, Pools: []Pool{{Queues: map[string]int{Submit: 1}}}})
	if err != nil {
		t.Fatal(err)
	}
	closeTopics, enginesEnded := s.closeTopics, make(chan struct{})
	s.closeTopics = func() error {
		defer close(enginesEnded)
		return closeTopics()
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	b.enqueue(t, task("r.1"))
	until(t, "the task has run", func() bool { return l.count("r.1") == 1 })
	p.Stop()
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("Run does not end")
	}
	if err := b.redis.Close(); err != nil {
		t.Error(err)
	}
	p.Kill()
	select {
	case <-enginesEnded:
	case <-time.After(patience):
		t.Error("what was left behind does not end")
	}
}
