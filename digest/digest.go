package digest

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/lease"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/suppression"
)

// Parts are what Digests needs. Only Room is optional.
type Parts struct {
	DB           *redisdb.DB
	Suppressions *suppression.Store
	// The outbox's functions. Submit accepts a message. Accepted returns the id of the message that was accepted
	// under an idempotency key, or "". BlockKey also does so, and if there was none, blocks the key.
	// DeleteDeadLetter deletes a failed message, Get returns a message that may still be sent, otherwise
	// NotFound, and Letter writes one for a preview.
	Submit           func(context.Context, api.SubmitRequest) (api.SubmitAnswer, error)
	Accepted         func(ctx context.Context, account, key string) (id string, _ error)
	BlockKey         func(ctx context.Context, account, key string) (id string, _ error)
	DeleteDeadLetter func(ctx context.Context, id string) (api.DeleteAnswer, error)
	Get              func(ctx context.Context, id string) (api.OutboxMessage, error)
	Mailing          func(context.Context, outbox.Shared) (*outbox.Mailing, error)
	// Account returns an error if there is no such account.
	Account func(ctx context.Context, account string) error
	// Room checks the quota of an account: the events that wait. Nil if there is none.
	Room suppression.Room
	// HasTemplate reports whether there is a stored template that an account may use.
	HasTemplate func(ctx context.Context, account, template string) (bool, error)
	// Resting reports whether the digests queue is paused.
	Resting func(ctx context.Context) (bool, error)
}

// Options are the settings. The zero value of a field means its default, unless it says something else.
type Options struct {
	Workers     int           // runs that this process works on together; 0 if it works on none
	Cap         int           // lines of an email; defaults to 50
	CapCategory int           // lines of a category in an email of several; defaults to 10
	Keep        int           // events that are kept individually for a recipient's category; defaults to 1,000
	Retention   time.Duration // how long waiting events, and runs, are kept; defaults to 90 days
	Stagger     time.Duration // mail of recipients is spread over this time; 0 if not at all
	Grace       time.Duration // mail due within this time is sent before a change of preferences; 0 for none
	Gap         time.Duration // between immediate messages; 0 if none
	Attempts    int           // for a run; defaults to 10
	Drop        bool          // events of a run that failed are dropped; otherwise they return into the next one
	Threads     bool          // mail programs show a schedule's messages as one conversation
	Lease       time.Duration // for a run in progress; defaults to 20 seconds
	Mode        string        // for recipients and kinds without a preference; "" means daily
	Hour        int           // for preferences without one; 0 is midnight
	Lane        api.Lane      // "": bulk
	// ServiceURL returns the public address. If nil, mail has no unsubscribe links.
	ServiceURL func() string
	FeedURL    string // the whole feed of a recipient, with {recipient} for the id; "" if none

	Logger   *slog.Logger          // nil means no log
	Registry prometheus.Registerer // nil means no metrics
	Now      func() time.Time      // defaults to time.Now
}

func (o Options) withDefaults() Options {
	o.Cap = cmp.Or(max(o.Cap, 0), 50)
	o.CapCategory = cmp.Or(max(o.CapCategory, 0), 10)
	o.Keep = cmp.Or(max(o.Keep, 0), 1000)
	o.Attempts = cmp.Or(max(o.Attempts, 0), 10)
	o.Retention = cmp.Or(max(o.Retention, 0), 90*24*time.Hour)
	o.Lease = cmp.Or(max(o.Lease, 0), 20*time.Second)
	o.Lane = cmp.Or(o.Lane, api.Bulk)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.ServiceURL == nil {
		o.ServiceURL = func() string { return "" }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Digests adds events, keeps recipients' preferences, and sends digests. It is safe for concurrent use, by
// any number of processes on one Redis.
type Digests struct {
	*Recipients
	Kinds *Kinds
	Runs  *Runs
	works *worker
}

// base is what all parts of Digests share.
type base struct {
	Parts
	opts    Options
	kinds   *Kinds
	log     *slog.Logger
	metrics *metrics
	tally   tally
}

// New returns Digests. Mail begins with Run.
func New(p Parts, o Options) (*Digests, error) {
	if p.DB == nil || p.Suppressions == nil || p.Submit == nil || p.Accepted == nil || p.BlockKey == nil ||
		p.DeleteDeadLetter == nil || p.Get == nil || p.Mailing == nil || p.Account == nil ||
		p.HasTemplate == nil || p.Resting == nil {
		return nil, errors.New("digest: a database, suppressions, the doors of the outbox, accounts, templates and the " +
			"pause of the queue are needed")
	}
	o = o.withDefaults()
	if _, wrong := o.cadenceOf(o.standard(), "digest"); wrong != nil {
		return nil, errors.Join(errors.New("digest: the settings digest.mode and digest.hour make no preference"),
			fault.InvalidFields(wrong))
	}
	b := &base{Parts: p, opts: o, log: o.Logger, metrics: newMetrics(o.Registry),
		tally: tally{accounts: map[string]*counted{}}}
	b.kinds = newKinds(b)
	recipients, runs := &Recipients{b}, &Runs{b}
	works := &worker{Runs: runs, decide: o.decide, leases: lease.NewSet(o.Lease, b.log, b.renew)}
	return &Digests{Recipients: recipients, Kinds: b.kinds, Runs: runs, works: works}, nil
}

// Run sends due digests and follows their results, until ctx ends.
func (d *Digests) Run(ctx context.Context) error { return d.works.run(ctx) }

// ListID returns the list that the digests of an account are of: its name in mail, and in suppressions.
func ListID(account string) string {
	label := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' {
			return c
		}
		return '-'
	}, strings.ToLower(account))
	if label = strings.Trim(label[:min(len(label), 50)], "-"); label == "" {
		label = "account"
	}
	return listPrefix + label
}

// listPrefix begins the lists of digests.
const listPrefix = "digest."

// defaultAccount is the account of requests that name none.
const defaultAccount = "default"

// requestAccount returns a request's account. bound is the token's account; empty if it may use any.
func (b *base) requestAccount(ctx context.Context, bound, given string) (string, error) {
	switch {
	case given == "" && bound == "":
		given = defaultAccount
	case given == "":
		given = bound
	case bound != "" && given != bound:
		return "", fault.New(fault.NotFound, "AccountNotFound", "There is no account %q", given)
	}
	return given, b.Account(ctx, given)
}
