package oauth

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/lease"
	"github.com/postroom/postroom/internal/redisdb"
)

//go:embed *.lua
var lua embed.FS

var (
	putScript    = redisdb.NewScript[putArgs, bool]("oauth/put", redisdb.Source(lua, "put.lua"))
	resealScript = redisdb.NewScript[resealArgs, bool]("oauth/reseal", redisdb.Source(lua, "reseal.lua"))
)

type putArgs struct {
	Owner, Fence, Before, After string
	KeepFor                     int64 // ms
}

type resealArgs struct{ Owner, Before, After string }

func recordKey(owner string) string { return redisdb.Key(0, "oauth", owner) }
func lockKey(owner string) string   { return redisdb.Key(0, "oauth", owner, "lock") }
func ownersKey() string             { return redisdb.Key(0, "oauth", "owners") }

// store reads and writes tokens in Redis. All records are sealed text; "" means none.
type store struct{ client redis.UniversalClient }

// storeError is a failure of Redis, or interference of another process, never of a token server.
type storeError struct{ err error }

// Error returns the operation and its error.
func (e *storeError) Error() string { return e.err.Error() }

// Unwrap returns the error of Redis.
func (e *storeError) Unwrap() error { return e.err }

func failed(err error, what, owner string) error {
	return &storeError{fmt.Errorf("%s of %s: %w", what, owner, err)}
}

// get returns a record.
func (s store) get(ctx context.Context, owner string) (string, error) {
	sealed, err := s.client.Get(ctx, recordKey(owner)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", failed(err, "read the token", owner)
	}
	return sealed, nil
}

// lock returns the lock of an owner's token. A process whose lock could not be released gets it again.
func (s store) lock(owner, fence string) lease.Lock {
	return lease.Lock{Client: s.client, Key: lockKey(owner), Holder: fence, Length: lockFor}
}

// put stores a record if the lock is still ours, or no other record was stored since.
func (s store) put(ctx context.Context, owner, fence, before, after string, keep time.Duration) (bool,
	error) {
	done, err := putScript.Run(ctx, s.client, []string{recordKey(owner), lockKey(owner), ownersKey()},
		putArgs{Owner: owner, Fence: fence, Before: before, After: after, KeepFor: keep.Milliseconds()})
	if err != nil {
		return false, failed(err, "store the token", owner)
	}
	return done, nil
}

// remove removes everything about an owner.
func (s store) remove(ctx context.Context, owner string) error {
	pipe := s.client.TxPipeline()
	pipe.Del(ctx, recordKey(owner), lockKey(owner))
	pipe.SRem(ctx, ownersKey(), owner)
	if _, err := pipe.Exec(ctx); err != nil {
		return failed(err, "remove the token", owner)
	}
	return nil
}

// reseal replaces the seal of a record, if it is still the one that was read. An owner without a record is
// removed from the set of owners.
func (s store) reseal(ctx context.Context, owner, before, after string) (bool, error) {
	done, err := resealScript.Run(ctx, s.client, []string{recordKey(owner), ownersKey()},
		resealArgs{Owner: owner, Before: before, After: after})
	if err != nil {
		return false, failed(err, "seal again the token", owner)
	}
	return done, nil
}
