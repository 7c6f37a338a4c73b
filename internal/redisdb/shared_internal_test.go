package redisdb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// line stands for Redis and the way to it: it notes what travels together, and answers when it is let go.
type line struct {
	redis.UniversalClient
	gate chan struct{} // closed: answers come

	mu     sync.Mutex
	trips  [][]string             // the first argument of each script, by round trip
	answer func(arg string) error // nil: each is answered with its argument
}

func newLine(t *testing.T) (*line, *Shared) {
	t.Helper()
	l := &line{UniversalClient: redis.NewClient(&redis.Options{Addr: "nowhere.invalid:6379"}),
		gate: make(chan struct{})}
	l.AddHook(l)
	s := newShared(l)
	t.Cleanup(func() {
		l.letGo()
		s.close()
		_ = l.Close()
	})
	return l, s
}

func (l *line) letGo() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.gate:
	default:
		close(l.gate)
	}
}

func (l *line) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *line) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return l.carry(ctx, cmd) }
}

func (l *line) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { return l.carry(ctx, cmds...) }
}

func (l *line) carry(ctx context.Context, cmds ...redis.Cmder) error {
	var batch []string
	for _, cmd := range cmds {
		batch = append(batch, cmd.Args()[3].(string)[:1])
	}
	l.mu.Lock()
	l.trips = append(l.trips, batch)
	l.mu.Unlock()
	select {
	case <-l.gate:
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, cmd := range cmds {
		arg := cmd.Args()[3].(string)
		cmd.(*redis.Cmd).SetVal(arg)
		if l.answer == nil {
			continue
		}
		l.mu.Lock()
		err := l.answer(arg)
		l.mu.Unlock()
		if err != nil {
			cmd.(*redis.Cmd).SetVal(nil)
			cmd.SetErr(err)
		}
	}
	return nil
}

func (l *line) seen() [][]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([][]string(nil), l.trips...)
}

// queued is how many calls wait for a pipe.
func (s *Shared) queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// occupy sends a call down each pipe, which stays there until the line lets go.
func occupy(t *testing.T, l *line, s *Shared, callers *sync.WaitGroup) {
	t.Helper()
	for i := range sharedPipes {
		callers.Go(func() { s.EvalSha(context.Background(), "sha", nil, "alone") })
		eventually(t, "a call to be on its way", func() bool { return len(l.seen()) == i+1 })
	}
}

func TestSharedCallsThatWaitTravelTogether(t *testing.T) {
	t.Parallel()
	l, s := newLine(t)
	var callers sync.WaitGroup
	occupy(t, l, s, &callers)
	for i := range 100 {
		callers.Go(func() {
			if got, err := s.EvalSha(t.Context(), "sha", nil, fmt.Sprint("x", i)).Text(); got != fmt.Sprint("x", i) ||
				err != nil {
				t.Errorf("call %d was answered %q, %v", i, got, err)
			}
		})
	}
	eventually(t, "all to wait", func() bool { return s.queued() == 100 })
	l.letGo()
	callers.Wait()
	if trips := l.seen(); len(trips) != sharedPipes+1 || len(trips[sharedPipes]) != 100 {
		t.Errorf("%d round trips, want one for each pipe and one for all that waited", len(trips))
	}
}

func TestLargeSharedCallsTravelAlone(t *testing.T) {
	t.Parallel()
	l, s := newLine(t)
	var callers sync.WaitGroup
	occupy(t, l, s, &callers)
	for i, arg := range []string{"b" + strings.Repeat("b", batchBytes), "s",
		"m" + strings.Repeat("m", batchBytes/2), "n" + strings.Repeat("n", batchBytes/2)} {
		callers.Go(func() { s.Eval(context.Background(), "source", nil, arg) })
		eventually(t, "it to wait", func() bool { return s.queued() == i+1 })
	}
	s.mu.Lock()
	all := s.waiting
	s.mu.Unlock()
	var sizes []int
	for len(all) > 0 {
		batch := s.next()
		sizes = append(sizes, len(batch))
		all = all[len(batch):]
		for _, r := range batch {
			close(r.done)
		}
	}
	l.letGo()
	callers.Wait()
	if fmt.Sprint(sizes) != "[1 2 1]" {
		t.Errorf("calls travel %v at a time, want the large one alone, the next two together, and the last one",
			sizes)
	}
}

// A server that is starting, or has become a replica, did nothing. The client repeats a call after such an
// answer, but not within a pipeline.
func TestSharedCallsAreRepeatedByThemselves(t *testing.T) {
	t.Parallel()
	for _, refusal := range []proto{
		"LOADING Redis is loading the dataset in memory",
		"NOREPLICAS Not enough good replicas to write.",
		"ERR Error running script (call to f_e0): @user_script:1: @user_script: 1: -READONLY You can't write against a read only replica.",
	} {
		t.Run(strings.Fields(string(refusal))[0], func(t *testing.T) {
			t.Parallel()
			repeatedByItself(t, refusal)
		})
	}
}

func repeatedByItself(t *testing.T, refusal proto) {
	t.Helper()
	l, s := newLine(t)
	refused := 0
	l.answer = func(arg string) error {
		if arg[0] == 'r' && refused == 0 {
			refused++
			return refusal
		}
		return nil
	}
	var callers sync.WaitGroup
	occupy(t, l, s, &callers)
	for i, arg := range []string{"r", "x"} {
		callers.Go(func() {
			if got, err := s.EvalSha(t.Context(), "sha", nil, arg).Text(); got != arg || err != nil {
				t.Errorf("answered %q, %v, want %q", got, err, arg)
			}
		})
		eventually(t, "it to wait", func() bool { return s.queued() == i+1 })
	}
	l.letGo()
	callers.Wait()
	if trips := l.seen(); fmt.Sprint(trips[sharedPipes:]) != "[[r x] [r]]" {
		t.Errorf("round trips %v, want both, and the refused one again", trips[sharedPipes:])
	}
}

// deadline is a context whose deadline passes when the test says so.
type deadline struct {
	context.Context
	passed chan struct{}
}

func (c *deadline) Done() <-chan struct{} { return c.passed }

func (c *deadline) Err() error {
	select {
	case <-c.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// proto is an error as Redis answers it.
type proto string

func (e proto) Error() string { return string(e) }
func (proto) RedisError()     {}

func TestDeadlineCutsASharedCallAndCancellationDoesNot(t *testing.T) {
	t.Parallel()
	l, s := newLine(t)
	late := &deadline{Context: t.Context(), passed: make(chan struct{})}
	failed := make(chan error, 1)
	go func() { failed <- s.EvalSha(late, "sha", nil, "late").Err() }()
	eventually(t, "it to be on its way", func() bool { return len(l.seen()) == 1 })
	close(late.passed)
	if err := <-failed; !errors.Is(err, context.DeadlineExceeded) || !Unavailable(err) {
		t.Errorf("error %v, want that of the deadline", err)
	}
	if err := s.EvalSha(late, "sha", nil, "later").Err(); !errors.Is(err, context.DeadlineExceeded) ||
		len(l.seen()) != 1 {
		t.Errorf("a call after its deadline was sent, %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	answered := make(chan *redis.Cmd, 1)
	go func() { answered <- s.EvalSha(ctx, "sha", nil, "patient") }()
	eventually(t, "it to be on its way", func() bool { return len(l.seen()) == 2 })
	stop()
	l.letGo()
	if got, err := (<-answered).Text(); got != "patient" || err != nil {
		t.Errorf("answered %q, %v: a cancellation cut the call short", got, err)
	}
}

func TestClosedSharedRefuses(t *testing.T) {
	t.Parallel()
	l, s := newLine(t)
	l.letGo()
	s.close()
	s.close()
	if err := s.EvalSha(t.Context(), "sha", nil, "x").Err(); !errors.Is(err, redis.ErrClosed) {
		t.Errorf("error %v, want that it is closed", err)
	}
}

// undone is a context that ends without saying so, as queue gives to asynq's calls.
type undone struct{ context.Context }

func (undone) Done() <-chan struct{} { return nil }

// TestDeadlineCutsASharedCallInAnyCase has contexts that are of no use to wait for: one ended early, which
// does not cut the call, the other never says that it ended.
func TestDeadlineCutsASharedCallInAnyCase(t *testing.T) {
	t.Parallel()
	for name, makeIt := range map[string]func(context.Context) context.Context{
		"cancelled before": func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Millisecond, cancel)
			return ctx
		},
		"it does not tell": func(ctx context.Context) context.Context { return undone{ctx} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, s := newLine(t)
			late, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			answered := make(chan error, 1)
			go func() { answered <- s.EvalSha(makeIt(late), "sha", nil, "late").Err() }()
			select {
			case err := <-answered:
				if !Unavailable(err) {
					t.Errorf("error %v doesn't count as unavailable", err)
				}
			case <-time.After(batchTimeout / 2):
				t.Error("a call goes on after its deadline")
			}
		})
	}
}

// TestSharedCallsThatGaveUpAreNotSent: after a failed answer a client submits again, so calls that were not
// sent by then must not be.
func TestSharedCallsThatGaveUpAreNotSent(t *testing.T) {
	t.Parallel()
	l, s := newLine(t)
	var callers sync.WaitGroup
	occupy(t, l, s, &callers)
	call := func(ctx context.Context, arg string) {
		waited := s.queued()
		callers.Go(func() { s.EvalSha(ctx, "sha", nil, arg) })
		eventually(t, "it to wait", func() bool { return s.queued() == waited+1 })
	}
	call(context.Background(), "x")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.EvalSha(ctx, "sha", nil, "late").Err(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that of the deadline", err)
	}
	call(context.Background(), "y")
	l.letGo()
	callers.Wait()
	if trips := l.seen(); fmt.Sprint(trips[sharedPipes:]) != "[[x y]]" {
		t.Errorf("round trips %v, want both but for the one that gave up", trips[sharedPipes:])
	}
}

// TestALaneIsFreeWhenAllOnItsWayGaveUp: nobody waits for what it could still bring, and what it would repeat
// somebody else may have sent again.
func TestALaneIsFreeWhenAllOnItsWayGaveUp(t *testing.T) {
	t.Parallel()
	l, s := newLine(t)
	late, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var callers sync.WaitGroup
	for i := range sharedPipes {
		callers.Go(func() { s.EvalSha(late, "sha", nil, "late") })
		eventually(t, "a call to be on its way", func() bool { return len(l.seen()) == i+1 })
	}
	callers.Wait()
	start := time.Now()
	callers.Go(func() { s.EvalSha(context.Background(), "sha", nil, "next") })
	eventually(t, "the next call to be on its way", func() bool {
		return len(l.seen()) == sharedPipes+1 ||
			time.Since(start) > batchTimeout/2
	})
	if n := len(l.seen()); n != sharedPipes+1 {
		t.Errorf("%d calls on their way: the pipes wait for those that gave up", n)
	}
	l.letGo()
	callers.Wait()
}
