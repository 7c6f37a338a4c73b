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

	"github.com/postroom/postroom/internal/redisdb"
)

const (
	// lease is the time that a connection counts unless it is renewed. So connections of a dead process expire.
	lease = 30 * time.Second
	// renewEvery allows two renewals to fail.
	renewEvery = 10 * time.Second
	// releaseWithin bounds the time of a release, because closing a connection waits for it. A connection that
	// could not be released expires.
	releaseWithin = time.Second
)

// Full is the error of [Limits.Connect] if a scope has all of its connections.
type Full struct {
	Scope string
	Most  int // connections it may have
	after time.Duration
}

// Error names the scope.
func (f *Full) Error() string {
	return fmt.Sprintf("%s has all of its %d connections", f.Scope, f.Most)
}

// RetryAfter returns the time to wait before the next call: one to two seconds, random, so that callers do
// not come back together.
func (f *Full) RetryAfter() time.Duration { return f.after }

// held is the counted connections of this process.
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

// names returns the connections by scope.
func (h *held) names() map[string][]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	names := map[string][]string{}
	for name, scope := range h.scopes {
		names[scope] = append(names[scope], name)
	}
	return names
}

// gone returns those of names that were released since.
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

// Connect counts one more connection of a scope, which may have most of them in all processes together (below
// 1: any number, nothing is counted). release may be called more than once. If the scope is full, the error
// is a [*Full]; if Redis is unreachable, of kind fault.Unavailable. A connection counts for 30 s, and as long
// as Run runs.
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

// release stops renewing a lease, then removes it. The context of Connect may have ended since.
func (l *Limits) release(ctx context.Context, scope, name string) {
	l.held.remove(name)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
	defer cancel()
	if err := l.store.disconnect(ctx, scope, name); err != nil {
		l.log.Warn("a connection could not be released and counts until its lease ends", "scope", scope, "error",
			err)
	}
}

// Run renews the leases of this process's connections until ctx ends. It returns nil.
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

// renew renews all leases. This may count a connection again that was released meanwhile, so it is released
// again.
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
			l.log.Warn("a connection could not be released and counts until its lease ends", "scope", scope, "error",
				err)
		}
	}
}
