package webhooks

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	mathrand "math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/telemetry"
)

// TaskType is the type of the tasks that [Webhooks.Deliver] handles. They wait in queue.Notify.
const TaskType = "webhook"

const (
	stream      = "events" // the event stream of a partition
	streamField = "e"      // holds an event as JSON
	group       = "webhooks"
)

// Options are the settings of webhooks. The zero value works.
type Options struct {
	Attempts int           // requests for one delivery, the first included; defaults to 10
	Timeout  time.Duration // for one request, response included; defaults to 30 s
	Backoff  queue.Backoff // waits between attempts; its zero value waits 10 s, 20 s, 40 s…
	// an endpoint that fails for this long, with no success, is switched off; defaults to 120 h
	DisableAfter time.Duration
	AllowPrivate bool // private and loopback destinations may be reached
	PerEndpoint  int  // concurrent requests to one endpoint, in this process; defaults to 10
	// deliveries that may wait for one endpoint; further events are left to a replay; defaults to 100,000
	MaxPending int
	LogSize    int           // finished deliveries kept for each endpoint; defaults to 1,000
	LogAge     time.Duration // how long they are kept; defaults to 7 days
	// the instance's signing secret, for X-EE-Wh-Signature and endpoints of settings and accounts; if empty,
	// neither signs
	Secret string
	// earlier signing secrets; endpoints of settings and accounts get a signature by each, too
	OlderSecrets []string
	Version      string // of Postroom, for User-Agent; empty: "dev"

	// Implicit returns the endpoints of settings and accounts that receive an account's events. If nil, only
	// endpoints created through the API exist. The empty account stands for events of the whole instance. It is
	// called for each batch of events and each delivery, so it must not do I/O.
	Implicit func(ctx context.Context, account string) ([]Target, error)
	// ServiceURL returns the setting serviceUrl, "" if there is none; nil if there is none.
	ServiceURL func() string
	// Match returns which of at most 250 messages a search query finds. If nil, deliveries cannot be searched.
	Match func(ctx context.Context, q string, ids []string) (map[string]bool, error)

	Traces  *telemetry.Tracer     // nil means no traces
	Logger  *slog.Logger          // nil if nothing is logged
	Metrics prometheus.Registerer // where to register the metrics; nil means nowhere
}

func (o Options) complete() Options {
	o.Attempts = cmp.Or(max(o.Attempts, 0), 10)
	o.Timeout = cmp.Or(max(o.Timeout, 0), 30*time.Second)
	o.DisableAfter = cmp.Or(max(o.DisableAfter, 0), 120*time.Hour)
	o.PerEndpoint = cmp.Or(max(o.PerEndpoint, 0), 10)
	o.MaxPending = cmp.Or(max(o.MaxPending, 0), 100_000)
	o.LogSize = cmp.Or(max(o.LogSize, 0), 1_000)
	o.LogAge = cmp.Or(max(o.LogAge, 0), 7*24*time.Hour)
	o.Version = cmp.Or(o.Version, "dev")
	if o.ServiceURL == nil {
		o.ServiceURL = func() string { return "" }
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

// Webhooks delivers events to endpoints. It is safe for concurrent use.
type Webhooks struct {
	db      *redisdb.DB
	store   store
	enqueue func(context.Context, ...queue.Task) []error
	states  func(ctx context.Context, queueName string, ids ...string) ([]queue.State, error)
	runNow  func(ctx context.Context, queueName string, ids ...string) []error
	ring    *seal.Ring
	dir     *directory
	breaker *breaker
	poster  *poster
	policy  policy
	options Options
	log     *slog.Logger
	metrics *metrics
	now     func() time.Time

	unwanted atomic.Bool // no endpoint wanted the last batch of events
}

// New returns a Webhooks. It makes no connection.
func New(db *redisdb.DB, tasks *queue.Client, control *queue.Control, ring *seal.Ring, o Options) (*Webhooks,
	error) {
	if db == nil || tasks == nil || control == nil || ring == nil {
		return nil, errors.New("webhooks: a database, a queue, its control and a key ring are needed")
	}
	o = o.complete()
	st := store{client: db.Client()}
	dir := &directory{store: st, ring: ring, named: o.Implicit, service: serviceKeys(o), log: o.Logger,
		loading: make(redisdb.Turn, 1)}
	w := &Webhooks{
		db: db, store: st, enqueue: tasks.Enqueue, states: control.States,
		runNow: control.RunNow, ring: ring, dir: dir,
		breaker: newBreaker(o.PerEndpoint), options: o, log: o.Logger, metrics: newMetrics(o.Metrics),
		now: time.Now,
	}
	w.policy = policy{
		attempts:      o.Attempts,
		delay:         func(n int) time.Duration { return o.Backoff.Delay(n, mathrand.Float64()) },
		maxRetryAfter: time.Hour,
	}
	guard := dialing.New(dialing.Options{AllowPrivate: o.AllowPrivate, Setting: "webhooks.allowPrivate",
		Logger: o.Logger})
	w.poster = &poster{
		client:  guard.Client(dialing.HTTP{PerHost: o.PerEndpoint}),
		timeout: o.Timeout, secret: o.Secret, agent: "postroom/" + o.Version, service: o.ServiceURL,
		traces: o.Traces,
	}
	return w, nil
}

// Run makes deliveries of events and checks for deliveries without a task, until ctx ends. Any number of
// processes may run it; each event is handled by one of them.
func (w *Webhooks) Run(ctx context.Context) error {
	defer w.poster.client.CloseIdleConnections()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return w.db.Follow(ctx, redisdb.Follow{Stream: stream, Group: group, Batch: fanOutBatch,
			Gather: fanOutGather, More: func(_ context.Context, gathered time.Duration) bool {
				return w.unwanted.Load() && gathered < unwantedGather
			}}, w.fanOut)
	})
	g.Go(func() error { return w.sweep(ctx) })
	return g.Wait()
}

// newID returns an id that cannot be guessed.
func newID() string { return strings.ToLower(rand.Text()) }
