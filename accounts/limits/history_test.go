package limits

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/postroom/postroom/internal/testredis"
)

// admitted is what went, and when.
type admitted struct {
	at time.Time
	n  int
}

// history is any sequence of messages and waits, in simulated time. Messages come back exactly at the given
// time, or up to late after.
type history struct {
	*bench
	scope   Scope
	late    time.Duration
	mixed   bool      // messages with fewer than four recipients are bulk mail
	waiting []arrival // by n: arrival.message is how many recipients it has
	went    []admitted
	lastAt  time.Time
	asks    int
}

// come lets a message ask, and notes the answer.
func (h *history) come(t *rapid.T, reservation Reservation, n int) {
	scope := h.scope
	scope.Bulk = h.mixed && n < 4
	a, err := h.Reserve(t.Context(), []Scope{scope}, n, reservation)
	if err != nil {
		t.Fatal(err)
	}
	h.asks++
	if a.OK {
		h.went = append(h.went, admitted{h.Now(), n})
		return
	}
	if !h.mixed && !a.At.After(h.lastAt) {
		t.Fatalf("reservation %v is not behind the last one, %v", a.At, h.lastAt)
	}
	h.lastAt = a.At
	h.waiting = append(h.waiting, arrival{a, n})
	slices.SortStableFunc(h.waiting, func(x, y arrival) int { return x.At.Compare(y.At) })
}

// pass lets time go by, and everybody whose time comes in the meantime.
func (h *history) pass(t *rapid.T, until time.Time) {
	for len(h.waiting) > 0 && !h.waiting[0].At.After(until) {
		next := h.waiting[0]
		h.waiting = h.waiting[1:]
		if next.At.After(h.Now()) {
			h.Set(next.At.Add(time.Duration(rapid.Int64Range(0, int64(h.late)).Draw(t, "late"))))
		}
		h.come(t, next.Reservation, next.message)
	}
	if until.After(h.Now()) {
		h.Set(until)
	}
}

// check adds up every stretch of the history.
func (h *history) check(t *rapid.T) {
	r := h.scope.Rate
	burst := float64(r.Burst)
	if burst == 0 {
		burst = max(1, r.PerSecond)
	}
	for i := range h.went {
		sum := 0.0
		for _, w := range h.went[i:] {
			sum += float64(w.n)
			took := w.at.Sub(h.went[i].at)
			owed := float64(w.n) // the last one may have more recipients than a bucket holds
			slack := took + 10*time.Millisecond + h.late
			if most := r.PerSecond*slack.Seconds() + max(burst, owed); r.PerSecond > 0 && sum > most+1e-3 {
				t.Fatalf("%g in %v, at most %g are allowed by %+v", sum, took, most, r)
			}
			for limit, window := range map[float64]time.Duration{r.PerMinute: time.Minute, r.PerDay: 24 * time.Hour} {
				if limit > 0 && took+h.late < window && sum > max(limit, owed)+1e-3 {
					t.Fatalf("%g in %v, at most %g are allowed by %+v", sum, took, limit, r)
				}
			}
		}
	}
}

// TestAnyHistory: no stretch of time sees more than rate × time + burst (or the limit, for minutes and days),
// whatever comes and when. Reservations are unique and in order. Each message asks at most twice, bulk mail
// three times.
func TestAnyHistory(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{0, 5 * time.Second} {
		t.Run(fmt.Sprint("late by ", late), func(t *testing.T) {
			t.Parallel()
			db, run := testredis.New(t), 0
			rapid.Check(t, func(rt *rapid.T) {
				run++
				h := &history{bench: on(t, db), late: late, mixed: rapid.Bool().Draw(rt, "mixed")}
				h.scope = Scope{Name: fmt.Sprint("account:", run), Rate: Rate{
					PerSecond: rapid.SampledFrom([]float64{0, 0.3, 1, 7.5, 40}).Draw(rt, "second"),
					PerMinute: rapid.SampledFrom([]float64{0, 0.5, 3, 100}).Draw(rt, "minute"),
					PerDay:    rapid.SampledFrom([]float64{0, 10, 500}).Draw(rt, "day"),
					Burst:     rapid.SampledFrom([]int{0, 1, 5}).Draw(rt, "burst"),
				}}
				if !h.scope.Rate.Bounded() {
					h.scope.Rate.PerSecond = 1
				}
				messages := rapid.IntRange(1, 60).Draw(rt, "messages")
				for range messages {
					wait := rapid.SampledFrom([]time.Duration{0, 0, 0, time.Millisecond, time.Second, 20 * time.Second,
						3 * time.Minute, 5 * time.Hour})
					h.pass(rt, h.Now().Add(wait.Draw(rt, "wait")))
					h.come(rt, "", rapid.SampledFrom([]int{1, 1, 1, 2, 4, 30}).Draw(rt, "n"))
				}
				for len(h.waiting) > 0 {
					h.pass(rt, h.waiting[0].At)
				}
				most := 2 * messages
				if h.mixed {
					most = 3 * messages
				}
				if len(h.went) != messages || h.asks > most {
					rt.Fatalf("%d of %d went, after asking %d times", len(h.went), messages, h.asks)
				}
				h.check(rt)
			})
		})
	}
}

// Bounded reports whether the rate bounds anything.
func (r Rate) Bounded() bool { return r.clean() != Rate{} }
