package audience

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/outbox/suppression"
)

// Parts are what the audience needs.
type Parts struct {
	DB           *redisdb.DB
	Suppressions *suppression.Store
	// Account returns an error if there is no such account. Of accounts.Accounts, joined in package app.
	Account func(ctx context.Context, account string) error
	// Campaigns returns the campaigns, which are built later. Nil: there are none.
	Campaigns func() Campaigns
}

// Options are the settings newsletter.* that are about the audience. The zero value works.
type Options struct {
	// PendingRetention is how long a subscription waits for its confirmation, on lists that do not say it. Zero:
	// 30 days.
	PendingRetention time.Duration

	// InUse refuses to delete a list or a segment that a campaign needs. Nil: none does.
	InUse records.InUse

	// Room and ImportRoom check quotas of an account: its subscribers, and the bytes of one import. Nil: there
	// is none.
	Room, ImportRoom suppression.Room

	Logger   *slog.Logger          // nil: nothing is logged
	Registry prometheus.Registerer // nil: nothing is counted
	Now      func() time.Time      // the clock, for tests; nil: time.Now
}

const defaultPendingRetention = 30 * 24 * time.Hour

// Subscribers stores the subscribers of all accounts. It is safe for concurrent use by any number of
// processes on one Redis.
type Subscribers struct {
	Parts
	Lists    *Lists
	Segments *Segments
	Imports  *Imports

	store
	opts       Options
	words      words
	attributes attributes
	log        *slog.Logger

	confirmations *Confirmations // nil: changes send no mail; see NewConfirmations
}

// New returns the subscribers and lists of a database. It does no I/O. [Subscribers.Run] removes what nobody
// confirmed.
func New(p Parts, o Options) (*Subscribers, error) {
	if p.DB == nil || p.Suppressions == nil || p.Account == nil {
		return nil, errors.New("audience: a part is missing")
	}
	if p.Campaigns == nil {
		p.Campaigns = func() Campaigns { return noCampaigns{} }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.PendingRetention <= 0 {
		o.PendingRetention = defaultPendingRetention
	}
	lists := newLists(p, o)
	s := &Subscribers{Parts: p, Lists: lists, opts: o, words: words{db: p.DB}, attributes: attributes{db: p.DB},
		store: store{db: p.DB, metrics: newMetrics(o.Registry), now: o.Now, room: o.Room},
		log:   cmp.Or(o.Logger, slog.New(slog.DiscardHandler))}
	s.Segments = newSegments(s)
	s.Imports = &Imports{s: s}
	return s, nil
}

// seconds returns a time as records hold it. It ends in 2106.
func seconds(at time.Time) uint32 { return uint32(max(1, min(at.Unix(), 1<<32-1))) }

// timeOf is the inverse of seconds.
func timeOf(at uint32) time.Time { return time.Unix(int64(at), 0).UTC() }
