package routing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/smtpsend"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a Router with fake parts.
type world struct {
	*Router
	t        *testing.T
	at       time.Time
	relays   *fakeRelays
	limits   *fakeLimits
	tokens   *fakeTokens
	gateways *fakeGateways
	registry *prometheus.Registry
	draw     float64
}

func setup(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, at: begin, registry: prometheus.NewRegistry()}
	w.relays = &fakeRelays{w: w, does: map[string]string{}}
	w.limits = &fakeLimits{w: w, full: map[string]time.Time{}, paused: map[string]bool{},
		slowed: map[string]time.Duration{}, open: map[string]int{}}
	w.tokens = &fakeTokens{token: "t1"}
	w.gateways = &fakeGateways{known: map[string]gateways.Relay{}}
	var err error
	w.Router, err = New(Parts{Transports: NewTransports(w.relays, nil, nil), Limits: w.limits,
		Token: w.tokens.Access, Gateways: w.gateways},
		Options{
			Now: func() time.Time { return w.at }, Random: func() float64 { return w.draw }, Registry: w.registry,
		})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) advance(d time.Duration) { w.at = w.at.Add(d) }

// send sends an email to some recipients, by default one, through an account with these routes.
func (w *world) send(routes []gateways.Relay, to ...string) Sent {
	w.t.Helper()
	return w.Send(w.t.Context(), dispatch(routes, to...))
}

func dispatch(routes []gateways.Relay, to ...string) Dispatch {
	if len(to) == 0 {
		to = []string{"b@example.org"}
	}
	return Dispatch{
		Account: accounts.Sender{ID: "shop", Relays: routes},
		Message: smtpsend.Message{From: "a@example.com", To: to, Body: smtpsend.Bytes("Subject: x\r\n\r\ny\r\n")},
	}
}

func own() gateways.Relay { return gateways.Relay{SMTP: smtpsend.Relay{Host: "own", Port: 25}} }

// gateway is a route named like its host: "b", or "b:3" with a weight.
func gateway(name string) gateways.Relay {
	name, weight, _ := strings.Cut(name, ":")
	r := gateways.Relay{Gateway: name, SMTP: smtpsend.Relay{Host: name, Port: 25}}
	_, _ = fmt.Sscan(weight, &r.Weight)
	return r
}

func list(names ...string) []gateways.Relay {
	var out []gateways.Relay
	for _, name := range names {
		if name == "own" {
			out = append(out, own())
			continue
		}
		out = append(out, gateway(name))
	}
	return out
}

// summary is a Sent in a line: "own:unreachable b:delivered", and what it came to.
func (s Sent) summary() string {
	var words []string
	for _, t := range s.Tries {
		what, _ := judge(t, false)
		name := t.Gateway
		if name == "" {
			name = "own"
		}
		words = append(words, name+":"+string(what))
	}
	switch {
	case !s.Wait.IsZero():
		words = append(words, "wait "+s.Wait.Sub(begin).String())
	case s.Err != nil:
		words = append(words, "error "+verdictOf(s.Err))
	}
	return strings.Join(words, " ")
}

func verdictOf(err error) string {
	if e, ok := errors.AsType[*smtpsend.Error](err); ok {
		return string(e.Verdict)
	}
	return err.Error()
}

// fakeRelays do what does says of their host, and what a recipient's local part says otherwise.
type fakeRelays struct {
	w *world
	// by host: "" or delivers, down, badlogin, throttled, crowded, token (wants t2), stops
	does    map[string]string
	asked   []string                  // hosts, in order
	replies map[string]smtpsend.Error // to recipients, by local part
	tokens  []string
	stop    context.CancelFunc
	mu      sync.Mutex
}

func (f *fakeRelays) note(relay smtpsend.Relay) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked, f.tokens = append(f.asked, relay.Host), append(f.tokens, relay.AccessToken)
}

var replies = map[string]smtpsend.Error{
	"down": {Phase: smtpsend.PhaseConnect, Verdict: smtpsend.Soft, Scope: smtpsend.ScopeAccount,
		Err: errors.New("connection refused")},
	"badlogin": {Phase: smtpsend.PhaseAuth, Code: 535, Line: "535 no", Verdict: smtpsend.Auth,
		Scope: smtpsend.ScopeAccount},
	"throttled": {Phase: smtpsend.PhaseMail, Code: 421, Line: "421 slowly", Verdict: smtpsend.Throttle,
		Scope: smtpsend.ScopeConnection, RetryAfter: time.Minute},
	"crowded": {Phase: smtpsend.PhaseConnect, Verdict: smtpsend.Throttle, Scope: smtpsend.ScopeConnection,
		RetryAfter: 2 * time.Second, Err: errors.New("full")},
	"session": {Phase: smtpsend.PhaseMail, Code: 451, Line: "451 too many messages on this connection",
		Verdict: smtpsend.Soft, Scope: smtpsend.ScopeConnection, Reconnect: true},
	"busy": {Phase: smtpsend.PhaseMail, Code: 450, Line: "450 rate limited", Verdict: smtpsend.Throttle,
		Scope: smtpsend.ScopeDestination},
	"nobody": {Phase: smtpsend.PhaseRcpt, Code: 550, Line: "550 5.1.1 nobody", Verdict: smtpsend.Hard,
		Scope: smtpsend.ScopeRecipient},
	"later": {Phase: smtpsend.PhaseRcpt, Code: 451, Line: "451 4.7.1 later", Verdict: smtpsend.Soft,
		Scope: smtpsend.ScopeRecipient},
	"quota": {Phase: smtpsend.PhaseRcpt, Code: 452, Line: "452 4.3.2 quota", Verdict: smtpsend.Throttle,
		Scope: smtpsend.ScopeAccount, RetryAfter: 5 * time.Minute},
	"doubt": {Phase: smtpsend.PhaseDot, Verdict: smtpsend.Soft, Scope: smtpsend.ScopeConnection,
		InDoubt: true, Err: errors.New("no answer")},
}

func (f *fakeRelays) Send(_ context.Context, relay smtpsend.Relay, m smtpsend.Message) (smtpsend.Result,
	error) {
	f.note(relay)
	r := smtpsend.Result{RemoteName: relay.Host}
	var first error
	some := false
	for _, to := range m.To {
		got := smtpsend.RecipientResult{Address: to, Response: "250 " + relay.Host}
		if e := f.reply(relay, to); e != nil {
			got.Err, got.Response = e, e.Line
			if first == nil {
				first = e
			}
		} else {
			some = true
		}
		r.Recipients = append(r.Recipients, got)
	}
	if some {
		return r, nil
	}
	return r, first
}

func (f *fakeRelays) reply(relay smtpsend.Relay, to string) *smtpsend.Error {
	does := f.does[relay.Host]
	switch does {
	case "token":
		if relay.AccessToken == "t2" {
			return nil
		}
		does = "badlogin"
	case "stops":
		f.stop()
		does = "down"
	case "partly": // a connection that is lost when only some recipients are through
		does = "down"
		if strings.HasPrefix(to, "first") || strings.HasPrefix(to, "nobody") {
			does = ""
		}
	}
	local, _, _ := strings.Cut(to, "@")
	if e, ok := f.replies[local]; ok {
		return &e
	}
	for _, what := range []string{does, local} {
		if e, ok := replies[what]; ok {
			return &e
		}
	}
	return nil
}

func (f *fakeRelays) Verify(_ context.Context, relay smtpsend.Relay) error {
	f.note(relay)
	if e := f.reply(relay, "x@y"); e != nil {
		return e
	}
	return nil
}

// fakeLimits are full where the test says so, and give places.
type fakeLimits struct {
	w      *world
	full   map[string]time.Time // until then
	paused map[string]bool      // full because the relay asked for it
	slowed map[string]time.Duration
	slows  bool           // destinations
	open   map[string]int // connections, by scope
	takes  []string
	away   bool
}

func (f *fakeLimits) Reserve(_ context.Context, scopes []limits.Scope, n int,
	reservation limits.Reservation) (limits.Answer, error) {
	if f.away {
		return limits.Answer{}, fault.New(fault.Unavailable, "", "Redis is away")
	}
	var names []string
	for _, s := range scopes {
		names = append(names, s.Name)
	}
	f.takes = append(f.takes, strings.TrimSpace(fmt.Sprintf("%s %d %s", strings.Join(names, "+"), n,
		reservation)))
	for _, name := range names {
		if until := f.full[name]; f.w.at.Before(until) {
			return limits.Answer{At: until, Reservation: limits.Reservation("b.1.0.s." + name),
				Reason: name + " is full", Scope: name}, nil
		}
	}
	return limits.Answer{OK: true}, nil
}

func (f *fakeLimits) Throttled(_ context.Context, scope string, wait time.Duration) error {
	f.slowed[scope] = wait
	return nil
}

func (f *fakeLimits) State(_ context.Context, scope string) (limits.State, error) {
	if f.paused[scope] {
		return limits.State{Pace: 0.1}, nil
	}
	return limits.State{}, nil
}

func (f *fakeLimits) SlowsDestinations(context.Context, string) (bool, error) {
	if f.away {
		return false, fault.New(fault.Unavailable, "", "Redis is away")
	}
	return f.slows, nil
}

func (f *fakeLimits) Connect(_ context.Context, scope string, most int) (func(), error) {
	if f.open[scope] >= most {
		return nil, &limits.Full{Scope: scope, Most: most}
	}
	f.open[scope]++
	return func() { f.open[scope]-- }, nil
}

// fakeTokens hand out t1, and t2 when that is refused.
type fakeTokens struct {
	token   string
	err     error // instead of any token
	refresh error // instead of another token
	asked   []string
}

func (f *fakeTokens) Access(_ context.Context, owner string, _ oauth.Client, refused string) (string, error) {
	f.asked = append(f.asked, strings.TrimSpace(owner+" "+refused))
	switch {
	case f.err != nil:
		return "", f.err
	case refused == f.token && f.refresh != nil:
		return "", f.refresh
	case refused == f.token:
		f.token = "t2"
	}
	return f.token, nil
}

// fakeGateways note their calls.
type fakeGateways struct {
	known  map[string]gateways.Relay
	err    error
	told   []string
	opened []string
}

func (f *fakeGateways) Resolve(_ context.Context, id string) (gateways.Relay, error) {
	if f.err != nil {
		return gateways.Relay{}, f.err
	}
	r, ok := f.known[id]
	if !ok {
		return gateways.Relay{}, fault.New(fault.NotFound, "GatewayNotFound", "no such gateway")
	}
	return r, nil
}

func (f *fakeGateways) Outcome(_ context.Context, id string, took int, err error) {
	f.told = append(f.told, fmt.Sprintf("%s took %d, error %t", id, took, err != nil))
}

func (f *fakeGateways) Opened(_ context.Context, id string, until time.Time) {
	f.opened = append(f.opened, id+" until "+until.Sub(begin).String())
}
