package outbox

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Accepted returns the id of the message that was accepted under an idempotency key of an account. It is
// empty if there was none, if nobody in it was to be mailed, or if the key is forgotten.
func (rd *Reader) Accepted(ctx context.Context, account, key string) (id string, _ error) {
	found, err := rd.DB.Client().Get(ctx, rd.keys.ofRequest(account, key, rd.DB.Partitions())).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	if err != nil {
		return "", redisError(err, "read an idempotency key")
	}
	parts := strings.SplitN(found, " ", 3) // fingerprint, result and memo: see lua/prelude.lua
	if len(parts) < 3 {
		return "", nil
	}
	return acceptedIn(parts[2]), nil
}
