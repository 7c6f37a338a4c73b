package access

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
)

// keepExpired is the time that the record of an expired token stays: it shows an operator why a program is
// refused.
const keepExpired = 30 * 24 * time.Hour

//go:embed *.lua
var lua embed.FS

var (
	createScript = redisdb.NewScript[createArgs, bool]("access/create", redisdb.Source(lua, "create.lua"))
	deleteScript = redisdb.NewScript[deleteArgs, bool]("access/delete", redisdb.Source(lua, "delete.lua"))
	rotateScript = redisdb.NewScript[rotateArgs, bool]("access/rotate", redisdb.Source(lua, "rotate.lua"))
	touchScript  = redisdb.NewScript[touchArgs, bool]("access/touch", redisdb.Source(lua, "touch.lua"))
	remacScript  = redisdb.NewScript[remacArgs, bool]("access/remac", redisdb.Source(lua, "remac.lua"))
	countScript  = redisdb.NewScript[countArgs, counted]("access/count", redisdb.Source(lua, "count.lua"))
)

type createArgs struct {
	ID       string
	Record   []byte
	MAC      string
	Created  time.Time
	ExpireAt string
}

type deleteArgs struct{ ID string }

type remacArgs struct{ Before, After string }

type rotateArgs struct {
	Before      string
	OldID       string
	OldRecord   []byte
	OldMAC      string
	OldExpireAt string
	ID          string
	Record      []byte
	MAC         string
	Created     time.Time
	ExpireAt    string
}

type touchArgs struct {
	Minute int64
	From   string
}

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
func failuresKey(from source) string {
	if from.passwords {
		return redisdb.Key(0, "tokens", "failures", "passwords", from.network.String())
	}
	return redisdb.Key(0, "tokens", "failures", from.network.String())
}

// store reads and writes tokens and sessions in Redis.
type store struct {
	client redis.UniversalClient
	ring   *seal.Ring // proves that records are Postroom's own
}

// create stores a new token with its encoded record.
func (s store) create(ctx context.Context, info api.TokenInfo, record []byte) error {
	args := createArgs{ID: info.ID, Record: record, MAC: s.ring.MAC(record, tokenName(info.ID)),
		Created: info.Created, ExpireAt: expireAt(info)}
	keys := []string{tokenKey(info.ID), indexKey()}
	if info.Account != "" {
		keys = append(keys, accountKey(string(info.Account)))
	}
	_, err := createScript.Run(ctx, s.client, keys, args)
	return err
}

// expireAt returns when the record of a token ends, in ms since 1970; +inf: never.
func expireAt(info api.TokenInfo) string {
	if info.Expires == nil {
		return "+inf"
	}
	return strconv.FormatInt(info.Expires.Add(keepExpired).UnixMilli(), 10)
}

// load returns a token, or false if there is none.
func (s store) load(ctx context.Context, id string) (api.TokenInfo, bool, error) {
	return s.readToken(id, s.client.HMGet(ctx, tokenKey(id), tokenFields...))
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

// touch stores the minute in which a token was used, and the address.
func (s store) touch(ctx context.Context, id string, minute int64, from string) error {
	_, err := touchScript.Run(ctx, s.client, []string{tokenKey(id)}, touchArgs{minute, from})
	return err
}

// count counts an event. It returns the number in the window, and the time until the window ends.
func (s store) count(ctx context.Context, key string, window time.Duration) (int, time.Duration, error) {
	got, err := countScript.Run(ctx, s.client, []string{key}, countArgs{window.Milliseconds()})
	return got.Events, time.Duration(got.Left) * time.Millisecond, err
}

// page returns tokens of an account or (empty) all, the oldest first, and their number. Tokens whose record
// has expired are removed from the index.
func (s store) page(ctx context.Context, account string, from, size int) ([]api.TokenInfo, int, error) {
	index := indexKey()
	if account != "" {
		index = accountKey(account)
	}
	ids, err := s.client.ZRange(ctx, index, int64(from), int64(from+size-1)).Result()
	if err != nil {
		return nil, 0, err
	}
	pipe := s.client.Pipeline()
	rows := make([]*redis.SliceCmd, len(ids))
	for i, id := range ids {
		rows[i] = pipe.HMGet(ctx, tokenKey(id), tokenFields...)
	}
	total := pipe.ZCard(ctx, index)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, 0, err
	}
	tokens := make([]api.TokenInfo, 0, len(ids))
	for i, row := range rows {
		info, ok, err := s.readToken(ids[i], row)
		if err != nil {
			return nil, 0, err
		}
		if ok {
			tokens = append(tokens, info)
			continue
		}
		if err := s.client.ZRem(ctx, index, ids[i]).Err(); err != nil {
			return nil, 0, err
		}
	}
	return tokens, int(total.Val()) - (len(ids) - len(tokens)), nil
}

// tokenFields are the fields of a token that readToken reads.
var tokenFields = []string{"record", "used", "mac", "from"}

// tokenName is the name that the code of a token's record is bound to.
func tokenName(id string) string { return "token:" + id }

// readToken returns a token, or false if there is none. A token that Postroom did not write has Refused.
func (s store) readToken(id string, row *redis.SliceCmd) (info api.TokenInfo, ok bool, err error) {
	values, err := row.Result()
	if err != nil {
		return info, false, err
	}
	record, ok := values[0].(string)
	if !ok {
		return info, false, nil
	}
	used, _ := values[1].(string)
	code, _ := values[2].(string)
	if err := s.ring.Verify(code, []byte(record), tokenName(id)); err != nil {
		_ = json.Unmarshal([]byte(record), &info) // what it claims; it may be anything
		info.ID, info.Refused = id, "Its record was not written by Postroom: "+err.Error()
		return info, true, nil
	}
	info, err = decode(record, used)
	info.LastUsedFrom, _ = values[3].(string)
	if info.LastUsed != nil {
		info.Access = &api.TokenAccess{Time: *info.LastUsed, IP: info.LastUsedFrom}
	}
	return info, err == nil, err
}

// remac replaces the code of a token that was made under an older secret, and reports whether it did.
func (s store) remac(ctx context.Context, id string) (bool, error) {
	row, err := s.client.HMGet(ctx, tokenKey(id), "record", "mac").Result()
	if err != nil {
		return false, err
	}
	record, _ := row[0].(string)
	before, _ := row[1].(string)
	if !s.ring.NeedsRotation(before) {
		return false, nil
	}
	if err := s.ring.Verify(before, []byte(record), tokenName(id)); err != nil {
		return false, err
	}
	return remacScript.Run(ctx, s.client, []string{tokenKey(id)},
		remacArgs{before, s.ring.MAC([]byte(record), tokenName(id))})
}

// errForged means that a session was not written by Postroom, or under a secret that is not configured.
var errForged = errors.New("the session does not have Postroom's code")

func tokenNotFound() error { return fault.New(fault.NotFound, "TokenNotFound", "Token was not found") }
