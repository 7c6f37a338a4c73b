package limits

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/redisdb"
)

const (
	// lease is how long a connection counts unless it is renewed: the time after which those of a dead process
	// are free again.
	lease = 30 * time.Second
	// renewEvery leaves room for two renewals that fail.
	renewEvery = 10 * time.Second
	// releaseWithin bounds how long giving back may take, since whoever closes a connection waits for it. What
	// could not be given back runs out.
	releaseWithin = time.Second
)

// Full is the error of [Limits.Connect] when a scope has all the connections it may have.
type Full struct {
	Scope string
	Most  int // how many connections it may have
	after time.Duration
}

// Error says which scope is full.
func (f *Full) Error() string {
	return fmt.Sprintf("%s has all of its %d connections", f.Scope, f.Most)
}

// RetryAfter is when to ask again, at the earliest: between one and two seconds, not the same for all who
// wait.
func (f *Full) RetryAfter() time.Duration { return f.after }

// held is the connections of this process that are counted.
type held struct {
	process string
	count   atomic.Int64
	mu      sync.Mutex
	scopes  map[string]string // name to scope
}

func newHeld() *held { return &held{process: rand.Text()[:12], scopes: map[string]string{}} }

func (h *held) add(name, scope string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.scopes[name] = scope
}

func (h *held) remove(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.scopes, name)
}

// names lists the connections by scope.
func (h *held) names() map[string][]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	names := map[string][]string{}
	for name, scope := range h.scopes {
		names[scope] = append(names[scope], name)
	}
	return names
}

// gone lists those of names that were given back since.
func (h *held) gone(names map[string][]string) map[string][]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	gone := map[string][]string{}
	for scope, list := range names {
		for _, name := range list {
			if _, ok := h.scopes[name]; !ok {
				gone[scope] = append(gone[scope], name)
			}
		}
	}
	return gone
}

// Connect counts one more connection of a scope that may have so many in all processes together (below 1: any
// number, nothing is counted). Release gives it back and may be called more than once. When the scope is full
// the error is a [*Full]; when Redis is away it is of kind fault.Unavailable. A connection is counted for 30
// s, and as long as Run runs.
func (l *Limits) Connect(ctx context.Context, scope string, most int) (release func(), err error) {
	if most < 1 {
		return func() {}, nil
	}
	name := l.held.process + "." + strconv.FormatInt(l.held.count.Add(1), 36)
	ok, err := l.store.connect(ctx, scope, name, most)
	if err != nil {
		return nil, redisdb.Failed(err, "limits: count a connection of "+scope)
	}
	if !ok {
		l.metrics.full(scope)
		return nil, &Full{Scope: scope, Most: most, after: time.Second + mathrand.N(time.Second)}
	}
	l.held.add(name, scope)
	var once sync.Once
	return func() { once.Do(func() { l.release(ctx, scope, name) }) }, nil
}

// release stops renewing a lease, then gives it back. The connection has outlived the context it was asked
// for in.
func (l *Limits) release(ctx context.Context, scope, name string) {
	l.held.remove(name)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
	defer cancel()
	if err := l.store.disconnect(ctx, scope, name); err != nil {
		l.log.Warn("a connection could not be given back and counts until its lease ends", "scope", scope, "error",
			err)
	}
}

// Run renews the leases of this process' connections until ctx ends.
func (l *Limits) Run(ctx context.Context) error {
	tick := time.NewTicker(renewEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			l.renew(ctx)
		}
	}
}

// renew prolongs all leases. One that was given back meanwhile may have been counted again by that, and is
// given back again.
func (l *Limits) renew(ctx context.Context) {
	names := l.held.names()
	if len(names) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, renewEvery)
	defer cancel()
	if err := l.store.renew(ctx, names); err != nil && ctx.Err() == nil {
		l.log.Warn("the leases of connections could not be renewed", "error", err)
	}
	for scope, list := range l.held.gone(names) {
		if err := l.store.disconnect(ctx, scope, list...); err != nil && ctx.Err() == nil {
			l.log.Warn("a connection could not be given back and counts until its lease ends", "scope", scope, "error",
				err)
		}
	}
}
