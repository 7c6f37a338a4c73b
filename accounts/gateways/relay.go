package gateways

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/apisend"
	"github.com/postroom/postroom/smtpsend/mxsend"
)

// Relay is a relay ready to use. It holds secrets in clear: it is for sending, not for showing.
type Relay struct {
	Gateway string          // id of the gateway; empty for an account's own relay
	Type    api.GatewayType // defaults to smtp
	SMTP    smtpsend.Relay  // for type smtp
	API     apisend.Target  // for types with an API
	MX      mxsend.Target   // for type mx
	// gets access tokens for the login; nil for the relay's own credentials, if any. Must not be changed
	OAuth     *oauth.Client
	OAuthUser string // the mailbox to log in as with OAuth, including in Relay.Username; empty without
	// the gateway's, shared by all accounts that use it; zero for an account's own relay, which has Sender.Rate
	Rate limits.Rate
	// limits for groups of recipients' domains; may be nil. Must not be changed
	Destinations *Destinations
	Warmup       *api.Warmup // see RateAt; may be nil. Must not be changed
	Lane         api.Lane    // the mail that it is for; empty means any
	Connections  int         // connections of all processes together; if 0, each process has its own 10
	// share of the load among the routes that have one; if 0, it is used when the routes before it fail
	Weight int
}

// Path is how a message reaches its relay. Empty fields are as in the relay's settings.
type Path struct {
	Proxy        string `json:"proxy,omitempty"` // URL without a password: it is stored in clear
	LocalAddress string `json:"localAddress,omitempty"`
}

// Check returns all wrong fields.
func (p Path) Check() fault.Fields {
	f := (&Settings{proxy: p.Proxy, localAddress: p.LocalAddress, absent: true}).Check()
	if u, err := url.Parse(p.Proxy); err == nil && u.User != nil {
		f.Add("proxy", "must not contain a password; set such a proxy in an account or gateway")
	}
	return f
}

// Apply makes a relay be reached by this path. The relay's password goes through a message's proxy only under
// TLS that was verified: people who may send must not learn it.
func (p Path) Apply(r *Relay) {
	if r.Type == api.GatewayMX {
		return // it has its own addresses, and goes through no proxy
	}
	if !r.IsSMTP() {
		r.API.Proxy = cmp.Or(p.Proxy, r.API.Proxy)
		return
	}
	r.SMTP.LocalAddress = cmp.Or(p.LocalAddress, r.SMTP.LocalAddress)
	if p.Proxy == "" {
		return
	}
	r.SMTP.Proxy, r.SMTP.InsecureSkipVerify, r.SMTP.AllowInsecureAuth = p.Proxy, false, false
	r.SMTP.OperatorsOwn = false // who may send chose the proxy
	if r.SMTP.TLS != smtpsend.TLSImplicit && r.SMTP.Username != "" {
		r.SMTP.TLS = smtpsend.TLSRequired
	}
}

// Host returns the address of the relay for display: its host, with a port where the settings have one.
func (r Relay) Host() string {
	switch {
	case r.Type == api.GatewayMX:
		return "the recipients' servers"
	case !r.IsSMTP():
		return r.API.Host()
	case r.SMTP.Port == 0:
		return r.SMTP.Host
	}
	return net.JoinHostPort(r.SMTP.Host, strconv.Itoa(r.SMTP.Port))
}

// mostDirect is how many messages a process has under way to recipients' servers. Each goes to different
// servers, and may wait for minutes.
const mostDirect = 200

// IsSMTP reports whether the relay speaks SMTP.
func (r Relay) IsSMTP() bool { return r.Type == "" || r.Type == api.GatewaySMTP }

// Most returns how many connections a process may have to the relay, or requests under way.
func (r Relay) Most() int {
	switch {
	case r.IsSMTP():
		return cmp.Or(r.SMTP.Connections, smtpsend.DefaultConnections)
	case r.Type == api.GatewayMX:
		return mostDirect
	}
	return r.API.Most()
}

// Serves reports whether the relay is for mail of a lane.
func (r Relay) Serves(lane api.Lane) bool { return r.Lane == "" || r.Lane == lane }

// String returns the relay without its secrets.
func (r Relay) String() string {
	if r.Gateway == "" {
		return "relay " + r.SMTP.String()
	}
	return "gateway " + r.Gateway
}

// GoString is String, for %#v.
func (r Relay) GoString() string { return r.String() }

// LogValue is String, for slog.
func (r Relay) LogValue() slog.Value { return slog.StringValue(r.String()) }

// MarshalText is String, for JSON.
func (r Relay) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Relay returns settings ready to use; their secrets must be in clear. record is the name of their record,
// such as "account:shop": all processes count connections under it.
func (s *Settings) Relay(record string) Relay {
	_, id, _ := strings.Cut(record, ":")
	p, l := s.preset(), s.Limits()
	if s.kind == api.GatewayMX {
		return Relay{Type: s.kind, MX: s.direct(id, l)}
	}
	if s.isAPI() {
		return Relay{Type: s.kind, API: s.target(id, record, l), Connections: l.Connections}
	}
	r := smtpsend.Relay{
		ID: id, Host: s.host(), Port: s.port(), Proxy: s.proxy, LocalAddress: s.localAddress, EHLOName: s.ehloName,
		Connections: l.Connections, MessagesPerConnection: l.PerConnection, RecipientsPerTransaction: p.PerTrans,
		IdleTimeout: p.Idle, Lifetime: p.MaxLifetime,
	}
	if l.Connections > 0 && record != "" {
		r.Shared = record
	}
	s.secure(&r)
	route := Relay{SMTP: r, Connections: l.Connections}
	s.logIn(&route)
	return route
}

// secure sets the protection of the connection. A provider's preset requires STARTTLS, unless the port has
// TLS from the first byte. For a generic relay nothing is required. A relay on this machine gets STARTTLS if
// it offers it, even with credentials: they do not leave the machine.
func (s *Settings) secure(r *smtpsend.Relay) {
	var t api.SMTPTLS
	if s.server.TLS != nil {
		t = *s.server.TLS
	}
	switch {
	case s.server.Secure:
		r.TLS = smtpsend.TLSImplicit
	case t.StartTLS == "required":
		r.TLS = smtpsend.TLSRequired
	case t.StartTLS == "opportunistic":
		r.TLS = smtpsend.TLSOpportunistic
	case t.StartTLS == "off":
		r.TLS = smtpsend.TLSNone
	case s.server.Preset != "" && s.server.Preset != "generic" && r.Port != 465:
		r.TLS = smtpsend.TLSRequired
	case r.Port != 465 && t.PinSHA256 == "" && r.Proxy == "" && onThisMachine(r.Host):
		r.TLS = smtpsend.TLSOpportunistic
	}
	r.InsecureSkipVerify = t.RejectUnauthorized != nil && !*t.RejectUnauthorized
	r.CA, r.Pin = t.CA, strings.Join(strings.Fields(t.PinSHA256), " ")
	if t.MinVersion == "TLSv1.3" {
		r.MinVersion = tls.VersionTLS13
	}
}

func (s *Settings) logIn(r *Relay) {
	if o := s.oauth; o != nil {
		r.OAuth = &oauth.Client{
			Provider: s.provider(), TokenURL: o.TokenURL, ClientID: o.ClientID, ClientSecret: o.ClientSecret,
			RefreshToken: o.RefreshToken,
			Scope:        o.Scope,
		}
		r.OAuthUser, r.SMTP.Username = o.User, o.User
		return
	}
	if auth := s.server.Auth; auth != nil {
		r.SMTP.Username, r.SMTP.Password, r.SMTP.AccessToken = auth.User, auth.Pass, auth.AccessToken
	}
}

// Rate returns the rates of limits.
func Rate(l api.Limits) limits.Rate {
	return limits.Rate{PerSecond: l.PerSecond, PerMinute: l.PerMinute, PerDay: l.PerDay, Burst: l.Burst}
}

// found is a cached gateway.
type found struct {
	route   Relay
	hook    Hook
	missing bool
	broken  error // why its secrets don't open
}

// Resolve returns a gateway ready to use, or NotFound, code GatewayNotFound. It is at most about a second
// old, and usually costs no round trip.
func (s *Store) Resolve(ctx context.Context, id string) (Relay, error) {
	f, err := s.present(ctx, id)
	return f.route, err
}

// present returns a gateway that exists and whose secrets open.
func (s *Store) present(ctx context.Context, id string) (found, error) {
	f, err := s.find(ctx, id)
	switch {
	case err != nil:
		return found{}, err
	case f.missing:
		return found{}, notFound(id)
	}
	return f, f.broken
}

// Exists reports whether there is a gateway of this id, from the cache of Resolve. Its secrets may not open.
func (s *Store) Exists(ctx context.Context, id string) (bool, error) {
	f, err := s.find(ctx, id)
	return err == nil && !f.missing, err
}

// find returns a gateway, usually from the cache. The absence of a gateway is cached too: accounts list
// deleted gateways.
func (s *Store) find(ctx context.Context, id string) (found, error) {
	f, _, err := s.routes.Get(ctx, id, s.now(), func(ctx context.Context) (found, bool, error) {
		f, err := s.load(ctx, id)
		return f, err == nil && f.broken == nil, err // a broken gateway is read, and noticed, each time
	})
	return f, err
}

func (s *Store) load(ctx context.Context, id string) (found, error) {
	g, err := s.store.Open(ctx, id)
	switch {
	case err != nil:
		return found{}, err
	case g == nil:
		return found{missing: true}, nil
	case g.Broken != nil:
		return found{broken: g.Broken}, nil
	}
	settings := ofGateway(g.Value)
	if settings.isAPI() && !apisend.Known(settings.kind) { // a later version stored it
		return found{broken: fmt.Errorf("this version of Postroom has no gateways of type %s", settings.kind)}, nil
	}
	route := settings.Relay(record(id))
	route.Gateway, route.Rate, route.Warmup = id, Rate(settings.Limits()), g.Value.Warmup
	route.Destinations = NewDestinations(settings.kind, settings.perDomain)
	return found{route: route, hook: Hook{ProviderOf(settings.kind), settings.api.WebhookSecret}}, nil
}
