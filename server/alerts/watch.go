package alerts

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/audit"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/webhooks"
)

// Parts are what a Watch checks. All are needed.
type Parts struct {
	DB       *redisdb.DB // stores alerts and their events, and is checked itself
	Queues   *queue.Control
	Mail     *outbox.Outbox
	Accounts *accounts.Accounts
	Relays   *routing.Router // of this process
	Ring     *seal.Ring      // of this process; knows the records that it refused
	Audit    *audit.Log
	Held     func(context.Context) ([]string, error)      // ids of the campaigns that are held
	Late     func(context.Context) (time.Duration, error) // of the oldest digest that is due; 0: none is
	Failing  func(context.Context) ([]webhooks.Failure, error)
}

// checks are the sources of a check.
type checks struct {
	durability  func(context.Context) (redisdb.Durability, error)
	memoryShare func(context.Context) (float64, error)
	evicted     func(context.Context) (int64, error)
	counts      func(ctx context.Context, queues ...string) ([]queue.Counts, error)
	counters    func(context.Context, api.CounterQuery) (api.Counters, error)
	rates       func(context.Context, api.RatesQuery) (api.Rates, error)
	troubled    func(context.Context) ([]string, error)
	away        func() []routing.Away
	refused     func() []string
	intact      func() (bool, string)
	held        func(context.Context) ([]string, error)
	late        func(context.Context) (time.Duration, error)
	failing     func(context.Context) ([]webhooks.Failure, error)
}

// Queue is one kind of work: a lane of mail, webhooks or digests.
type Queue struct {
	Name  string        // in the API: submit, bulk, notify, digests
	Parts []string      // the queues it is spread over, one for each partition
	Age   time.Duration // longest time that due work may wait; 0: any
}

// Options are the thresholds of alerts. An alert without a threshold is off.
type Options struct {
	Every          time.Duration // interval of checks; zero: 15 s
	Queues         []Queue       // none: queueAge and queuePaused are off
	Paused         time.Duration // longest pause of a queue; zero: any
	RelayAway      time.Duration // longest time that a relay may not answer; zero: any
	DigestsLate    time.Duration // how late a digest may be; zero: any
	WebhookFailing time.Duration // how long an endpoint may take no event; zero: any
	DeadLetters    int           // failed messages within an hour that raise the alert; zero: off
	// share of the messages that ended within an hour; needs 10 failures; zero: off
	FailedShare float64
	// shares of the recipients mailed through a gateway within 24 hours whose address is dead, or who
	// complained; need 10 and 3 of them; zero: off
	BounceRate, ComplaintRate float64
	MaxLive                   int     // the setting outbox.maxLive; zero: no limit
	MemoryShare               float64 // the setting redis.maxMemoryShare; zero: no limit

	Logger   *slog.Logger          // nil: nothing is logged
	Registry prometheus.Registerer // nil: no metrics
	Now      func() time.Time      // for tests; nil: Redis' own clock
}

// defaultEvery is short for an operator, and long compared to the cost of a check.
const defaultEvery = 15 * time.Second

// Watch raises and resolves the alerts of an instance. It is safe for concurrent use.
type Watch struct {
	checks
	opts    Options
	store   store
	log     *slog.Logger
	metrics *metrics

	// used by checks, which run one after the other
	standing map[string]entry     // as Redis had it when it last answered
	refusals map[string]time.Time // when records were last refused
	local    map[string]state     // standing alerts that could not be written
	counted  time.Time            // when mail was last counted
	rated    time.Time            // when the rates of gateways were last judged
	rested   time.Time            // when the queue digests was last seen paused
	unjudged map[string]bool      // sources that failed at the last look, all logged

	mu        sync.Mutex
	unwritten map[string]state // local, for Standing
}

// New returns a Watch. It does no I/O.
func New(p Parts, o Options) (*Watch, error) {
	if p.DB == nil || p.Queues == nil || p.Mail == nil || p.Accounts == nil || p.Relays == nil ||
		p.Ring == nil || p.Audit == nil || p.Held == nil || p.Late == nil ||
		p.Failing == nil {
		return nil, errors.New("watch: a database, queues, mail, accounts, relays, a key ring, the audit log, " +
			"campaigns, digests and webhooks are needed")
	}
	if o.Every <= 0 {
		o.Every = defaultEvery
	}
	return &Watch{
		checks: checks{p.DB.Durability, p.DB.MemoryShare, p.DB.Evicted, p.Queues.Counts, p.Mail.Counters,
			p.Mail.Rates, p.Accounts.Troubled, p.Relays.Away, p.Ring.Refused, p.Audit.Intact, p.Held, p.Late,
			p.Failing},
		opts: o, store: store{client: p.DB.Client(), now: o.Now}, metrics: newMetrics(o.Registry),
		log:      cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		refusals: map[string]time.Time{},
		local:    map[string]state{}, unjudged: map[string]bool{},
	}, nil
}

// Run checks until ctx ends, then returns nil. The first check is one interval after the start, when the
// process has settled.
func (w *Watch) Run(ctx context.Context) error {
	tick := time.NewTicker(w.opts.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			w.look(ctx)
		}
	}
}
