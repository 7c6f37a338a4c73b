package redisdb

import (
	"context"
	"sync"
)

// groupMost is how many calls of a Group go together at most.
const groupMost = 64

// Group combines calls that wait at the same time into one. While a call for a key is under way, others
// gather; then they go as the next one, so each of them begins after it was made. If no call is under way, a
// call goes immediately: nothing waits when there is little to do. Calls don't leave a group: a call
// continues when the context of its caller ends. A Group is safe for concurrent use.
type Group[K comparable, Q, A any] struct {
	send func(ctx context.Context, key K, all []Q) ([]A, error)

	mu      sync.Mutex
	waiting map[K][]*grouped[Q, A] // a key is there while a call is under way
}

// grouped is a call of a group.
type grouped[Q, A any] struct {
	ask    Q
	answer A
	err    error
	woken  chan bool // true if it was answered, false if it makes the next call
}

// NewGroup returns a Group. send makes the calls: it answers each of all, in order, or fails for all.
func NewGroup[K comparable, Q, A any](send func(ctx context.Context, key K, all []Q) ([]A, error)) (
	_ *Group[K, Q, A]) {
	return &Group[K, Q, A]{send: send, waiting: map[K][]*grouped[Q, A]{}}
}

// Do makes a call, alone or with others.
func (g *Group[K, Q, A]) Do(ctx context.Context, key K, ask Q) (A, error) {
	mine := &grouped[Q, A]{ask: ask, woken: make(chan bool, 1)}
	g.mu.Lock()
	waiting, underWay := g.waiting[key]
	g.waiting[key] = append(waiting, mine)
	g.mu.Unlock()
	if underWay && <-mine.woken {
		return mine.answer, mine.err
	}
	all := g.next(key)
	asks := make([]Q, len(all))
	for i, one := range all {
		asks[i] = one.ask
	}
	answers, err := g.send(context.WithoutCancel(ctx), key, asks)
	g.release(key)
	for i, one := range all {
		if one.err = err; err == nil {
			one.answer = answers[i]
		}
		if one != mine {
			one.woken <- true
		}
	}
	return mine.answer, mine.err
}

// next takes the waiting calls. The caller's is the first of them.
func (g *Group[K, Q, A]) next(key K) []*grouped[Q, A] {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.waiting[key]
	n := min(len(all), groupMost)
	g.waiting[key] = append([]*grouped[Q, A](nil), all[n:]...)
	return all[:n]
}

// release lets the first waiting call make the next call.
func (g *Group[K, Q, A]) release(key K) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if waiting := g.waiting[key]; len(waiting) > 0 {
		waiting[0].woken <- false
		return
	}
	delete(g.waiting, key)
}
