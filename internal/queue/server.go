package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
)

// Pool is a group of workers that share some queues.
type Pool struct {
	Name string // for logs
	// queue to weight: with twice the weight, about twice as many tasks are taken while all have some
	Queues  map[string]int
	Workers int // concurrent handlers; defaults to 50
	// Servers is how many asynq servers share the pool's workers. Defaults to 1. One takes tasks off the queues
	// one by one, 10,000 to 15,000 a second with Redis on the same machine, a quarter of that if each write is
	// synced to disk. Four take two to three times as many.
	Servers int
	// Take takes a task off one of the queues and begins its work, with one script. The handler gets the work
	// from Begun. nil, as on a Cluster: handlers begin the work
	Take func(context.Context, Take) (Taken, error)
}

// ServerOptions are the settings of a Server.
type ServerOptions struct {
	Pools []Pool                 // at least one
	Keep  func(queue string) int // how many done tasks of a queue stay visible, as in Options; nil for none
	// KeepBuried limits the buried tasks likewise, and to 24 hours; otherwise nearly 10,000 stay, for 80 days
	KeepBuried bool
	Grace      time.Duration // how long running handlers may continue after the stop; defaults to 30 s
	Logger     *slog.Logger  // nil to discard
	// Scripts runs asynq's scripts, for example in shared round trips; defaults to the connection
	Scripts redisdb.Evaler
	Looks   *redisdb.Looks // looks for work when there is none; nil for its own
	Metrics Registerer     // where to register the metrics of handlers; nil if none are kept
}

// Intervals of a Server.
const (
	pollEvery    = 5 * time.Millisecond   // the pause after a round of polls that found no task; see empty.go
	forwardEvery = 500 * time.Millisecond // tasks whose time has come move to waiting
	expireEvery  = time.Minute            // completed tasks that expired are removed
	never        = 24 * time.Hour         // for chores that another server does
	lastCall     = 2 * time.Second        // from the cancelling of handlers to the end of waiting for them
	lastWrite    = 3 * time.Second        // for what the engines write to Redis at the end
)

// Server runs handlers for tasks. Make one with NewServer and run it once.
type Server struct {
	redis      redis.UniversalClient
	handlers   map[string]Handler
	queues     []string
	engines    []*asynq.Server
	grace      time.Duration
	keep       func(queue string) int
	keepBuried bool
	log        *slog.Logger
	trouble    *asynqLog // one for all engines, which report the same
	metrics    *metrics

	looks       *redisdb.Looks
	acks        *ackClient   // the engines' connection
	delayed     delayedSets  // for all queues
	closeTopics func() error // closes their subscriptions

	hands   hands              // run handlers
	running sync.WaitGroup     // handlers
	closing context.Context    // ends with the grace
	close   context.CancelFunc // ends closing

	stopping  context.Context    // ends when no more tasks are taken
	stopPolls context.CancelFunc // ends stopping
}

// NewServer returns a Server that gives each task to the handler of its type. It uses the given connection,
// which should allow as many connections as there are workers plus 20, and never closes it. The error
// describes invalid options.
func NewServer(c redis.UniversalClient, handlers map[string]Handler, o ServerOptions) (*Server, error) {
	if len(o.Pools) == 0 {
		return nil, errors.New("queue server: no pools")
	}
	s := &Server{redis: c, handlers: handlers, grace: o.Grace, keep: orNone(o.Keep), log: o.Logger,
		keepBuried: o.KeepBuried}
	if s.grace <= 0 {
		s.grace = 30 * time.Second
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if o.Metrics != nil {
		var err error
		if s.metrics, err = newMetrics(o.Metrics, handlers); err != nil {
			return nil, err
		}
	}
	s.trouble = newAsynqLog(s.log)
	s.stopping, s.stopPolls = context.WithCancel(context.Background())
	s.acks = &ackClient{UniversalClient: c, scripts: o.Scripts, empty: newEmptyQueues(s.stopping.Done()),
		log: s.log}
	if s.acks.scripts == nil {
		s.acks.scripts = c
	}
	if s.looks = o.Looks; s.looks == nil {
		_, cluster := c.(*redis.ClusterClient)
		s.looks = redisdb.NewLooks(c, !cluster)
	}
	s.delayed.looks = s.looks
	s.acks.topics, s.closeTopics = topicClient(c)
	for _, p := range o.Pools {
		if err := s.addPool(p); err != nil {
			return nil, errors.Join(err, s.closeTopics())
		}
	}
	return s, nil
}

// addPool creates the asynq servers of one pool.
func (s *Server) addPool(p Pool) error {
	if len(p.Queues) == 0 {
		return fmt.Errorf("pool %q has no queues", p.Name)
	}
	for q, weight := range p.Queues {
		if q == "" || weight < 1 {
			return fmt.Errorf("pool %q: queue %q has weight %d, it takes a name and at least 1", p.Name, q, weight)
		}
		if !slices.Contains(s.queues, q) {
			s.queues = append(s.queues, q)
		}
	}
	slices.Sort(s.queues)
	p = p.filled()
	servers := s.acks.empty.pollers(p)
	s.delayed.add(p)
	for i := range p.Servers {
		s.engines = append(s.engines, s.engine(p, servers, share(p.Workers, p.Servers, i), i == 0))
	}
	return nil
}

// filled returns the pool with its defaults.
func (p Pool) filled() Pool {
	if p.Workers <= 0 {
		p.Workers = 50
	}
	p.Servers = min(max(1, p.Servers), p.Workers)
	return p
}

// share returns server i's part of n workers.
func share(n, servers, i int) int {
	if i < n%servers {
		return n/servers + 1
	}
	return n / servers
}

// engine returns one asynq server. With chores it moves tasks whose time has come to waiting, and removes
// completed tasks that expired. One server of a pool is enough for that.
func (s *Server) engine(p Pool, servers *pollers, workers int, chores bool) *asynq.Server {
	client := &pollingClient{ackClient: s.acks, servers: servers, chores: chores, delayed: &s.delayed,
		begin: p.Take}
	forward, expire := never, never
	if chores {
		forward, expire = forwardEvery, expireEvery
	}
	return asynq.NewServerFromRedisClient(client, asynq.Config{
		Concurrency:              workers,
		Queues:                   p.Queues,
		TaskCheckInterval:        pollEvery,
		DelayedTaskCheckInterval: forward,
		JanitorInterval:          expire,
		// We cancel handlers at the end of the grace period. A handler that ignores that loses its task to
		// the queue a little later.
		ShutdownTimeout: s.grace + lastCall,
		IsFailure:       isFailure,
		RetryDelayFunc:  retryDelay,
		Logger:          s.trouble,
		LogLevel:        asynq.ErrorLevel,
	})
}

// Run takes tasks until ctx ends. Then it takes no more and gives running handlers the grace period to
// finish. It cancels the contexts of the rest, waits a moment longer, and puts their tasks back at the head
// of their queues. Then it returns nil. It returns an error only if it could not start.
func (s *Server) Run(ctx context.Context) error {
	// The handlers' contexts outlive ctx: they end with the grace period.
	s.closing, s.close = context.WithCancel(context.WithoutCancel(ctx))
	defer s.close()
	s.acks.giveUp = s.closing.Done()
	s.hands = hands{jobs: make(chan func()), quit: s.closing.Done()}
	if err := register(ctx, s.redis, s.queues); err != nil {
		s.log.Warn("queues are not registered yet", "error", err)
	}
	s.shortenArchives(ctx)
	go s.acks.empty.listen(ctx, s.acks.topics)
	for i, engine := range s.engines {
		if err := engine.Start(asynq.HandlerFunc(s.process)); err != nil {
			s.stop(s.engines[:i])
			return fmt.Errorf("start queue workers: %w", err)
		}
	}
	s.log.Info("queue workers started", "queues", s.queues, "servers", len(s.engines))
	var tending sync.WaitGroup
	for _, q := range s.queues {
		tending.Go(func() { s.acks.empty.look(ctx, s.looks, stateKey(q, Waiting)) })
	}
	tending.Go(func() { s.delayed.look(ctx) })
	tending.Go(func() { s.prune(ctx) })
	s.tend(ctx)
	tending.Wait()
	s.stop(s.engines)
	s.log.Info("queue workers stopped")
	return nil
}

// shortenArchives trims the archives before the first worker archives a task, which would fail if thousands
// have expired.
func (s *Server) shortenArchives(ctx context.Context) {
	control, sum := NewControl(s.redis), Pruned{}
	for _, q := range s.queues {
		if err := control.pruneArchive(ctx, q, &sum); err != nil {
			s.log.Warn("archive not pruned", "queue", q, "error", err)
			return
		}
	}
}

// stop shuts down the started engines.
func (s *Server) stop(engines []*asynq.Server) {
	s.stopPolls()
	timer := time.AfterFunc(s.grace, s.close)
	defer timer.Stop()
	stopped := func() {
		var stopping sync.WaitGroup
		for _, engine := range engines {
			stopping.Go(engine.Shutdown)
		}
		stopping.Wait()
		_ = s.closeTopics() // nothing listens any more
	}
	if !within(s.grace+lastCall+lastWrite, stopped) {
		s.log.Warn("queue engines do not stop; is Redis frozen?")
	}
	s.close()
	if !within(lastCall, s.running.Wait) {
		s.log.Warn("handlers still run after the stop")
	}
}

// within waits for wait to return, up to the limit. A handler that never returns, or an engine that waits
// for a frozen Redis, can only be left behind.
func within(limit time.Duration, wait func()) bool {
	ended := make(chan struct{})
	go func() {
		wait()
		close(ended)
	}()
	select {
	case <-ended:
		return true
	case <-time.After(limit):
		return false
	}
}
