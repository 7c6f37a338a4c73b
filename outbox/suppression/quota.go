package suppression

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
)

// Room checks an account's quota, if it has one. It calls count for the amount used and the amount wanted,
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

// Count is the number of entries of a scope with a reason, including expired ones that are not swept yet.
type Count struct {
	Account, List string // the scope, as of an [Entry]
	Reason        Reason
	Entries       int64
}

func (c Count) kind() string {
	switch {
	case c.List != "":
		return "list"
	case c.Account != "":
		return "account"
	}
	return "instance"
}

// Counts returns the counts of all scopes that have entries: the instance, then accounts, then lists, by id
// and strength of the reason. It costs one round trip and reads counters, not entries.
func (s *Store) Counts(ctx context.Context) ([]Count, error) {
	pipe := s.db.Client().Pipeline()
	var answers [shards]*redis.MapStringStringCmd
	for shard := range shards {
		answers[shard] = pipe.HGetAll(ctx, countsKey(shard))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, redisdb.Failed(err, "suppression: count entries")
	}
	sums := map[string]int64{}
	for _, answer := range answers {
		for index, text := range answer.Val() {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, redisdb.Failed(err, "suppression: read counts")
			}
			sums[index] += n
		}
	}
	var counts []Count
	for index, n := range sums {
		reason, scope, _ := strings.Cut(index, ":")
		if scope == anyScope || len(reason) != 1 {
			continue
		}
		c := Count{Reason: reasonOf(reason[0]), Entries: n}
		c.Account, c.List = parseScope(scope)
		counts = append(counts, c)
	}
	slices.SortFunc(counts, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.List, b.List), cmp.Compare(a.Account, b.Account),
			cmp.Compare(a.Reason.strength(), b.Reason.strength()))
	})
	return counts, nil
}

// CountOf returns the number of entries of a filter's scopes and reason, including expired ones that are not
// swept yet. Other fields of the filter are ignored. It costs one round trip.
func (s *Store) CountOf(ctx context.Context, f Filter) (int64, error) {
	counts, err := s.Counts(ctx)
	var sum int64
	for _, c := range counts {
		if f.selects(c.Account, c.List) && (f.Reason == "" || f.Reason == c.Reason) {
			sum += c.Entries
		}
	}
	return sum, err
}
