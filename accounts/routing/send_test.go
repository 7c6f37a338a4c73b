package routing

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/smtpsend"
)

func TestFailover(t *testing.T) {
	for _, c := range []struct {
		name   string
		routes []string
		does   map[string]string
		to     []string
		want   string
	}{
		{"the first takes it", []string{"own", "b"}, nil, nil, "own:delivered"},
		{"a relay that is down is left", []string{"own", "b"}, map[string]string{"own": "down"}, nil,
			"own:unreachable b:delivered"},
		{"one that refuses the login too", []string{"own", "b"}, map[string]string{"own": "badlogin"}, nil,
			"own:unreachable b:delivered"},
		{"and one that asks to slow down", []string{"own", "b"}, map[string]string{"own": "throttled"}, nil,
			"own:slowed b:delivered"},
		{"whoever's network it dislikes", []string{"own", "b"}, map[string]string{"own": "busy"}, nil,
			"own:slowed b:delivered"},
		{"one that wants a new connection gets it", []string{"own", "b"}, map[string]string{"own": "session"}, nil,
			"own:refused own:refused b:delivered"},
		{"all the way down the list", []string{"own", "b", "c", "d"}, map[string]string{
			"own": "down", "b": "badlogin", "c": "down"}, nil,
			"own:unreachable b:unreachable c:unreachable d:delivered"},
		{"a refused recipient stays refused", []string{"own", "b"}, nil, []string{"nobody@x"},
			"own:refused error hard"},
		{"a recipient to be tried later is", []string{"own", "b"}, nil, []string{"later@x"},
			"own:refused error soft"},
		{"never in doubt", []string{"own", "b"}, nil, []string{"doubt@x"}, "own:broken error soft"},
		{"what the later relay says counts", []string{"own", "b"}, map[string]string{"own": "down"},
			[]string{"nobody@x"},
			"own:unreachable b:refused error hard"},
		{"soft before auth", []string{"own", "b"}, map[string]string{"own": "down", "b": "badlogin"}, nil,
			"own:unreachable b:unreachable error soft"},
		{"whichever came first", []string{"own", "b"}, map[string]string{"own": "badlogin", "b": "down"}, nil,
			"own:unreachable b:unreachable error soft"},
		{"all refuse the login", []string{"own", "b"}, map[string]string{"own": "badlogin", "b": "badlogin"}, nil,
			"own:unreachable b:unreachable error auth"},
		{"weighted ones stand in for each other", []string{"a:1", "b:1", "c"}, map[string]string{"a": "down"}, nil,
			"a:unreachable b:delivered"},
		{"then come the fallbacks", []string{"a:1", "c", "b:1"}, map[string]string{"a": "down", "b": "down"}, nil,
			"a:unreachable b:unreachable c:delivered"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := setup(t)
			w.relays.does = c.does
			sent := w.send(list(c.routes...), c.to...)
			if diff := cmp.Diff(c.want, sent.summary()); diff != "" {
				t.Error(diff)
			}
			if len(sent.Result.Recipients) != max(1, len(c.to)) {
				t.Errorf("result of %d recipients", len(sent.Result.Recipients))
			}
		})
	}
}

func TestOnlyThoseLeftAreTakenElsewhere(t *testing.T) {
	w := setup(t)
	w.relays.does = map[string]string{"own": "partly"}
	d := dispatch(list("own", "b"), "first@x", "nobody@x", "second@x", "third@x")
	var told []string
	d.Message.Answered = func(_ context.Context, done []smtpsend.RecipientResult) error {
		for _, r := range done {
			told = append(told, r.Address)
		}
		return nil
	}
	sent := w.Send(t.Context(), d)
	if diff := cmp.Diff("own:delivered b:delivered", sent.summary()); diff != "" {
		t.Error(diff)
	}
	var got []string
	for _, r := range sent.Result.Recipients {
		got = append(got, r.Address+" "+r.Response)
	}
	want := []string{"first@x 250 own", "nobody@x 550 5.1.1 nobody", "second@x 250 b", "third@x 250 b"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := len(sent.Tries[1].Result.Recipients); n != 2 {
		t.Errorf("the second relay was given %d recipients, want the 2 left", n)
	}
}

func TestAnsweredTellsOfEarlierRelaysToo(t *testing.T) {
	m := smtpsend.Message{To: []string{"a@x", "b@x", "c@x"}}
	var told []string
	m.Answered = func(_ context.Context, done []smtpsend.RecipientResult) error {
		for _, r := range done {
			told = append(told, r.Address)
		}
		return nil
	}
	g := newResults(m)
	down := replies["down"]
	g.add(Try{Result: smtpsend.Result{Recipients: []smtpsend.RecipientResult{{Address: "a@x"},
		{Address: "b@x", Err: &down}, {Address: "c@x", Err: &down}}}})
	next := g.message()
	if diff := cmp.Diff([]string{"b@x", "c@x"}, next.To); diff != "" {
		t.Error(diff)
	}
	_ = next.Answered(t.Context(), []smtpsend.RecipientResult{{Address: "b@x"}})
	if diff := cmp.Diff([]string{"a@x", "b@x"}, told); diff != "" {
		t.Error(diff)
	}
}

func TestTheEndOfContextEndsTheAttempt(t *testing.T) {
	w := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	w.relays.does, w.relays.stop = map[string]string{"a": "stops"}, cancel
	sent := w.Send(ctx, dispatch(list("a", "b")))
	if diff := cmp.Diff([]string{"a"}, w.relays.asked); diff != "" {
		t.Error(diff)
	}
	if sent.Err == nil || len(w.gateways.told) > 0 || len(w.breakers.all) > 0 {
		t.Errorf("err %v; gateways told %v; %d failures remembered", sent.Err, w.gateways.told, len(w.breakers.all))
	}
}

func TestPinnedGateway(t *testing.T) {
	damaged := seal.ErrDamaged
	for _, c := range []struct {
		name    string
		pinned  string
		err     error
		does    string
		want    string
		missing bool
	}{
		{"is the only one", "p", nil, "", "p:delivered", false},
		{"nothing stands in for it", "p", nil, "down", "p:unreachable error soft", false},
		{"unknown", "q", nil, "", "error gateway q: the gateway does not exist", true},
		{"secrets that don't open are the account's trouble", "p", damaged, "", "error auth", false},
		{"Redis away: the message waits", "p", fault.New(fault.Unavailable, "", "away"), "", "wait 3s", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := setup(t)
			w.draw = 0.5
			w.gateways.known, w.gateways.err = map[string]gateways.Relay{"p": gateway("p")}, c.err
			w.relays.does = map[string]string{"p": c.does}
			d := dispatch(list("own", "b"))
			d.Gateway, d.Reservation = c.pinned, "kept"
			sent := w.Send(t.Context(), d)
			if diff := cmp.Diff(c.want, sent.summary()); diff != "" {
				t.Error(diff)
			}
			if errors.Is(sent.Err, ErrNoGateway) != c.missing {
				t.Errorf("error %v", sent.Err)
			}
			if !sent.Wait.IsZero() && sent.Reservation != "kept" {
				t.Errorf("reservation %q, want the one it had", sent.Reservation)
			}
		})
	}
}

func TestAnAccountWithoutRelays(t *testing.T) {
	sent := setup(t).send(nil, "a@x", "b@x")
	if !errors.Is(sent.Err, ErrNoRelay) || verdictOf(sent.Err) != "auth" || len(sent.Result.Recipients) != 2 {
		t.Errorf("%+v", sent)
	}
}

func TestRelaysRest(t *testing.T) {
	w := setup(t)
	w.relays.does = map[string]string{"a": "down"}
	for range failuresToRest {
		if got := w.send(list("a", "b")).summary(); got != "a:unreachable b:delivered" {
			t.Fatal(got)
		}
	}
	if diff := cmp.Diff([]string{"a until 30s"}, w.gateways.opened); diff != "" {
		t.Error(diff)
	}
	step := func(name string, after time.Duration, want string, names ...string) {
		t.Helper()
		w.advance(after)
		if diff := cmp.Diff(want, w.send(list(names...)).summary()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	step("it is skipped", time.Second, "b:delivered", "a", "b")
	step("but tried where it is the only one, which lengthens its rest", time.Second, "a:unreachable error soft",
		"a")
	step("a probe that fails", 61*time.Second, "a:unreachable b:delivered", "a", "b")
	step("rests on", time.Minute, "b:delivered", "a", "b")
	w.relays.does["a"] = ""
	step("a probe that works", 2*time.Minute, "a:delivered", "a", "b")
	step("and all is as before", 0, "a:delivered", "a", "b")
}

func TestWhenAllRestTheFirstDueIsTried(t *testing.T) {
	w := setup(t)
	w.relays.does = map[string]string{"a": "down", "b": "down"}
	for range failuresToRest {
		w.send(list("a"))
	}
	w.advance(time.Second)
	for range failuresToRest {
		w.send(list("b"))
	}
	w.relays.asked = nil
	for range 3 {
		w.send(list("a", "b"))
	}
	if diff := cmp.Diff([]string{"a", "b", "a"}, w.relays.asked); diff != "" {
		t.Errorf("each in its turn, one an attempt: %s", diff)
	}
}

func TestARestingRelayKeepsTheMessageAlive(t *testing.T) {
	w := setup(t)
	w.relays.does = map[string]string{"a": "down", "b": "badlogin"}
	for range failuresToRest {
		w.send(list("a"))
	}
	if diff := cmp.Diff("b:unreachable error soft", w.send(list("a", "b")).summary()); diff != "" {
		t.Errorf("one relay rests for a soft failure, the other refuses the login: %s", diff)
	}
}

func TestThrottlesAndJudgementsRestNobody(t *testing.T) {
	for _, does := range []string{"throttled", "crowded"} {
		w := setup(t)
		w.relays.does = map[string]string{"a": does}
		for range 2 * failuresToRest {
			w.send(list("a"))
		}
		w.relays.does["a"] = ""
		for range 2 * failuresToRest {
			w.send(list("a"), "nobody@x")
			w.send(list("a"), "doubt@x")
		}
		if len(w.gateways.opened) > 0 {
			t.Errorf("%s: rests %v", does, w.gateways.opened)
		}
	}
}

func TestAccessTokens(t *testing.T) {
	dead := &oauth.Error{Permanent: true, Code: "invalid_grant"}
	away := &oauth.Error{RetryAfter: 7 * time.Second}
	stubborn := &oauth.Error{Permanent: true, Code: oauth.CodeRefused}
	for _, c := range []struct {
		name         string
		does         string
		err, refresh error
		want         string
		tokens       string
		errorName    string
	}{
		{"one that works", "", nil, nil, "own:delivered", "t1", ""},
		{"one that is refused is replaced within the attempt", "token", nil, nil, "own:unreachable own:delivered",
			"t1 t2", ""},
		{"but only once", "badlogin", nil, nil, "own:unreachable own:unreachable error auth", "t1 t2", "EAUTH"},
		{"none for good", "", dead, nil, "own:unreachable error auth", "", "EOAUTH2"},
		{"none now", "", away, nil, "own:unreachable error soft", "", "EOAUTH2"},
		{"refused, and no other can be had now", "token", nil, away, "own:unreachable own:unreachable error soft",
			"t1", "EOAUTH2"},
		{"refused, and there is no other", "token", nil, stubborn, "own:unreachable error auth", "t1", "EAUTH"},
		{"other failures leave it alone", "down", nil, nil, "own:unreachable error soft", "t1", "ESOCKET"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := setup(t)
			w.relays.does = map[string]string{"own": c.does}
			w.tokens.err, w.tokens.refresh = c.err, c.refresh
			r := own()
			r.OAuth, r.OAuthUser = &oauth.Client{ClientID: "c"}, "me@example.com"
			sent := w.send([]gateways.Relay{r})
			if diff := cmp.Diff(c.want, sent.summary()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.tokens, strings.Join(w.relays.tokens, " ")); diff != "" {
				t.Error(diff)
			}
			if e, ok := errors.AsType[*smtpsend.Error](sent.Err); ok && (e.Name() != c.errorName || c.err == away &&
				e.RetryAfter != 7*time.Second) {
				t.Errorf("error %s, retry after %s, want %s", e.Name(), e.RetryAfter, c.errorName)
			}
			if !strings.HasPrefix(w.tokens.asked[0], "account:shop") {
				t.Errorf("tokens asked for %v", w.tokens.asked)
			}
		})
	}
}

func TestWithoutATokenTheNextRelayServes(t *testing.T) {
	w := setup(t)
	w.tokens.err = &oauth.Error{Permanent: true, Code: "invalid_grant"}
	routes := list("a", "b")
	routes[0].OAuth = &oauth.Client{ClientID: "c"}
	if diff := cmp.Diff("a:unreachable b:delivered", w.send(routes).summary()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"gateway:a"}, w.tokens.asked); diff != "" {
		t.Error(diff)
	}
}

func TestGatewaysAreToldWhatTheyMet(t *testing.T) {
	for _, c := range []struct {
		name, does, to string
		want           []string
	}{
		{"a delivery", "", "b@x", []string{"a took 1, error false"}},
		{"a refused recipient is no error of the gateway", "", "nobody@x", []string{"a took 0, error false"}},
		{"not reached", "down", "b@x", []string{"a took 0, error true"}},
		{"login refused", "badlogin", "b@x", []string{"a took 0, error true"}},
		{"slowed down", "", "quota@x", []string{"a took 0, error true"}},
		{"in doubt says nothing", "", "doubt@x", nil},
		{"nor does a connection that was not opened", "crowded", "b@x", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := setup(t)
			w.relays.does = map[string]string{"a": c.does, "own": c.does}
			w.send(list("a"), c.to)
			w.send(list("own"), c.to)
			if diff := cmp.Diff(c.want, w.gateways.told); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestThrottlesSlowTheRelayDown(t *testing.T) {
	for _, c := range []struct {
		name, route, does, to string
		want                  map[string]time.Duration
	}{
		{"a gateway at MAIL", "a", "throttled", "b@x", map[string]time.Duration{"gateway:a": time.Minute}},
		{"at RCPT", "a", "", "quota@x", map[string]time.Duration{"gateway:a": 5 * time.Minute}},
		{"the account's own relay, not its gateways", "own", "throttled", "b@x", map[string]time.Duration{
			"relay:shop": time.Minute}},
		{"our own limit of connections is no such wish", "a", "crowded", "b@x", map[string]time.Duration{}},
		{"nor is greylisting", "a", "", "later@x", map[string]time.Duration{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := setup(t)
			w.relays.does = map[string]string{c.route: c.does}
			sent := w.send(list(c.route), c.to)
			if diff := cmp.Diff(c.want, w.limits.slowed); diff != "" {
				t.Error(diff)
			}
			if e, ok := errors.AsType[*smtpsend.Error](sent.Err); ok && len(c.want) > 0 &&
				e.Verdict != smtpsend.Throttle {
				t.Errorf("the recipients met %s", e.Verdict)
			}
		})
	}
	t.Run("those delivered beside it don't hide it", func(t *testing.T) {
		w := setup(t)
		w.send(list("a"), "b@x", "quota@x")
		if w.limits.slowed["gateway:a"] != 5*time.Minute {
			t.Errorf("slowed down: %v", w.limits.slowed)
		}
	})
}

func TestVerify(t *testing.T) {
	w := setup(t)
	w.relays.does = map[string]string{"b": "badlogin", "c": "token"}
	d := dispatch(list("own", "b", "c"))
	d.Account.Relays[2].OAuth = &oauth.Client{ClientID: "c"}
	var got []string
	for _, l := range w.Verify(t.Context(), d.Account) {
		what := "works"
		if l.Err != nil {
			what = l.Err.Error()
		}
		got = append(got, l.Host+" "+what)
	}
	if diff := cmp.Diff([]string{"own:25 works", "b:25 smtp auth: 535 no", "c:25 works"}, got); diff != "" {
		t.Error(diff)
	}
}
