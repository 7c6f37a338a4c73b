package limits

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

// TestWaits asks for recipients of one scope again and again and looks at how long each has to wait.
func TestWaits(t *testing.T) {
	t.Parallel()
	type ask struct {
		after time.Duration // the ask before
		n     int
		wait  time.Duration
	}
	const s, ms = time.Second, time.Millisecond
	for _, row := range []struct {
		name string
		rate Rate
		asks []ask
	}{
		{"a bucket starts full, then refills steadily", Rate{PerSecond: 2, Burst: 3},
			[]ask{{0, 1, 0}, {0, 1, 0}, {0, 1, 0}, {0, 1, 500 * ms}, {0, 1, s}, {0, 2, 2 * s}}},
		{"without a burst, what a second allows", Rate{PerSecond: 2}, []ask{{0, 2, 0}, {0, 1, 500 * ms}}},
		{"less than one a second", Rate{PerSecond: 0.25}, []ask{{0, 1, 0}, {0, 1, 4 * s}, {0, 1, 8 * s}}},
		{"fractions of a token come back too", Rate{PerSecond: 0.5, Burst: 1},
			[]ask{{0, 1, 0}, {s, 1, s}, {s, 1, 2 * s}}},
		{"an idle bucket fills, but not beyond its burst", Rate{PerSecond: 1, Burst: 2},
			[]ask{{0, 2, 0}, {time.Hour, 2, 0}, {0, 1, s}}},
		{"nobody is sent away for a few milliseconds", Rate{PerSecond: 200, Burst: 1},
			[]ask{{0, 1, 0}, {0, 1, 0}, {0, 1, 0}, {0, 1, 15 * ms}}},
		{"more than the bucket holds goes when it is full, and then owes", Rate{PerSecond: 1, Burst: 2},
			[]ask{{0, 10, 0}, {0, 1, 9 * s}, {0, 10, 11 * s}, {0, 1, 20 * s}}},
		{"more than the bucket holds waits until it is full", Rate{PerSecond: 1, Burst: 2},
			[]ask{{0, 1, 0}, {0, 10, s}, {0, 1, 10 * s}}},
		// the first second of a minute comes back during the 62nd: from 61.0 on when it began at a full second,
		// here at .678
		{"a minute gives back what was taken one window before", Rate{PerMinute: 4},
			[]ask{{0, 4, 0}, {0, 1, 60572 * ms}, {0, 1, 60822 * ms}, {0, 2, 61322 * ms}, {0, 1, 121822 * ms}}},
		{"half a recipient a minute", Rate{PerMinute: 0.5}, []ask{{0, 1, 0}, {0, 1, 121322 * ms}}},
		{"more than a minute allows is owed", Rate{PerMinute: 2}, []ask{{0, 6, 0}, {0, 1, 180822 * ms}}},
		// 3:04:05.678 lies in the quarter from 3:00, which begins to come back a day after it ended
		{"a day", Rate{PerDay: 100},
			[]ask{{0, 100, 0}, {12 * time.Hour, 1, 12*time.Hour + 10*time.Minute + 54*s + 322*ms + 9*s}}},
		{"all rates of a scope must have room", Rate{PerSecond: 1, PerMinute: 3},
			[]ask{{0, 1, 0}, {0, 1, s}, {0, 1, 2 * s}, {0, 1, 61322 * ms}}},
		{"what waits for the minute costs nothing of the second meanwhile",
			Rate{PerSecond: 1, Burst: 1, PerMinute: 1},
			[]ask{{0, 1, 0}, {0, 1, 61322 * ms}, {0, 1, 123322 * ms}}},
		{"no recipient counts as one", Rate{PerSecond: 1}, []ask{{0, 0, 0}, {0, -1, s}}},
		{"no rate, no wait", Rate{PerSecond: -1, Burst: 5}, []ask{{0, 1000, 0}, {0, 1000, 0}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var got []ask
			for _, a := range row.asks {
				b.Advance(a.after)
				a.wait = b.wait(t, a.n, account(row.rate)).Round(ms)
				got = append(got, a)
			}
			if diff := cmp.Diff(row.asks, got, cmp.AllowUnexported(ask{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestReservation follows one message that has to wait.
func TestReservation(t *testing.T) {
	t.Parallel()
	rate := Rate{PerSecond: 0.1, Burst: 1}
	for _, row := range []struct {
		name   string
		come   time.Duration // after the reservation
		change Rate          // the rate by then; zero: as before
		wait   time.Duration // 0: let go
	}{
		{name: "in time", come: 0},
		{name: "a little late", come: 9 * time.Second},
		{name: "very late, alone", come: 59 * time.Minute},
		{name: "too early", come: -time.Second, wait: time.Second},
		{name: "hardly too early", come: -5 * time.Millisecond},
		{name: "too early, but there is no limit any more", come: -time.Second, change: Rate{PerSecond: -1}},
		{name: "too early, but the limit is higher now", come: -9 * time.Second,
			change: Rate{PerSecond: 10, Burst: 1}, wait: 100 * time.Millisecond},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.take(t, "", 1, account(rate))
			a := b.take(t, "", 1, account(rate))
			if want := start.Add(10 * time.Second); !a.At.Equal(want) || a.Reason != "account x: 0.1 a second" {
				t.Fatalf("told to wait until %v for %q, want %v", a.At, a.Reason, want)
			}
			b.Set(a.At.Add(row.come))
			if row.change == (Rate{}) {
				row.change = rate
			}
			again := b.take(t, a.Reservation, 1, account(row.change))
			if row.wait == 0 {
				if !again.OK {
					t.Errorf("has to wait again: %+v", again)
				}
				return
			}
			if want := b.Now().Add(row.wait); again.At.Sub(want).Abs() > time.Millisecond {
				t.Errorf("told to wait until %v, want %v", again.At, want)
			}
			if row.change == rate && (again.Reservation != a.Reservation || again.Reason != a.Reason) {
				t.Errorf("came too early with %+v, left with %+v", a, again)
			}
		})
	}
}

// TestReservationLapses: a message that comes an hour late asks again, and so pays again.
func TestReservationLapses(t *testing.T) {
	t.Parallel()
	b, x := setup(t), account(Rate{PerSecond: 0.1, Burst: 1})
	b.take(t, "", 1, x)
	a := b.take(t, "", 1, x)
	b.Set(a.At.Add(time.Hour))
	b.take(t, "", 1, x)
	if again := b.take(t, a.Reservation, 1, x); again.OK {
		t.Error("a reservation an hour old went beside the one whose turn it was")
	}
}

// TestLowerRateVoidsReservations: those who reserved at the old rate would come too fast.
func TestLowerRateVoidsReservations(t *testing.T) {
	t.Parallel()
	b, before, after := setup(t), account(Rate{PerSecond: 1, Burst: 1}), account(Rate{PerSecond: 0.1, Burst: 1})
	b.take(t, "", 1, before)
	var answers []Answer
	for range 4 {
		answers = append(answers, b.take(t, "", 1, before))
	}
	for i, want := range []time.Duration{0, 10 * time.Second, 20 * time.Second, 30 * time.Second} {
		b.Set(answers[i].At)
		a := b.take(t, answers[i].Reservation, 1, after)
		if at := answers[0].At.Add(want); a.OK != (want == 0) || !a.OK && !a.At.Equal(at) {
			t.Errorf("message %d goes at %v, want %v", i, a.At, at)
		}
	}
}

// TestHigherRateHelpsAtOnce: what others have reserved at the old rate is in nobody's way.
func TestHigherRateHelpsAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 3 {
		b.take(t, "", 1, account(Rate{PerMinute: 2}))
	}
	if w := b.wait(t, 1, account(Rate{PerMinute: 3})); w > 20*time.Second {
		t.Errorf("waits %v", w)
	}
}

// TestStateStaysSmall: a long line is a few numbers, not a list of all who wait.
func TestStateStaysSmall(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 3000 {
		b.take(t, "", 1, account(Rate{PerSecond: 1, PerMinute: 50, PerDay: 1500}))
	}
	size := 0
	for name, value := range b.db.Client().HGetAll(t.Context(), scopeKey("account:x")).Val() {
		size += len(name) + len(value)
	}
	if size > 3000 {
		t.Errorf("a line of 3,000 takes %d bytes", size)
	}
}

// TestHeapOfLateOnes: after an outage all waiting messages come together. They must not all go together.
func TestHeapOfLateOnes(t *testing.T) {
	t.Parallel()
	b, x := setup(t), account(Rate{PerSecond: 1, Burst: 1})
	var reservations []Reservation
	for range 200 {
		reservations = append(reservations, b.take(t, "", 1, x).Reservation)
	}
	b.Advance(150 * time.Second)
	gone, last := 0, start.Add(199*time.Second)
	for _, s := range reservations[1:150] {
		a := b.take(t, s, 1, x)
		if a.OK {
			gone++
			continue
		}
		if !a.At.After(last) {
			t.Fatalf("a late one got %v, which is not behind %v", a.At, last)
		}
		last = a.At
	}
	if gone != 11 { // the burst, and ten seconds' worth
		t.Errorf("%d of 149 late ones went at once, want 11", gone)
	}
}

// TestOneLateDoesNotDoubleReservations: what one late message with many recipients owes moved the next
// reservation, and all that asked then got that one.
func TestOneLateDoesNotDoubleReservations(t *testing.T) {
	t.Parallel()
	for _, rate := range []Rate{{PerSecond: 1, Burst: 5}, {PerMinute: 5}} {
		b, x := setup(t), account(rate)
		b.take(t, "", 1, x)
		big := b.take(t, "", 30, x)
		b.Set(big.At.Add(5 * time.Second))
		if a := b.take(t, big.Reservation, 30, x); !a.OK {
			t.Fatalf("%+v: it has to wait again: %+v", rate, a)
		}
		one, other := b.take(t, "", 1, x), b.take(t, "", 1, x)
		if !other.At.After(one.At) {
			t.Errorf("%+v: one got %v, the next %v", rate, one.At, other.At)
		}
		// 30 are owed from now on, not from when they should have gone
		if wait := one.At.Sub(b.Now()); wait < 26*time.Second {
			t.Errorf("%+v: the next waits only %v", rate, wait)
		}
	}
}

// TestScopesInOrder: a message waits once for each full scope, pays each once, and reserves only one at a
// time.
func TestScopesInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	x, g := account(Rate{PerSecond: 0.1, Burst: 1}), gateway(Rate{PerSecond: 0.01, Burst: 1})
	if w := b.wait(t, 1, x, g); w != 0 {
		t.Fatalf("the first waits %v", w)
	}
	first := b.take(t, "", 1, x, g)
	if want := start.Add(10 * time.Second); !first.At.Equal(want) {
		t.Fatalf("waits for the account until %v, want %v", first.At, want)
	}
	for range 5 { // the account's long queue reserves nothing of the gateway
		b.take(t, "", 1, x, g)
	}
	b.Set(first.At)
	second := b.take(t, first.Reservation, 1, x, g)
	if want := start.Add(100 * time.Second); !second.At.Equal(want) ||
		second.Reason != "gateway g: 0.01 a second" {
		t.Fatalf("then waits until %v for %q, want %v for the gateway", second.At, second.Reason, want)
	}
	b.Set(second.At)
	if third := b.take(t, second.Reservation, 1, x, g); !third.OK {
		t.Fatalf("waits a third time: %+v", third)
	}
	if w := b.wait(t, 1, x); w != 0 { // its six reservations are over at 70 s, and passing cost nothing more
		t.Errorf("the account was charged again: the next one waits %v", w)
	}
}

// TestReservationsAtSeveralGateways: a message that waits at one gateway may wait at another too, and pays
// its account once.
func TestReservationsAtSeveralGateways(t *testing.T) {
	t.Parallel()
	b, rate := setup(t), Rate{PerSecond: 0.1, Burst: 1}
	x, g, h := account(Rate{PerDay: 2}), gateway(rate), Scope{Name: "gateway:h.2", Rate: rate}
	b.take(t, "", 1, g)
	b.take(t, "", 1, h)
	a := b.take(t, "", 1, x, g)
	a = b.take(t, a.Reservation, 1, x, h)
	b.Set(a.At)
	if a := b.take(t, a.Reservation, 1, x, g); !a.OK {
		t.Errorf("the first gateway forgot: %+v", a)
	}
	if w := b.wait(t, 1, x); w != 0 {
		t.Errorf("the account was charged %v for one message", w)
	}
}

// TestBulkLeavesAFifth: however much bulk mail has reserved, other mail goes at once as long as a fifth of
// the rate is enough for it.
func TestBulkLeavesAFifth(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		rate       Rate
		bulk, free int // that may go immediately
		reason     string
	}{
		{Rate{PerSecond: 10}, 8, 2, "account x: 8 a second for bulk mail"},
		{Rate{PerMinute: 60}, 48, 12, "account x: 48 a minute for bulk mail"},
		{Rate{PerDay: 35}, 28, 7, "account x: 28 a day for bulk mail"},
		{Rate{PerSecond: 1, Burst: 10}, 8, 2, "account x: 0.8 a second for bulk mail"},
		{Rate{PerSecond: 1}, 1, 0, "account x: 0.8 a second for bulk mail"}, // nothing is left of one
	} {
		b, other := setup(t), account(row.rate)
		bulk := other
		bulk.Bulk = true
		var waiting []Answer
		went := 0
		for range 100 {
			if a := b.take(t, "", 1, bulk, gateway(Rate{})); a.OK {
				went++
			} else if waiting = append(waiting, a); a.Reason != row.reason {
				t.Errorf("%+v: waits for %q", row.rate, a.Reason)
			}
		}
		free := 0
		for b.wait(t, 1, other) == 0 {
			free++
		}
		if went != row.bulk || free != row.free {
			t.Errorf("%+v: %d of bulk mail and %d others went at once", row.rate, went, free)
		}
		for i, asks := range b.drain(t, waiting, bulk, gateway(Rate{})) {
			if asks > 2 {
				t.Errorf("%+v: message %d asked %d times more", row.rate, i, asks)
			}
		}
	}
}

// TestReasonsAreReadable: no exponent, and no endless fraction of four fifths.
func TestReasonsAreReadable(t *testing.T) {
	t.Parallel()
	for rate, want := range map[Rate]string{
		{PerDay: 2_500_000}: "account x: 2000000 a day for bulk mail",
		{PerMinute: 1. / 3}: "account x: 0.267 a minute for bulk mail",
	} {
		code := byDay
		if rate.PerMinute > 0 {
			code = byMinute
		}
		if got := account(rate).forBulk().reason(code); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestOddReservations: unreadable text counts as no reservation.
func TestOddReservations(t *testing.T) {
	t.Parallel()
	for _, s := range []Reservation{"x", "b.1.2", "b.-1.5.s.account:x", "b.zzzzzzzzzzzzzzzzz.0.s.account:x",
		"b.1.!.s.account:x", " ", "p.0.0..account:x"} {
		b, x := setup(t), account(Rate{PerSecond: 1})
		b.take(t, "", 1, x)
		if a := b.take(t, s, 1, x); a.OK {
			t.Errorf("%q opened the way", s)
		}
	}
}

func TestNamesThatCannotBe(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, name := range []string{"", "account:a b"} {
		if _, err := b.Reserve(t.Context(), []Scope{{Name: name}}, 1, ""); err == nil {
			t.Errorf("%q was taken for a scope", name)
		}
	}
}

// TestTwoProcesses share one bucket, by Redis' clock, and no one gets a place twice.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	url := testredis.URL(t)
	x, answers := account(Rate{PerMinute: 10}), make(chan Answer, 80)
	var all sync.WaitGroup
	for range 2 {
		l, err := New(testredis.Connect(t, redisdb.Options{URL: url}), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 8 {
			all.Go(func() {
				for range 5 {
					a, err := l.Reserve(t.Context(), []Scope{x}, 1, "")
					if err != nil {
						t.Error(err)
					}
					answers <- a
				}
			})
		}
	}
	all.Wait()
	close(answers)
	went, entries := 0, map[time.Time]bool{}
	for a := range answers {
		if a.OK {
			went++
			continue
		}
		if wait := time.Until(a.At); wait > 9*time.Minute || wait < 30*time.Second {
			t.Errorf("waits %v for a minute", wait)
		}
		entries[a.At] = true
	}
	if went != 10 || len(entries) != 70 {
		t.Errorf("%d went at once, and the others got %d entries, want 10 and 70", went, len(entries))
	}
}

// TestCommandsAreFew sends a thousand messages through two full scopes: each costs one command when it asks,
// and it asks at most three times.
func TestCommandsAreFew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	scopes := []Scope{account(Rate{PerSecond: 5, PerDay: 400}), gateway(Rate{PerSecond: 4, PerMinute: 100})}
	b.take(t, "", 1, scopes...) // the script is known from here on
	sent := testredis.CountCommands(b.db)
	asks := b.drain(t, make([]Answer, 1000), scopes...)
	if most := slices.Max(asks); most > 3 {
		t.Errorf("a message has asked %d times", most)
	}
	if waited := b.Now().Sub(start); waited < 48*time.Hour {
		t.Errorf("1,000 at 400 a day were through after %v", waited)
	}
	if n := sent.Sent(); n > 3000 {
		t.Errorf("1,000 messages cost %d commands", n)
	}
}

// TestRedisAway: callers get an answer immediately, in a form they understand.
func TestRedisAway(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t)
	l, err := New(testredis.Connect(t, redisdb.Options{URL: server.URL()}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	server.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for name, call := range map[string]func() error{
		"rated": func() error {
			_, err := l.Reserve(ctx, []Scope{account(Rate{PerSecond: 1})}, 1,
				"")
			return err
		},
		"unrated":   func() error { _, err := l.Reserve(ctx, []Scope{account(Rate{})}, 1, ""); return err },
		"throttled": func() error { return l.Throttled(ctx, "account:x", 0) },
		"state":     func() error { _, err := l.State(ctx, "account:x"); return err },
		"connect":   func() error { _, err := l.Connect(ctx, "account:x", 1); return err },
	} {
		if err := call(); !redisdb.Unavailable(err) || !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStateExpires: the hash of an idle scope goes, but not before it has ceased to matter.
func TestStateExpires(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		rate  Rate
		least time.Duration
	}{{Rate{PerSecond: 1}, time.Hour}, {Rate{PerMinute: 1}, time.Hour + time.Minute}, {Rate{PerDay: 1},
		25 * time.Hour}} {
		b := setup(t)
		b.take(t, "", 1, account(row.rate))
		ttl := b.db.Client().PTTL(t.Context(), "postroom:{0}:limit:account:x").Val()
		if ttl < row.least || ttl > row.least+time.Hour {
			t.Errorf("%+v: lives for %v, want about %v", row.rate, ttl, row.least)
		}
	}
}

// BenchmarkReserve shows what asking costs, and how many commands a message costs in all, waits included.
func BenchmarkReserve(b *testing.B) {
	for _, row := range []struct {
		name   string
		scopes []Scope
	}{
		{"unbounded", []Scope{account(Rate{}), gateway(Rate{})}},
		{"room", []Scope{account(Rate{PerSecond: 1e6}), gateway(Rate{PerSecond: 1e6})}},
		{"full", []Scope{account(Rate{PerSecond: 100, PerMinute: 3000, PerDay: 1e6}),
			gateway(Rate{PerSecond: 80})}},
	} {
		b.Run(row.name, func(b *testing.B) {
			bench := setup(b)
			sent := testredis.CountCommands(bench.db)
			var reservations []Answer
			for b.Loop() {
				reservations = append(reservations, bench.take(b, "", 1, row.scopes...))
			}
			messages := len(reservations)
			bench.drain(b, reservations, row.scopes...)
			b.ReportMetric(float64(sent.Sent())/float64(messages), "commands/message")
			b.ReportMetric(bench.Now().Sub(start).Seconds()/float64(messages), "simulated-s/message")
		})
	}
}

func ExampleLimits_Reserve() {
	ctx := context.Background()
	db, err := redisdb.Open(ctx, redisdb.Options{Dir: "data"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	l, err := New(db, Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	scopes := []Scope{{Name: "account:shop", Rate: Rate{PerMinute: 30}},
		{Name: "gateway:relay", Rate: Rate{PerSecond: 5, Burst: 20}}}
	answer, err := l.Reserve(ctx, scopes, 1, "")
	if err == nil && !answer.OK {
		fmt.Println("come back at", answer.At, "with", answer.Reservation, "because of", answer.Reason)
	}
}
