package lease_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/lease"
	"github.com/postroom/postroom/internal/testredis"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

// renewals records what a set renews.
type renewals struct {
	rounds [][]string
	lost   []string
	err    error
}

func (r *renewals) renew(_ context.Context, held []string) ([]string, error) {
	slices.Sort(held)
	r.rounds = append(r.rounds, held)
	return r.lost, r.err
}

func (r *renewals) set(log *bytes.Buffer) *lease.Set[string] {
	return lease.NewSet(8*time.Second, slog.New(slog.NewTextHandler(log, nil)), r.renew)
}

// TestLeasesAreRenewedTogetherUntilTheWorkEnds: eight times in their length, even when the process stops.
func TestLeasesAreRenewedTogetherUntilTheWorkEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &renewals{}
		s := r.set(&bytes.Buffer{})
		ctx, stop := context.WithCancel(t.Context())
		ended := false
		go func() {
			s.Run(ctx)
			ended = true
		}()
		pass := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		pass(time.Minute)
		if len(r.rounds) > 0 {
			t.Errorf("%d renewals of nothing", len(r.rounds))
		}
		_, releaseA := s.Hold(ctx, "a")
		b, releaseB := s.Hold(context.WithoutCancel(ctx), "b")
		pass(1250 * time.Millisecond)
		releaseA()
		stop()
		pass(4 * time.Second)
		if want := [][]string{{"a", "b"}, {"b"}, {"b"}, {"b"}, {"b"}}; fmt.Sprint(r.rounds) != fmt.Sprint(want) {
			t.Errorf("renewed %v, want %v", r.rounds, want)
		}
		if ended || b.Err() != nil || !s.Holds("b") || s.Holds("a") {
			t.Errorf("the work under way lost its lease as its process stops: %t, %v", ended, b.Err())
		}
		releaseB()
		pass(2 * time.Second)
		if !ended || context.Cause(b) != context.Canceled {
			t.Errorf("after the last release: ended %t, cause %v", ended, context.Cause(b))
		}
	})
}

// TestWorkLearnsThatItsLeaseIsLost, and only this work; the lease is not renewed any more.
func TestWorkLearnsThatItsLeaseIsLost(t *testing.T) {
	var log bytes.Buffer
	r := &renewals{lost: []string{"a", "another's"}, err: errors.New("half of Redis is away")}
	s := r.set(&log)
	a, releaseA := s.Hold(t.Context(), "a")
	b, releaseB := s.Hold(t.Context(), "b")
	defer releaseB()
	s.Renew(t.Context())
	if !errors.Is(context.Cause(a), lease.ErrLost) || b.Err() != nil || s.Holds("a") || !s.Holds("b") {
		t.Errorf("a %v, b %v", context.Cause(a), b.Err())
	}
	releaseA()
	if !errors.Is(context.Cause(a), lease.ErrLost) {
		t.Errorf("after the release it ended by %v", context.Cause(a))
	}
	if !strings.Contains(log.String(), "leases not renewed") || !strings.Contains(log.String(), "count=2") {
		t.Errorf("log: %s", log.String())
	}
}

// TestNothingFinalAtTheEndOfALease: 200 ms before it, by either clock.
func TestNothingFinalAtTheEndOfALease(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for left, want := range map[time.Duration]error{
		time.Second: nil, 201 * time.Millisecond: nil, 200 * time.Millisecond: lease.ErrLost,
		-time.Hour: lease.ErrLost,
	} {
		if err := lease.Check(now, now.Add(left)); !errors.Is(err, want) {
			t.Errorf("%s before the end: %v, want %v", left, err, want)
		}
	}
	if err := lease.Check(now, time.Time{}); err == nil {
		t.Error("a lease that was never looked at permits something")
	}
}

// TestWritesWaitForRedis: one is repeated while Redis is unavailable, within its time, and the log has one
// line.
func TestWritesWaitForRedis(t *testing.T) {
	away := fault.New(fault.Unavailable, "RedisAway", "away")
	wrong := errors.New("WRONGTYPE")
	times := func(n int) []error { return slices.Repeat([]error{away}, n) }
	for name, row := range map[string]struct {
		fails []error       // the first calls' errors
		stop  time.Duration // when the context ends; 0 means never
		want  error
		calls int
		took  time.Duration
		lines int
	}{
		"it answers":    {calls: 1},
		"it comes back": {fails: times(6), calls: 7, took: 2550 * time.Millisecond, lines: 1},
		"it does not answer in time": {fails: []error{context.DeadlineExceeded}, calls: 2,
			took: 50 * time.Millisecond, lines: 1},
		"it stays away": {fails: times(99), want: away, calls: 14, took: 9550 * time.Millisecond, lines: 1},
		"it refuses": {fails: []error{away, wrong}, want: wrong, calls: 2, took: 50 * time.Millisecond,
			lines: 1},
		"the process stops": {fails: times(99), stop: time.Second, want: away, calls: 5, took: time.Second,
			lines: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if row.stop > 0 {
					time.AfterFunc(row.stop, cancel)
				}
				var log bytes.Buffer
				began, calls := time.Now(), 0
				err := lease.Persist(ctx, slog.New(slog.NewTextHandler(&log, nil)), "a result", 10*time.Second,
					func() error {
						if calls++; calls > len(row.fails) {
							return nil
						}
						return row.fails[calls-1]
					})
				if !errors.Is(err, row.want) || calls != row.calls || time.Since(began) != row.took {
					t.Errorf("%v after %d calls and %s, want %v, %d, %s", err, calls, time.Since(began), row.want,
						row.calls, row.took)
				}
				if lines := strings.Count(log.String(), "a result"); lines != row.lines {
					t.Errorf("%d lines: %s", lines, log.String())
				}
			})
		})
	}
}

// TestALockHasOneHolder: it renews the lock, and neither takes nor releases another's.
func TestALockHasOneHolder(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	first := lease.Lock{Client: db.Client(), Key: "postroom:{0}:lock", Holder: "first", Length: time.Minute}
	second := first
	second.Holder, second.Length = "second", time.Hour
	claims := func(who string, l lease.Lock, want bool) {
		t.Helper()
		if got, err := l.Claim(t.Context()); got != want || err != nil {
			t.Errorf("%s has it: %t, %v; want %t", who, got, err, want)
		}
	}
	claims("the first", first, true)
	claims("the first, again", first, true)
	claims("the second", second, false)
	if err := second.Release(t.Context()); err != nil {
		t.Error(err)
	}
	claims("the second, after its release", second, false)
	if left := db.Client().PTTL(t.Context(), first.Key).Val(); left <= 0 || left > time.Minute {
		t.Errorf("it ends in %s", left)
	}
	stopping, stop := context.WithCancel(t.Context())
	stop()
	if err := first.Release(stopping); err != nil {
		t.Error(err)
	}
	claims("the second, after the first's release", second, true)
	db.Client().PExpire(t.Context(), first.Key, -time.Second) // its time is over
	claims("the first, after the second's end", first, true)
}
