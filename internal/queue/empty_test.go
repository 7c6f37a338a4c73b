package queue

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

const testList = "asynq:{submit}:pending"

// polls is a pool of servers whose calls are answered by the test.
type polls struct {
	*emptyQueues
	servers *pollers
	stop    context.CancelFunc
	calls   chan chan *redis.Cmd // questions to Redis, for the test to answer
}

func newPolls(t *testing.T) *polls {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	p := &polls{emptyQueues: newEmptyQueues(ctx.Done()), stop: stop, calls: make(chan chan *redis.Cmd)}
	p.servers = p.pollers(Pool{Queues: map[string]int{"submit": 1}})
	p.hear(true)
	p.askEvery = time.Hour
	return p
}

// poll makes a poll. Its answer comes to the channel.
func (p *polls) poll() <-chan *redis.Cmd {
	done := make(chan *redis.Cmd, 1)
	go func() {
		done <- p.take(p.servers, testList, func() (*redis.Cmd, bool) {
			answer := make(chan *redis.Cmd)
			p.calls <- answer
			cmd := <-answer
			return cmd, cmd == lastTask
		})
	}()
	return done
}

func (p *polls) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.servers.waiting)
}

var (
	noTask   = redis.NewCmdResult(nil, redis.Nil)
	oneTask  = redis.NewCmdResult("a task", nil)
	lastTask = redis.NewCmdResult("a task, and the list is empty then", nil)
)

func TestAPollOfAnEmptyQueueWaitsForAnAnnouncement(t *testing.T) {
	t.Parallel()
	p := newPolls(t)
	first := p.poll()
	<-p.calls <- noTask
	if cmd := <-first; cmd.Err() != redis.Nil {
		t.Fatalf("%v", cmd)
	}
	second, third := p.poll(), p.poll()
	until(t, "both wait", func() bool { return p.waiting() == 2 })
	p.wake("asynq:{bulk}:pending")
	if n := p.waiting(); n != 2 {
		t.Errorf("the announcement of another queue left %d waiting", n)
	}
	p.wake(testList)
	answer := <-p.calls
	if n := p.waiting(); n != 1 {
		t.Errorf("%d wait after one announcement", n)
	}
	answer <- oneTask
	taken := <-waitFor(second, third)
	if taken.Val() != "a task" {
		t.Errorf("took %v", taken)
	}
	fourth := p.poll() // the server that took one
	<-p.calls <- oneTask
	<-fourth
	<-p.calls <- noTask // the server that still waited: a second task in a row brings it in
	until(t, "nobody waits", func() bool { return p.waiting() == 0 })
}

// waitFor returns the first answer of two polls.
func waitFor(a, b <-chan *redis.Cmd) <-chan *redis.Cmd {
	first := make(chan *redis.Cmd, 1)
	go func() {
		select {
		case cmd := <-a:
			first <- cmd
		case cmd := <-b:
			first <- cmd
		}
	}()
	return first
}

// TestNobodyAsksAfterTheLastTask: the answer with the last task says that it is the last.
func TestNobodyAsksAfterTheLastTask(t *testing.T) {
	t.Parallel()
	p := newPolls(t)
	first := p.poll()
	<-p.calls <- lastTask
	if cmd := <-first; cmd != lastTask {
		t.Fatalf("%v", cmd)
	}
	p.poll()
	until(t, "the next poll waits", func() bool { return p.waiting() == 1 })
	p.wake(testList)
	answer := <-p.calls
	p.wake(testList) // a task that came after the one that is taken
	answer <- lastTask
	p.poll()
	<-p.calls <- noTask
}

// TestAnAnnouncementDuringAPollIsNotLost: the task may have come after Redis answered that there is none.
func TestAnAnnouncementDuringAPollIsNotLost(t *testing.T) {
	t.Parallel()
	p := newPolls(t)
	first := p.poll()
	answer := <-p.calls
	p.wake(testList)
	answer <- noTask
	<-first
	second := p.poll()
	<-p.calls <- oneTask
	if cmd := <-second; cmd.Val() != "a task" {
		t.Errorf("took %v", cmd)
	}
}

// TestRedisIsAskedAgainWithoutAnAnnouncement, for one may have been lost.
func TestRedisIsAskedAgainWithoutAnAnnouncement(t *testing.T) {
	t.Parallel()
	p := newPolls(t)
	p.askEvery = time.Millisecond
	first := p.poll()
	<-p.calls <- noTask
	<-first
	second := p.poll()
	<-p.calls <- oneTask
	if cmd := <-second; cmd.Val() != "a task" {
		t.Errorf("took %v", cmd)
	}
}

func TestAStopEndsTheWaiting(t *testing.T) {
	t.Parallel()
	p := newPolls(t)
	first := p.poll()
	<-p.calls <- noTask
	<-first
	second := p.poll()
	until(t, "it waits", func() bool { return p.waiting() == 1 })
	p.stop()
	if cmd := <-second; cmd.Err() != redis.Nil {
		t.Errorf("%v", cmd)
	}
}

// TestPollsDoNotWaitWithoutAnnouncements: a process that hears none polls as asynq does.
func TestPollsDoNotWaitWithoutAnnouncements(t *testing.T) {
	t.Parallel()
	p := newPolls(t)
	p.hear(false)
	for range 3 {
		poll := p.poll()
		<-p.calls <- noTask
		<-poll
	}
}

// TestOneServerAsksAgain: one of the servers that wait for an empty queue asks again, and the others continue
// to wait, until it finds a task.
func TestOneServerAsksAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPolls(t)
		p.askEvery = time.Second
		first := p.poll()
		<-p.calls <- noTask
		<-first
		polls := []<-chan *redis.Cmd{p.poll(), p.poll(), p.poll()}
		for round := range 3 {
			time.Sleep(p.askEvery)
			synctest.Wait()
			answer := <-p.calls
			select {
			case <-p.calls:
				t.Fatalf("round %d: a second server asks", round)
			default:
			}
			answer <- noTask
			synctest.Wait()
			i := slices.IndexFunc(polls, func(c <-chan *redis.Cmd) bool { return len(c) == 1 })
			if i < 0 {
				t.Fatalf("round %d: nobody is told that there is nothing", round)
			}
			<-polls[i]
			polls[i] = p.poll() // as asynq does
			synctest.Wait()
		}
		p.stop()
		for _, c := range polls {
			<-c
		}
	})
}

// TestAnEnqueueIsAnnounced, by a Redis that informs every process, and once while no one takes the tasks.
func TestAnEnqueueIsAnnounced(t *testing.T) {
	t.Parallel()
	const name = "announced" // other tests announce their tasks on the same server
	q := setup(t)
	e := newEmptyQueues(nil)
	go e.listen(t.Context(), q.redis)
	changes := func() int {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.get(stateKey(name, Waiting)).changes
	}
	until(t, "it hears", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.hears
	})
	before := changes()
	for _, err := range q.client.Enqueue(t.Context(), Task{Queue: name, Type: "t", ID: "a"},
		Task{Queue: name, Type: "t", ID: "b"}, Task{Queue: name, Type: "t", ID: "a"},
		Task{Queue: name, Type: "t", ID: "later", At: time.Now().Add(time.Hour)}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := q.control.Pause(t.Context(), time.Now(), name); err != nil {
		t.Fatal(err)
	}
	if err := q.control.Resume(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	until(t, "two announcements: of the first task, and of the resumption", func() bool {
		return changes() == before+2
	})
}

// TestTakingSaysWhichTaskIsTheLast runs the script that takes a task off a list, extended, on Redis.
func TestTakingSaysWhichTaskIsTheLast(t *testing.T) {
	t.Parallel()
	b, p := setup(t), newPolls(t)
	client := &pollingClient{servers: p.servers,
		ackClient: &ackClient{UniversalClient: b.redis, scripts: b.redis, empty: p.emptyQueues}}
	const source = `return redis.call("RPOPLPUSH", KEYS[1], KEYS[3])`
	keys := []string{testList, "asynq:{submit}:paused", "asynq:{submit}:active", "asynq:{submit}:lease"}
	if err := client.EvalSha(t.Context(), "unknown", keys).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
		t.Errorf("asynq is not asked for its source: %v", err)
	}
	for _, task := range []string{"1", "2"} {
		if err := b.redis.LPush(t.Context(), testList, task).Err(); err != nil {
			t.Fatal(err)
		}
	}
	known := func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.isEmpty(testList, time.Now())
	}
	if task, err := client.Eval(t.Context(), source, keys).Text(); task != "1" || err != nil || known() {
		t.Errorf("took %q, %v; the list is known as empty: %v", task, err, known())
	}
	if task, err := client.EvalSha(t.Context(), "any", keys).Text(); task != "2" || err != nil || !known() {
		t.Errorf("took %q, %v; the list is known as empty: %v", task, err, known())
	}
	p.wake(testList) // an announcement that is about nothing
	if cmd := client.EvalSha(t.Context(), "any", keys); cmd.Err() != redis.Nil || !known() {
		t.Errorf("took %v; the list is known as empty: %v", cmd, known())
	}
}
