package routing

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
)

// tenConnections is a relay with ten connections.
func tenConnections(scope string) candidate {
	c := candidate{scope: scope}
	c.SMTP.Connections = 10
	return c
}

// fill takes slots until there is none.
func fill(g *connectionLimits, c candidate, lane api.Lane) (slots []*slot, stalls bool) {
	for {
		t, stalls := g.enter(c, lane, false)
		if t == nil {
			return slots, stalls
		}
		slots = append(slots, t)
	}
}

// TestASilentRelayHoldsFewWorkers: a relay that has never answered gets two messages. When they are overdue,
// the others are refused immediately. After a silence it gets one.
func TestASilentRelayHoldsFewWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newConnectionLimits(0, time.Now)
		mute, other := tenConnections("relay:silent"), tenConnections("relay:other")
		slots, stalls := fill(g, mute, api.Transactional)
		if len(slots) != firstSlots || stalls {
			t.Errorf("%d messages under way, stalls %t", len(slots), stalls)
		}
		time.Sleep(overdueAfter + time.Second)
		began := time.Now()
		slot, stalls := g.enter(mute, api.Transactional, false)
		if slot != nil || !stalls || time.Since(began) > 0 {
			t.Errorf("a message waited %s for a relay that stalls", time.Since(began))
		}
		if list := g.look(); len(list) != 1 || list[0].Scope != "relay:silent" ||
			time.Since(list[0].Since) < 3*time.Second {
			t.Errorf("stalling: %v", list)
		}
		if again, away := g.look(), g.away(); len(again) > 0 || len(away) != 1 {
			t.Errorf("looked again: %v, away: %v", again, away)
		}
		if slot, _ := g.enter(other, api.Transactional, false); slot == nil {
			t.Error("another relay is stopped too")
		}
		for _, slot := range slots {
			g.leave(slot, silent)
		}
		if again, _ := fill(g, mute, api.Transactional); len(again) != 1 {
			t.Errorf("after a silence %d messages try it", len(again))
		}
	})
}

// TestARelayIsAwayUntilItAnswers: after each failure without an answer, and for 15 minutes without mail.
func TestARelayIsAwayUntilItAnswers(t *testing.T) {
	for _, row := range []struct {
		ends []ending
		away bool
	}{
		{[]ending{unasked}, false}, {[]ending{unreached}, true}, {[]ending{silent}, true},
		{[]ending{unreached, unasked}, true}, {[]ending{silent, replied}, false},
		{[]ending{replied, unreached}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newConnectionLimits(0, time.Now)
			for _, how := range row.ends {
				slot, _ := g.enter(tenConnections("relay:shop"), api.Transactional, false)
				g.leave(slot, how)
			}
			if got := g.away(); len(got) > 0 != row.away {
				t.Errorf("%v: %v", row.ends, got)
			}
			time.Sleep(awayFor + time.Second)
			g.look()
			if got := g.away(); len(got) > 0 {
				t.Errorf("%v, and no mail since: %v", row.ends, got)
			}
		})
	}
}

// TestARelayThatAnswersGetsMore: twice as many with each answer, up to three for each connection if it is
// quick, one if it is slow.
func TestARelayThatAnswersGetsMore(t *testing.T) {
	for _, row := range []struct {
		takes time.Duration
		lane  api.Lane
		most  int
	}{
		{5 * time.Millisecond, api.Transactional, 30},
		{5 * time.Millisecond, api.Bulk, 24},
		{time.Second, api.Transactional, 10},
		{time.Second, api.Bulk, 8},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newConnectionLimits(0, time.Now)
			relay := tenConnections("relay:shop")
			for range 20 {
				slot, _ := g.enter(relay, row.lane, false)
				time.Sleep(row.takes)
				g.leave(slot, replied)
			}
			slots, _ := fill(g, relay, row.lane)
			if len(slots) != row.most {
				t.Errorf("%s, %s: %d messages under way, want %d", row.takes, row.lane, len(slots), row.most)
			}
			if row.lane == api.Bulk {
				if slot, _ := g.enter(relay, api.Transactional, false); slot == nil {
					t.Error("bulk mail left nothing to other mail")
				}
			}
		})
	}
}

// TestWokenMessagesAreExpected: two messages that end together do not wake two for the same place.
func TestWokenMessagesAreExpected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newConnectionLimits(0, time.Now)
		if n := g.wanted("relay:shop", api.Transactional); n != firstSlots {
			t.Fatalf("%d are wanted", n)
		}
		g.expect("relay:shop", 1)
		if n := g.wanted("relay:shop", api.Transactional); n != firstSlots-1 {
			t.Errorf("%d are wanted although one is expected", n)
		}
		time.Sleep(2 * expectFor)
		if n := g.wanted("relay:shop", api.Transactional); n != firstSlots {
			t.Errorf("%d are wanted, and the one expected went elsewhere", n)
		}
	})
}

// TestRelaysThatNeverAnsweredHoldHalfOfTheWorkers, however many there are.
func TestRelaysThatNeverAnsweredHoldHalfOfTheWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newConnectionLimits(5, time.Now)
		under := 0
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			slots, _ := fill(g, tenConnections("relay:"+name), api.Transactional)
			under += len(slots)
		}
		if under != 5 {
			t.Errorf("%d messages are under way", under)
		}
	})
}

// TestAStallRestsTheRelay: silence in any phase counts like a relay that can't be reached.
func TestAStallRestsTheRelay(t *testing.T) {
	for _, row := range []struct {
		verb string
		want outcome
	}{{"CONNECT", unreachable}, {"EHLO", unreachable}, {"MAIL", unreachable}, {"RCPT", stalled},
		{"DATA", stalled}, {"DOT", stalled}} {
		t.Run(row.verb, func(t *testing.T) {
			t.Parallel()
			server := testsmtp.Start(t, testsmtp.Options{NoPipelining: true,
				Respond: func(c testsmtp.Command) testsmtp.Action { return testsmtp.Action{Hang: c.Verb == row.verb} }})
			sender, err := smtpsend.New(smtpsend.Options{Timeout: 50 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			w := setup(t)
			w.Transports = NewTransports(sender, nil, nil)
			relay := own()
			relay.SMTP.Host, relay.SMTP.Port = server.Host(), server.Port()
			for range failuresToRest {
				if got, _ := judge(w.send([]gateways.Relay{relay}).Tries[0], false); got != row.want {
					t.Fatalf("%s, want %s", got, row.want)
				}
			}
			if _, rests := w.breakers.ask("relay:shop", settingsOf(relay), w.at); rests == nil {
				t.Error("the relay is not at rest")
			}
		})
	}
}

// TestNobodyPassesTheLine: a message does not enter while others wait longer, and those that wait for a slot
// get it in the order in which they came.
func TestNobodyPassesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newConnectionLimits(0, time.Now)
		relay := tenConnections("relay:shop")
		if slot, stalls := g.enter(relay, api.Transactional, true); slot != nil || stalls {
			t.Error("a message passed the line")
		}
		slots, _ := fill(g, relay, api.Transactional)
		var order []int
		done := make(chan int, 3)
		for n := range 3 {
			go func() {
				slot, _ := g.enter(relay, api.Transactional, false)
				done <- n
				g.leave(slot, replied)
			}()
			synctest.Wait()
		}
		g.leave(slots[0], unasked)
		for range 3 {
			order = append(order, <-done)
		}
		if !slices.IsSorted(order) {
			t.Errorf("they came in the order %v", order)
		}
		g.leave(slots[1], replied)
	})
}
