package accounts

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/schedule"
)

// Sender is an account ready to use. It holds secrets in clear: it is for sending, not for showing.
type Sender struct {
	ID       string
	Name     string // display name; empty if none
	Email    string
	Locale   string // for the templates it uses; defaults to en
	TZ       string // time zone of dates in templates; defaults to UTC
	Opens    *bool  // whether opens of its mail are counted; nil for the setting
	Clicks   *bool  // whether clicks are, likewise
	Webhooks string // URL that gets the account's events; may be empty
	// a submit without an idempotency key is refused
	KeyRequired bool
	// the account's own relay, then its gateways in order; see Ready. Not to be changed
	Relays []gateways.Relay
	Retry  []time.Duration // delays between attempts, the last repeats; nil for the setting. Must not be changed
	Rate   limits.Rate     // the account's, over all relays; zero if not bounded
	Quota  Quota           // how much it may have
	Hold   bool            // mail waits while the account itself is refused, instead of failing
	Held   *Held           // nil if its mail does not wait now
	// its key, with the private key in clear; nil for the domain's key, if any. Must not be changed
	DKIM *api.DKIM

	// what it may send as, in normal form and lower case; see MaySendAs and Owns. Must not be changed
	Addresses, Domains []string
	// its gateways, those left out of Relays too; see CheckGateway. Not to be changed
	Gateways []api.Route
}

// Ready returns nil if there is a relay for the sender's mail of a lane. Conflict, code AccountWithoutRelay,
// with a message that says what to do: all gateways of its list were deleted, can't be opened, or are for the
// other lane. A message that names a gateway can be sent even then.
func (s Sender) Ready(lane api.Lane) error {
	for _, r := range s.Relays {
		if r.Serves(lane) {
			return nil
		}
	}
	if len(s.Relays) > 0 {
		return fault.New(fault.Conflict, "AccountWithoutRelay",
			"Account %q has no gateway for %s messages. Add one with PUT /v1/account/%s, or remove a "+
				"gateway's lane", s.ID, lane, s.ID)
	}
	return fault.New(fault.Conflict, "AccountWithoutRelay",
		"Account %q has no gateway left. Set smtp or other gateways with PUT /v1/account/%s", s.ID,
		s.ID)
}

// LogValue keeps the sender's secrets out of logs.
func (s Sender) LogValue() slog.Value { return slog.StringValue(s.ID) }

// String keeps the sender's secrets out of text.
func (s Sender) String() string { return "account " + s.ID }

// GoString is String, for %#v.
func (s Sender) GoString() string { return s.String() }

// MarshalText keeps the sender's secrets out of JSON.
func (s Sender) MarshalText() ([]byte, error) { return []byte(s.ID), nil }

// entry is a cached account.
type entry struct {
	sender   Sender      // with its own relay, if it has one
	gateways []api.Route // its other relays; resolved each time, because they change without the account
	broken   error       // why its secrets don't open
	warned   *sync.Map   // missing gateways that were logged
}

// Unreadable is the error code if an account's secrets don't open.
const Unreadable = "AccountUnreadable"

// Resolve returns an account ready to use; the empty id means DefaultID. The account is at most about a
// second old, and usually costs no round trip. Gateways of its list that were deleted, or whose secrets don't
// open, are left out; [Sender.Ready] fails if none is left. It returns NotFound, code AccountNotFound, with a
// message that says what to do, and Unavailable, code AccountUnreadable, if secrets don't open.
func (a *Accounts) Resolve(ctx context.Context, id string) (Sender, error) {
	e, err := a.find(ctx, id)
	switch {
	case err != nil:
		return Sender{}, err
	case e.broken != nil:
		return Sender{}, fault.Wrap(e.broken, fault.Unavailable, Unreadable,
			"The secrets of account %q can't be decrypted, because they, their host or port, or this instance's "+
				"secret changed. Enter them again with PUT /v1/account/%s", e.sender.ID, e.sender.ID)
	case len(e.gateways) == 0:
		return e.sender, nil
	}
	return a.withGateways(ctx, e)
}

// Webhooks returns the URL that gets an account's events, or "", even if its relays can't be used. It returns
// NotFound for an unknown account.
func (a *Accounts) Webhooks(ctx context.Context, id string) (string, error) {
	e, err := a.find(ctx, id)
	return e.sender.Webhooks, err
}

// find returns an account, usually from the cache.
func (a *Accounts) find(ctx context.Context, id string) (entry, error) {
	id = cmp.Or(id, DefaultID)
	e, _, err := a.senders.Get(ctx, id, a.now(), func(ctx context.Context) (entry, bool, error) {
		e, err := a.loadSender(ctx, id)
		return e, err == nil && e.broken == nil, err // a broken account is read, and noticed, each time
	})
	return e, err
}

// withGateways returns an account with its own relay and its gateways.
func (a *Accounts) withGateways(ctx context.Context, e entry) (Sender, error) {
	s := e.sender
	s.Relays = append(make([]gateways.Relay, 0, len(s.Relays)+len(e.gateways)), s.Relays...)
	for _, g := range e.gateways {
		route, err := a.gateways.Resolve(ctx, g.Gateway)
		switch {
		case fault.Is(err, fault.Unavailable) || ctx.Err() != nil:
			return Sender{}, err
		case err != nil:
			if _, again := e.warned.LoadOrStore(g.Gateway, true); !again {
				a.log.WarnContext(ctx, "gateway of an account left out", "account", s.ID, "gateway", g.Gateway, "error",
					err)
			}
			continue
		}
		route.Weight, route.Lane = g.Weight, g.Lane
		s.Relays = append(s.Relays, route)
	}
	return s, nil
}

// loadSender reads an account with its state and its secrets in clear.
func (a *Accounts) loadSender(ctx context.Context, id string) (entry, error) {
	s, err := a.store.Open(ctx, id)
	switch {
	case err != nil:
		return entry{}, err
	case s == nil:
		return entry{}, notFound(id)
	}
	if !s.Stored() {
		if err := a.noticeEdit(ctx, s.State); err != nil {
			return entry{}, err
		}
	}
	e, err := newEntry(s.Value, a.hold)
	if len(e.sender.Relays) > 0 {
		e.sender.Relays[0].SMTP.OperatorsOwn = a.operatorsOwn(s.Value)
	}
	e.sender.permit(s.Value, a.addressOnly)
	e.sender.Quota = a.quota.with(s.Value.Quota)
	if e.broken = s.Broken; e.broken != nil {
		e.sender.Relays, e.sender.DKIM = nil, nil // their secrets are masked
	}
	if e.sender.Hold {
		e.sender.Held = state(s.State).hold()
	}
	return e, err
}

// newEntry returns an account, whose secrets are in clear, ready to use. holdByDefault replaces an absent
// accountTrouble.
func newEntry(account api.Account, holdByDefault bool) (entry, error) {
	settings := gateways.OfAccount(account)
	s := Sender{
		ID: account.Account, Name: account.Name, Email: account.Email, Webhooks: account.Webhooks,
		DKIM: account.DKIM, Locale: account.Locale, TZ: account.TZ,
		Opens: account.TrackOpens, Clicks: account.TrackClicks, KeyRequired: account.IdempotencyRequired,
		Rate: gateways.Rate(settings.Limits()), Hold: holds(account, holdByDefault), Gateways: account.Gateways,
	}
	if account.SMTP != nil {
		s.Relays = []gateways.Relay{settings.Relay(place(account.Account))}
	}
	for _, text := range account.Retry {
		d, err := schedule.ParseDuration(text)
		if err != nil {
			return entry{}, fmt.Errorf("retry schedule of account %s: %w", account.Account, err)
		}
		s.Retry = append(s.Retry, d)
	}
	return entry{sender: s, gateways: account.Gateways, warned: &sync.Map{}}, nil
}

// Described returns the relay of a request to verify settings. Invalid names every wrong field.
func Described(req api.VerifyRequest) (gateways.Relay, error) {
	if req.Type != "" && req.Type != api.GatewaySMTP {
		return gateways.Described(api.Gateway{Type: req.Type, API: req.API, MX: req.MX, OAuth2: req.OAuth2,
			Proxy:        req.Proxy,
			LocalAddress: req.LocalAddress, SMTPEhloName: req.SMTPEhloName})
	}
	settings := gateways.OfAccount(api.Account{
		SMTP: req.SMTP, OAuth2: req.OAuth2, Proxy: req.Proxy, LocalAddress: req.LocalAddress,
		SMTPEhloName: req.SMTPEhloName,
	})
	f := settings.Check()
	if req.SMTP == nil {
		f.Add("smtp", "is required: the relay to try")
	}
	if err := fault.InvalidFields(f); err != nil {
		return gateways.Relay{}, err
	}
	return settings.Relay(""), nil
}
