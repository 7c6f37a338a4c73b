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
