package outbox

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/internal/telemetry"
	"github.com/postroom/postroom/outbox/suppression"
	"github.com/postroom/postroom/outbox/templates"
)

// Options are the settings of an Outbox. The zero value of each field means its default.
type Options struct {
	ServiceURL func() string               // public address, for templates and links; nil if none
	Track      func() (opens, clicks bool) // defaults of accounts; nil for neither
	// a missing variable is an error in content that is not a stored template
	StrictWords bool
	Attempts    func() int    // for messages that don't set it; defaults to 10
	Backoff     queue.Backoff // delays between attempts; defaults to 5 s doubling, 20 % jitter
	Lease       time.Duration // after which the message of a dead worker is sent by another; defaults to 4 s
	// an attempt in doubt becomes a dead letter instead of being sent again
	HoldInDoubt bool
	// how long a message in doubt waits for its provider's report; 0 if it does not
	ReportWait time.Duration

	// how many messages of an account, in a lane and a partition, have a task in the queue or are being sent;
	// the others wait in the account's backlog. Fewer than there are workers would leave some idle. Defaults to
	// 64
	Window int

	Seal           bool          // contents are sealed before they reach Redis; needs Parts.Ring
	MaxSize        int           // bytes of a composed message; defaults to 25 MB
	MaxAhead       time.Duration // how far ahead a message may be scheduled; 0 means any time
	MaxLive        int           // live messages, beyond which submits are refused; 0 means no limit
	MaxMemoryShare float64       // share of Redis' maxmemory, beyond which submits are refused; defaults to 0.75
	KeyRetention   time.Duration // how long an idempotency key holds after its message ended; defaults to 168 h
	RequireKey     bool          // a message without an idempotency key is refused
	// whose messages may only name senders and gateways of their account: messages from tokens that are bound to
	// it (the default), from all tokens, or from none
	Senders string // SendersBound, SendersAll, SendersOff

	// how long a failed message can be replayed; defaults to 168 h. If negative, its content is deleted
	// immediately
	KeepDeadLetters time.Duration
	MaxDeadLetters  int // defaults to 100,000
	// how long an ended message stays in the log; defaults to 168 h. If negative, there is no log
	KeepEnded time.Duration
	MaxEnded  int // defaults to 1,000,000
	// how long a sent message's content stays readable, at most KeepEnded; 0 if it is deleted immediately
	KeepContent time.Duration
	// bytes of an ended message's text that are kept until Indexed; 0 if there is no search index
	KeepText int
	// the event stream is archived: it has all campaign events, including events that no webhook gets
	Archived bool
	// a message is refused if all its recipients are suppressed; otherwise it is skipped
	RefuseSuppressed bool
	// domain of return paths; if empty, bounces go to the sender's address
	BounceDomain string
	// most recipients of a message that each have a return path, and a transaction; more share both
	OwnReturnPaths int
	// how long Lookup finds a message by its references; 0 if it does not
	KeepReferences time.Duration
	// ReportedBy reports whether somebody may report about a gateway's messages (empty means the account's own
	// relay). References of other messages aren't kept. If nil, all are
	ReportedBy func(ctx context.Context, gateway string) bool
	MaxEvents  int // in the stream, in addition to those not read yet; defaults to 100,000

	Traces   *telemetry.Tracer     // nil means no traces
	Logger   *slog.Logger          // nil means no log
	Registry prometheus.Registerer // nil means no metrics
	Now      func() time.Time      // the clock, for tests; defaults to the machine's, kept to Redis'
}

func (o Options) withDefaults() Options {
	if o.Attempts == nil {
		o.Attempts = func() int { return 10 }
	}
	if o.Backoff.Base == 0 && len(o.Backoff.Schedule) == 0 {
		o.Backoff = queue.Backoff{Base: 5 * time.Second, Factor: 2, Jitter: 0.2}
	}
	o.Lease = cmp.Or(o.Lease, 4*time.Second)
	o.Window = cmp.Or(o.Window, 64)
	o.MaxSize = cmp.Or(o.MaxSize, 25<<20)
	o.MaxMemoryShare = cmp.Or(o.MaxMemoryShare, 0.75)
	o.KeyRetention = cmp.Or(o.KeyRetention, 168*time.Hour)
	o.KeepDeadLetters = cmp.Or(o.KeepDeadLetters, 168*time.Hour)
	o.MaxDeadLetters = cmp.Or(o.MaxDeadLetters, 100_000)
	o.KeepEnded = cmp.Or(o.KeepEnded, 168*time.Hour)
	o.MaxEnded = cmp.Or(o.MaxEnded, 1_000_000)
	o.KeepContent = max(0, min(o.KeepContent, o.KeepEnded))
	o.MaxEvents = cmp.Or(o.MaxEvents, 100_000)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// checkAhead returns an error for a message that is scheduled too far ahead.
func (o Options) checkAhead(at, now time.Time) []fault.Field {
	latest := now.Add(o.MaxAhead)
	if o.MaxAhead == 0 || !at.After(latest) {
		return nil
	}
	return []fault.Field{{Key: "sendAt", Message: fmt.Sprintf("must not be after %s (message.maxAhead)",
		latest.UTC().Format(time.RFC3339))}}
}

// Router sends one message through one of its account's relays. It is routing.Router.
type Router interface {
	Send(ctx context.Context, d routing.Dispatch) routing.Sent
	Slots(scope string, lane api.Lane) int
	ExpectWaiting(scope string, n int)
	Answers(scope string) bool
	Instead(account accounts.Sender, lane api.Lane, scope string) string
}

// Accounts finds senders and their relays. It is accounts.Accounts.
type Accounts interface {
	Resolve(ctx context.Context, id string) (accounts.Sender, error)
	Outcome(ctx context.Context, id string, err error)
	Trial(ctx context.Context, id string) (bool, error)
	Quota(ctx context.Context, id string) (accounts.Quota, error)
	Exceeded(ctx context.Context, e accounts.Excess) error
}

// Gateways finds gateways, and judges the path of a message. It is gateways.Store.
type Gateways interface {
	Resolve(ctx context.Context, id string) (gateways.Relay, error)
	CheckPath(p gateways.Path) fault.Fields
	Exists(ctx context.Context, id string) (bool, error)
}

// Templates finds stored templates. It is templates.Templates.
type Templates interface {
	Template(ctx context.Context, account, id, locale string) (templates.Template, error)
	Count(ctx context.Context, account string) (int, error)
}

// Parts are what an Outbox needs.
type Parts struct {
	DB        *redisdb.DB
	Queue     *queue.Client
	Control   *queue.Control
	Router    Router
	Accounts  Accounts
	Gateways  Gateways
	Signer    *dkim.Signer // nil if nothing is signed
	Templates Templates    // nil if there are none

	Suppressions *suppression.Store // nil if no one is suppressed
	Tokens       *signedtoken.Ring  // signs links, pixels and return paths; may be nil
	// Reports reports whether a relay's provider reports results by webhook. If nil, none does
	Reports func(ctx context.Context, r gateways.Relay) bool
	// Campaign reports whether a message's run continues (nil means that all do). It returns Conflict if the
	// message must not be sent any more
	Campaign func(ctx context.Context, messageID string) (Turn, error)
	// MayReplay returns Conflict if a campaign's dead letter must not be replayed. If nil, all may be
	MayReplay func(ctx context.Context, messageID string) error
	// Kept returns what an account has in other parts: subscribers, and events that wait for digests. May be nil
	Kept func(ctx context.Context, account string) (subscribers, events int, err error)
	Ring *seal.Ring // opens sealed contents; nil if none are sealed
}
