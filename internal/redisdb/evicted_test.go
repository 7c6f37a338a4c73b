package redisdb_test

import (
	"fmt"
	"testing"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

func TestEvictedKeysAreCounted(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t, "--maxmemory", "8mb", "--maxmemory-policy", "allkeys-lru")
	db := testredis.Connect(t, redisdb.Options{URL: server.URL()})
	if n, err := db.Evicted(t.Context()); n != 0 || err != nil {
		t.Errorf("of an empty server: %d, %v", n, err)
	}
	for n := range 200 {
		if _, err := fillScript.Run(t.Context(), db.Client(),
			[]string{redisdb.Key(0, "fill", fmt.Sprint(n))}, none); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := db.Evicted(t.Context()); n == 0 || err != nil {
		t.Errorf("20 MB went into 8 MB, and %d keys were evicted, %v", n, err)
	}
	server.Kill()
	if _, err := db.Evicted(t.Context()); !redisdb.Unavailable(err) {
		t.Errorf("without a server: %v", err)
	}
}
