package limits

import (
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/redisdb"
)

// Options are the choices of the one who runs Postroom. The zero value works.
type Options struct {
	// Logger gets pauses, and leases that can't be renewed. Nil: nothing is logged.
	Logger *slog.Logger
	// Now is the clock of a test. Nil: Redis' clock, whatever the machine's says.
	Now func() time.Time
	// Registry gets the metrics. Nil: they are not shown.
	Registry prometheus.Registerer
}

// Limits admits messages and counts connections. It is safe for concurrent use, by any number of processes on
// one Redis.
type Limits struct {
	store   store
	log     *slog.Logger
	now     func() time.Time
	metrics *metrics
	// scopes to ask Redis about though they have no rate, and until when (by l.now)
	throttled *redisdb.Cache[map[string]time.Time]
	held      *held
}

// New prepares the package on an open database. It does no I/O.
func New(db *redisdb.DB, o Options) (*Limits, error) {
	if db == nil {
		return nil, errors.New("limits: a database is needed")
	}
	m, err := newMetrics(o.Registry)
	if err != nil {
		return nil, err
	}
	l := &Limits{
		store: store{db: db, now: o.Now}, log: o.Logger, now: o.Now, metrics: m,
		throttled: redisdb.NewCache[map[string]time.Time](db, versionKey(), nil),
		held:      newHeld(),
	}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	if l.now == nil {
		l.now = time.Now
	}
	return l, nil
}
