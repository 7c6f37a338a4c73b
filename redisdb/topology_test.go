//go:build unix

package redisdb_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/testport"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/redisdb"
)

// serve runs redis-server on a port of the loopback interface until the test ends, or the function it returns is called.
func serve(t *testing.T, port int, args ...string) (kill func()) {
	t.Helper()
	cmd := exec.Command("redis-server", append([]string{}, args...)...)
	cmd.Dir = t.TempDir()
	var says bytes.Buffer
	cmd.Stdout, cmd.Stderr = &says, &says
	if err := cmd.Start(); err != nil {
		t.Fatalf("redis-server is needed for this test: %v", err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	kill = func() { _ = cmd.Process.Kill(); <-done }
	t.Cleanup(kill)
	c := node(t, port)
	within(t, fmt.Sprintf("redis-server on port %d", port), func() bool {
		select {
		case <-done:
			t.Fatalf("redis-server on port %d ended:\n%s", port, &says)
		default:
		}
		return c.Ping(t.Context()).Err() == nil
	})
	return kill
}

// node is a plain client for one server.
func node(t *testing.T, port int) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", port), MaxRetries: -1})
	t.Cleanup(func() { c.Close() })
	return c
}

// startCluster runs three masters that share all slots, and returns the address.
func startCluster(t *testing.T) string {
	t.Helper()
	var addrs []string
	var nodes []*redis.Client
	for i := range 3 {
		port := testport.Pair(t, 10000) // the cluster's bus listens on the second
		serve(t, port, "--port", fmt.Sprint(port), "--bind", "127.0.0.1", "--cluster-enabled", "yes", "--appendonly", "yes", "--save", "")
		c := node(t, port)
		first, last := i*16384/3, (i+1)*16384/3-1
		if err := c.ClusterAddSlotsRange(t.Context(), first, last).Err(); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			if err := nodes[0].ClusterMeet(t.Context(), "127.0.0.1", fmt.Sprint(port)).Err(); err != nil {
				t.Fatal(err)
			}
		}
		addrs, nodes = append(addrs, fmt.Sprintf("127.0.0.1:%d", port)), append(nodes, c)
	}
	within(t, "the cluster to agree", func() bool {
		for _, c := range nodes {
			info := c.ClusterInfo(t.Context()).Val()
			if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_known_nodes:3") {
				return false
			}
		}
		return true
	})
	return "redis+cluster://" + strings.Join(addrs, ",")
}

func TestCluster(t *testing.T) {
	t.Parallel()
	db := testredis.Connect(t, redisdb.Options{URL: startCluster(t), Partitions: 6})
	if _, ok := db.Client().(*redis.ClusterClient); !ok || db.Mode() != redisdb.Cluster {
		t.Errorf("client %T, mode %s", db.Client(), db.Mode())
	}
	checkEverythingWorks(t, db)
	d, err := db.Durability(t.Context())
	if err != nil || !d.AOF || len(d.Warnings) != 0 {
		t.Errorf("durability %+v, %v", d, err)
	}
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	master, replica, sentinel := testport.Free(t), testport.Free(t), testport.Free(t)
	plain := []string{"--bind", "127.0.0.1", "--appendonly", "yes", "--save", "", "--repl-diskless-sync-delay", "0"}
	killMaster := serve(t, master, append(plain, "--port", fmt.Sprint(master))...)
	serve(t, replica, append(plain, "--port", fmt.Sprint(replica), "--replicaof", "127.0.0.1", fmt.Sprint(master))...)
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("port %d\nbind 127.0.0.1\nsentinel monitor mymaster 127.0.0.1 %d 1\nsentinel down-after-milliseconds mymaster 500\n"+
		"sentinel failover-timeout mymaster 2000\n", sentinel, master)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	serve(t, sentinel, conf, "--sentinel")
	watcher := redis.NewSentinelClient(&redis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", sentinel)})
	defer watcher.Close()
	within(t, "the sentinel to know the replica", func() bool {
		replicas, err := watcher.Replicas(t.Context(), "mymaster").Result()
		return err == nil && len(replicas) == 1 && replicas[0]["master-link-status"] == "ok"
	})
	db := testredis.Connect(t, redisdb.Options{URL: fmt.Sprintf("redis+sentinel://127.0.0.1:%d/mymaster", sentinel), Partitions: 2})
	checkEverythingWorks(t, db)
	d, err := db.Durability(t.Context())
	if err != nil || db.Mode() != redisdb.Sentinel || d.Replicas != 1 {
		t.Errorf("mode %s, durability %+v, %v", db.Mode(), d, err)
	}
	if err := db.Client().Set(t.Context(), "key", "kept", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := db.Client().Do(t.Context(), "wait", 1, patience.Milliseconds()).Int(); err != nil || n != 1 {
		t.Fatalf("the replica has not got the write: %d, %v", n, err)
	}
	killMaster()
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
