package routing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/telemetry"
	"github.com/postroom/postroom/smtpsend"
)

// ErrNoGateway is the error of a message that names a gateway which does not exist. Another attempt is
// useless.
var ErrNoGateway = errors.New("the gateway does not exist")

// ErrNoRelay is the error for an account that has neither its own relay nor an existing gateway.
var ErrNoRelay = errors.New(
	"the account has no relay left for this lane: its gateways were deleted, or are for the other one")

// Limits admits messages to relays. It is limits.Limits.
type Limits interface {
	Reserve(ctx context.Context, scopes []limits.Scope, n int, reservation limits.Reservation) (limits.Answer,
		error)
	Throttled(ctx context.Context, scope string, retryAfter time.Duration) error
	State(ctx context.Context, scope string) (limits.State, error)
	SlowsDestinations(ctx context.Context, gateway string) (bool, error)
	Connect(ctx context.Context, scope string, most int) (release func(), err error)
}

// Gateways are the relays that accounts share. It is gateways.Store.
type Gateways interface {
	Resolve(ctx context.Context, id string) (gateways.Relay, error)
	Outcome(ctx context.Context, id string, took int, err error)
	Opened(ctx context.Context, id string, until time.Time)
}

// Parts are what Router needs. Only Group is optional.
type Parts struct {
	Transports Transports
	Limits     Limits
	Gateways   Gateways
	// Token returns an access token for the login of an owner: oauth.Tokens.Access.
	Token func(ctx context.Context, owner string, c oauth.Client, refused string) (string, error)
	// Group returns the group that a domain's mail servers belong to, for gateways of type mx:
	// mxsend.Sender.Group. If nil, the domain's name decides.
	Group func(ctx context.Context, domain string) (string, error)
}

// Options are the settings of a Router. The zero value works.
type Options struct {
	Logger   *slog.Logger          // nil to discard
	Registry prometheus.Registerer // nil to measure nothing
	Now      func() time.Time      // the clock, for tests; defaults to time.Now
	Random   func() float64        // from 0 up to, not including, 1; defaults to math/rand
	// how many messages may be under way at relays that have not answered yet, so that they never hold all
	// workers; 0 means any number
	Untested int
}

// Router sends messages to relays. It is safe for concurrent use.
type Router struct {
	Parts
	breakers   *breakers
	fullRelays *fullRelays
	turns      *turns
	slots      *connectionLimits
	metrics    *metrics
	log        *slog.Logger
	now        func() time.Time
	random     func() float64
}

// New returns a Router. It fails if a part is missing or the metrics can't be registered.
func New(p Parts, o Options) (*Router, error) {
	if p.Transports[api.GatewaySMTP] == nil || p.Limits == nil || p.Token == nil || p.Gateways == nil {
		return nil, errors.New("routing: a transport for SMTP, limits, tokens and gateways are needed")
	}
	r := &Router{Parts: p, breakers: &breakers{}, fullRelays: &fullRelays{}, turns: &turns{}, now: o.Now,
		random: o.Random, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler))}
	if r.now == nil {
		r.now = time.Now
	}
	if r.random == nil {
		r.random = rand.Float64
	}
	r.slots = newConnectionLimits(o.Untested, r.now)
	var err error
	r.metrics, err = telemetry.Try(func() *metrics { return newMetrics(o.Registry, r.breakers, r.slots) })
	return r, err
}

// Dispatch is a message to be sent.
type Dispatch struct {
	Account accounts.Sender
	Lane    api.Lane // chooses among the account's relays; defaults to transactional
	// the only gateway to use, whatever the account has; empty for the account's relays
	Gateway string
	// the only gateway to use of the account's relays, if it is among them: it remembers a request in doubt;
	// empty for any
	Only          string
	gateways.Path                    // instead of the relays' own; zero for theirs
	Message       smtpsend.Message   // to the recipients left
	Reservation   limits.Reservation // from an earlier Sent with Wait, or empty
	// reports whether messages before this one wait for a connection to a relay, by scope; may be nil
	Behind func(scope string) bool
}

// Try is one relay that was tried.
type Try struct {
	Gateway    string // empty for the account's own relay
	Direct     bool   // straight to the recipients' servers, so that a failure may be one destination's
	Host       string // with port, where the settings have one
	Address    string // local IP address to connect from; empty for the system's choice
	Start, End time.Time
	Result     smtpsend.Result // lists only the recipients that were left at Start
	Err        error           // an *smtpsend.Error; nil if at least one recipient got it
}

// Sent is the result of a Dispatch.
type Sent struct {
	// Tries are the relays that were tried, in order. A relay that refused an access token and was given another
	// is there twice.
	Tries []Try
	// Result joins the tries. It lists every recipient in the order of Message.To, with the reply of the relay
	// that judged it, else the failure most worth another attempt. The other fields are of the last try that
	// changed a recipient.
	Result smtpsend.Result
	// Err is nil if at least one recipient got the message. Otherwise it wraps ErrNoGateway, and nothing was
	// tried, or it is an *smtpsend.Error about the whole message, Permanent only if every recipient's is.
	Err error

	// Wait is when to come back; not zero only if no relay was tried, so that no attempt is spent. The other
	// fields above are empty then.
	Wait time.Time
	// Reservation then replaces the Dispatch's. It may be empty.
	Reservation limits.Reservation
	// Reason is the reason of the wait, for operators.
	Reason string
	// Relay is the scope of the relay that the message waits for, if it waits for a connection: it may come back
	// as soon as Slots says so. Empty if it waits for something else.
	Relay string
	// Destination is the name of the destination whose limit the message waits for, so that email to others may
	// go. Empty if it waits for something else.
	Destination string
}

// Scope names the relay of a gateway, or the account's own if gateway is empty.
func Scope(account, gateway string) string {
	if gateway != "" {
		return gatewayScope + gateway
	}
	return "relay:" + account
}

// Slots returns how many messages of a lane that wait for a connection to a relay (Sent.Relay) may be sent
// now, as far as this process knows.
func (r *Router) Slots(scope string, lane api.Lane) int { return r.slots.wanted(scope, lane) }

// ExpectWaiting notes that n messages that waited for a connection to a relay were woken.
func (r *Router) ExpectWaiting(scope string, n int) { r.slots.expect(scope, n) }

// Answers reports whether a relay takes mail, as far as this process knows: it neither stalls nor is paused.
func (r *Router) Answers(scope string) bool {
	return !r.slots.mute(scope) && !r.breakers.resting(scope, r.now())
}

// Instead returns the scope of the relay that serves an account's mail in a lane while another relay, given
// by its scope, does not answer. It is empty if there is none, or it has no room soon.
func (r *Router) Instead(account accounts.Sender, lane api.Lane, scope string) string {
	for _, c := range order(account.ID, Serving(account.Relays, lane), r.random) {
		k, full := r.fullRelays.find(c.scope+string(lane), r.now())
		full = full && k.until.Sub(r.now()) > firstRest // noSlot judges likewise
		if c.scope != scope && !full && r.Answers(c.scope) {
			return c.scope
		}
	}
	return ""
}

// Away returns the relays that have not answered this process since an attempt failed, or since messages
// under way are overdue. A relay without mail for 15 minutes is not among them.
func (r *Router) Away() []Away { return r.slots.away() }

// Run logs the relays that begin to stall, until ctx ends; then it returns nil. A relay that stalls gets no
// further message, so no attempt would notice.
func (r *Router) Run(ctx context.Context) error {
	for redisdb.Pause(ctx, lookEvery) {
		for _, a := range r.slots.look() {
			r.log.WarnContext(ctx, "relay stalls: it gets no further messages from this process until it answers",
				"relay", a.Scope, "since", a.Since)
		}
	}
	return nil
}

// Send makes one attempt to send a message through one of the account's relays. After the end of ctx no
// further relay is tried.
func (r *Router) Send(ctx context.Context, d Dispatch) Sent {
	routes, err := r.Relays(ctx, d.Account, d.Gateway, d.Lane)
	if err != nil {
		return r.unresolved(d, err)
	}
	if len(routes) == 0 {
		return failed(d.Message, ErrNoRelay)
	}
	if i := slices.IndexFunc(routes, func(r gateways.Relay) bool { return r.Gateway == d.Only }); i >= 0 &&
		d.Only != "" {
		routes = routes[i : i+1]
	}
	for i := range routes {
		routes[i].Rate = routes[i].RateAt(r.now())
		d.Path.Apply(&routes[i])
	}
	return r.newAttempt(d, order(d.Account.ID, routes, r.random)).run(ctx)
}

// Relays returns the relays that an account's message may go through: the gateway that it names, else the
// account's relays that serve its lane.
func (r *Router) Relays(ctx context.Context, account accounts.Sender, gateway string, lane api.Lane) (
	[]gateways.Relay, error) {
	if gateway == "" {
		return Serving(account.Relays, cmp.Or(lane, api.Transactional)), nil
	}
	route, err := r.Gateways.Resolve(ctx, gateway)
	if err != nil {
		return nil, err
	}
	return []gateways.Relay{route}, nil
}

// unresolved is the result if the gateway of a message can't be looked up.
func (r *Router) unresolved(d Dispatch, err error) Sent {
	switch {
	case fault.Is(err, fault.NotFound):
		return Sent{Err: fmt.Errorf("gateway %s: %w", d.Gateway, ErrNoGateway)}
	case errors.Is(err, seal.ErrUnknownKey), errors.Is(err, seal.ErrDamaged):
		return failed(d.Message, fmt.Errorf("the secrets of gateway %s can't be opened: %w", d.Gateway, err))
	}
	r.log.Warn("gateway not looked up", "gateway", d.Gateway, "error", err)
	r.metrics.waits["unavailable"].Inc()
	return Sent{Wait: r.now().Add(r.soon()), Reservation: d.Reservation, Reason: "gateway " + d.Gateway +
		" can't be looked up now"}
}

// soon returns the wait after a failure that should pass: 1 to 5 s, random, so that messages do not all come
// back together.
func (r *Router) soon() time.Duration {
	return time.Second + time.Duration(r.random()*float64(4*time.Second))
}

// failed is the result if the account's settings leave no relay.
func failed(m smtpsend.Message, why error) Sent {
	err := &smtpsend.Error{Phase: smtpsend.PhaseCheck, Verdict: smtpsend.Auth, Scope: smtpsend.ScopeAccount,
		Err: why}
	return Sent{Result: sameForAll(m.To, err), Err: err}
}

// sameForAll returns a result with the same error for all recipients.
func sameForAll(to []string, err *smtpsend.Error) smtpsend.Result {
	r := smtpsend.Result{Recipients: make([]smtpsend.RecipientResult, len(to))}
	for i, address := range to {
		r.Recipients[i] = smtpsend.RecipientResult{Address: address, Err: err}
	}
	return r
}
