package newsletter

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/lease"
	"github.com/postroom/postroom/internal/maildns"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/newsletter/sendlog"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/suppression"
)

// Parts are what Campaigns needs. DNS and Web are optional.
type Parts struct {
	DB           *redisdb.DB
	Audience     *audience.Subscribers
	Log          *sendlog.Log
	Outbox       *outbox.Outbox
	Limits       *limits.Limits
	Suppressions *suppression.Store
	// Relays returns the relays that an account's mail goes through; gateway is the one that a campaign names.
	// routing.Router implements it.
	Relays func(ctx context.Context, account accounts.Sender, gateway string, lane api.Lane) ([]gateways.Relay,
		error)
	DNS maildns.Resolver // if nil, DKIM and DMARC of senders are not looked up
	Web *http.Client     // checks that links answer; if nil, none are checked
	// Resting reports whether the bulk queue is paused.
	Resting func(ctx context.Context) (bool, error)
}

// Options are the settings. The zero value of a field means its default.
type Options struct {
	Workers        int           // batches that this process works on together; 0 if it sends none
	Connections    int           // a batch's messages under way together; defaults to 10
	InFlight       int           // deferred messages of a run beyond which its scan waits; defaults to 10,000
	Expire         time.Duration // a start that comes later than this is held; defaults to 24 hours
	ResendInDoubt  bool          // people that a crash caught at the dot are sent to again
	HoldAfter      int           // people before rates of bounces, complaints and errors count; defaults to 500
	HoldBounces    float64       // share of bounced people that holds a run; 0 means never
	HoldComplaints float64       // share of the people who received it
	HoldFaults     float64       // share of messages that could not be written
	Archived       bool          // the event stream is archived: it has the events that no webhook gets, too

	ServiceURL func() string         // public address; nil if none
	Logger     *slog.Logger          // nil means no log
	Registry   prometheus.Registerer // nil means no metrics
	Now        func() time.Time      // defaults to time.Now
}

func (o Options) withDefaults() Options {
	o.Connections = cmp.Or(max(o.Connections, 0), 10)
	o.InFlight = cmp.Or(max(o.InFlight, 0), 10_000)
	o.HoldAfter = cmp.Or(max(o.HoldAfter, 0), 500)
	o.Expire = cmp.Or(max(o.Expire, 0), 24*time.Hour)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.ServiceURL == nil {
		o.ServiceURL = func() string { return "" }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Campaigns stores the campaigns of all accounts, and sends them. It is safe for concurrent use, by any
// number of processes on one Redis.
type Campaigns struct {
	Parts
	opts      Options
	store     *records.Store[stored]
	cached    *redisdb.Cache[*campaign]
	byNo      *redisdb.Cache[string]
	archived  archiveCache
	metrics   *metrics
	log       *slog.Logger
	scheduler *scheduler    // which campaign is next
	live      *redisdb.Work // there are live campaigns

	// The dispatcher's: it begins due campaigns, lets workers send batches, and ends runs.
	held     *lease.Set[*sendlog.Batch]               // by this process
	versions *redisdb.Group[string, struct{}, string] // the suppressions'
	counts   sync.WaitGroup                           // for audiences
	listed   bool                                     // all live campaigns are; else look lists them

	Archive *Archive
}

// New returns Campaigns. Sending begins with Run.
func New(p Parts, o Options) (*Campaigns, error) {
	if p.DB == nil || p.Log == nil || p.Outbox == nil || p.Limits == nil || p.Suppressions == nil ||
		p.Relays == nil || p.Resting == nil {
		return nil, errors.New("newsletter: a database, a send log, an outbox, limits, suppressions, relays and the " +
			"pause of the queue are needed")
	}
	o = o.withDefaults()
	c := &Campaigns{Parts: p, opts: o, log: o.Logger, metrics: newMetrics(o.Registry),
		scheduler: &scheduler{scans: map[string]*scan{}, reservations: map[string]*reservations{}},
		live:      p.DB.Looks().For(liveKey())}
	c.store = records.New(p.DB, nil, records.Kind[stored]{
		Key: "campaign", Index: "campaigns", Name: "campaign", Code: codeChanged, Missing: notFound,
		Secrets: func(*stored) []records.Secret { return nil },
	}, records.Options[stored]{Now: o.Now, Forget: func(string) {
		c.cached.Clear()
		c.archived.clear()
	}})
	c.cached = redisdb.NewCache[*campaign](p.DB, c.store.VersionKey(), nil)
	c.byNo = redisdb.NewCache[string](p.DB, c.store.VersionKey(), nil)
	c.archived = archiveCache{redisdb.NewCache[[]archived](p.DB, c.store.VersionKey(), nil),
		redisdb.NewCache[ArchiveRow](p.DB, c.store.VersionKey(), nil)}
	c.held = lease.NewSet(p.Log.Lease(), c.log, func(ctx context.Context,
		held []*sendlog.Batch) ([]*sendlog.Batch, error) {
		return nil, p.Log.Renew(ctx, held) // one that is lost is noticed by its next mark
	})
	c.versions = redisdb.NewGroup(c.readVersion)
	c.Archive = &Archive{campaigns: c}
	return c, nil
}

// Run sends campaigns, begins due ones, and repairs what a crash left, until ctx ends.
func (c *Campaigns) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { c.keep(ctx) })
	wg.Go(func() { c.follow(ctx) })
	if c.opts.Workers > 0 {
		work, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer stop()
		var workers sync.WaitGroup
		for range c.opts.Workers {
			workers.Go(func() { c.deliver(ctx, work) })
		}
		wg.Go(func() { c.held.Run(work) })
		workers.Wait()
		stop()
	}
	wg.Wait()
	return nil
}
