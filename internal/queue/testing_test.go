package queue

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/testredis"
)

func TestMain(m *testing.M) {
	if url := os.Getenv("QUEUE_TEST_VICTIM"); url != "" {
		victim(url)
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "16") // most tests wait most of the time
	os.Exit(testredis.Main(m))
}

// patience is how long a condition may take on a machine that is busy with other things.
const patience = 2 * time.Minute

// bench is what most tests need: a Redis of their own, and the three doors to it.
type bench struct {
	redis   redis.UniversalClient
	client  *Client
	control *Control
}

func setup(t testing.TB) bench {
	t.Helper()
	return on(testredis.New(t).Client())
}

func on(c redis.UniversalClient) bench {
	return bench{redis: c, client: NewClient(c, Options{}), control: NewControl(c)}
}

// until waits for a condition.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// serve runs a Server with one pool over the Submit queue until the test ends or stop is called.
func serve(t testing.TB, c redis.UniversalClient, o ServerOptions, handlers map[string]Handler) (
	stop func()) {
	t.Helper()
	if o.Pools == nil {
		o.Pools = []Pool{{Name: "test", Queues: map[string]int{Submit: 1}, Workers: 10}}
	}
	s, err := NewServer(c, handlers, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(patience):
			t.Error("Run does not end")
		}
	})
	t.Cleanup(stop)
	return stop
}

// enqueue puts tasks into their queues or fails the test.
func (b bench) enqueue(t testing.TB, tasks ...Task) {
	t.Helper()
	for i, err := range b.client.Enqueue(t.Context(), tasks...) {
		if err != nil {
			t.Fatalf("enqueue %s: %v", tasks[i].ID, err)
		}
	}
}

// state returns the state of a task in the Submit queue.
func (b bench) state(t testing.TB, id string) State {
	t.Helper()
	states, err := b.control.States(t.Context(), Submit, id)
	if err != nil {
		t.Fatal(err)
	}
	return states[0]
}

// counts counts the Submit queue.
func (b bench) counts(t testing.TB) Counts {
	t.Helper()
	counts, err := b.control.Counts(t.Context(), Submit)
	if err != nil {
		t.Fatal(err)
	}
	return counts[0]
}

// hashes counts the tasks of the Submit queue that take memory, wherever they are or are not.
func (b bench) hashes(t testing.TB) int {
	t.Helper()
	n := 0
	for it := b.redis.Scan(t.Context(), 0, taskPrefix(Submit)+"*", 1000).Iterator(); it.Next(t.Context()); {
		n++
	}
	return n
}

// task makes a task for the Submit queue.
func task(id string) Task { return Task{Queue: Submit, Type: "send", ID: id, Payload: []byte(id)} }

// many makes n tasks for the Submit queue.
func many(n int) []Task {
	tasks := make([]Task, n)
	for i := range tasks {
		tasks[i] = task(fmt.Sprintf("t%05d.1", i))
	}
	return tasks
}

// log is a handler that counts its calls by task id and answers with a verdict.
type log struct {
	mu    sync.Mutex
	calls map[string]int
	says  func(t Task, call int) Verdict
}

func logging(says func(t Task, call int) Verdict) *log {
	return &log{calls: map[string]int{}, says: says}
}

func (l *log) handle(_ context.Context, t Task) Verdict {
	l.mu.Lock()
	l.calls[t.ID]++
	n := l.calls[t.ID]
	l.mu.Unlock()
	if l.says == nil {
		return Done()
	}
	return l.says(t, n)
}

func (l *log) count(id string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[id]
}

func (l *log) total() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, c := range l.calls {
		n += c
	}
	return n
}
