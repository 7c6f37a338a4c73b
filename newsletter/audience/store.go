package audience

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox/suppression"
)

// store reads and writes the records of subscribers. It knows no rules.
type store struct {
	db      *redisdb.DB
	metrics *metrics
	now     func() time.Time
	room    suppression.Room // nil: any number of subscribers
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
				return uint32(n), err // of a creation that broke off, or is ahead of this one
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

// edit changes the record of an ordinal by fn, which gets a copy and returns what it changed of lists. If fn
// changes nothing, nothing is written. It returns the record as it is then. Unknown: NotFound.
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
