package access

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb"
)

// keepExpired is how long the record of an expired token stays, so that an operator can see why a program is
// refused.
const keepExpired = 30 * 24 * time.Hour

var (
	//go:embed create.lua
	createSource string
	//go:embed delete.lua
	deleteSource string
	//go:embed touch.lua
	touchSource string
	//go:embed count.lua
	countSource string

	createScript = redisdb.NewRawScript("access/create", createSource)
	deleteScript = redisdb.NewRawScript("access/delete", deleteSource)
	touchScript  = redisdb.NewRawScript("access/touch", touchSource)
	countScript  = redisdb.NewRawScript("access/count", countSource)
)

func tokenKey(id string) string        { return redisdb.Key(0, "token", id) }
func indexKey() string                 { return redisdb.Key(0, "tokens") }
func accountKey(account string) string { return redisdb.Key(0, "tokens", "account", account) }
func versionKey() string               { return redisdb.Key(0, "tokens", "version") }
func rateKey(id string) string         { return redisdb.Key(0, "tokens", "rate", id) }
func failuresKey(from netip.Prefix) string {
	return redisdb.Key(0, "tokens", "failures", from.String())
}
func sessionKey(hash string) string { return redisdb.Key(0, "session", hash) }

// store is what Redis keeps of tokens and sessions.
type store struct{ client redis.UniversalClient }

// create stores a new token with its encoded record.
func (s store) create(ctx context.Context, info api.TokenInfo, record []byte) error {
	forget := "+inf"
	if info.Expires != nil {
		forget = strconv.FormatInt(info.Expires.Add(keepExpired).UnixMilli(), 10)
	}
	keys := []string{tokenKey(info.ID), indexKey()}
	if info.Account != "" {
		keys = append(keys, accountKey(info.Account))
	}
	return createScript.Run(ctx, s.client, keys, info.ID, record, info.Created.UnixMilli(), forget).Err()
}

// load reads a token; false when there is none.
func (s store) load(ctx context.Context, id string) (api.TokenInfo, bool, error) {
	return readToken(s.client.HMGet(ctx, tokenKey(id), "record", "used"))
}

// remove deletes a token, bound to an account or (empty) not, and reports whether there was one.
func (s store) remove(ctx context.Context, id, account string) (bool, error) {
	keys := []string{tokenKey(id), indexKey(), versionKey(), rateKey(id)}
	if account != "" {
		keys = append(keys, accountKey(account))
	}
	existed, err := deleteScript.Run(ctx, s.client, keys, id).Int()
	return existed == 1, err
}

// ofAccount lists the tokens bound to an account.
func (s store) ofAccount(ctx context.Context, account string) ([]string, error) {
	return s.client.ZRange(ctx, accountKey(account), 0, -1).Result()
}

// touch notes the minute in which a token was used.
func (s store) touch(ctx context.Context, id string, minute int64) error {
	return touchScript.Run(ctx, s.client, []string{tokenKey(id)}, minute).Err()
}

// count counts an event and says how many the window holds and how long it still lasts.
func (s store) count(ctx context.Context, key string, window time.Duration) (int, time.Duration, error) {
	reply, err := countScript.Run(ctx, s.client, []string{key}, window.Milliseconds()).Int64Slice()
	if err != nil {
		return 0, 0, err
	}
	if len(reply) != 2 {
		return 0, 0, fmt.Errorf("redis script %s: answered %d values", countScript.Name(), len(reply))
	}
	return int(reply[0]), time.Duration(reply[1]) * time.Millisecond, nil
}

// page reads tokens by age. Tokens that Redis has forgotten since they expired leave the index on the way.
func (s store) page(ctx context.Context, from, size int) ([]api.TokenInfo, int, error) {
	ids, err := s.client.ZRange(ctx, indexKey(), int64(from), int64(from+size-1)).Result()
	if err != nil {
		return nil, 0, err
	}
	pipe := s.client.Pipeline()
	rows := make([]*redis.SliceCmd, len(ids))
	for i, id := range ids {
		rows[i] = pipe.HMGet(ctx, tokenKey(id), "record", "used")
	}
	total := pipe.ZCard(ctx, indexKey())
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, 0, err
	}
	tokens := make([]api.TokenInfo, 0, len(ids))
	for i, row := range rows {
		info, ok, err := readToken(row)
		if err != nil {
			return nil, 0, err
		}
		if ok {
			tokens = append(tokens, info)
			continue
		}
		if err := s.client.ZRem(ctx, indexKey(), ids[i]).Err(); err != nil {
			return nil, 0, err
		}
	}
	return tokens, int(total.Val()) - (len(ids) - len(tokens)), nil
}

func readToken(row *redis.SliceCmd) (api.TokenInfo, bool, error) {
	values, err := row.Result()
	if err != nil {
		return api.TokenInfo{}, false, err
	}
	record, ok := values[0].(string)
	if !ok {
		return api.TokenInfo{}, false, nil
	}
	used := int64(0)
	if s, ok := values[1].(string); ok {
		if used, err = strconv.ParseInt(s, 10, 64); err != nil {
			return api.TokenInfo{}, false, fmt.Errorf("read the last use of a token: %w", err)
		}
	}
	info, err := decode(record, used)
	return info, err == nil, err
}

// putSession stores a session under the hash of its cookie.
func (s store) putSession(ctx context.Context, hash, value string, life time.Duration) error {
	return s.client.Set(ctx, sessionKey(hash), value, life).Err()
}

// useSession reads a session and starts its life anew, in one step.
func (s store) useSession(ctx context.Context, hash string, life time.Duration) (string, bool, error) {
	value, err := s.client.GetEx(ctx, sessionKey(hash), life).Result()
	if errors.Is(err, redis.Nil) {
		return "", false, nil
	}
	return value, err == nil, err
}

func (s store) dropSession(ctx context.Context, hash string) error {
	return s.client.Del(ctx, sessionKey(hash)).Err()
}

func tokenNotFound() error { return fault.New(fault.NotFound, "TokenNotFound", "Token was not found") }
