package alerts

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/webhooks"
)

// Parts are what a Watch checks. All are required.
type Parts struct {
	DB          *redisdb.DB // stores alerts and their events
	Durability  func(context.Context) (redisdb.Durability, error)
	MemoryShare func(context.Context) (float64, error)
	Evicted     func(context.Context) (int64, error)

	Counts   func(ctx context.Context, queues ...string) ([]queue.Counts, error)
	Counters func(context.Context, api.CounterQuery) (api.Counters, error)
	Rates    func(context.Context, api.RatesQuery) (api.Rates, error)
	Troubled func(context.Context) ([]string, error)      // ids of the refused accounts
	Away     func() []routing.Away                        // relays that do not answer this process
	Refused  func() []string                              // records that this process refused of late
	Intact   func() (bool, string)                        // whether the audit log is intact, or the error
	Held     func(context.Context) ([]string, error)      // ids of the campaigns that are held
	Late     func(context.Context) (time.Duration, error) // delay of the oldest digest that is due; 0 if none is
	Failing  func(context.Context) ([]webhooks.Failure, error)
}

// complete returns an error if a field of parts is nil.
func complete(parts any) error {
	for field, value := range reflect.ValueOf(parts).Fields() {
		if value.IsNil() {
			return fmt.Errorf("package alerts: Parts.%s is missing", field.Name)
		}
	}
	return nil
}

// Queue is one kind of work: a lane of mail, webhooks or digests.
type Queue struct {
	Name  string        // in the API: submit, bulk, notify, digests
	Parts []string      // the queues it is spread over, one for each partition
	Age   time.Duration // longest time that due work may wait; 0 means any
}

// Options are the thresholds of alerts. An alert without a threshold is off.
type Options struct {
	Every          time.Duration // interval of checks; defaults to 15 s
	Queues         []Queue       // if empty, queueAge and queuePaused are off
	Paused         time.Duration // longest pause of a queue; zero means any
	RelayAway      time.Duration // longest time that a relay may not answer; zero means any
	DigestsLate    time.Duration // how late a digest may be; zero means any
	WebhookFailing time.Duration // how long an endpoint may take no event; zero means any
	DeadLetters    int           // failed messages within an hour that raise the alert; zero means off
	// share of the messages that ended within an hour; needs 10 failures; zero means off
	FailedShare float64
	// shares of a gateway's recipients within 24 hours whose address is dead, or who complained; need 10 and 3
	// of them; zero means off
	BounceRate, ComplaintRate float64
	MaxLive                   int     // the setting outbox.maxLive; zero means no limit
	MemoryShare               float64 // the setting redis.maxMemoryShare; zero means no limit

	Logger   *slog.Logger          // nil if nothing is logged
	Registry prometheus.Registerer // nil means no metrics
	Now      func() time.Time      // for tests; defaults to Redis' clock
}

// defaultEvery is short for an operator, and long compared to the cost of a check.
const defaultEvery = 15 * time.Second

// Watch raises and resolves the alerts of an instance. It is safe for concurrent use.
type Watch struct {
	parts   Parts
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
	if err := complete(p); err != nil {
		return nil, err
	}
	o.Every = cmp.Or(max(o.Every, 0), defaultEvery)
	return &Watch{
		parts: p, opts: o, store: store{client: p.DB.Client(), now: o.Now}, metrics: newMetrics(o.Registry),
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
