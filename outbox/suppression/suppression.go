package suppression

import (
	"cmp"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
)

// Options are the settings suppression.*. The zero value works.
type Options struct {
	// Instance makes bounces and complaints hold for the whole instance: see [Store.WithDefaults]. If false,
	// they hold for the account whose mail caused them, because an account can cause them as it likes.
	Instance bool

	// messages given up for a temporary reason until an address is suppressed; defaults to 5; negative means
	// never
	SoftBounces     int
	SoftWindow      time.Duration // in which soft bounces are counted; defaults to 7 days
	SoftExpiry      time.Duration // expiry of an entry that soft bounces made; defaults to 14 days
	HardExpiry      time.Duration // expiry of a hard bounce; zero means never
	ComplaintExpiry time.Duration // expiry of a complaint; zero means never

	// The quotas of an account, or nil. Room is for entries that requests add (bounces, complaints and
	// unsubscribes always have room), ImportRoom for the bytes of one import.
	Room, ImportRoom Room

	// Ring seals the key that hides erased addresses. If nil, no one can be erased.
	Ring *seal.Ring

	Logger   *slog.Logger          // nil if nothing is logged
	Registry prometheus.Registerer // nil if nothing is counted
	Now      func() time.Time      // the clock, for tests; defaults to time.Now
}

// Defaults of Options.
const (
	defaultSoftBounces = 5
	defaultSoftWindow  = 7 * 24 * time.Hour
	defaultSoftExpiry  = 14 * 24 * time.Hour
)

// Store holds the suppressions of an instance. It is safe for concurrent use by any number of processes on
// one Redis.
type Store struct {
	db      *redisdb.DB
	opts    Options
	log     *slog.Logger
	now     func() time.Time
	metrics *metrics
	*digests
}

// New returns a store on an open database. It does no I/O.
// [Store.Run] removes expired entries.
func New(db *redisdb.DB, o Options) (*Store, error) {
	if db == nil {
		return nil, errors.New("suppression: a database is needed")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.SoftBounces = cmp.Or(o.SoftBounces, defaultSoftBounces)
	if o.SoftWindow <= 0 {
		o.SoftWindow = defaultSoftWindow
	}
	if o.SoftExpiry <= 0 {
		o.SoftExpiry = defaultSoftExpiry
	}
	return &Store{db: db, opts: o, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)), now: o.Now,
		metrics: newMetrics(o.Registry), digests: &digests{db: db, ring: o.Ring}}, nil
}

// WithDefaults returns a bounce or complaint with the scope and the expiry of the settings. With
// Options.Instance the account is removed. An entry without an expiry gets its reason's. Other entries are
// returned as they are.
func (s *Store) WithDefaults(e Entry) Entry {
	expiry := s.opts.HardExpiry
	switch e.Reason {
	case HardBounce:
	case SpamReport:
		expiry = s.opts.ComplaintExpiry
	default:
		return e
	}
	e.List = ""
	if s.opts.Instance {
		e.Account = ""
	}
	if e.Expires.IsZero() && expiry > 0 {
		e.Expires = s.now().Add(expiry)
	}
	return e
}
