// Package lease shares work among processes: each piece of it is one process's at a time. A lease ends unless
// it is renewed, so that others continue if its process dies.
//
// It promises that
//
//   - all leases of a [Set] are renewed together, eight times in their length, until they are released: while
//     a process stops, the work under way keeps its leases;
//   - work whose lease another process has learns it: its context ends with [ErrLost];
//   - [Check] permits nothing final in the last [Margin] of a lease, whichever of a machine's two clocks is
//     wrong;
//   - a [Lock] has one holder, and only its holder makes it longer or releases it;
//   - what [Persist] writes is written once Redis answers again.
//
// It never keeps a process from writing: one that was stopped for longer than its lease doesn't know. So the
// scripts that write the results compare the fencing token, and Postroom's state machines stay in them.
//
// If Redis fails, leases end, and nothing else is lost: whoever asks Check writes nothing final, locks become
// free, and results wait in Persist.
package lease

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

// ErrLost means that a lease has ended, and that another process may have its work.
var ErrLost = errors.New("the lease ran out")

// Set is the leases of one kind that this process holds. L names one, with its fencing token if it has any.
type Set[L comparable] struct {
	length time.Duration
	log    *slog.Logger
	renew  func(ctx context.Context, held []L) (lost []L, err error)

	mu   sync.Mutex
	held map[L]context.CancelCauseFunc
}

// NewSet returns a set of leases with a length. renew extends leases, and returns the ones that others have.
func NewSet[L comparable](length time.Duration, log *slog.Logger,
	renew func(ctx context.Context, held []L) (lost []L, err error)) *Set[L] {
	return &Set[L]{length: length, log: log, renew: renew, held: map[L]context.CancelCauseFunc{}}
}

// Hold keeps a lease renewed until release is called. The context ends then, or with ErrLost.
func (s *Set[L]) Hold(ctx context.Context, one L) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[one] = cancel
	return ctx, func() { s.drop(one, nil) }
}

// Holds reports whether a lease is held.
func (s *Set[L]) Holds(one L) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[one] != nil
}

// renewals is how often a lease is renewed in its length. So a process may stand still for nearly all of it,
// and others wait for little more than that if it died.
const renewals = 8

// Run renews the leases until ctx has ended and all of them are released.
func (s *Set[L]) Run(ctx context.Context) {
	tick := time.NewTicker(s.length / renewals)
	defer tick.Stop()
	for done := ctx.Done(); done != nil || len(s.all()) > 0; {
		select {
		case <-tick.C:
			s.Renew(context.WithoutCancel(ctx))
		case <-done:
			done = nil
		}
	}
}

// Renew makes all leases longer.
func (s *Set[L]) Renew(ctx context.Context) {
	held := s.all()
	if len(held) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.length/2)
	defer cancel()
	lost, err := s.renew(ctx, held)
	if err != nil {
		s.log.WarnContext(ctx, "leases not renewed", "count", len(held), "error", err)
	}
	for _, one := range lost {
		s.drop(one, ErrLost)
	}
}

func (s *Set[L]) all() []L {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.held))
}

func (s *Set[L]) drop(one L, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.held[one]; cancel != nil {
		cancel(why)
		delete(s.held, one)
	}
}

// Margin is how long before the end of a lease nothing final begins: the error of the clocks.
const Margin = 200 * time.Millisecond

// Check returns ErrLost from Margin before the end of a lease on. end is a time of this process, with its
// monotonic clock. Both clocks are compared: one stands still while the machine sleeps, the other may be set.
func Check(now, end time.Time) error {
	end = end.Add(-Margin)
	if now.Before(end) && now.Round(0).Before(end.Round(0)) {
		return nil
	}
	return ErrLost
}

// Persist calls write again while Redis is unavailable, with pauses of 50 ms to a second, until most has
// passed or ctx ends. It returns the last error. It logs one line with what.
func Persist(ctx context.Context, log *slog.Logger, what string, most time.Duration,
	write func() error) error {
	began := time.Now()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := write()
		away := redisdb.Unavailable(err) || fault.Is(err, fault.Unavailable)
		if !away || time.Since(began)+pause > most {
			return err
		}
		if pause == 50*time.Millisecond {
			log.WarnContext(ctx, "not recorded yet; Redis is unavailable", "what", what, "error", err)
		}
		if !redisdb.Pause(ctx, pause) {
			return err
		}
	}
}
