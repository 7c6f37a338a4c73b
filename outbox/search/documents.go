package search

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox"
)

// TaskType is the type of indexing tasks.
const TaskType = "index"

// Parts are the dependencies of Documents.
type Parts struct {
	DB     *redisdb.DB
	Tasks  *queue.Client
	Queues *queue.Control
	Outbox Outbox
	Store  Store // nil if the index is in another process, or there is none
	// Pace is the number of messages that this process accepts and sends per second. The higher it is, the
	// longer indexing pauses. If nil, indexing never pauses.
	Pace func() float64
	// Work runs the workers of the queue documents, with a handler for TaskType, until ctx ends. If nil, this
	// process indexes nothing.
	Work func(ctx context.Context, handle queue.Handler) error
}

// Options are the settings of Documents. The zero value of each field means its default.
type Options struct {
	Kind      string // kind of the index: embedded, opensearch, none
	Read      bool   // whether this process turns events into tasks
	Exclusive bool   // the index belongs to one process: only its indexer indexes and searches
	// whether to take over a claim of the same Place: this process has the place's lock, so the other one died
	TakeOver bool
	Place    string // host and directory of this process, for logs and its own restart

	// NoLog means that the outbox forgets ended messages. Then their events update the index.
	NoLog bool

	MaxText       int           // bytes of text kept for a message; defaults to 4 KB; negative for none
	Retention     time.Duration // how long a message can be found; negative: forever; defaults to 2160 h
	MaxWaiting    int           // maximum of waiting tasks; defaults to 3,000
	SearchTimeout time.Duration // defaults to 5 s

	Logger   *slog.Logger          // nil means no log
	Registry prometheus.Registerer // nil means no metrics
	Now      func() time.Time      // the clock, for tests; defaults to time.Now
	Every    time.Duration         // interval of the indexer's work, for tests; defaults to 2 s
}

func (o Options) withDefaults() Options {
	o.MaxText = cmp.Or(o.MaxText, 4<<10)
	o.Retention = cmp.Or(o.Retention, 2160*time.Hour)
	o.MaxWaiting = cmp.Or(o.MaxWaiting, 3_000)
	o.SearchTimeout = cmp.Or(o.SearchTimeout, 5*time.Second)
	o.Every = cmp.Or(o.Every, 2*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Documents maintains and searches the index. It is safe for concurrent use.
type Documents struct {
	Parts
	opts    Options
	keys    store
	holder  string // value of the indexer's claim, if the index is not exclusive
	log     *slog.Logger
	metrics *metrics

	keeping  atomic.Bool  // this process is the indexer
	failures atomic.Int64 // consecutive task failures
	searches chan struct{}
	turn     redisdb.Turn
	noted    counted // the indexer's: the size that was stored last

	mu      sync.Mutex
	counted time.Time       // when full was set
	full    bool            // too many tasks are waiting
	settled map[string]bool // messages that this process indexed after their end, see settle
}

// searchesAtOnce limits concurrent searches, which would otherwise take the CPU from sending.
const searchesAtOnce = 4

// New returns Documents. Nothing runs before Run. Search, State and Rebuild work without Run; Search only in
// a process that has the index.
func New(parts Parts, o Options) (*Documents, error) {
	if parts.DB == nil || parts.Queues == nil || parts.Outbox == nil || parts.Tasks == nil && o.Read {
		return nil, errors.New("new documents: a part is missing")
	}
	o = o.withDefaults()
	d := &Documents{
		Parts: parts, opts: o, keys: store{client: parts.DB.Client()}, holder: rand.Text(), log: o.Logger,
		searches: make(chan struct{}, searchesAtOnce), turn: make(redisdb.Turn, 1),
	}
	d.metrics = newMetrics(o.Registry)
	return d, nil
}

// Run does this process's share of reading events, indexing and keeping the index, until ctx ends.
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

// Outbox reads messages for the index. It is outbox.Reader; tests replace it to make it fail.
type Outbox interface {
	// Documents reads messages; forgotten ones are missing.
	Documents(ctx context.Context, ids []string) ([]outbox.Document, error)
	// Indexed reports that the texts of messages are in the index, so the outbox may drop them.
	Indexed(ctx context.Context, ids []string) error
	// Messages returns a page of the log, newest message first.
	Messages(ctx context.Context, q api.LogQuery) (api.LogPage, error)
}
