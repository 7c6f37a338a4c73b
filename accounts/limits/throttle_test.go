package limits

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/postroom/postroom/internal/testredis"
)

func (b *bench) slowDown(t testing.TB, scope string, retryAfter time.Duration) {
	t.Helper()
	if err := b.Throttled(t.Context(), scope, retryAfter); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) state(t testing.TB, scope string) State {
	t.Helper()
	s, err := b.State(t.Context(), scope)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPauses reports throttling again and again and looks at how long the pauses are.
func TestPauses(t *testing.T) {
	t.Parallel()
	type throttle struct {
		after, asked time.Duration // after the one before; what the relay asked for
		pause        time.Duration // what is left of the pause then
	}
	const m = time.Minute
	for _, row := range []struct {
		name string
		says []throttle
	}{
		{"without a time, pauses double up to half an hour",
			[]throttle{{0, 0, m}, {m, 0, 2 * m}, {3 * m, 0, 4 * m}, {5 * m, 0, 8 * m}, {9 * m, 0, 16 * m},
				{17 * m, 0, 30 * m}, {31 * m, 0, 30 * m}}},
		{"messages that were under way together are one pause", []throttle{{0, 0, m}, {0, 0, m},
			{time.Second, 0, 59 * time.Second}, {m, 0, 2 * m}}},
		{"the relay's time holds", []throttle{{0, 7 * m, 7 * m}}},
		{"a later time prolongs a pause, an earlier one does not",
			[]throttle{{0, 5 * m, 5 * m}, {m, 10 * m, 10 * m}, {m, m, 9 * m}}},
		{"nobody is told to wait for more than a day", []throttle{{0, 100 * 24 * time.Hour, 24 * time.Hour}}},
		{"a negative time is none", []throttle{{0, -m, m}}},
		{"a scope that has recovered starts over", []throttle{{0, 0, m}, {m, 0, 2 * m},
			{2*m + 301*time.Second, 0, m}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var got []throttle
			for _, s := range row.says {
				b.Advance(s.after)
				b.slowDown(t, "account:x", s.asked)
				s.pause = b.state(t, "account:x").Until.Sub(b.Now())
				got = append(got, s)
			}
			if diff := cmp.Diff(row.says, got, cmp.AllowUnexported(throttle{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSlowStart: a scope without rates pauses, starts slowly, and is free again without any further call.
func TestSlowStart(t *testing.T) {
	t.Parallel()
	b, x := setup(t), account(Rate{})
	b.slowDown(t, "account:x", 2*time.Minute)
	first := b.take(t, "", 1, x)
	if want := start.Add(2 * time.Minute); !first.At.Equal(want) ||
		first.Reason != "account x: slowed down, as the relay asked" {
		t.Fatalf("the first is told %v for %q, want %v", first.At, first.Reason, want)
	}
	count, last := map[int]int{}, first.At
	for range 2000 {
		a := b.take(t, "", 1, x)
		if !a.At.After(last) {
			t.Fatalf("reservation %v is not behind %v", a.At, last)
		}
		count[int(a.At.Sub(first.At)/doubling)]++
		last = a.At
	}
	// 0.1 a second, growing to 0.2: 4.3 in 30 s, and twice as many in the next
	for i, want := range []int{4, 9, 17, 35, 69, 139} {
		if got := count[i]; got < want-1 || got > want+1 {
			t.Errorf("%d in the %d. half minute, want about %d", got, i+1, want)
		}
	}
	b.Set(first.At.Add(15 * time.Minute))
	b.take(t, "", 1, x)
	sent := testredis.CountCommands(b.db)
	for range 500 {
		if w := b.wait(t, 1, x); w > 0 {
			t.Fatalf("after recovery one still waits %v", w)
		}
	}
	if n := sent.Sent(); n != 0 {
		t.Errorf("after recovery 500 messages cost %d commands", n)
	}
}

// TestSlowStartSavesNothingUp: what the pace would have allowed while nobody asked is not made up for.
func TestSlowStartSavesNothingUp(t *testing.T) {
	t.Parallel()
	b, x := setup(t), account(Rate{})
	b.slowDown(t, "account:x", time.Minute)
	b.Advance(time.Minute + 2*doubling) // 0.4 a second by now
	if w := b.wait(t, 1, x); w != 0 {
		t.Errorf("the first waits %v", w)
	}
	if w := b.wait(t, 1, x); w < 2*time.Second || w > 3*time.Second {
		t.Errorf("the second waits %v, want about 2.4 s", w)
	}
}

// TestThrottledVoidsReservations: nothing that was reserved before may go during the pause, not even what has
// passed the scope already.
func TestThrottledVoidsReservations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	x, g := account(Rate{PerSecond: 0.1, Burst: 1}), gateway(Rate{PerSecond: 0.1, Burst: 1})
	b.take(t, "", 1, g)
	passed := b.take(t, "", 1, x, g)
	reserved := b.take(t, "", 1, x)
	b.slowDown(t, "account:x", time.Hour)
	b.Set(passed.At)
	end := start.Add(time.Hour)
	for name, a := range map[string]Answer{"passed": b.take(t, passed.Reservation, 1, x, g),
		"reserved": b.take(t, reserved.Reservation, 1, x), "new": b.take(t, "", 1, x)} {
		if a.OK || a.At.Before(end) {
			t.Errorf("%s: goes at %v, want after the pause, at %v", name, a.At, end)
		}
	}
}

// TestRateHoldsDuringRecovery: the pace of the recovery never takes a scope beyond its rate.
func TestRateHoldsDuringRecovery(t *testing.T) {
	t.Parallel()
	b, x := setup(t), account(Rate{PerSecond: 1, Burst: 1})
	b.slowDown(t, "account:x", time.Minute)
	last := time.Time{}
	for range 300 {
		a := b.take(t, "", 1, x)
		if gap := a.At.Sub(last); gap < time.Second-time.Microsecond {
			t.Fatalf("reservations %v apart, at most one a second allowed", gap)
		}
		last = a.At
	}
}

// TestOtherProcessesLearn: a pause is known immediately where it was reported and within a second elsewhere,
// and until then costs nothing.
func TestOtherProcessesLearn(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	here, there := on(t, db), on(t, db)
	x := account(Rate{})
	for _, b := range []*bench{here, there} {
		b.take(t, "", 1, x)
	}
	sent := testredis.CountCommands(db)
	for range 1000 {
		there.take(t, "", 1, x, gateway(Rate{}))
	}
	if n := sent.Sent(); n != 0 {
		t.Errorf("1,000 messages without limits cost %d commands", n)
	}
	here.slowDown(t, "account:x", 0)
	if here.wait(t, 1, x) == 0 {
		t.Error("the process that reported it goes on")
	}
	there.Advance(time.Second)
	if there.wait(t, 1, x) == 0 {
		t.Error("another process goes on after a second")
	}
	if there.wait(t, 1, gateway(Rate{})) != 0 {
		t.Error("another scope is slowed down as well")
	}
}

// TestState shows what people see of a scope during a pause and after it.
func TestState(t *testing.T) {
	t.Parallel()
	b, x := setup(t), account(Rate{})
	if diff := cmp.Diff(State{}, b.state(t, "account:x")); diff != "" {
		t.Error("before:", diff)
	}
	b.slowDown(t, "account:x", time.Minute)
	if ttl := b.db.Client().PTTL(t.Context(), scopeKey("account:x")).Val(); ttl < 15*time.Minute ||
		ttl > 20*time.Minute {
		t.Errorf("the pause is remembered for %v", ttl)
	}
	b.take(t, "", 1, x)
	a := b.take(t, "", 1, x)
	end := start.Add(time.Minute)
	for _, row := range []struct {
		after time.Duration // the end of the pause
		want  State
	}{
		{-time.Second, State{Until: end, Pace: 0.1, Pauses: 1, Reserved: a.At}},
		{0, State{Pace: 0.1, Pauses: 1, Reserved: a.At}},
		{doubling, State{Pace: 0.2, Pauses: 1}},
		{doubling * 9, State{Pace: 51.2, Pauses: 1}},
		{recovered, State{}},
	} {
		b.Set(end.Add(row.after))
		near := cmpopts.EquateApprox(0, 1e-9)
		if diff := cmp.Diff(row.want, b.state(t, "account:x"), near); diff != "" {
			t.Errorf("%v after the pause: %s", row.after, diff)
		}
	}
	if ttl := b.db.Client().PTTL(t.Context(), throttledKey()).Val(); ttl < time.Minute || ttl > time.Hour {
		t.Errorf("limits:throttled lives for %v", ttl)
	}
}

// TestPaceAgrees: Go and Lua compute the same pace, so that people see what is done.
func TestPaceAgrees(t *testing.T) {
	t.Parallel()
	b, x := setup(t), account(Rate{})
	b.slowDown(t, "account:x", time.Minute)
	end := start.Add(time.Minute)
	b.Set(end)
	var at []time.Time
	for range 400 {
		at = append(at, b.take(t, "", 1, x).At)
	}
	for _, i := range []int{50, 100, 200, 390} {
		b.Set(at[i])
		pace := 2 / at[i+1].Sub(at[i-1]).Seconds()
		if shown := b.state(t, "account:x").Pace; math.Abs(shown-pace) > pace/20 {
			t.Errorf("%v after the pause: shown %.3f a second, done %.3f", at[i].Sub(end), shown, pace)
		}
	}
}
