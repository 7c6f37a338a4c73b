package routing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb/seal"
	"github.com/postroom/postroom/smtpsend"
)

// ErrNoGateway is why a message can't be sent that names a gateway which does not exist (any more). Another
// attempt is pointless.
var ErrNoGateway = errors.New("the gateway does not exist")

// ErrNoRelay is why an account can't send that has neither a relay of its own nor a gateway that still
// exists.
var ErrNoRelay = errors.New(
	"the account has no relay left for this lane: its gateways were deleted, or are for the other one")

// Sender talks to one relay. It is smtpsend.Sender.
type Sender interface {
	Send(ctx context.Context, relay smtpsend.Relay, m smtpsend.Message) (smtpsend.Result, error)
	Verify(ctx context.Context, relay smtpsend.Relay) error
}

// Limits bound what goes to a relay. It is limits.Limits.
type Limits interface {
	Take(ctx context.Context, scopes []limits.Scope, n int, reservation limits.Reservation) (limits.Answer,
		error)
	Throttled(ctx context.Context, scope string, retryAfter time.Duration) error
	State(ctx context.Context, scope string) (limits.State, error)
}

// Gateways are the relays that accounts share. It is gateways.Store.
type Gateways interface {
	Resolve(ctx context.Context, id string) (gateways.Relay, error)
	Outcome(ctx context.Context, id string, took int, err error)
	Opened(ctx context.Context, id string, until time.Time)
}

// Parts are what Router is built from. All are needed.
type Parts struct {
	Sender   Sender
	Limits   Limits
	Gateways Gateways
	// Token returns an access token for the login of an owner: oauth.Tokens.Access.
	Token func(ctx context.Context, owner string, c oauth.Client, refused string) (string, error)
}

// Options tune Router. The zero value works.
type Options struct {
	Logger   *slog.Logger          // nil: discard
	Registry prometheus.Registerer // nil: measure nothing
	Now      func() time.Time      // nil: the machine's clock
	Random   func() float64        // from 0 up to, not including, 1; nil: math/rand
}

// Router takes messages to relays. It is safe for concurrent use.
type Router struct {
	Parts
	breakers   *breakers
	fullRelays *fullRelays
	metrics    *metrics
	log        *slog.Logger
	now        func() time.Time
	random     func() float64
}

// New makes a Router. It fails when a part is missing or the metrics can't be registered.
func New(p Parts, o Options) (*Router, error) {
	if p.Sender == nil || p.Limits == nil || p.Token == nil || p.Gateways == nil {
		return nil, errors.New("routes: a sender, limits, tokens and gateways are needed")
	}
	r := &Router{Parts: p, breakers: &breakers{}, fullRelays: &fullRelays{}, log: o.Logger, now: o.Now,
		random: o.Random}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.now == nil {
		r.now = time.Now
	}
	if r.random == nil {
		r.random = rand.Float64
	}
	var err error
	if r.metrics, err = newMetrics(o.Registry, r.breakers); err != nil {
		return nil, fmt.Errorf("routes: register metrics: %w", err)
	}
	return r, nil
}

// Dispatch is a message on its way.
type Dispatch struct {
	// of the message, which the provider behind a relay is to tell with its events; empty: none
	ID      string
	Account accounts.Sender
	Lane    api.Lane // chooses among the account's relays; empty: transactional
	// the only gateway to use, whatever the account has; empty: the account's relays
	Gateway     string
	Message     smtpsend.Message   // to the recipients left
	Reservation limits.Reservation // of an earlier Sent with Wait; empty: none
}

// Try is one relay that was tried.
type Try struct {
	Gateway    string // empty: the account's own relay
	Host       string // with port, where the settings have one
	Start, End time.Time
	Result     smtpsend.Result // lists only the recipients that were left at Start
	Err        error           // an *smtpsend.Error; nil: somebody got it
}

// Sent says what came of a Dispatch.
type Sent struct {
	// Tries are the relays that were tried, in order. A relay that refused an access token and was given another
	// is there twice.
	Tries []Try
	// Result puts the tries together. It lists every recipient in the order of Message.To with the answer that
	// counts: what a relay said about it, else the failure most worth another attempt. The rest of it is the
	// last try's that counted.
	Result smtpsend.Result
	// Err is nil when somebody got the message. Otherwise it is an *smtpsend.Error that speaks for the whole
	// message, not Permanent if any recipient's is not; or it wraps ErrNoGateway, and nothing was tried.
	Err error

	// Wait is when to come back; not zero only if no relay was tried, so that no attempt is spent. The other
	// fields above are empty then.
	Wait time.Time
	// Reservation is to be shown then, instead of any earlier one. It may be empty.
	Reservation limits.Reservation
	// Reason says why to wait, for people.
	Reason string
}

// Send makes one attempt to hand a message to one of the account's relays. The end of ctx ends it; no further
// relay is tried then.
func (r *Router) Send(ctx context.Context, d Dispatch) Sent {
	routes := d.Account.Relays
	if d.Gateway != "" {
		route, err := r.Gateways.Resolve(ctx, d.Gateway)
		if err != nil {
			return r.unresolved(d, err)
		}
		routes = []gateways.Relay{route}
	} else {
		routes = serving(routes, cmp.Or(d.Lane, api.Transactional))
	}
	if len(routes) == 0 {
		return failed(d.Message, ErrNoRelay)
	}
	for i := range routes {
		routes[i].Rate = routes[i].RateAt(r.now())
	}
	return r.newAttempt(d, order(d.Account.ID, routes, r.random)).run(ctx)
}

// unresolved is a message whose gateway can't be had.
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

// soon is how long to wait for something that should not be away: 1 to 5 s, so that messages do not all come
// back at once.
func (r *Router) soon() time.Duration {
	return time.Second + time.Duration(r.random()*float64(4*time.Second))
}

// failed is a message that the account's settings don't let go anywhere.
func failed(m smtpsend.Message, why error) Sent {
	err := &smtpsend.Error{Phase: smtpsend.PhaseCheck, Verdict: smtpsend.Auth, Scope: smtpsend.ScopeAccount,
		Err: why}
	return Sent{Result: everybody(m.To, err), Err: err}
}

// everybody is a result in which all recipients met the same.
func everybody(to []string, err *smtpsend.Error) smtpsend.Result {
	r := smtpsend.Result{Recipients: make([]smtpsend.RecipientResult, len(to))}
	for i, address := range to {
		r.Recipients[i] = smtpsend.RecipientResult{Address: address, Err: err}
	}
	return r
}
