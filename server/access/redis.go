package access

import (
	"context"
	"embed"
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

// keepExpired is the time that the record of an expired token stays: it shows an operator why a program is
// refused.
const keepExpired = 30 * 24 * time.Hour

//go:embed *.lua
var lua embed.FS

var (
	createScript = redisdb.NewScript[createArgs, bool]("access/create", redisdb.Source(lua, "create.lua"))
	deleteScript = redisdb.NewScript[deleteArgs, bool]("access/delete", redisdb.Source(lua, "delete.lua"))
	touchScript  = redisdb.NewScript[touchArgs, bool]("access/touch", redisdb.Source(lua, "touch.lua"))
	countScript  = redisdb.NewScript[countArgs, counted]("access/count", redisdb.Source(lua, "count.lua"))
)

type createArgs struct {
	ID       string
	Record   []byte
	Created  time.Time
	ExpireAt string
}

type deleteArgs struct{ ID string }

type touchArgs struct{ Minute int64 }

type countArgs struct{ Window int64 } // ms

type counted struct {
	Word   string
	Events int
	Left   int64 // ms
}

func tokenKey(id string) string        { return redisdb.Key(0, "token", id) }
func indexKey() string                 { return redisdb.Key(0, "tokens") }
func accountKey(account string) string { return redisdb.Key(0, "tokens", "account", account) }
func versionKey() string               { return redisdb.Key(0, "tokens", "version") }
func rateKey(id string) string         { return redisdb.Key(0, "tokens", "rate", id) }
func failuresKey(from netip.Prefix) string {
	return redisdb.Key(0, "tokens", "failures", from.String())
}
func sessionKey(hash string) string { return redisdb.Key(0, "session", hash) }

// store reads and writes tokens and sessions in Redis.
type store struct{ client redis.UniversalClient }

// create stores a new token with its encoded record.
func (s store) create(ctx context.Context, info api.TokenInfo, record []byte) error {
	args := createArgs{ID: info.ID, Record: record, Created: info.Created, ExpireAt: "+inf"}
	if info.Expires != nil {
		args.ExpireAt = strconv.FormatInt(info.Expires.Add(keepExpired).UnixMilli(), 10)
	}
	keys := []string{tokenKey(info.ID), indexKey()}
	if info.Account != "" {
		keys = append(keys, accountKey(info.Account))
	}
	_, err := createScript.Run(ctx, s.client, keys, args)
	return err
}

// load returns a token; false: there is none.
func (s store) load(ctx context.Context, id string) (api.TokenInfo, bool, error) {
	return readToken(s.client.HMGet(ctx, tokenKey(id), "record", "used"))
}

// remove deletes a token, bound to an account or (empty) not, and reports whether there was one.
func (s store) remove(ctx context.Context, id, account string) (bool, error) {
	keys := []string{tokenKey(id), indexKey(), versionKey(), rateKey(id)}
	if account != "" {
		keys = append(keys, accountKey(account))
	}
	return deleteScript.Run(ctx, s.client, keys, deleteArgs{id})
}

// ofAccount returns the ids of the tokens bound to an account.
func (s store) ofAccount(ctx context.Context, account string) ([]string, error) {
	return s.client.ZRange(ctx, accountKey(account), 0, -1).Result()
}

// touch stores the minute in which a token was used.
func (s store) touch(ctx context.Context, id string, minute int64) error {
	_, err := touchScript.Run(ctx, s.client, []string{tokenKey(id)}, touchArgs{minute})
	return err
}

// count counts an event. It returns the number in the window, and the time until the window ends.
func (s store) count(ctx context.Context, key string, window time.Duration) (int, time.Duration, error) {
	got, err := countScript.Run(ctx, s.client, []string{key}, countArgs{window.Milliseconds()})
	return got.Events, time.Duration(got.Left) * time.Millisecond, err
}

// page returns tokens, the oldest first, and the number of all. Tokens whose record has expired are removed
// from the index.
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

// useSession returns a session and restarts its lifetime, in one step.
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
