package routing

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
)

// real gives a world relays that are reached over the network, and limits that are kept in Redis. Time is the
// test's.
func real(t *testing.T, o smtpsend.Options) *world {
	t.Helper()
	w := setup(t)
	sender, err := smtpsend.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sender.Close() })
	w.Transports = NewTransports(sender, nil, nil)
	w.Limits = w.realLimits(t)
	return w
}

func (w *world) realLimits(t *testing.T) *limits.Limits {
	t.Helper()
	l, err := limits.New(testredis.New(t), limits.Options{Now: func() time.Time { return w.at }})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func to(gateway string, s *testsmtp.Server) gateways.Relay {
	return gateways.Relay{Gateway: gateway, SMTP: smtpsend.Relay{ID: gateway, Host: s.Host(), Port: s.Port(),
		CA: s.CA()}}
}

func expect(t *testing.T, want string, s Sent) Sent {
	t.Helper()
	if diff := cmp.Diff(want, s.summary()); diff != "" {
		t.Fatalf("%s (%v)", diff, s.Err)
	}
	return s
}

func TestStoryARelayGoesDownAndComesBack(t *testing.T) {
	w := real(t, smtpsend.Options{})
	port := testkit.FreePort(t)
	second := testsmtp.Start(t, testsmtp.Options{})
	routes := []gateways.Relay{{SMTP: smtpsend.Relay{Host: "127.0.0.1", Port: port}}, to("b", second)}

	sent := expect(t, "own:unreachable b:delivered", w.send(routes, "x@example.org", "y@example.org"))
	if sent.Err != nil || sent.Result.RemoteAddress != second.Addr() {
		t.Errorf("sent: %+v", sent)
	}
	if got := []string{sent.Tries[0].Host, sent.Tries[1].Host}; got[0] != net.JoinHostPort("127.0.0.1",
		strconv.Itoa(port)) || got[1] != second.Addr() {
		t.Errorf("tried %v", got)
	}
	for range failuresToRest - 1 {
		expect(t, "own:unreachable b:delivered", w.send(routes))
	}
	expect(t, "b:delivered", w.send(routes))
	w.advance(31 * time.Second)
	expect(t, "own:unreachable b:delivered", w.send(routes))
	expect(t, "b:delivered", w.send(routes))

	first := testsmtp.Start(t, testsmtp.Options{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))})
	expect(t, "b:delivered", w.send(routes))
	w.advance(61 * time.Second)
	expect(t, "own:delivered", w.send(routes))
	expect(t, "own:delivered", w.send(routes))
	if first.Count() != 2 || second.Count() != failuresToRest+4 {
		t.Errorf("the first relay took %d messages, the second %d", first.Count(), second.Count())
	}
}

func TestStoryATokenIsRefusedAndReplaced(t *testing.T) {
	w := real(t, smtpsend.Options{})
	server := testsmtp.Start(t, testsmtp.Options{Security: testsmtp.STARTTLS, Username: "me@example.com",
		Token: "t2"})
	r := to("a", server)
	r.OAuth, r.OAuthUser = &oauth.Client{ClientID: "c"}, "me@example.com"
	r.SMTP.Username = r.OAuthUser
	expect(t, "a:unreachable a:delivered", w.send([]gateways.Relay{r}))
	expect(t, "a:delivered", w.send([]gateways.Relay{r}))
	if diff := cmp.Diff([]string{"gateway:a", "gateway:a t1", "gateway:a"}, w.tokens.asked); diff != "" {
		t.Error(diff)
	}
	if logins := w.Verify(t.Context(), dispatch([]gateways.Relay{r}).Account); logins[0].Err != nil {
		t.Error(logins[0].Err)
	}
}

func TestStoryALimitIsWaitedForOnce(t *testing.T) {
	w := real(t, smtpsend.Options{})
	server := testsmtp.Start(t, testsmtp.Options{})
	r := to("a", server)
	r.Rate = limits.Rate{PerSecond: 1, Burst: 1}
	d := dispatch([]gateways.Relay{r})
	d.Account.Rate = limits.Rate{PerSecond: 100}
	expect(t, "a:delivered", w.Send(t.Context(), d))
	var waiting []Sent
	for i := range 3 {
		waiting = append(waiting, expect(t, "wait "+strconv.Itoa(i+1)+"s", w.Send(t.Context(), d)))
	}
	if !strings.Contains(waiting[0].Reason, "gateway a: 1 a second") {
		t.Errorf("waits because %q", waiting[0].Reason)
	}
	for _, one := range waiting {
		w.at, d.Reservation = one.Wait, one.Reservation
		expect(t, "a:delivered", w.Send(t.Context(), d))
	}
}

func TestStoryARelayAsksToSlowDown(t *testing.T) {
	w := real(t, smtpsend.Options{})
	first := testsmtp.Start(t, testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
		if c.Verb == "MAIL" {
			return testsmtp.Action{Reply: "421 4.7.0 Connection rate limited, try again in 90 seconds", Close: true}
		}
		return testsmtp.Action{}
	}})
	second := testsmtp.Start(t, testsmtp.Options{})
	routes := []gateways.Relay{to("", first), to("b", second)}
	expect(t, "own:slowed b:delivered", w.send(routes))
	expect(t, "b:delivered", w.send(routes))
	if n := first.Connections(); n != 1 {
		t.Errorf("the relay that asked us to slow down saw %d connections", n)
	}
	if wait := w.send(routes[:1]).Wait.Sub(begin); wait < 90*time.Second || wait > 100*time.Second {
		t.Errorf("without another relay, the message waits %s", wait)
	}
}

func TestStoryConnectionsAreSharedWithOthers(t *testing.T) {
	server := testsmtp.Start(t, testsmtp.Options{})
	free := false
	w := real(t, smtpsend.Options{Admit: func(context.Context, smtpsend.Relay) (func(), error) {
		if free {
			return func() {}, nil
		}
		return nil, &limits.Full{Scope: "gateway:a", Most: 3}
	}})
	r := to("a", server)
	r.SMTP.Shared = "gateway:a"
	d := dispatch([]gateways.Relay{r})
	sent := expect(t, "wait 1s", w.Send(t.Context(), d))
	free, w.at, d.Reservation = true, sent.Wait, sent.Reservation
	expect(t, "a:delivered", w.Send(t.Context(), d))
}

func TestStoryManyAtOnce(t *testing.T) {
	w := real(t, smtpsend.Options{})
	w.Gateways = quiet{}
	a, b := testsmtp.Start(t, testsmtp.Options{}), testsmtp.Start(t, testsmtp.Options{})
	down := gateways.Relay{Gateway: "down", SMTP: smtpsend.Relay{Host: "127.0.0.1", Port: testkit.FreePort(t)},
		Weight: 1}
	routes := []gateways.Relay{down, to("a", a), to("b", b)}
	routes[1].Weight, routes[1].Rate = 1, limits.Rate{PerSecond: 10, Burst: 10}
	const messages = 60
	var group sync.WaitGroup
	for range messages {
		group.Go(func() {
			if e, ok := errors.AsType[*smtpsend.Error](w.Send(t.Context(), dispatch(routes)).Err); ok &&
				e.Permanent() {
				t.Error(e)
			}
		})
	}
	group.Wait()
	if a.Count() != 10 || b.Count() != 0 {
		t.Errorf("the limited gateway took %d messages, its fallback %d", a.Count(), b.Count())
	}
	if late := w.send(routes); late.Wait.IsZero() {
		t.Errorf("one gateway rests, the other is full, and a message meets %s", late.summary())
	}
}

// quiet is Gateways that remember nothing.
type quiet struct{ Gateways }

func (quiet) Outcome(context.Context, string, int, error) {}
func (quiet) Opened(context.Context, string, time.Time)   {}

// TestLimitsAreUsedToTheFull has more messages than two gateways of a group take. Places that were given to
// messages which then went to the other gateway must not be lost, and no one may ask more often than it
// takes.
func TestLimitsAreUsedToTheFull(t *testing.T) {
	w := setup(t)
	l := &countingLimits{Limits: w.realLimits(t)}
	w.Limits = l
	routes := list("a:1", "b:1")
	routes[0].Rate, routes[1].Rate = limits.Rate{PerSecond: 2, Burst: 1}, limits.Rate{PerSecond: 3, Burst: 1}
	type waiting struct {
		at          time.Time
		reservation limits.Reservation
	}
	const messages = 100
	queue := make([]waiting, messages)
	for i := range queue {
		queue[i].at = begin.Add(time.Duration(i) * 100 * time.Millisecond) // 10 a second, for gateways that take 5
	}
	for len(queue) > 0 {
		slices.SortStableFunc(queue, func(x, y waiting) int { return x.at.Compare(y.at) })
		next := queue[0]
		queue = queue[1:]
		w.at, w.draw = next.at, float64(len(queue)%10)/10
		d := dispatch(routes)
		d.Reservation = next.reservation
		if sent := w.Send(t.Context(), d); !sent.Wait.IsZero() {
			if sent.Wait.Before(w.at) {
				t.Fatalf("to come back %s ago", w.at.Sub(sent.Wait))
			}
			queue = append(queue, waiting{sent.Wait, sent.Reservation})
		}
	}
	if took := w.at.Sub(begin); took < 19*time.Second || took > 21*time.Second {
		t.Errorf("100 messages at 5 a second took %s", took)
	}
	if l.takes > 3*messages {
		t.Errorf("%d questions for %d messages", l.takes, messages)
	}
}

// TestASlowRelayIsNotStarved has a gateway so slow that most messages go to the other one. Each of them that
// asks is given a place at the slow one: were those lost, nobody would ever be let through there.
func TestASlowRelayIsNotStarved(t *testing.T) {
	w := setup(t)
	w.Limits = w.realLimits(t)
	routes := list("slow:1", "fast:1")
	routes[0].Rate, routes[1].Rate = limits.Rate{PerSecond: 0.2, Burst: 1}, limits.Rate{PerSecond: 100}
	for range 200 {
		expect(t, "", Sent{Err: w.send(routes).Err})
		w.advance(500 * time.Millisecond)
	}
	slow := 0
	for _, host := range w.relays.asked {
		if host == "slow" {
			slow++
		}
	}
	if slow < 18 || slow > 21 || len(w.relays.asked) != 200 {
		t.Errorf("in 100 s, %d of %d messages went through a gateway that takes one in 5 s", slow,
			len(w.relays.asked))
	}
}

type countingLimits struct {
	Limits
	takes int
}

func (l *countingLimits) Reserve(ctx context.Context, scopes []limits.Scope, n int,
	reservation limits.Reservation) (limits.Answer, error) {
	l.takes++
	return l.Limits.Reserve(ctx, scopes, n, reservation)
}
