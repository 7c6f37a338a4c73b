package apisend

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/postroom/postroom/smtpsend"
)

// mostSlots bounds the memory of a process. Beyond it slots that are not in use are forgotten.
const mostSlots = 10_000

// slots bound the requests that each target has under way.
type slots struct {
	mu  sync.Mutex
	all map[Target]*slot
}

// slot bounds one target's requests.
type slot struct {
	all, bulk *semaphore.Weighted
	users     int           // that wait or have a turn
	busy      int           // that have a turn
	idle      chan struct{} // closed when no one has one; nil if no one waits for that
	until     time.Time     // the provider's limit is used up until then
}

// of returns a target's slot, and the end of its pause. The caller gives it back by leave.
func (s *slots) of(t Target) (*slot, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.all[t]
	if k == nil {
		if len(s.all) >= mostSlots {
			for other, o := range s.all {
				if o.users == 0 {
					delete(s.all, other)
				}
			}
		}
		most := t.requests()
		k = &slot{all: semaphore.NewWeighted(int64(most)),
			bulk: semaphore.NewWeighted(int64(most - smtpsend.Reserved(most)))}
		s.all[t] = k
	}
	k.users++
	return k, k.until
}

func (s *slots) leave(k *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k.users--
}

// rests notes that a target takes no further request until a time.
func (s *slots) rests(t Target, until time.Time) {
	k, _ := s.of(t)
	defer s.leave(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if until.After(k.until) {
		k.until = until
	}
}

// idle returns a channel that is closed when the target has no request under way.
func (s *slots) idle(t Target) <-chan struct{} {
	k, _ := s.of(t)
	defer s.leave(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.idle == nil {
		k.idle = make(chan struct{})
	}
	idle := k.idle
	k.serve(0)
	return idle
}

// serve counts a request that begins (1) or ends (-1). The caller holds the lock.
func (k *slot) serve(n int) {
	k.busy += n
	if k.busy == 0 && k.idle != nil {
		close(k.idle)
		k.idle = nil
	}
}

// count counts a request that has its turn (1) or has had it (-1).
func (s *slots) count(k *slot, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k.serve(n)
}

// enter waits for a turn, at most for the patience of the message. Nothing was sent after an error.
func (s *Sender) enter(ctx context.Context, t Target, m smtpsend.Message) (leave func(),
	err *smtpsend.Error) {
	k, until := s.slots.of(t)
	if left := until.Sub(s.o.Now()); left > 0 {
		s.slots.leave(k)
		return nil, noTurn(errors.New("the provider's limit of requests is used up"), left)
	}
	wait, stop := ctx, context.CancelFunc(func() {})
	if m.Patience > 0 {
		wait, stop = context.WithTimeout(ctx, m.Patience)
	}
	defer stop()
	taken := []*semaphore.Weighted{k.all}
	if m.Bulk {
		taken = []*semaphore.Weighted{k.bulk, k.all}
	}
	release := func() {}
	for n, one := range taken {
		if one.Acquire(wait, 1) != nil {
			for _, before := range taken[:n] {
				before.Release(1)
			}
			s.slots.leave(k)
			if ctx.Err() != nil {
				return nil, s.unreached(ctx, sent{}, context.Cause(ctx))
			}
			return nil, noTurn(errAllBusy, 0)
		}
	}
	if s.o.Admit != nil && t.Shared != "" {
		var failed error
		if release, failed = s.o.Admit(ctx, t); failed != nil {
			err = noTurn(failed, 0)
		}
	}
	s.slots.count(k, 1)
	leave = func() {
		s.slots.count(k, -1)
		release()
		for _, one := range taken {
			one.Release(1)
		}
		s.slots.leave(k)
	}
	if err != nil {
		release = func() {}
		leave()
		return nil, err
	}
	return leave, nil
}

var errAllBusy = errors.New("all requests that may be under way are")

// noTurn is the error of a message that waited in vain for its turn.
func noTurn(why error, wait time.Duration) *smtpsend.Error {
	if asks, ok := errors.AsType[interface {
		error
		RetryAfter() time.Duration
	}](why); ok {
		wait = max(wait, asks.RetryAfter())
	}
	return &smtpsend.Error{Protocol: protocol, Phase: smtpsend.PhaseConnect, Verdict: smtpsend.Throttle,
		Scope: smtpsend.ScopeConnection, Err: fmt.Errorf("no turn: %w", why), RetryAfter: wait}
}
