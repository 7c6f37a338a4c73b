package watch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/queue"
	"github.com/postroom/postroom/redisdb"
)

// Parts is what a Watch looks at. All of it is needed.
type Parts struct {
	DB       *redisdb.DB // keeps the state of alerts and their events, and is watched itself
	Queues   *queue.Control
	Mail     *outbox.Outbox
	Accounts *accounts.Accounts
}

// checks are the questions that a look asks.
type checks struct {
	durability  func(context.Context) (redisdb.Durability, error)
	memoryShare func(context.Context) (float64, error)
	evicted     func(context.Context) (int64, error)
	counts      func(ctx context.Context, queues ...string) ([]queue.Counts, error)
	counters    func(context.Context, api.CounterQuery) (api.Counters, error)
	troubled    func(context.Context) ([]string, error)
}

// Queue is one kind of work: a lane of mail, or webhooks.
type Queue struct {
	Name  string        // as users know it: submit, bulk, notify
	Parts []string      // the queues it is spread over, one for each partition
	Age   time.Duration // how long due work may wait; 0: as long as it takes
}

// Options says what is too much. Where zero means that nobody is alerted, the alert is off.
type Options struct {
	Every       time.Duration // from one look to the next; zero: 15 s
	Queues      []Queue       // none: queueAge and queuePaused are off
	Paused      time.Duration // how long a queue may be paused; zero: for ever
	DeadLetters int           // messages that may fail within an hour; zero: any number
	// share of the messages ended within an hour that may fail, where 10 or more did; zero: all
	FailedShare float64
	MaxLive     int     // the setting outbox.maxLive; zero: no limit
	MemoryShare float64 // the setting redis.maxMemoryShare; zero: no limit

	Logger   *slog.Logger          // nil: nothing is logged
	Registry prometheus.Registerer // nil: no metrics
	Now      func() time.Time      // for tests; nil: Redis' own clock
}

// defaultEvery is short against what a person notices, and long against what a look costs.
const defaultEvery = 15 * time.Second

// Watch looks after an instance. It is safe for concurrent use.
type Watch struct {
	checks
	opts    Options
	store   store
	log     *slog.Logger
	metrics *metrics

	// what the looks remember, one after the other
	standing map[string]entry // as Redis had it when it last answered
	local    map[string]state // alerts that stand and could not be written down
	counted  time.Time        // when mail was last counted
	unjudged map[string]bool  // sources that failed at the last look, all logged

	mu        sync.Mutex
	unwritten map[string]state // local, for Standing
}

// New prepares a Watch. It does no I/O.
func New(p Parts, o Options) (*Watch, error) {
	if p.DB == nil || p.Queues == nil || p.Mail == nil || p.Accounts == nil {
		return nil, errors.New("watch: a database, queues, mail and accounts are needed")
	}
	if o.Every <= 0 {
		o.Every = defaultEvery
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	m, err := newMetrics(o.Registry)
	if err != nil {
		return nil, err
	}
	return &Watch{
		checks: checks{p.DB.Durability, p.DB.MemoryShare, p.DB.Evicted, p.Queues.Counts, p.Mail.Counters,
			p.Accounts.Troubled},
		opts: o, store: store{client: p.DB.Client(), now: o.Now}, log: o.Logger, metrics: m,
		local: map[string]state{}, unjudged: map[string]bool{},
	}, nil
}

// Run looks until ctx ends, then returns nil. The first look is one interval after the start, when what was
// just started has settled.
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
