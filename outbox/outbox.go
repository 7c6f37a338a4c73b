package outbox

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/message/signedtoken"
	"github.com/postroom/postroom/queue"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/suppression"
	"github.com/postroom/postroom/templates/render"
)

// TaskDeliver is the type of the tasks that wake the delivery of a message. The message's id is the part of the task's id before the dot;
// there is no payload, so that Redis keeps a task in its compact form (64 bytes at most): a million of them take 230 MB less.
const TaskDeliver = "deliver"

// Sender takes one message to one of its account's relays. The routes package implements it; package app joins the two.
type Sender interface {
	Send(ctx context.Context, d Dispatch) Dispatched
}

// Dispatch is a message on its way to a relay.
type Dispatch struct {
	ID      string // of the message
	Account string
	Gateway string // the only one to use; empty: as the account and the lane say
	Lane    api.Lane
	Slot    string // the place in a limit that an earlier Dispatched gave; empty: none
	Message smtpsend.Message
}

// Dispatched says what came of it.
type Dispatched struct {
	Tries  []Try           // in order; the last one is what counts
	Result smtpsend.Result // of the one that counts
	Err    error           // nil: somebody got the message; [ErrNoGateway]: the one named does not exist

	Wait   time.Time // not zero: a limit is reached, nothing was tried; come back then, and show Slot
	Slot   string
	Reason string // why to wait, for people
}

// Try is one relay asked.
type Try struct {
	Gateway    string // empty: the account's own relay
	Host       string // with port
	Start, End time.Time
	Result     smtpsend.Result
	Err        error
}

// ErrNoGateway is why a message can't be sent whose gateway was deleted.
var ErrNoGateway = errors.New("the gateway no longer exists")

// Signer signs messages at the door.
type Signer interface {
	// Sign answers the content with the signature that belongs to the account, or to the author's domain; as it is when there is no key.
	Sign(ctx context.Context, account, domain string, content []byte) ([]byte, error)
}

// Templates finds stored templates. The templates package implements it; package app joins the two.
type Templates interface {
	// Template finds a template as an account may use it, in its variant for a locale, with all that rendering needs. Unknown: a fault of
	// kind NotFound with code TemplateNotFound.
	Template(ctx context.Context, account, id, locale string) (Template, error)
}

// Template is a stored template at one version.
type Template struct {
	ID      string
	Version int
	Source  render.Source
	Options render.Options
	Strict  bool // variables that are missing are an error
}

// Accounts knows who sends and through which relay. The accounts package implements it; package app joins the two.
type Accounts interface {
	// Account finds an account. Unknown: a fault of kind NotFound.
	Account(ctx context.Context, id string) (Account, error)
	// Gateway says whether there is a gateway of this id. None: a fault of kind NotFound.
	Gateway(ctx context.Context, id string) error
	// Outcome tells what an attempt through the account met; nil is success.
	Outcome(ctx context.Context, id string, err error)
	// Trial says whether a message of a held account may be tried all the same: once at each check that is due.
	Trial(ctx context.Context, id string) (bool, error)
}

// Account is a sender, ready to use.
type Account struct {
	ID     string
	Name   string
	Email  string
	Locale string // of the templates it uses; empty: en
	TZ     string // likewise; empty: UTC

	TrackOpens, TrackClicks *bool // of mail that doesn't say; nil: as Options.Track says

	Retry []time.Duration      // delays between attempts; nil: Options.Backoff
	Hold  bool                 // mail waits while the account itself is refused, instead of failing
	Held  *Held                // nil: it does not wait now
	Ready func(api.Lane) error // why no message of a lane is taken that names no gateway; nil error, or nil: there is a relay
}

// Held is an account whose mail waits because its login, token, certificate or sender was refused.
type Held struct {
	Reason string
	Next   time.Time // when a message is tried again
}

// Parts are what an Outbox is built from.
type Parts struct {
	DB        *redisdb.DB
	Queue     *queue.Client
	Control   *queue.Control
	Sender    Sender
	Accounts  Accounts
	Signer    Signer    // nil: nothing is signed
	Templates Templates // nil: there are none

	Suppressions *suppression.Store // whom not to mail; nil: everybody may be mailed

	Tokens *signedtoken.Ring // makes the tokens of links, pictures and return paths; nil: there are none
}

// Options are the settings of an Outbox. The zero value of each field means its default.
type Options struct {
	ServiceURL  func() string               // public address, for templates and links; nil: none
	Track       func() (opens, clicks bool) // of accounts that don't say; nil: neither
	StrictWords bool                        // variables missing in words that are no stored template are an error
	Attempts    func() int                  // attempts of a message that asks for no number; nil: 10
	Backoff     queue.Backoff               // delays between attempts; zero: 5 s doubling, 20 % jitter
	Lease       time.Duration               // how long a silent worker holds a message; 0: 8 s
	HoldInDoubt bool                        // an attempt in doubt becomes a dead letter instead of being sent again

	MaxSize        int           // bytes of a composed message; 0: 25 MB
	MaxLive        int           // live messages, beyond which submits are refused; 0: no limit
	MaxMemoryShare float64       // share of Redis' maxmemory, beyond which submits are refused; 0: 0.75
	KeyRetention   time.Duration // how long an idempotency key holds; 0: 168 h

	KeepDeadLetters  time.Duration // how long a failed message stays for replay; negative: its content goes at once; 0: 168 h
	MaxDeadLetters   int           // 0: 100,000
	KeepEnded        time.Duration // how long the log remembers what became of a message; negative: not at all; 0: 168 h
	MaxEnded         int           // 0: 1,000,000
	KeepText         int           // bytes of its text kept of a message that ended, until Indexed; 0: there is no search index
	RefuseSuppressed bool          // a message all of whose recipients are suppressed is refused, instead of skipped
	BounceDomain     string        // return paths are made in this domain; empty: bounces go to the message's own
	KeepReferences   time.Duration // how long messages are found by what others call them (Lookup); 0: they are not
	MaxEvents        int           // events kept in the stream, beside those not yet read; 0: 100,000

	Logger   *slog.Logger          // nil: no log
	Registry prometheus.Registerer // nil: no metrics
	Now      func() time.Time      // the clock, for tests; nil: the machine's, kept to Redis'
}

func (o Options) withDefaults() Options {
	if o.Attempts == nil {
		o.Attempts = func() int { return 10 }
	}
	if o.Backoff.Base == 0 && len(o.Backoff.Schedule) == 0 {
		o.Backoff = queue.Backoff{Base: 5 * time.Second, Factor: 2, Jitter: 0.2}
	}
	o.Lease = or(o.Lease, 8*time.Second)
	o.MaxSize = or(o.MaxSize, 25<<20)
	o.MaxMemoryShare = or(o.MaxMemoryShare, 0.75)
	o.KeyRetention = or(o.KeyRetention, 168*time.Hour)
	o.KeepDeadLetters = or(o.KeepDeadLetters, 168*time.Hour)
	o.MaxDeadLetters = or(o.MaxDeadLetters, 100_000)
	o.KeepEnded = or(o.KeepEnded, 168*time.Hour)
	o.MaxEnded = or(o.MaxEnded, 1_000_000)
	o.MaxEvents = or(o.MaxEvents, 100_000)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// share is the part of a number for the whole outbox that one partition may fill. Messages are spread evenly.
func (b *Outbox) share(whole int) int { return (whole + b.DB.Partitions() - 1) / b.DB.Partitions() }

// Outbox accepts messages and delivers them. It is safe for concurrent use, and any number of processes may share one Redis.
type Outbox struct {
	Parts
	opts    Options
	clock   *clock
	codec   *codec
	letters *letters
	jsons   *packer
	store   store
	leases  *leases
	queued  *queuedNotes
	handled atomic.Int64 // messages accepted and attempts recorded by this process
	unseen  atomic.Int64 // bytes put into Redis since it last looked at its memory
	log     *slog.Logger
	mail    maillog
	metrics *metrics
}

// New makes an Outbox. Nothing runs until Run is called; Submit and the operator's verbs work without it.
func New(parts Parts, o Options) (*Outbox, error) {
	if parts.DB == nil || parts.Queue == nil || parts.Control == nil || parts.Sender == nil || parts.Accounts == nil {
		return nil, errors.New("new outbox: a part is missing")
	}
	if parts.DB.Partitions() > maxPartitions {
		return nil, errors.New("new outbox: more partitions than an id can name (1024)")
	}
	o = o.withDefaults()
	contents, err := newCodec()
	if err != nil {
		return nil, err
	}
	b := &Outbox{
		Parts: parts, opts: o, clock: newClock(o.Now), codec: contents, jsons: newPacker(), log: o.Logger, mail: maillog{o.Logger},
		store: store{db: parts.DB}, metrics: newMetrics(o.Registry),
	}
	b.letters = newLetters(b)
	b.leases = newLeases(b)
	b.queued = newQueuedNotes(b)
	if o.Registry != nil {
		o.Registry.MustRegister(collector{b})
	}
	return b, nil
}

// Handled counts the messages this process accepted and the attempts it made, since it began: how fast it grows says how much there is to do.
func (b *Outbox) Handled() int64 { return b.handled.Load() }

// Run keeps the outbox going until ctx ends: it renews the leases this process holds, notes what was queued, and sweeps.
func (b *Outbox) Run(ctx context.Context) error {
	if err := b.clock.calibrate(ctx, b.DB.Client()); err != nil {
		b.log.WarnContext(ctx, "clock not calibrated yet", "error", err)
	}
	var wg sync.WaitGroup
	for _, part := range []func(context.Context){b.leases.run, b.queued.run, newSweeper(b).run} {
		wg.Go(func() { part(ctx) })
	}
	wg.Wait()
	return nil
}
