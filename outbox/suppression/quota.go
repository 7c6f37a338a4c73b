package suppression

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
)

// Room checks the quota of an account, if it has one: it asks count what is used and how much more is wanted,
// and returns the error if that has no room.
type Room func(ctx context.Context, account string, count func() (used, more int, err error)) error

// importRoom returns an error if an import of an account is larger than its quota allows.
func (o Options) importRoom(ctx context.Context, account string, bytes int64) error {
	if o.ImportRoom == nil || account == "" {
		return nil
	}
	return o.ImportRoom(ctx, account, func() (used, more int, err error) { return 0, int(bytes), nil })
}

// hasRoom returns an error if an account has no room for all of its entries, which are in normal form.
// Entries that are there already need none. Requests at the same moment do not see each other's entries.
func (s *Store) hasRoom(ctx context.Context, entries []Entry) error {
	if s.opts.Room == nil {
		return nil
	}
	ofAccount := map[string][]Entry{}
	for _, e := range entries {
		if e.Account != "" {
			ofAccount[e.Account] = append(ofAccount[e.Account], e)
		}
	}
	for account, list := range ofAccount {
		err := s.opts.Room(ctx, account, func() (used, more int, err error) {
			n, err := s.CountOf(ctx, Filter{Account: account})
			if err == nil {
				more, err = fresh(ctx, s.db, list)
			}
			return int(n), more, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// fresh returns how many of the entries are not there yet.
func fresh(ctx context.Context, db *redisdb.DB, entries []Entry) (int, error) {
	type one struct {
		subject, scope string
		reason         Reason
	}
	pipe, found := db.Client().Pipeline(), map[one]*redis.SliceCmd{}
	for i := range entries {
		e := &entries[i]
		o := one{e.subject(), scopeOf(e.Account, e.List), e.Reason}
		if found[o] == nil {
			field, _ := fieldOf(fieldName(o.scope, o.subject))
			found[o] = pipe.HMGet(ctx, bucketOf(o.subject).key(), field)
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, redisdb.Failed(err, "suppression: look for entries")
	}
	n := 0
	for o, cmd := range found {
		value, _ := cmd.Val()[0].(string)
		known := false
		for _, r := range records(value) {
			known = known || r.reason == o.reason
		}
		if !known {
			n++
		}
	}
	return n, nil
}
