package testredis_test

import (
	"testing"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

func TestSentinelsReplaceTheirMaster(t *testing.T) {
	t.Parallel()
	g := testredis.Sentinel(t, testredis.Topology{Replicas: 2, Password: "hunter2"})
	db := testredis.Connect(t, redisdb.Options{URL: g.URL()})
	if err := db.Client().Set(t.Context(), "key", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	g.Masters[0].Kill()
	for end := time.Now().Add(time.Minute); ; {
		err := db.Client().Set(t.Context(), "key", "y", 0).Err()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no new master: %v", err)
		}
	}
}

func TestClusterWithReplicasAndPassword(t *testing.T) {
	t.Parallel()
	g := testredis.Cluster(t, testredis.Topology{Replicas: 1, Password: "hunter2"})
	if len(g.Masters) != 3 || len(g.Replicas) != 3 {
		t.Errorf("%d masters, %d replicas, want three of each", len(g.Masters), len(g.Replicas))
	}
	g.AddUser(t, "reader", "letmein", "~*", "+@read", "+@connection", "+info", "+cluster|slots",
		"+cluster|shards", "+command")
	db := testredis.Connect(t, redisdb.Options{URL: g.URLFor("reader", "letmein")})
	for _, key := range []string{"a", "b", "c", "d"} {
		if err := db.Client().Exists(t.Context(), key).Err(); err != nil {
			t.Error(err)
		}
	}
	if err := db.Client().Set(t.Context(), "a", "x", 0).Err(); err == nil {
		t.Error("a user who may only read has written")
	}
}
