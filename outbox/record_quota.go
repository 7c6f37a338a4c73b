package outbox

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
)

// quota is what an account, or a token, may have waiting and may submit in a day.
type quota struct {
	account, token string // one of both
	limit          used   // zero means any number
}

// used is the used part of a quota.
type used struct{ messages, bytes, perDay int }

// owner is the name of the quota's counts in Redis.
func (q quota) owner() string {
	if q.token != "" {
		return "token:" + q.token
	}
	return q.account
}

// quotasOf returns the quotas with a limit that a message must keep to.
func quotasOf(account string, q accounts.Quota, token string, of *api.TokenQuota) (all []quota) {
	if limit := (used{q.Messages, q.Bytes, q.PerDay}); limit != (used{}) {
		all = append(all, quota{account: account, limit: limit})
	}
	if of != nil && *of != (api.TokenQuota{}) {
		all = append(all, quota{token: token, limit: used{of.Messages, of.Bytes, of.PerDay}})
	}
	return all
}

// tokenOf returns the id of the token among quotas; "" if there is none.
func tokenOf(quotas []quota) string {
	for _, q := range quotas {
		if q.token != "" {
			return q.token
		}
	}
	return ""
}

func (u used) plus(v used) used {
	return used{u.messages + v.messages, u.bytes + v.bytes, u.perDay + v.perDay}
}

// total returns the sum of the usage in each partition.
func total(parts []used) (sum used) {
	for _, u := range parts {
		sum = sum.plus(u)
	}
	return sum
}

// nextDay is when the count of a day begins again.
func nextDay(now time.Time) time.Time { return now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour) }

// usage returns what of each quota is used in each partition.
func (s *store) usage(ctx context.Context, quotas []quota, now time.Time) ([][]used, error) {
	pipe := s.DB.Client().Pipeline()
	number := func(cmd *redis.StringCmd) func() int {
		return func() int { n, _ := strconv.Atoi(cmd.Val()); return n }
	}
	read := make([][][3]func() int, len(quotas))
	for i, q := range quotas {
		for p := range s.DB.Partitions() {
			owner, counts := q.owner(), s.keys.quota(p)
			messages := number(pipe.HGet(ctx, counts, "messages "+owner))
			if q.token == "" {
				messages = waitingOf(ctx, pipe, p, q.account)
			}
			read[i] = append(read[i], [3]func() int{messages, number(pipe.HGet(ctx, counts, "bytes "+owner)),
				number(pipe.HGet(ctx, s.keys.quotaDay(p, now), owner))})
		}
	}
	if err := execRead(ctx, pipe); err != nil {
		return nil, redisError(err, "read what of a quota is used")
	}
	all := make([][]used, len(quotas))
	for i := range read {
		for _, r := range read[i] {
			all[i] = append(all[i], used{r[0](), r[1](), r[2]()})
		}
	}
	return all, nil
}

// waitingOf asks for the messages of an account that count towards its quota.
func waitingOf(ctx context.Context, pipe redis.Pipeliner, p int, account string) func() int {
	var cards []*redis.IntCmd
	for _, lane := range []api.Lane{api.Transactional, api.Bulk} {
		for _, state := range []string{stateWaiting, stateScheduled, stateDelayed} {
			cards = append(cards, pipe.ZCard(ctx, of(keys{}.index(p, string(lane), state), account)))
		}
	}
	return func() (sum int) {
		for _, c := range cards {
			sum += int(c.Val())
		}
		return sum
	}
}

// quotaCheck is what a script must know of quotas to count in all partitions.
type quotaCheck struct {
	db     *redisdb.DB
	quotas []quota
	used   [][]used // by quota and partition; nil if the script itself counts in all partitions
	now    time.Time
}

// newQuotaCheck prepares quotas for messages that are accepted next. If a script sees only its own partition,
// as in a Cluster, the others are counted just before: messages accepted at the same moment in two partitions
// may exceed a quota.
func newQuotaCheck(ctx context.Context, s *store, quotas []quota) (*quotaCheck, error) {
	c := &quotaCheck{db: s.DB, quotas: quotas, now: s.clock.Now()}
	if len(quotas) == 0 || s.DB.Together() || s.DB.Partitions() == 1 {
		return c, nil
	}
	var err error
	c.used, err = s.usage(ctx, quotas, c.now)
	return c, err
}

// elsewhere returns how much of a quota is used in the partitions that a script does not see.
func (c *quotaCheck) elsewhere(quota, partition int) (sum used) {
	if c.used == nil {
		return sum
	}
	for p, u := range c.used[quota] {
		if p != partition {
			sum = sum.plus(u)
		}
	}
	return sum
}

// args returns the arguments quotas and partitions of a script.
func (c *quotaCheck) args(partition int) (quotas, partitions string) {
	if c == nil {
		return "", ""
	}
	var words []string
	left := func(limit, elsewhere int) string {
		if limit == 0 {
			return "-"
		}
		return strconv.Itoa(limit - elsewhere)
	}
	for i, q := range c.quotas {
		other := c.elsewhere(i, partition)
		words = append(words, q.owner(), left(q.limit.messages, other.messages), left(q.limit.bytes, other.bytes),
			left(q.limit.perDay, other.perDay))
	}
	if c.db.Together() {
		partitions = strconv.Itoa(c.db.Partitions())
	}
	return strings.Join(words, " "), partitions
}

// exceeded returns the error for the answer OVER to a message of some bytes.
func (c *quotaCheck) exceeded(ctx context.Context, by Accounts, partition, size int, first string) error {
	words := strings.Fields(first)
	for i, q := range c.quotas {
		if q.owner() != words[0] {
			continue
		}
		n, _ := strconv.Atoi(words[2])
		other := c.elsewhere(i, partition)
		have := used{n + other.messages, n + other.bytes, n + other.perDay}
		return by.Exceeded(ctx, q.excess(words[1], have, used{1, size, 1}, c.now))
	}
	return fmt.Errorf("accept message: no quota of %s", words[0])
}

// excess describes that a limit of a quota has no room for more.
func (q quota) excess(name string, have, more used, now time.Time) accounts.Excess {
	e := accounts.Excess{Quota: name, Account: q.account, Token: q.token, Now: now}
	switch name {
	case "messages":
		e.Limit, e.Used, e.More = q.limit.messages, have.messages, more.messages
	case "bytes":
		e.Limit, e.Used, e.More = q.limit.bytes, have.bytes, more.bytes
	case "perDay":
		e.Limit, e.Used, e.More, e.Until = q.limit.perDay, have.perDay, more.perDay, nextDay(now)
	}
	return e
}
