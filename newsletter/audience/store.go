package audience

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/outbox/suppression"
)

// Parts are what the audience needs.
type Parts struct {
	DB           *redisdb.DB
	Suppressions *suppression.Store
	// Account returns an error if there is no such account. accounts.Accounts implements it.
	Account func(ctx context.Context, account string) error
	// Campaigns returns the campaigns, which are built later. Nil if there are none.
	Campaigns func() Campaigns
}

// Options are the settings newsletter.* that are about the audience. The zero value works.
type Options struct {
	// PendingRetention is how long a subscription waits for its confirmation, on lists that do not set it.
	// Defaults to 30 days.
	PendingRetention time.Duration

	// InUse refuses to delete a list or a segment that a campaign needs. Nil if none does.
	InUse records.InUse

	// Room and ImportRoom check an account's quotas: its subscribers, and the bytes of one import. If nil, there
	// is no quota.
	Room, ImportRoom suppression.Room

	Logger   *slog.Logger          // nil if nothing is logged
	Registry prometheus.Registerer // nil if nothing is counted
	Now      func() time.Time      // the clock, for tests; defaults to time.Now
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

	confirmations *Confirmations // if nil, changes send no email; see NewConfirmations
}

// New returns the subscribers and lists of a database. It does no I/O. [Subscribers.Run] removes unconfirmed
// subscriptions.
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
	o.PendingRetention = cmp.Or(max(o.PendingRetention, 0), defaultPendingRetention)
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

// store reads and writes the records of subscribers. It knows no rules.
type store struct {
	db      *redisdb.DB
	metrics *metrics
	now     func() time.Time
	room    suppression.Room // nil means any number of subscribers
}

// tries bounds the attempts at a change while other changes come first.
const tries = 8

func subscriberNotFound(name string) error {
	return fault.New(fault.NotFound, "SubscriberNotFound", "There is no subscriber %q in this account", name)
}

func contended(name string) error {
	return fault.New(fault.Conflict, "SubscriberChanged",
		"The subscriber %s is being changed by others; try again", name)
}

// takePlace returns an ordinal for a folded address without a record. has is its ordinal in the index.
func (s *store) takePlace(ctx context.Context, account, address, has string) (uint32, error) {
	if has != "" {
		if n, err := strconv.ParseUint(has, 10, 32); err == nil {
			r, err := s.load(ctx, account, uint32(n))
			if err != nil || r == nil || folded(r.email) == address {
				return uint32(n), err // for a creation that was interrupted, or is ahead of this one
			}
		}
	}
	next, err := s.nextOrdinals(ctx, account, 1)
	if err != nil {
		return 0, err
	}
	got, err := s.claim(ctx, account, address, has, decimal(next))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(got, 10, 32)
	if err != nil {
		return 0, contended(address)
	}
	return uint32(n), nil
}

// step writes a change with the next version. It reports whether the record still had the old one.
func (s *store) step(ctx context.Context, account string, c *change) (bool, error) {
	c.new.version, c.new.updated = 1, max(seconds(s.now()), c.new.created)
	if c.old != nil {
		c.new.version = c.old.version + 1
	}
	if err := c.fillEvents(account, s.now()); err != nil {
		return false, err
	}
	done, err := s.write(ctx, account, c)
	if done {
		s.metrics.changed(c)
	}
	return done, err
}

// edit changes an ordinal's record with fn, which gets a copy and returns its changes of lists. If fn changes
// nothing, nothing is written. edit returns the record as it is then, or NotFound.
func (s *store) edit(ctx context.Context, account string, ordinal uint32,
	fn func(r *record) ([]listChange, error)) (*record, error) {
	for range tries {
		old, err := s.load(ctx, account, ordinal)
		if err != nil {
			return nil, err
		}
		if old == nil {
			return nil, subscriberNotFound(idOf(ordinal))
		}
		next := old.clone()
		changes, err := fn(next)
		if err != nil {
			return nil, err
		}
		if slices.Equal(next.encode(), old.encode()) {
			return old, nil
		}
		c := &change{ordinal: ordinal, old: old, new: next, lists: changes}
		done, err := s.step(ctx, account, c)
		if err != nil {
			return nil, err
		}
		if done {
			return next, nil
		}
	}
	return nil, contended(idOf(ordinal))
}
