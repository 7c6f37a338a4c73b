package documents

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/queue"
	"github.com/postroom/postroom/redisdb"
)

// TaskType is the type of the tasks that have messages indexed.
const TaskType = "index"

// Parts are what Documents is built from.
type Parts struct {
	DB     *redisdb.DB
	Tasks  *queue.Client
	Queues *queue.Control
	Outbox Outbox
	Store  Store // nil: another process has the index, or there is none
	// Pace is how many messages a second this process takes in and sends; the more, the longer indexing rests. Nil: it never does.
	Pace func() float64
	// Work runs the workers of the queue documents, with a handler for the tasks of TaskType, until ctx ends; nil: this process indexes nothing.
	Work func(ctx context.Context, handle queue.Handler) error
}

// Options are the settings of Documents. The zero value of each field means its default.
type Options struct {
	Kind      string // what the index is called: embedded, opensearch, none
	Read      bool   // whether this process turns events into tasks
	Exclusive bool   // the index belongs to one process: only its keeper works and searches
	TakeOver  bool   // whether a claim of the same Place is taken over: this process has the place's lock, so the other has died
	Place     string // where this process is, for people and for its own next start: host and directory

	// NoLog says that the outbox forgets messages the moment they end. Then what the index has of them is taken to its end by their events.
	NoLog bool

	MaxText       int           // bytes of text kept of a message; negative: none; 0: 4 KB
	Retention     time.Duration // how long a message is found; negative: for ever; 0: 2160 h
	MaxWaiting    int           // tasks that may wait; 0: 3,000
	SearchTimeout time.Duration // 0: 5 s

	Logger   *slog.Logger          // nil: no log
	Registry prometheus.Registerer // nil: no metrics
	Now      func() time.Time      // the clock, for tests; nil: the machine's
	Every    time.Duration         // from one look at what is to be done to the next, for tests; 0: 2 s
}

func (o Options) withDefaults() Options {
	if o.MaxText == 0 {
		o.MaxText = 4 << 10
	}
	if o.Retention == 0 {
		o.Retention = 2160 * time.Hour
	}
	if o.MaxWaiting == 0 {
		o.MaxWaiting = 3_000
	}
	if o.SearchTimeout == 0 {
		o.SearchTimeout = 5 * time.Second
	}
	if o.Every == 0 {
		o.Every = 2 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Documents keeps and asks the search index. It is safe for concurrent use.
type Documents struct {
	Parts
	opts    Options
	keys    store
	holder  string // of the keeper's claim, where the index is not exclusive
	log     *slog.Logger
	metrics *metrics

	keeping  atomic.Bool  // this process keeps the index
	failures atomic.Int64 // of tasks, one after the other
	searches chan struct{}
	turn     chan struct{} // to index

	mu      sync.Mutex
	counted time.Time // when full was found out
	full    bool      // too many tasks wait
}

// searchesAtOnce keeps people who search from taking the processor away from mail.
const searchesAtOnce = 4

// New makes Documents. Nothing runs until Run is called; Search, State and Rebuild work without it, the first in a process that has the index.
func New(parts Parts, o Options) (*Documents, error) {
	if parts.DB == nil || parts.Queues == nil || parts.Outbox == nil || parts.Tasks == nil && o.Read {
		return nil, errors.New("new documents: a part is missing")
	}
	o = o.withDefaults()
	d := &Documents{
		Parts: parts, opts: o, keys: store{client: parts.DB.Client()}, holder: rand.Text(), log: o.Logger,
		searches: make(chan struct{}, searchesAtOnce), turn: make(chan struct{}, 1),
	}
	d.metrics = newMetrics(o.Registry)
	return d, nil
}

// Run follows events and keeps the index, as far as this process is to, until ctx ends.
func (d *Documents) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	errs := make(chan error, 3)
	run := func(part func(context.Context) error) {
		parts.Go(func() { errs <- part(ctx) })
	}
	if d.opts.Read {
		run(d.read)
	}
	if d.Store != nil && d.Work != nil {
		run(d.keep)
		if !d.opts.Exclusive {
			run(func(ctx context.Context) error { return d.Work(ctx, d.Handle) })
		}
	}
	if !d.opts.Read && (d.Store == nil || d.Work == nil) {
		<-ctx.Done()
	}
	parts.Wait()
	close(errs)
	var all error
	for err := range errs {
		all = errors.Join(all, err)
	}
	return all
}

// pause waits; false: ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
