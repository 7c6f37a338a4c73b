//go:build unix

package redisdb_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

func TestCluster(t *testing.T) {
	t.Parallel()
	db := testredis.Connect(t, redisdb.Options{URL: testredis.Cluster(t, testredis.Topology{}).URL(),
		Partitions: 6})
	if _, ok := db.Client().(*redis.ClusterClient); !ok || db.Mode() != redisdb.Cluster {
		t.Errorf("client %T, mode %s", db.Client(), db.Mode())
	}
	checkEverythingWorks(t, db)
	checkAnyExists(t, db)
	checkRest(t, db)
	d, err := db.Durability(t.Context())
	if err != nil || !d.AOF || len(d.Warnings) != 0 {
		t.Errorf("durability %+v, %v", d, err)
	}
}

// TestAnyExists asks a single server, and TestCluster a Cluster.
func TestAnyExists(t *testing.T) {
	t.Parallel()
	checkAnyExists(t, testredis.New(t))
}

// checkAnyExists looks for keys in several partitions; one appears.
func checkAnyExists(t *testing.T, db *redisdb.DB) {
	t.Helper()
	var keys []string
	for p := range 6 {
		keys = append(keys, redisdb.Key(p, "looked-for"))
	}
	if any, err := db.Looks().Any(t.Context(), keys...); err != nil || any {
		t.Errorf("none of the keys exists: %t, %v", any, err)
	}
	if err := db.Client().Set(t.Context(), keys[4], "here", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if any, err := db.Looks().Any(t.Context(), keys...); err != nil || !any {
		t.Errorf("one of the keys exists: %t, %v", any, err)
	}
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	g := testredis.Sentinel(t, testredis.Topology{Replicas: 1})
	db := testredis.Connect(t, redisdb.Options{URL: g.URL(), Partitions: 2})
	checkEverythingWorks(t, db)
	d, err := db.Durability(t.Context())
	if err != nil || db.Mode() != redisdb.Sentinel || d.Replicas != 1 {
		t.Errorf("mode %s, durability %+v, %v", db.Mode(), d, err)
	}
	if err := db.Client().Set(t.Context(), "key", "kept", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := db.Client().Do(t.Context(), "wait", 1, 9000).Int(); err != nil || n != 1 {
		t.Fatalf("the replica has not got the write: %d, %v", n, err)
	}
	g.Masters[0].Kill()
	within(t, "the replica to become the master, found without help", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := db.Client().Set(ctx, "after", "failover", 0).Err()
		if err != nil && !redisdb.Unavailable(err) {
			t.Errorf("during the failover: %v, which doesn't count as unavailable", err)
		}
		return err == nil
	})
	if got, err := db.Client().Get(t.Context(), "key").Result(); err != nil || got != "kept" {
		t.Errorf("after the failover: %q, %v", got, err)
	}
}

// TestTogether asks servers whether one script may use keys of several partitions. One that is a Cluster says
// so, however it was opened.
func TestTogether(t *testing.T) {
	t.Parallel()
	cluster := testredis.Cluster(t, testredis.Topology{})
	for name, c := range map[string]struct {
		url  string
		want bool
	}{
		"one server":                        {testredis.Server(t).URL(), true},
		"Sentinels":                         {testredis.Sentinel(t, testredis.Topology{}).URL(), true},
		"a Cluster":                         {cluster.URL(), false},
		"a node of a Cluster as one server": {cluster.Masters[0].URL(), false},
	} {
		db := testredis.Connect(t, redisdb.Options{URL: c.url})
		err := db.Client().Eval(t.Context(), "return redis.call('EXISTS', unpack(KEYS))",
			[]string{redisdb.Key(0, "x"), redisdb.Key(1, "x")}).Err()
		if db.Together() != c.want || (err == nil) != c.want {
			t.Errorf("%s: together %v, want %v; tried: %v", name, db.Together(), c.want, err)
		}
	}
}
