package routing

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/smtpsend"
)

func TestRoom(t *testing.T) {
	const account, own, a, b, c = "account:shop", "relay:shop", "gateway:a", "gateway:b", "gateway:c"
	for _, r := range []struct {
		name   string
		routes []string
		full   map[string]time.Duration
		paused string
		does   map[string]string
		want   string
		takes  []string
	}{
		{"one question for account and relay", []string{"own"}, nil, "", nil, "own:delivered",
			[]string{account + "+" + own + " 1"}},
		{"the account's limit", []string{"a"}, map[string]time.Duration{account: time.Minute}, "", nil, "wait 1m0s",
			nil},
		{"the account's limit, with a choice", []string{"a:1", "b:1"}, map[string]time.Duration{
			account: time.Minute}, "", nil, "wait 1m0s",
			[]string{account + "+" + a + " 1"}},
		{"a relay's limit", []string{"a"}, map[string]time.Duration{a: time.Minute}, "", nil, "wait 1m0s", nil},
		{"another of the group has room", []string{"a:1", "b:1"}, map[string]time.Duration{a: time.Minute}, "", nil,
			"b:delivered",
			[]string{account + "+" + a + " 1", b + " 1"}},
		{"a fallback is for failures", []string{"a", "b"}, map[string]time.Duration{a: time.Minute}, "", nil,
			"wait 1m0s", nil},
		{"which having to slow down is", []string{"a", "b"}, map[string]time.Duration{a: time.Minute}, a, nil,
			"b:delivered", nil},
		{"nobody has room: the first that will", []string{"a:1", "b:1"}, map[string]time.Duration{a: time.Minute,
			b: time.Second}, "", nil,
			"wait 1s", nil},
		{"slowed down and no fallback with room", []string{"a", "b"}, map[string]time.Duration{a: time.Minute,
			b: time.Hour}, a, nil,
			"wait 1m0s", nil},
		{"the account is asked once, whoever fails", []string{"a", "b"}, nil, "", map[string]string{"a": "down"},
			"a:unreachable b:delivered",
			[]string{account + "+" + a + " 1", b + " 1"}},
		{"a failure and a full relay: the attempt is spent", []string{"a", "b"}, map[string]time.Duration{
			b: time.Hour}, "",
			map[string]string{"a": "down"}, "a:unreachable error soft", nil},
		{"but the message lives, for that one", []string{"a", "b"}, map[string]time.Duration{b: time.Hour}, "",
			map[string]string{"a": "badlogin"},
			"a:unreachable error throttle", nil},
		{"all connections taken", []string{"a"}, nil, "", map[string]string{"a": "crowded"}, "wait 2s", nil},
		{"another of the group has connections", []string{"a:1", "b:1"}, nil, "", map[string]string{"a": "crowded"},
			"b:delivered", nil},
		{"a fallback is not for want of connections", []string{"a", "b"}, nil, "", map[string]string{
			"a": "crowded"}, "wait 2s", nil},
	} {
		t.Run(r.name, func(t *testing.T) {
			w := setup(t)
			w.relays.does = r.does
			for scope, d := range r.full {
				w.limits.full[scope] = begin.Add(d)
			}
			w.limits.paused[r.paused] = true
			sent := w.send(list(r.routes...))
			if diff := cmp.Diff(r.want, sent.summary()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(r.takes, w.limits.takes); r.takes != nil && diff != "" {
				t.Error(diff)
			}
			if waits := !sent.Wait.IsZero(); waits && (sent.Reservation == "" || sent.Reason == "" ||
				len(sent.Tries) > 0 || sent.Err != nil) {
				t.Errorf("waits with %+v", sent)
			}
		})
	}
}

func TestAMessageComesBackToItsPlace(t *testing.T) {
	w := setup(t)
	w.limits.full["gateway:a"], w.limits.full["gateway:b"] = begin.Add(time.Minute), begin.Add(time.Hour)
	d := dispatch(list("a:1", "b:1"))
	sent := w.Send(t.Context(), d)
	w.at, w.draw, w.limits.takes = sent.Wait, 0.9, nil // b would be drawn now
	d.Reservation = sent.Reservation
	if diff := cmp.Diff("a:delivered", w.Send(t.Context(), d).summary()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"gateway:a 1 b.1.0.s.gateway:a"}, w.limits.takes); diff != "" {
		t.Errorf("the account is not charged again: %s", diff)
	}
}

func TestAMessageThatWaitedForTheAccountShowsItsReservation(t *testing.T) {
	for _, routes := range [][]string{{"a"}, {"a:1", "b:1"}} {
		w := setup(t)
		w.limits.full["account:shop"] = begin.Add(time.Minute)
		d := dispatch(list(routes...))
		sent := w.Send(t.Context(), d)
		w.at, w.limits.takes, d.Reservation = sent.Wait, nil, sent.Reservation
		w.Send(t.Context(), d)
		if !strings.HasPrefix(w.limits.takes[0], "account:shop") ||
			!strings.HasSuffix(w.limits.takes[0], " 1 b.1.0.s.account:shop") {
			t.Errorf("%v: asked %v", routes, w.limits.takes)
		}
	}
}

func TestAMessageThatWaitedForAConnectionHasPaid(t *testing.T) {
	for _, routes := range [][]string{{"a"}, {"a", "b"}} {
		w := setup(t)
		w.relays.does = map[string]string{"a": "crowded"}
		d := dispatch(list(routes...))
		sent := w.Send(t.Context(), d)
		w.at, w.limits.takes, d.Reservation = sent.Wait, nil, sent.Reservation
		w.relays.does["a"] = ""
		if diff := cmp.Diff("a:delivered", w.Send(t.Context(), d).summary()); diff != "" {
			t.Error(diff)
		}
		if len(w.limits.takes) > 0 {
			t.Errorf("%v: paid again: %v", routes, w.limits.takes)
		}
	}
}

func TestAFullRelayIsNotAskedAgain(t *testing.T) {
	w := setup(t)
	w.limits.full["gateway:a"] = begin.Add(time.Minute)
	for range 5 {
		w.send(list("a:1", "b:1"))
	}
	asked := 0
	for _, take := range w.limits.takes {
		if strings.Contains(take, "gateway:a ") {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times for a relay known to be full", asked)
	}
	w.limits.takes = nil
	w.advance(time.Minute)
	w.send(list("a:1", "b:1"), "x@x", "y@x")
	if diff := cmp.Diff("account:shop+gateway:a 2", w.limits.takes[0]); diff != "" {
		t.Errorf("a place for one is no place for two: %s", diff)
	}
	w.limits.takes = nil
	w.send(list("a:1", "b:1"))
	if diff := cmp.Diff("account:shop+gateway:a 1 b.1.0.s.gateway:a", w.limits.takes[0]); diff != "" {
		t.Errorf("the place that was left goes to the next who comes: %s", diff)
	}
	w.limits.takes = nil
	w.send(list("a:1", "b:1"))
	if diff := cmp.Diff("account:shop+gateway:a 1", w.limits.takes[0]); diff != "" {
		t.Errorf("and to nobody else: %s", diff)
	}
}

func TestWhoCanChooseNoneAsksTheOneThatWillHaveRoomFirst(t *testing.T) {
	w := setup(t)
	w.limits.full["gateway:a"], w.limits.full["gateway:b"] = begin.Add(time.Minute), begin.Add(time.Second)
	w.send(list("a:1", "b:1"))
	w.limits.takes = nil
	sent := w.send(list("a:1", "b:1"))
	if diff := cmp.Diff("wait 1s", sent.summary()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"account:shop+gateway:b 1"}, w.limits.takes); diff != "" {
		t.Errorf("each message that waits has a place of its own: %s", diff)
	}
	delete(w.limits.full, "gateway:b")
	if diff := cmp.Diff("b:delivered", w.send(list("a:1", "b:1")).summary()); diff != "" {
		t.Errorf("what we know may be out of date: %s", diff)
	}
}

func TestWithoutLimitsNothingGoesOut(t *testing.T) {
	for _, routes := range [][]string{{"a"}, {"a:1", "b:1"}} {
		w := setup(t)
		w.limits.away, w.draw = true, 0.5
		d := dispatch(list(routes...))
		d.Reservation = reservation{scope: "gateway:a", paid: paidAccount, inner: "kept"}.text()
		sent := w.Send(t.Context(), d)
		if diff := cmp.Diff("wait 3s", sent.summary()); diff != "" {
			t.Error(diff)
		}
		if sent.Reservation != d.Reservation {
			t.Errorf("reservation %q, want the one it had", sent.Reservation)
		}
	}
}

func TestARelayThatRestsDoesNotMakeAnotherWait(t *testing.T) {
	w := setup(t)
	w.relays.does = map[string]string{"a": "down"}
	for range failuresToRest {
		w.send(list("a"))
	}
	w.limits.full["gateway:b"] = begin.Add(time.Minute)
	if diff := cmp.Diff("wait 1m0s", w.send(list("a", "b")).summary()); diff != "" {
		t.Errorf("one rests, one is full: %s", diff)
	}
}

func TestReservationsSurviveTheTrip(t *testing.T) {
	for _, p := range []reservation{
		{}, {scope: "gateway:a"}, {scope: "relay:x@y.z", paid: paidAll},
		{paid: paidAccount, inner: "p.1.2.s.account:a|b b.1.2.m.gateway:c"},
	} {
		if got := readReservation(p.text()); got != p {
			t.Errorf("%+v became %+v", p, got)
		}
	}
	for _, text := range []limits.Reservation{"", "x", "a|b"} {
		if got := readReservation(text); got != (reservation{}) {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

func TestFullRelaysSayWhy(t *testing.T) {
	w := setup(t)
	w.limits.full["gateway:b"] = begin.Add(time.Hour)
	w.relays.does = map[string]string{"a": "badlogin"}
	sent := w.send(list("a", "b"))
	e, ok := errors.AsType[*smtpsend.Error](sent.Err)
	if !ok || !strings.Contains(e.Error(), "gateway:b is full") || e.Permanent() {
		t.Errorf("error %v", sent.Err)
	}
}
