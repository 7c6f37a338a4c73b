package redisdb_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testproxy"
	"github.com/postroom/postroom/internal/testredis"
)

// TestNobodyWaitsLongForASilentRedis: all commands of a request together fail within seconds, even in shared
// round trips, and behind other waiting commands. If Redis has answered before, they wait for it.
func TestNobodyWaitsLongForASilentRedis(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t)
	proxy := testproxy.New(t, "unix", server.Socket())
	db := testredis.Connect(t, redisdb.Options{URL: "redis://" + proxy.Addr()})
	script := redisdb.NewScript[struct{}, int]("one", "return 1")
	cache, turn := redisdb.NewCache[int](db, "version", nil), make(redisdb.Turn, 1)
	turn <- struct{}{} // somebody else asks, and gets no answer
	look := func(ctx context.Context) error {
		_, _, err := cache.Get(ctx, "", time.Now(), func(context.Context) (int, bool, error) {
			return 0, true, nil
		})
		return err
	}
	answered := redisdb.Hurried(t.Context())
	if err := db.Client().Set(answered, "key", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	proxy.Hang()
	patient, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var all sync.WaitGroup
	for name, ask := range map[string]func(context.Context) error{
		"command": func(ctx context.Context) error { return db.Client().Get(ctx, "key").Err() },
		"pipeline": func(ctx context.Context) error {
			_, err := db.Client().Pipelined(ctx, func(p redis.Pipeliner) error { return p.Get(ctx, "key").Err() })
			return err
		},
		"shared round trip": func(ctx context.Context) error {
			return failed(script.Run(ctx, db.Shared(), nil, none))
		},
		"turn":  turn.Take,
		"cache": look,
	} {
		all.Go(func() {
			start, ctx := time.Now(), redisdb.Hurried(patient)
			for range 3 {
				if err := ask(ctx); !redisdb.Unavailable(err) {
					t.Errorf("%s: error %v doesn't count as unavailable", name, err)
				}
			}
			if took := time.Since(start); took > 8*time.Second { // the client alone gives up after ten
				t.Errorf("%s: three failed after %v", name, took)
			}
		})
	}
	all.Wait()
	time.AfterFunc(3*time.Second, proxy.Up)
	if err := db.Client().Get(answered, "key").Err(); err != nil {
		t.Errorf("a request that Redis has answered before is given up: %v", err)
	}
}
