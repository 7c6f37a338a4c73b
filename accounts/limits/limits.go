package limits

import (
	"cmp"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/internal/lease"
	"github.com/postroom/postroom/internal/redisdb"
)

// Options are the settings of Limits. The zero value works.
type Options struct {
	Logger   *slog.Logger          // gets pauses, and failures to renew leases; nil if nothing is logged
	Now      func() time.Time      // the clock, for tests; defaults to Redis' clock, whatever the machine's is
	Registry prometheus.Registerer // nil means no metrics
}

// Limits admits messages and counts connections. It is safe for concurrent use, by any number of processes on
// one Redis.
type Limits struct {
	store   store
	log     *slog.Logger
	now     func() time.Time
	metrics *metrics
	// scopes whose relay asked for a pause, and until when that matters (by l.now)
	throttled *redisdb.Cache[map[string]time.Time]
	process   string       // its name among connections' processes
	connected atomic.Int64 // connections so far
	held      *lease.Set[connection]
}

// New returns Limits on an open database. It does no I/O.
func New(db *redisdb.DB, o Options) (*Limits, error) {
	if db == nil {
		return nil, errors.New("limits: a database is needed")
	}
	l := &Limits{
		store: store{db: db, now: o.Now}, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)), now: o.Now,
		metrics:   newMetrics(o.Registry),
		throttled: redisdb.NewCache[map[string]time.Time](db, versionKey(), nil),
		process:   rand.Text()[:12],
	}
	l.held = lease.NewSet(length, l.log, l.renew)
	if l.now == nil {
		l.now = time.Now
	}
	return l, nil
}
