package outbox

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/redisdb"
)

// Accepted returns the id of the message that was accepted under an idempotency key of an account. It is
// empty if there was none, if nobody in it was to be mailed, or if the key is forgotten.
func (rd *Reader) Accepted(ctx context.Context, account, key string) (id string, _ error) {
	hash := keyHash(account, key)
	partition := redisdb.PartitionFor(hash, rd.DB.Partitions())
	found, err := rd.DB.Client().Get(ctx, rd.keys.idempotency(partition, hash)).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	if err != nil {
		return "", redisError(err, "read an idempotency key")
	}
	parts := strings.SplitN(found, " ", 3) // fingerprint, result and memo: see lua/prelude.lua
	if len(parts) < 3 || strings.Contains(parts[2], "\n") {
		return "", nil
	}
	id, _, _ = strings.Cut(parts[2], " ")
	return id, nil
}
