package limits

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testredis"
)

// destination is a group of the gateway g, of n of the message's recipients.
func destination(group string, r Rate, n int) Scope {
	return Scope{Name: Destination("g", group), Rate: r, Recipients: n}
}

// TestADestinationHoldsBackOnlyItsOwn: mail to a slow domain takes nothing of the account and the gateway
// while it waits, so mail to another domain flows at their full rate.
func TestADestinationHoldsBackOnlyItsOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	full := Rate{PerSecond: 10, Burst: 1}
	slow := destination("slow.example", Rate{PerSecond: 0.5, Burst: 1}, 1)
	fast := destination("fast.example", Rate{}, 1)
	for i := range 20 {
		want := time.Duration(i) * 2 * time.Second // one every two seconds
		if got := b.wait(t, 1, slow, account(full), gateway(full)); got != want {
			t.Errorf("message %d to the slow domain waits %v, want %v", i, got, want)
		}
	}
	b.Advance(100 * time.Millisecond)
	for i := range 20 {
		if got := b.wait(t, 1, fast, account(full), gateway(full)); got != 0 {
			t.Errorf("message %d to the other domain waits %v", i, got)
		}
		b.Advance(100 * time.Millisecond)
	}
}

// TestAFullAccountTakesNothingOfADestination: the long queue of one account does not use up the limit of a
// domain that other accounts send to.
func TestAFullAccountTakesNothingOfADestination(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := destination("gmail.com", Rate{PerSecond: 1, Burst: 1}, 1)
	busy, other := account(Rate{PerSecond: 0.1, Burst: 1}), Scope{Name: "account:other"}
	if w := b.wait(t, 1, d, busy); w != 0 {
		t.Fatalf("the first waits %v", w)
	}
	b.Advance(time.Second)
	for range 50 {
		b.take(t, "", 1, d, busy)
	}
	if w := b.wait(t, 1, d, other); w != 0 {
		t.Errorf("mail of another account waits %v", w)
	}
}

// TestAMessageWaitsOnceForEachDestination: it takes from each of its groups as many as it has recipients
// there, and waits once for each.
func TestAMessageWaitsOnceForEachDestination(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := Rate{PerSecond: 1, Burst: 2}
	x, y := destination("x.example", r, 2), destination("y.example", r, 1)
	if w := b.wait(t, 3, x, y); w != 0 {
		t.Fatalf("the first waits %v", w)
	}
	a := b.take(t, "", 3, x, y) // x owes two, y one: two seconds for x
	if got := a.At.Sub(b.Now()); got != 2*time.Second || a.Scope != x.Name ||
		a.Reason != "gateway g to x.example: 1 a second" {
		t.Fatalf("waits %v: %+v", got, a)
	}
	b.Set(a.At)
	for range 2 {
		b.take(t, "", 1, y) // others take what y has
	}
	again := b.take(t, a.Reservation, 3, x, y)
	if got := again.At.Sub(b.Now()); got != time.Second || again.Scope != y.Name {
		t.Fatalf("waits %v: %+v", got, again)
	}
	b.Set(again.At)
	if last := b.take(t, again.Reservation, 3, x, y); !last.OK {
		t.Errorf("waits a third time: %+v", last)
	}
}

// TestBulkMailLeavesAFifthOfADestination, like a gateway.
func TestBulkMailLeavesAFifthOfADestination(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := destination("x.example", Rate{PerMinute: 10}, 1)
	bulk := d
	bulk.Bulk = true
	went := 0
	for range 10 {
		if b.wait(t, 1, bulk) == 0 {
			went++
		}
	}
	a := b.take(t, "", 1, bulk)
	if went != 8 || a.Scope != d.Name || a.Reason != "gateway g to x.example: 8 a minute for bulk mail" {
		t.Errorf("%d went at once, then %+v", went, a)
	}
	for i := range 2 {
		if w := b.wait(t, 1, d); w != 0 {
			t.Errorf("other mail %d waits %v", i, w)
		}
	}
}

// TestAThrottledDestination pauses, starts slowly and recovers as a gateway does, alone.
func TestAThrottledDestination(t *testing.T) {
	t.Parallel()
	b := setup(t)
	x, y := destination("x.example", Rate{}, 1), destination("y.example", Rate{}, 1)
	slows := func() bool {
		slow, err := b.SlowsDestinations(t.Context(), "g")
		if err != nil {
			t.Fatal(err)
		}
		return slow
	}
	if slows() {
		t.Error("slow at first")
	}
	b.slowDown(t, x.Name, 2*time.Minute)
	a := b.take(t, "", 1, x, gateway(Rate{}))
	if got := a.At.Sub(start); got != 2*time.Minute ||
		a.Reason != "gateway g to x.example: slowed down, as the receiver asked" {
		t.Errorf("waits %v: %+v", got, a)
	}
	if w := b.wait(t, 1, y, gateway(Rate{})); w != 0 || !slows() {
		t.Errorf("mail to another domain waits %v", w)
	}
	if slow, err := b.SlowsDestinations(t.Context(), "other"); err != nil || slow {
		t.Errorf("another gateway: %v, %v", slow, err)
	}
	b.Set(start.Add(2*time.Minute + doubling))
	if s := b.state(t, x.Name); s.Pace != 2*firstPace || s.Pauses != 1 {
		t.Errorf("while it recovers: %+v", s)
	}
	b.Set(start.Add(2*time.Minute + 15*time.Minute))
	for range 100 {
		if w := b.wait(t, 1, x); w > 0 || slows() {
			t.Fatalf("waits %v after it has recovered", w)
		}
	}
}

// TestDestinationsWithoutLimitsCostNothing: neither a command nor a key.
func TestDestinationsWithoutLimitsCostNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	x := destination("x.example", Rate{}, 1)
	b.take(t, "", 1, x)
	sent := testredis.CountCommands(b.db)
	for range 100 {
		b.take(t, "", 1, x)
	}
	if n := sent.Sent(); n != 0 {
		t.Errorf("100 messages cost %d commands", n)
	}
	b.take(t, "", 1, x, account(Rate{PerDay: 1000}))
	keys, err := b.db.Client().Keys(t.Context(), "*limit:*").Result()
	if err != nil || len(keys) != 1 {
		t.Errorf("keys %v, %v", keys, err)
	}
}

// TestDestinationsExpire: a destination's data goes an hour after it ceased to matter.
func TestDestinationsExpire(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.take(t, "", 1, destination("x.example", Rate{PerSecond: 1}, 1))
	ttl := b.db.Client().PTTL(t.Context(), scopeKey(Destination("g", "x.example"))).Val()
	if ttl < time.Hour || ttl > time.Hour+2*time.Second {
		t.Errorf("it lives for %v, want an hour", ttl)
	}
}

// TestOnlySoManyDestinationsAreRemembered: the one that ceases to matter first goes.
func TestOnlySoManyDestinationsAreRemembered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run := func(name string, wait time.Duration) {
		keys := []string{scopeKey(name), throttledDestinationsKey(), versionKey()}
		if _, err := throttleScript.Run(t.Context(), b.db.Client(), keys, throttleArgs{TestNow: b.store.clock(),
			Scope: name, Wait: wait.Microseconds(), Most: 3}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		run(Destination("g", fmt.Sprintf("%d.example", i)), time.Duration(i+1)*time.Minute)
	}
	kept, err := b.db.Client().ZRange(t.Context(), throttledDestinationsKey(), 0, -1).Result()
	if got := strings.Join(kept, " "); err != nil ||
		got != "dest:g:2.example dest:g:3.example dest:g:4.example" {
		t.Errorf("kept %s, %v", got, err)
	}
}

// TestPartsOfReservations: what a message gives to another one is only about the scope that they share.
func TestPartsOfReservations(t *testing.T) {
	t.Parallel()
	had := Reservation("p.1.0..gateway:g:bulk b.2.9.s.gateway:g p.3.0..dest:g:x.example")
	if got := had.Of("gateway:g"); got != "p.1.0..gateway:g:bulk b.2.9.s.gateway:g" {
		t.Errorf("of the gateway: %s", got)
	}
	if got := had.Of("dest:g:x.example"); got != "p.3.0..dest:g:x.example" {
		t.Errorf("of the destination: %s", got)
	}
	if got := Reservation("").Join(had).Join(""); got != had {
		t.Errorf("joined: %s", got)
	}
}
