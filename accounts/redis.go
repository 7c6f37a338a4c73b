package accounts

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb"
)

var (
	//go:embed put.lua
	putSource string
	//go:embed delete.lua
	deleteSource string
	//go:embed state.lua
	stateSource string

	putScript    = redisdb.NewScript("accounts/put", putSource)
	deleteScript = redisdb.NewScript("accounts/delete", deleteSource)
	stateScript  = redisdb.NewScript("accounts/state", stateSource)
)

func accountKey(id string) string { return redisdb.Key(0, "account", id) }
func stateKey(id string) string   { return redisdb.Key(0, "account", id, "state") }
func indexKey() string            { return redisdb.Key(0, "accounts") }
func versionKey() string          { return redisdb.Key(0, "accounts", "version") }

// store is what Redis keeps of accounts.
type store struct{ client redis.UniversalClient }

// put stores an account that was read as old; false when somebody changed it meanwhile.
func (s store) put(ctx context.Context, next, old *stored) (bool, error) {
	record, err := next.encode()
	if err != nil {
		return false, err
	}
	id, read := next.Account.Account, ""
	if old != nil {
		read = old.revision
	}
	keys := []string{accountKey(id), indexKey(), versionKey(), stateKey(id)}
	done, err := putScript.Run(ctx, s.client, keys, id, read, next.revision, record).Int()
	return done == 1, err
}

// load reads an account; nil when there is none.
func (s store) load(ctx context.Context, id string) (*stored, error) {
	if !idPattern.MatchString(id) {
		return nil, nil // such as "a:state", which would be the key of something else
	}
	return readStored(id, s.client.HMGet(ctx, accountKey(id), "record", "revision"))
}

func readStored(id string, row *redis.SliceCmd) (*stored, error) {
	values, err := row.Result()
	if err != nil {
		return nil, err
	}
	record, ok := values[0].(string)
	if !ok {
		return nil, nil
	}
	revision, _ := values[1].(string)
	return decodeStored(id, record, revision)
}

// remove deletes an account and reports whether there was one.
func (s store) remove(ctx context.Context, id string) (bool, error) {
	if !idPattern.MatchString(id) {
		return false, nil
	}
	keys := []string{accountKey(id), indexKey(), versionKey(), stateKey(id)}
	existed, err := deleteScript.Run(ctx, s.client, keys, id).Int()
	return existed == 1, err
}

// putState notes an account's state, if it still exists.
func (s store) putState(ctx context.Context, id string, configured bool, state, text string, now time.Time) error {
	keys := []string{accountKey(id), stateKey(id)}
	return stateScript.Run(ctx, s.client, keys, configured, state, text, now.UnixMilli()).Err()
}

// page reads ids in their order. A configured account that is not stored counts as the first of all.
func (s store) page(ctx context.Context, from, size int, configured bool) (ids []string, total int, err error) {
	pipe := s.client.Pipeline()
	count := pipe.ZCard(ctx, indexKey())
	stored := pipe.Exists(ctx, accountKey(DefaultID))
	rows := pipe.ZRange(ctx, indexKey(), int64(from), int64(from+size-1))
	if !configured {
		_, err = pipe.Exec(ctx)
		return rows.Val(), int(count.Val()), err
	}
	shifted := pipe.ZRange(ctx, indexKey(), int64(max(0, from-1)), int64(from+size-2))
	if _, err = pipe.Exec(ctx); err != nil || stored.Val() > 0 {
		return rows.Val(), int(count.Val()), err
	}
	ids = shifted.Val()
	if from == 0 {
		ids = []string{DefaultID}
		if size > 1 {
			ids = append(ids, shifted.Val()...)
		}
	}
	return ids, int(count.Val()) + 1, nil
}

// infos reads accounts with their states, as answers show them. Those that do not exist are left out.
func (a *Accounts) infos(ctx context.Context, ids []string) ([]api.AccountInfo, error) {
	pipe := a.store.client.Pipeline()
	records := make([]*redis.SliceCmd, len(ids))
	states := make([]*redis.SliceCmd, len(ids))
	for i, id := range ids {
		records[i] = pipe.HMGet(ctx, accountKey(id), "record", "revision")
		states[i] = pipe.HMGet(ctx, stateKey(id), "state", "lastError", "lastErrorAt")
	}
	infos := make([]api.AccountInfo, 0, len(ids))
	if len(ids) == 0 {
		return infos, nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, away(err, "read %d accounts", len(ids))
	}
	for i, id := range ids {
		s, err := readStored(id, records[i])
		if err != nil {
			return nil, err
		}
		if s == nil && a.Configured(id) {
			s = &stored{Account: *a.configured, Created: a.started, Updated: a.started}
		}
		if s == nil {
			continue
		}
		info := api.AccountInfo{Account: masked(s.Account), State: stateUnset, Created: s.Created, Updated: s.Updated}
		if err := readState(&info, states[i].Val()); err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, nil
}

func readState(info *api.AccountInfo, values []any) error {
	if state, ok := values[0].(string); ok {
		info.State = state
	}
	text, ok := values[1].(string)
	if !ok {
		return nil
	}
	at, _ := values[2].(string)
	ms, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return fmt.Errorf("read the state of account %s: %w", info.Account.Account, err)
	}
	when := time.UnixMilli(ms).UTC()
	info.LastError, info.LastErrorAt = text, &when
	return nil
}

// away says what was tried when Redis failed, and tells clients to come back when that is all it was.
func away(err error, format string, args ...any) error {
	err = fmt.Errorf("accounts: "+format+": %w", append(args, err)...)
	if !redisdb.Unavailable(err) {
		return err
	}
	f := fault.Wrap(err, fault.Unavailable, "RedisAway", "The message store is not available; try again shortly")
	f.RetryAfter = time.Second
	return f
}
