package tracking

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/internal/telemetry"
	"github.com/postroom/postroom/outbox"
)

// Options are the settings. The zero value works.
type Options struct {
	// Expiry is how long the hits of a message are counted after its acceptance. Zero means for ever.
	Expiry time.Duration
	// Address is the part of a visitor's address that is kept: feedback.AddressWhole, AddressMasked (default) or
	// AddressNone.
	Address string
	// Secret keys the hash that distinguishes visitors. All processes need the same. If empty, it is random, so
	// a visitor who reaches two processes within a second is counted twice.
	Secret []byte
	// MaxHits and MaxBytes bound the hits in memory. Defaults to 50,000 and 32 MB.
	MaxHits, MaxBytes int
	// Grace bounds the last transfer when Run ends. Defaults to 5 s.
	Grace time.Duration
	// Blocked returns what clicks must not lead to: hosts, with their subdomains, and ids of messages whose
	// links must not work. It must not wait. Nil if nothing is blocked.
	Blocked func() []string
	// Registry gets the metrics. Nil if nothing is counted.
	Registry prometheus.Registerer
	// Logger gets failures of the inbox. Nil if nothing is logged.
	Logger *slog.Logger
	// Now is the clock, for tests. Defaults to time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if len(o.Secret) == 0 {
		o.Secret = []byte(rand.Text())
	}
	o.MaxHits = cmp.Or(o.MaxHits, 50_000)
	o.MaxBytes = cmp.Or(o.MaxBytes, 32<<20)
	o.Grace = cmp.Or(o.Grace, 5*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Tracking notes hits. It may be used by many goroutines.
type Tracking struct {
	Options
	tokens  *signedtoken.Ring
	put     func(ctx context.Context, facts []outbox.Fact) error
	hits    *ring
	metrics *metrics
}

// New returns a Tracking. tokens is the ring that signed the links of the mail. put is Append of
// feedback.Feedback: when it returns nil, the facts are stored durably.
func New(tokens *signedtoken.Ring, put func(ctx context.Context, facts []outbox.Fact) error, o Options) (
	*Tracking, error) {
	if tokens == nil || put == nil {
		return nil, errors.New("tracking: the tokens and an inbox are needed")
	}
	t := &Tracking{Options: o.withDefaults(), tokens: tokens, put: put}
	t.hits = newRing(t.MaxHits, t.MaxBytes)
	var err error
	t.metrics, err = telemetry.Try(func() *metrics { return newMetrics(o.Registry, t.hits.len) })
	return t, err
}

// Visit is the HTTP request of a hit.
type Visit struct {
	Method string      // GET; HEAD is answered, and not counted
	Header http.Header // the request's; it is not changed
	Remote netip.Addr  // the visitor's address; invalid: unknown
	Named  string      // for a click: the target next to the token, which must equal the token's; empty if none
}

// Open notes that the picture of an email was fetched. The picture is shown for an invalid token too, so Open
// returns nothing.
func (t *Tracking) Open(token string, v Visit) {
	s, err := t.tokens.Read(signedtoken.Open, token)
	switch {
	case errors.Is(err, signedtoken.ErrPreview):
		t.metrics.count(opened, preview)
		return
	case err != nil:
		t.metrics.count(opened, forged)
		return
	}
	t.note(opened, s, v)
}

// The errors of Click.
var (
	ErrNowhere = errors.New("the token is not valid")
	ErrPreview = errors.New("the link is of a preview")
	ErrBlocked = errors.New("the link is blocked")
)

// Click notes that a link was followed, and returns its target. After an error nothing in the request is a
// target, and nothing was noted: ErrNowhere, ErrPreview, or ErrBlocked by Options.Blocked.
func (t *Tracking) Click(token string, v Visit) (target string, _ error) {
	s, err := t.tokens.Read(signedtoken.Click, token)
	switch {
	case errors.Is(err, signedtoken.ErrPreview):
		t.metrics.count(clicked, preview)
		return "", ErrPreview
	case err != nil || !safe(s.URL) || v.Named != "" && v.Named != s.URL:
		t.metrics.count(clicked, forged)
		return "", ErrNowhere
	case t.Blocked != nil && blocks(t.Blocked(), s):
		t.metrics.count(clicked, blocked)
		return "", ErrBlocked
	}
	t.note(clicked, s, v)
	return s.URL, nil
}

// blocks reports whether a list of hosts and messages has the target or the message of a link.
func blocks(list []string, s signedtoken.Token) bool {
	if len(list) == 0 {
		return false
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return true
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	return slices.ContainsFunc(list, func(entry string) bool {
		entry = strings.ToLower(entry)
		return entry == host || strings.HasSuffix(host, "."+entry) || strings.EqualFold(entry, s.MessageID)
	})
}

// safe reports whether a redirect may lead to a URL: http or https, to a host, with nothing ambiguous. Tokens
// are only made for such URLs; this check is for the day that their key is stolen.
func safe(target string) bool {
	if strings.ContainsFunc(target, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }) {
		return false
	}
	u, err := url.Parse(target)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil
}

// kind says whether a hit is an open or a click.
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

// note keeps a hit for Run, or counts the reason against it.
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
