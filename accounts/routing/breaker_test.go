package routing

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend"
)

// clockwork is a breaker of one relay, with the time as offsets.
type clockwork struct {
	t *testing.T
	b *breakers
	s settings
}

func newClockwork(t *testing.T) clockwork {
	return clockwork{t, &breakers{}, settings{relay: smtpsend.Relay{Host: "a"}}}
}

func (c clockwork) ask(at time.Duration) (pass, bool) {
	p, rests := c.b.ask("gateway:a", c.s, begin.Add(at))
	return p, rests == nil
}

// fail fails the try that began at a time, and returns the rest that followed; 0 if none.
func (c clockwork) fail(p pass, at time.Duration) time.Duration {
	until := c.b.failed(p, &smtpsend.Error{Verdict: smtpsend.Soft}, begin.Add(at))
	if until.IsZero() {
		return 0
	}
	return until.Sub(begin.Add(at))
}

func (c clockwork) mustAsk(at time.Duration) pass {
	c.t.Helper()
	p, ok := c.ask(at)
	if !ok {
		c.t.Fatalf("the relay rests at %s", at)
	}
	return p
}

func TestBreakerOpensAfterFiveInARow(t *testing.T) {
	c := newClockwork(t)
	for i := range 4 {
		if rest := c.fail(c.mustAsk(time.Duration(i)), time.Duration(i)); rest != 0 {
			t.Fatalf("rests after %d failures", i+1)
		}
	}
	c.b.worked(c.mustAsk(5))
	for i := range 4 {
		c.fail(c.mustAsk(time.Duration(10+i)), time.Duration(10+i))
	}
	if rest := c.fail(c.mustAsk(20), 20); rest != 30*time.Second {
		t.Errorf("rests for %s after the fifth failure in a row, want 30s", rest)
	}
	if _, ok := c.ask(20 + 29*time.Second); ok {
		t.Error("was tried during its rest")
	}
}

func (c clockwork) open() time.Duration {
	var rest time.Duration
	for range failuresToRest {
		rest = c.fail(c.mustAsk(0), 0)
	}
	return rest
}

func TestBreakerRestsTwiceAsLongEachTime(t *testing.T) {
	c := newClockwork(t)
	rest, now := c.open(), time.Duration(0)
	var rests []string
	for range 7 {
		rests = append(rests, rest.String())
		now += rest
		rest = c.fail(c.mustAsk(now), now)
	}
	want := []string{"30s", "1m0s", "2m0s", "4m0s", "8m0s", "10m0s", "10m0s"}
	if diff := cmp.Diff(want, rests); diff != "" {
		t.Error(diff)
	}
}

func TestBreakerLetsOneProbe(t *testing.T) {
	c := newClockwork(t)
	c.open()
	probe := c.mustAsk(time.Minute)
	if _, ok := c.ask(time.Minute); ok {
		t.Error("a second message was let through beside the probe")
	}
	c.b.unused(probe)
	probe = c.mustAsk(2 * time.Minute)
	if !c.b.worked(probe) {
		t.Error("that it works again was not told")
	}
	c.mustAsk(2 * time.Minute)
	if _, ok := c.ask(2 * time.Minute); !ok {
		t.Error("still probing after the probe worked")
	}
	if len(c.b.all) != 0 {
		t.Error("a relay that works takes memory")
	}
}

func TestBreakerIgnoresWhatBeganBeforeItOpened(t *testing.T) {
	c := newClockwork(t)
	early := c.mustAsk(0)
	for range failuresToRest {
		c.fail(c.mustAsk(time.Second), time.Second)
	}
	if rest := c.fail(early, 2*time.Second); rest != 0 {
		t.Errorf("one burst of failures counted twice: rests for another %s", rest)
	}
}

func TestBreakerProbeThatBeganBeforeAnotherFailureIsStillOver(t *testing.T) {
	c := newClockwork(t)
	c.open()
	probe := c.mustAsk(time.Minute)
	c.fail(c.b.force("gateway:a", c.s, begin.Add(61*time.Second)), 61*time.Second)
	c.fail(probe, 62*time.Second)
	if _, ok := c.ask(time.Hour); !ok {
		t.Error("waits for ever for a probe that is over")
	}
}

func TestBreakerForgetsARelayThatWasCorrected(t *testing.T) {
	c := newClockwork(t)
	c.open()
	corrected := c
	corrected.s.relay.Password = "right"
	corrected.mustAsk(0)
	corrected.fail(corrected.mustAsk(0), 0)
	if got := len(c.b.all); got != 1 {
		t.Errorf("%d relays are remembered, want 1", got)
	}
}

func TestBreakersAreBounded(t *testing.T) {
	b := &breakers{}
	for i := range maxBreakers + 10 {
		b.failed(pass{name: "relay:" + strconv.Itoa(i), began: begin}, nil, begin)
	}
	if n := len(b.all); n > maxBreakers {
		t.Errorf("%d relays are remembered, want %d at most", n, maxBreakers)
	}
}

// TestAnotherRelayServesInsteadOfOneThatRests: the next in order that answers and is not full for long.
func TestAnotherRelayServesInsteadOfOneThatRests(t *testing.T) {
	for _, row := range []struct {
		name   string
		routes []string
		down   []string
		full   string
		want   string
	}{
		{"all answer", []string{"a", "b"}, nil, "", "gateway:b"},
		{"the fallback", []string{"a", "b"}, []string{"a"}, "", "gateway:b"},
		{"two of three rest", []string{"a", "b", "c"}, []string{"a", "b"}, "", "gateway:c"},
		{"it has only this one", []string{"a"}, []string{"a"}, "", ""},
		{"the other rests, too", []string{"a", "b"}, []string{"a", "b"}, "", ""},
		{"the other is at its limit", []string{"a", "b"}, []string{"a"}, "gateway:b", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := setup(t)
			for _, name := range row.down {
				w.relays.does[name] = "down"
				for range failuresToRest {
					w.send(list(name))
				}
			}
			if row.full != "" {
				w.fullRelays.note(row.full+string(api.Transactional), fullRelay{until: w.at.Add(time.Hour)})
			}
			if got := w.Answers("gateway:a"); got != (row.down == nil) {
				t.Errorf("a answers: %t", got)
			}
			account := accounts.Sender{ID: "shop", Relays: list(row.routes...)}
			if got := w.Instead(account, api.Transactional, "gateway:a"); got != row.want {
				t.Errorf("%q serves, want %q", got, row.want)
			}
			w.advance(firstRest)
			if !w.Answers("gateway:a") {
				t.Error("a is not tried after its rest")
			}
		})
	}
}

// TestADeadDomainIsNoFaultOfDirectDelivery: other domains may be well, so the gateway neither rests nor slows
// down.
func TestADeadDomainIsNoFaultOfDirectDelivery(t *testing.T) {
	t.Parallel()
	dead := &smtpsend.Error{Phase: smtpsend.PhaseConnect, Verdict: smtpsend.Soft,
		Scope: smtpsend.ScopeDestination}
	slow := &smtpsend.Error{Phase: smtpsend.PhaseMail, Code: 450, Verdict: smtpsend.Throttle,
		Scope: smtpsend.ScopeDestination, RetryAfter: time.Minute}
	for _, e := range []*smtpsend.Error{dead, slow} {
		direct := Try{Direct: true, Result: sameForAll([]string{"a@x.test"}, e), Err: e}
		if got, why := judge(direct, false); got != refused || why != nil {
			t.Errorf("%v: %s, %v", e, got, why)
		}
		if got := endingOf(direct, false); got != replied {
			t.Errorf("%v: its turn ended with %d", e, got)
		}
		if _, asks := asksToSlowDown(direct); asks {
			t.Errorf("%v slows the gateway down", e)
		}
		relay := direct
		relay.Direct = false
		if got, _ := judge(relay, false); got == refused {
			t.Errorf("%v of a relay: %s", e, got)
		}
	}
}
