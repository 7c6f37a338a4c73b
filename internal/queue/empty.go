package queue

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
)

// asynq polls: each of its servers asks each of its queues for a task every few milliseconds. That cost an
// idle process a tenth of a core, and a task half an interval. So code that adds a task to an empty queue
// announces it on wakeTopic, and a server whose queues are known to be empty waits here for an announcement,
// inside its poll. Announcements may be lost. So the process looks every lookEvery whether any of the lists
// exists, and asks for tasks at least every askEvery.
const (
	wakeTopic = "asynq:wake" // pub/sub channel of the pending lists that got a task
	lookEvery = time.Second
	askEvery  = 30 * time.Second

	// A busy queue is often empty for a moment. Then its tasks are collected for restAfter, and taken together:
	// that saves an announcement and two round trips for each.
	restAfter = 2 * time.Millisecond
)

// announceTail follows asynq's script that adds a task to a pending list, which is KEYS[2]. Only the first
// task of a list is announced: whoever takes a task asks for the next one.
const announceTail = `
local added = enqueue()
if added == 1 and redis.call("LLEN", KEYS[2]) == 1 then
	redis.call("PUBLISH", "` + wakeTopic + `", KEYS[2])
end
return added`

// announcing returns a script of asynq that adds a task, extended by the announcement.
func announcing(source string, keys []string) string {
	if len(keys) < 2 || !isPending(keys[1]) {
		return source
	}
	return "local function enqueue()\n" + source + "\nend" + announceTail
}

// announce reports that a queue has a task, or may be worked on again.
func announce(ctx context.Context, c redis.UniversalClient, queue string) {
	_ = c.Publish(ctx, wakeTopic, stateKey(queue, Waiting)).Err() // else it is found within lookEvery
}

func isPending(key string) bool { return strings.HasSuffix(key, "}:"+string(Waiting)) }

// emptyQueues remembers which queues have no task to take, and keeps their polls waiting. It is safe for
// concurrent use.
type emptyQueues struct {
	stopped  <-chan struct{} // closed: no poll waits any more
	askEvery time.Duration   // how long it counts that a pending list was empty

	mu    sync.Mutex
	hears bool // whether announcements arrive
	known map[string]*knownQueue
	pools []*pollers
}

// knownQueue is the last known state of a pending list.
type knownQueue struct {
	changes int       // announcements
	empty   bool      // Redis answered that there is nothing, and no announcement came since
	asked   time.Time // when
	taken   int       // tasks since the last empty answer
}

// pollers are the asynq servers of one pool. They take tasks from the same queues.
type pollers struct {
	keys    []string // the pending lists
	waiting []chan struct{}
}

func newEmptyQueues(stopped <-chan struct{}) *emptyQueues {
	return &emptyQueues{stopped: stopped, askEvery: askEvery, known: map[string]*knownQueue{}}
}

// pollers adds the servers of a pool.
func (e *emptyQueues) pollers(p Pool) *pollers {
	servers := &pollers{}
	for q := range p.Queues {
		servers.keys = append(servers.keys, stateKey(q, Waiting))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pools = append(e.pools, servers)
	return servers
}

// get returns the last known state of a key. The caller holds the lock.
func (e *emptyQueues) get(key string) *knownQueue {
	if e.known[key] == nil {
		e.known[key] = &knownQueue{}
	}
	return e.known[key]
}

// isEmpty reports whether a list has no task: Redis said so less than askEvery ago. The caller holds the
// lock.
func (e *emptyQueues) isEmpty(key string, now time.Time) bool {
	q := e.get(key)
	return e.hears && q.empty && now.Sub(q.asked) < e.askEvery
}

// wake notes an announcement, and has one server in each of the queue's pools ask for the task.
func (e *emptyQueues) wake(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	q := e.get(key)
	q.changes, q.empty = q.changes+1, false
	for _, p := range e.pools {
		if slices.Contains(p.keys, key) {
			p.wakeOne()
		}
	}
}

// wakeOne ends the waiting of the server that waits the longest.
func (p *pollers) wakeOne() {
	if len(p.waiting) > 0 {
		close(p.waiting[0])
		p.waiting = p.waiting[1:]
	}
}

// listen notes the announcements until ctx ends. The client subscribes again when it lost its connection;
// then announcements may have been lost.
func (e *emptyQueues) listen(ctx context.Context, c redis.UniversalClient) {
	topic := c.Subscribe(ctx, wakeTopic)
	defer topic.Close() //nolint:errcheck // nothing is left to do with it
	news := topic.ChannelWithSubscriptions()
	defer e.hear(false)
	for {
		select {
		case <-ctx.Done():
			return
		case m, ok := <-news:
			if !ok {
				return
			}
			switch m := m.(type) {
			case *redis.Subscription:
				e.hear(true)
			case *redis.Message:
				e.wake(m.Payload)
			}
		}
	}
}

// look wakes a server for each list that has tasks, until ctx ends.
func (e *emptyQueues) look(ctx context.Context, looks *redisdb.Looks, key string) {
	for tasks := looks.For(key); tasks.Pause(ctx, lookEvery); {
		e.wake(key)
	}
}

// hear notes whether announcements arrive from now on. Nothing is known of the time before.
func (e *emptyQueues) hear(hears bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hears = hears
	for _, q := range e.known {
		q.changes, q.empty = q.changes+1, false
	}
	for _, p := range e.pools {
		p.wakeOne()
	}
}

// take answers the poll of a server for a task of a pending list. While all queues of the server are known to
// be empty it waits. The call also answers whether the list is empty after it.
func (e *emptyQueues) take(p *pollers, key string, call func() (cmd *redis.Cmd, last bool)) *redis.Cmd {
	for {
		now := time.Now()
		e.mu.Lock()
		if !e.isEmpty(key, now) {
			q := e.get(key)
			changes := q.changes
			q.asked = now // if several servers' waits end together, one asks
			e.mu.Unlock()
			cmd, last := call()
			e.took(p, key, now, changes, cmd, last)
			return cmd
		}
		if slices.ContainsFunc(p.keys, func(k string) bool { return !e.isEmpty(k, now) }) {
			e.mu.Unlock()
			return redis.NewCmdResult(nil, redis.Nil) // another queue must be asked
		}
		woken := make(chan struct{})
		p.waiting = append(p.waiting, woken)
		asked := e.get(key).asked
		e.mu.Unlock()
		if !e.await(p, woken, e.askEvery-now.Sub(asked)) {
			return redis.NewCmdResult(nil, redis.Nil)
		}
		time.Sleep(restAfter - time.Since(asked))
	}
}

// await waits for an announcement, or until Redis must be asked again. It reports false when the server
// stops.
func (e *emptyQueues) await(p *pollers, woken chan struct{}, left time.Duration) bool {
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-woken:
		return true
	case <-timer.C:
	case <-e.stopped:
	}
	e.mu.Lock()
	p.waiting = slices.DeleteFunc(p.waiting, func(w chan struct{}) bool { return w == woken })
	e.mu.Unlock()
	select {
	case <-e.stopped:
		return false
	default:
		return true
	}
}

// took notes Redis' answer to a poll that was made when the count of changes was changes. An announcement
// that arrived in between may be about a task that came after the answer. A second task in a row brings in
// one more server: there may be many.
func (e *emptyQueues) took(p *pollers, key string, asked time.Time, changes int, cmd *redis.Cmd, last bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	q := e.get(key)
	if !isNothing(cmd) && !last {
		q.empty = false
		if q.taken++; q.taken > 1 {
			p.wakeOne()
		}
		return
	}
	q.taken = 0
	q.empty, q.asked = changes == q.changes, asked
}

// isNothing reports whether a reply of Redis says that there are no tasks.
func isNothing(cmd *redis.Cmd) bool {
	if cmd.Err() != nil {
		return cmd.Err() == redis.Nil
	}
	n, ok := cmd.Val().(int64)
	return ok && n == 0
}
