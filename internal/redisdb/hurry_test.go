package redisdb_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testproxy"
	"github.com/postroom/postroom/internal/testredis"
)

// TestNobodyWaitsLongForASilentRedis: all commands of a request together fail within seconds. If Redis has
// answered before, they wait for it.
func TestNobodyWaitsLongForASilentRedis(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t)
	proxy := testproxy.New(t, "unix", server.Socket())
	db := testredis.Connect(t, redisdb.Options{URL: "redis://" + proxy.Addr()})
	answered := redisdb.Hurried(t.Context())
	if err := db.Client().Set(answered, "key", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	proxy.Hang()
	start, ctx := time.Now(), redisdb.Hurried(t.Context())
	for range 3 {
		if err := db.Client().Get(ctx, "key").Err(); !redisdb.Unavailable(err) {
			t.Errorf("error %v doesn't count as unavailable", err)
		}
		if _, err := db.Client().Pipelined(ctx, func(p redis.Pipeliner) error {
			return p.Get(ctx, "key").Err()
		}); !redisdb.Unavailable(err) {
			t.Errorf("error %v of a pipeline doesn't count as unavailable", err)
		}
	}
	if took := time.Since(start); took > 8*time.Second { // the client by itself gives up after ten
		t.Errorf("six commands failed after %v", took)
	}
	time.AfterFunc(3*time.Second, proxy.Up)
	if err := db.Client().Get(answered, "key").Err(); err != nil {
		t.Errorf("a request that Redis has answered before is given up: %v", err)
	}
}
