package tracking

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/message/signedtoken"
	"github.com/postroom/postroom/outbox"
)

// Inbox takes facts about messages, and keeps them durably when it answers nil. feedback.Feedback implements it.
type Inbox interface {
	Append(ctx context.Context, facts []outbox.Later) error
}

// How much of the address of a visitor is kept.
const (
	AddressMasked = "masked" // without its last octet (IPv4) or its last 80 bits (IPv6)
	AddressWhole  = "ip"     // all of it
	AddressNone   = "none"   // nothing
)

// Options are the choices of the one who runs Postroom. The zero value works.
type Options struct {
	// Expiry is how long after its acceptance the hits of a message are counted. Zero: for ever.
	Expiry time.Duration
	// Address says what is kept of addresses: AddressWhole, AddressMasked or AddressNone. Empty: AddressMasked.
	Address string
	// Secret keys the hash by which visitors are told apart; the same for all processes. Empty: one of its own, so that a visitor who
	// reaches two processes within a second is counted twice.
	Secret []byte
	// MaxHits and MaxBytes bound what waits in memory. Zero: 50,000 and 32 MB.
	MaxHits, MaxBytes int
	// Grace is how long handing over may take once Run is told to stop. Zero: 5 s.
	Grace time.Duration
	// Registry gets the metrics. Nil: nobody does.
	Registry prometheus.Registerer
	// Logger gets troubles of the inbox. Nil: nothing is logged.
	Logger *slog.Logger
	// Now is the clock, for tests. Nil: the machine's.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Address == "" {
		o.Address = AddressMasked
	}
	if len(o.Secret) == 0 {
		o.Secret = []byte(rand.Text())
	}
	if o.MaxHits == 0 {
		o.MaxHits = 50_000
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 32 << 20
	}
	if o.Grace == 0 {
		o.Grace = 5 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Tracking notes hits. It may be used by many goroutines.
type Tracking struct {
	Options
	stamps  *signedtoken.Ring
	inbox   Inbox
	hits    *ring
	metrics *metrics
}

// New makes a Tracking of the ring that signed the tokens and the inbox that takes what they tell.
func New(stamps *signedtoken.Ring, inbox Inbox, o Options) (*Tracking, error) {
	if stamps == nil || inbox == nil {
		return nil, errors.New("tracking: stamps and an inbox are needed")
	}
	t := &Tracking{Options: o.withDefaults(), stamps: stamps, inbox: inbox}
	t.hits = newRing(t.MaxHits, t.MaxBytes)
	var err error
	t.metrics, err = newMetrics(o.Registry, t.hits.len)
	return t, err
}

// Visit is who hit, as far as HTTP tells.
type Visit struct {
	Method string      // GET; HEAD is answered, and not counted
	Header http.Header // of the request; nothing of it is changed
	Remote netip.Addr  // the visitor's address; invalid: unknown
	Named  string      // of a click: the target that the request names beside its token, which must be the token's own; empty: none
}

// Open notes that the picture of a mail was fetched. Whatever the token is, the picture has to be shown: there is nothing to answer.
func (t *Tracking) Open(token string, v Visit) {
	s, err := t.stamps.Read(signedtoken.Open, token)
	if err != nil {
		t.metrics.count(opened, forged)
		return
	}
	t.note(opened, s, v)
}

// Click notes that a link was followed, and says where it leads; false for a token that leads nowhere. Then there is nothing to redirect to,
// whatever else the request says.
func (t *Tracking) Click(token string, v Visit) (target string, ok bool) {
	s, err := t.stamps.Read(signedtoken.Click, token)
	if err != nil || !safe(s.URL) || v.Named != "" && v.Named != s.URL {
		t.metrics.count(clicked, forged)
		return "", false
	}
	t.note(clicked, s, v)
	return s.URL, true
}

// safe reports whether a redirect may lead to a URL: http or https, to a host, with nothing that is read in two ways. Links are only made of
// such ones; this is the second lock, for the day that the key of the first one is lost.
func safe(target string) bool {
	if strings.ContainsFunc(target, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }) {
		return false
	}
	u, err := url.Parse(target)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil
}

// kind is what was hit.
type kind string

const (
	opened  kind = "open"
	clicked kind = "click"
)

func (k kind) event() event.Type {
	if k == clicked {
		return event.TrackClick
	}
	return event.TrackOpen
}

// note keeps a hit for Run, or counts why not.
func (t *Tracking) note(k kind, s signedtoken.Token, v Visit) {
	now := t.Now()
	switch {
	case v.Method == http.MethodHead || prefetches(v.Header):
		t.metrics.count(k, ignored)
		return
	case t.Expiry > 0 && now.Sub(s.Time()) > t.Expiry:
		t.metrics.count(k, expired)
		return
	}
	h := t.newHit(k, s, v, now)
	again, dropped := t.hits.put(h, now)
	if again {
		t.metrics.count(k, repeated)
	}
	t.metrics.dropped.Add(float64(dropped))
}
