package limits

import (
	"context"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
)

const (
	// length is the time that a connection counts unless it is renewed. So connections of a dead process expire.
	length = 30 * time.Second
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

// connection is one that is counted.
type connection struct{ scope, name string }

// Connect counts one more connection of a scope, which may have most of them in all processes together (below
// 1: any number, nothing is counted). release may be called more than once. If the scope is full, the error
// is a [*Full]; if Redis is unreachable, of kind fault.Unavailable. A connection counts for 30 s, and as long
// as Run runs.
func (l *Limits) Connect(ctx context.Context, scope string, most int) (release func(), err error) {
	if most < 1 {
		return func() {}, nil
	}
	c := connection{scope, l.process + "." + strconv.FormatInt(l.connected.Add(1), 36)}
	ok, err := l.store.connect(ctx, c, most)
	if err != nil {
		return nil, redisdb.Failed(err, "limits: count a connection of "+scope)
	}
	if !ok {
		l.metrics.full(scope)
		return nil, &Full{Scope: scope, Most: most, after: time.Second + mathrand.N(time.Second)}
	}
	_, drop := l.held.Hold(ctx, c)
	var once sync.Once
	return func() {
		once.Do(func() {
			drop()
			l.disconnect(ctx, c)
		})
	}, nil
}

// disconnect ends a lease. The context of Connect may have ended since.
func (l *Limits) disconnect(ctx context.Context, c connection) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
	defer cancel()
	if err := l.store.disconnect(ctx, c); err != nil {
		l.log.Warn("a connection could not be released and counts until its lease ends", "scope", c.scope, "error",
			err)
	}
}

// Run renews the leases of this process's connections until ctx ends. It returns nil.
func (l *Limits) Run(ctx context.Context) error {
	for redisdb.Pause(ctx, length/4) {
		l.held.Renew(ctx)
	}
	return nil
}

// renew extends leases. It may count a connection again that was released since, so it releases that again.
// It loses none: an open connection counts.
func (l *Limits) renew(ctx context.Context, all []connection) ([]connection, error) {
	err := l.store.renew(ctx, all)
	for _, c := range all {
		if !l.held.Holds(c) {
			l.disconnect(ctx, c)
		}
	}
	return nil, err
}
