package feedback

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/internal/lease"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/suppression"
)

// Outbox has the messages. outbox.Facts implements it.
type Outbox interface {
	// Learn puts facts onto the timelines of their messages, and returns one result for each.
	RecordFacts(ctx context.Context, facts []outbox.Fact) ([]outbox.FactResult, error)
	// Lookup returns the proofs of the messages that references belong to, with "" for unknown ones.
	Lookup(ctx context.Context, refs []string) ([]string, error)
	// Recipients returns the recipients of messages, one result for each id.
	Recipients(ctx context.Context, ids []string) ([]outbox.Addressed, error)
}

// Suppression is the suppression list. suppression.Store implements it.
type Suppression interface {
	Add(ctx context.Context, entries ...suppression.Entry) (added int, err error)
	// Soft counts a soft bounce, and suppresses the address after too many. A message counts once, however
	// often it is reported.
	Soft(ctx context.Context, e suppression.Entry, now time.Time) (suppressed bool, err error)
	// Confirmed counts an email that reports the reason for an address. It reports whether emails about two
	// messages of the account do.
	Confirmed(ctx context.Context, e suppression.Entry, now time.Time) (bool, error)
	// WithDefaults returns a bounce or complaint with the scope and the expiry of the settings.
	WithDefaults(e suppression.Entry) suppression.Entry
}

// Parts are what feedback needs. All are required.
type Parts struct {
	DB          *redisdb.DB
	Outbox      Outbox
	Suppression Suppression
	Tokens      *signedtoken.Ring // reads return paths and proofs
	// Account returns the id of the account that is meets, or "" if there is none.
	Account func(ctx context.Context, is func(id string) bool) (string, error)
}

// Options are the settings. The zero value accepts no webhooks.
type Options struct {
	// Providers are the secrets of each provider whose webhooks are accepted. provider.Options describes the
	// secrets.
	Providers map[provider.Name][]string
	// Hook returns a gateway's provider, and the secret that proves its own webhooks. If Hook is nil, or there
	// is no secret, none are accepted. It returns NotFound for an unknown gateway.
	Hook func(ctx context.Context, gateway string) (provider.Name, string, error)

	// MaxFacts bounds the waiting facts of a stream, in all partitions together. Defaults to 100,000. Beyond it,
	// providers are answered 503; for hits, the oldest are dropped.
	MaxFacts int
	// LookupDelays are the delays before a fact's message is looked up again. Defaults to 5 seconds, 30 seconds,
	// 2 minutes.
	LookupDelays []time.Duration

	// StoreAddress is the part of an IP address that is stored for opens, clicks and unsubscribes: AddressWhole,
	// AddressMasked (default) or AddressNone.
	StoreAddress string

	// KeepRaw keeps the provider's JSON of an event next to the fields read from it, in the timeline and in
	// webhooks.
	KeepRaw bool

	// Sources returns the events APIs to reconcile with now; they come and go with the gateways. May be nil.
	Sources func(ctx context.Context) ([]Source, error)
	Every   time.Duration // interval of the reconciliation; defaults to 1 hour
	// Wait waits until a provider may be asked again, or ctx ends. Nil waits by the clock.
	Wait func(ctx context.Context, d time.Duration)

	// Pace returns the messages a second of this process; nil if it never pauses. See package search.
	Pace func() float64

	// Transport is for the requests to SNS. If nil, certificates are fetched as provider.Options says; a
	// transport that reaches only public addresses confirms subscriptions.
	Transport http.RoundTripper

	Logger   *slog.Logger          // nil if nothing is logged
	Registry prometheus.Registerer // nil if nothing is measured
	Now      func() time.Time      // defaults to time.Now
}

const (
	defaultMaxFacts = 100_000
	defaultEvery    = time.Hour
	maxWaiting      = 20_000 // facts of a partition that wait for their message; more count as unknown
)

func (o Options) withDefaults() Options {
	o.MaxFacts = cmp.Or(max(o.MaxFacts, 0), defaultMaxFacts)
	if o.LookupDelays == nil {
		o.LookupDelays = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute}
	}
	o.Every = cmp.Or(max(o.Every, 0), defaultEvery)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == nil {
		o.Wait = func(ctx context.Context, d time.Duration) { redisdb.Pause(ctx, d) }
	}
	return o
}

// Feedback takes facts in and applies them. It is safe for concurrent use.
type Feedback struct {
	Parts
	opts      Options
	log       *slog.Logger
	keys      store
	metrics   *metrics
	verifiers map[provider.Name]*provider.Verifier
	confirmer *http.Client
	owner     lease.Lock // the reconciling process

	mu      sync.Mutex
	tries   map[string]int       // failures of entries that fail alone, by their id in the inbox
	logged  map[string]time.Time // when a refusal was last logged, by provider and gateway
	hooks   map[string]hook      // by gateway
	reading map[string]bool      // sources that were read, and whether they are being read now
}

// New returns a Feedback. An invalid secret is an error that names the provider.
func New(parts Parts, o Options) (*Feedback, error) {
	if parts.DB == nil || parts.Outbox == nil || parts.Suppression == nil || parts.Tokens == nil ||
		parts.Account == nil {
		return nil, errors.New("new feedback: DB, Outbox, Suppression, Tokens and Account are needed")
	}
	o = o.withDefaults()
	f := &Feedback{
		Parts: parts, opts: o, log: o.Logger, keys: store{parts.DB}, metrics: newMetrics(o.Registry),
		verifiers: map[provider.Name]*provider.Verifier{},
		confirmer: confirmingClient(o.Transport), tries: map[string]int{}, logged: map[string]time.Time{},
		hooks: map[string]hook{}, reading: map[string]bool{},
		owner: lease.Lock{Client: parts.DB.Client(), Key: ownerKey(), Holder: rand.Text(), Length: claimFor},
	}
	for name, secrets := range o.Providers {
		v, err := f.newVerifier(name, secrets...)
		if err != nil {
			return nil, fmt.Errorf("feedback.providers.%s: %w", name, err)
		}
		f.verifiers[name] = v
	}
	return f, nil
}

// Run applies the facts of the inbox, and reconciles, until ctx ends. It returns nil.
func (f *Feedback) Run(ctx context.Context) error {
	var duties sync.WaitGroup
	for _, stream := range streams() {
		duties.Go(func() {
			if err := f.follow(ctx, stream); err != nil {
				f.log.Error("the inbox is not read", "stream", stream, "error", err)
			}
		})
	}
	duties.Go(func() { f.lookAgain(ctx) })
	duties.Go(func() { f.observe(ctx) })
	if f.opts.Sources != nil {
		duties.Go(func() { f.keep(ctx) })
	}
	duties.Wait()
	return nil
}
