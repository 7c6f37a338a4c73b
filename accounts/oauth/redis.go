package oauth

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/redisdb"
)

var (
	//go:embed claim.lua
	claimSource string
	//go:embed put.lua
	putSource string
	//go:embed release.lua
	releaseSource string
	//go:embed reseal.lua
	resealSource string

	claimScript   = redisdb.NewRawScript("oauth/claim", claimSource)
	putScript     = redisdb.NewRawScript("oauth/put", putSource)
	releaseScript = redisdb.NewRawScript("oauth/release", releaseSource)
	resealScript  = redisdb.NewRawScript("oauth/reseal", resealSource)
)

func recordKey(owner string) string { return redisdb.Key(0, "oauth", owner) }
func lockKey(owner string) string   { return redisdb.Key(0, "oauth", owner, "lock") }
func ownersKey() string             { return redisdb.Key(0, "oauth", "owners") }

// store is what Redis keeps of tokens. All records are sealed text; "" stands for none.
type store struct{ client redis.UniversalClient }

// storeError is trouble with Redis or with other processes, never with a token server.
type storeError struct{ err error }

// Error tells what was tried.
func (e *storeError) Error() string { return e.err.Error() }

// Unwrap gives the error of Redis.
func (e *storeError) Unwrap() error { return e.err }

func failed(err error, what, owner string) error {
	return &storeError{fmt.Errorf("%s of %s: %w", what, owner, err)}
}

// get reads a record.
func (s store) get(ctx context.Context, owner string) (string, error) {
	sealed, err := s.client.Get(ctx, recordKey(owner)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", failed(err, "read the token", owner)
	}
	return sealed, nil
}

// claim takes the turn to ask for a time, if nobody else has it, and reads the record in the same step.
func (s store) claim(ctx context.Context, owner, fence string, d time.Duration) (sealed string, ours bool,
	err error) {
	got, err := claimScript.Run(ctx, s.client, []string{recordKey(owner), lockKey(owner)}, fence,
		d.Milliseconds()).Slice()
	if err != nil {
		return "", false, failed(err, "lock the token", owner)
	}
	sealed, _ = got[1].(string)
	return sealed, got[0] == int64(1), nil
}

// put stores a record, if the turn is still ours or nobody else stored one since.
func (s store) put(ctx context.Context, owner, fence, before, after string, keep time.Duration) (bool,
	error) {
	n, err := putScript.Run(ctx, s.client, []string{recordKey(owner), lockKey(owner), ownersKey()},
		owner, fence, before, after, keep.Milliseconds()).Int()
	if err != nil {
		return false, failed(err, "store the token", owner)
	}
	return n == 1, nil
}

// release gives the turn back.
func (s store) release(ctx context.Context, owner, fence string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	return releaseScript.Run(ctx, s.client, []string{lockKey(owner)}, fence).Err()
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

// all lists the owners that have, or lately had, a record.
func (s store) all(ctx context.Context) ([]string, error) {
	owners, err := s.client.SMembers(ctx, ownersKey()).Result()
	if err != nil {
		return nil, &storeError{fmt.Errorf("list the owners of tokens: %w", err)}
	}
	return owners, nil
}

// reseal puts the same record under another seal, if it is still what the caller saw. Where there is none,
// the owner leaves the list.
func (s store) reseal(ctx context.Context, owner, before, after string) (bool, error) {
	n, err := resealScript.Run(ctx, s.client, []string{recordKey(owner), ownersKey()}, owner, before,
		after).Int()
	if err != nil {
		return false, failed(err, "seal again the token", owner)
	}
	return n == 1, nil
}
