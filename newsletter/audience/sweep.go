package audience

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/records"
)

const (
	sweepEvery = time.Hour   // which one process does for all
	lookEvery  = time.Minute // how often a process looks whether it is due
	sweepBatch = 500         // subscriptions of a list and shard that are read together
)

// sweep calls Sweep once an hour, by one process for all, until ctx ends.
func (s *Subscribers) sweep(ctx context.Context) error {
	for {
		mine, err := s.db.Client().SetNX(ctx, redisdb.Key(0, "subscriptions-swept"),
			s.now().UTC().Format(time.RFC3339), sweepEvery).Result()
		if err == nil && mine {
			removed, err := s.Sweep(ctx)
			switch {
			case ctx.Err() != nil:
			case err != nil:
				s.log.Warn("subscriptions that nobody confirmed could not be removed", "error", err)
			case removed > 0:
				s.log.Info("subscriptions that nobody confirmed were removed", "subscriptions", removed)
			}
		}
		if !redisdb.Pause(ctx, lookEvery) {
			return nil
		}
	}
}

// Sweep removes subscriptions that were not confirmed in time. A subscriber who had unsubscribed before is
// unsubscribed again. A subscriber who came by a form and is on no list any more is removed too.
func (s *Subscribers) Sweep(ctx context.Context) (removed int, err error) {
	err = s.Lists.store.Each(ctx, func(r *records.Record[storedList]) error {
		list := s.Lists.used(&r.Value)
		for shard := range shards {
			n, err := s.sweepList(ctx, list, shard)
			if removed += n; err != nil {
				return err
			}
		}
		return nil
	})
	return removed, err
}

// sweepList removes the late subscriptions of a list in a shard.
func (s *Subscribers) sweepList(ctx context.Context, list *List, shard int) (removed int, err error) {
	late := seconds(s.now().Add(-list.Pending))
	form, err := s.words.intern(ctx, list.Account, SourceForm)
	if err != nil {
		return 0, err
	}
	for {
		found, err := s.db.Client().ZRangeByScore(ctx, pendingKey(list.Number, shard),
			&redis.ZRangeBy{Min: "-inf", Max: decimal(late), Count: sweepBatch}).Result()
		if err != nil {
			return removed, redisdb.Failed(err, "look for unconfirmed subscriptions of list %s", list.ListID)
		}
		for _, member := range found {
			ordinal, err := strconv.ParseUint(member, 10, 32)
			if err != nil {
				return removed, errRecord
			}
			if err := s.lapse(ctx, list, uint32(ordinal), late, form[0]); err != nil {
				return removed, err
			}
			removed++
		}
		if len(found) < sweepBatch {
			return removed, nil
		}
	}
}

// lapse ends a subscription that is pending since late or before. form is the source of visitors.
func (s *Subscribers) lapse(ctx context.Context, list *List, ordinal, late, form uint32) error {
	byForm := false
	r, err := s.edit(ctx, list.Account, ordinal, func(r *record) ([]listChange, error) {
		sub := r.on(list.Number)
		if sub == nil || sub.state != Pending || sub.since > late {
			return nil, nil
		}
		byForm = sub.source == form
		for i := len(r.past) - 1; i >= 0; i-- {
			if before := r.past[i]; before.list == list.Number {
				if before.state != Left {
					break
				}
				*sub = before
				r.past = append(r.past[:i], r.past[i+1:]...)
				return []listChange{{list: list.Number, state: Left}}, nil
			}
		}
		r.drop(list.Number)
		return []listChange{{list: list.Number}}, nil
	})
	switch {
	case fault.Is(err, fault.NotFound):
		return s.forget(ctx, list, ordinal)
	case err == nil && byForm && len(r.lists) == 0:
		_, err = s.remove(ctx, list.Account, ordinal)
	}
	return err
}

// forget removes a pending entry without a record, as a crash of Redis may leave one.
func (s *Subscribers) forget(ctx context.Context, list *List, ordinal uint32) error {
	err := s.db.Client().ZRem(ctx, pendingKey(list.Number, shardOf(slotOf(ordinal).chunk)),
		decimal(ordinal)).Err()
	if err != nil {
		return redisdb.Failed(err, "forget a subscription of list %s", list.ListID)
	}
	return nil
}

// ignoreNil returns nil for the answer that there is no such key or field.
func ignoreNil(err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

// textOf returns the text that a command of a pipeline answered, "" if there is none.
func textOf(cmd redis.Cmder) string {
	if text, ok := cmd.(*redis.StringCmd); ok {
		return text.Val()
	}
	return ""
}
