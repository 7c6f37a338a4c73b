package redisdb_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

var echoScript = redisdb.NewScript[[]string, string]("echo",
	"-- ARGV: values...\nredis.call('INCR', KEYS[1]) return ARGV[values]")

func TestSharedCallsGetTheirOwnAnswers(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	key := redisdb.Key(0, "calls")
	var callers sync.WaitGroup
	for i := range 200 {
		callers.Go(func() {
			for j := range 20 {
				want := fmt.Sprintf("%d/%d", i, j)
				if j == 10 && i%50 == 0 {
					db.Client().ScriptFlush(t.Context()) // the next ones have to send it again
				}
				got, err := echoScript.Run(t.Context(), db.Shared(), []string{key}, []string{want})
				if got != want || err != nil {
					t.Errorf("answer %q, %v, want %q", got, err, want)
				}
			}
		})
	}
	callers.Wait()
	if n, err := db.Client().Get(t.Context(), key).Int(); n != 4000 || err != nil {
		t.Errorf("%d calls ran, %v, want 4000", n, err)
	}
}

// TestANodeThatHangsHoldsUpNoOther: in a Cluster, calls to the other nodes continue.
func TestANodeThatHangsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	g := testredis.Cluster(t, testredis.Topology{})
	db := testredis.Connect(t, redisdb.Options{URL: g.URL(), Partitions: 16})
	var hung, well string // keys of a node that hangs, and of another
	for p := range db.Partitions() {
		key := redisdb.Key(p, "calls")
		if _, err := echoScript.Run(t.Context(), db.Shared(), []string{key}, []string{"x"}); err != nil {
			t.Fatal(err)
		}
		node, err := db.Client().(*redis.ClusterClient).MasterForKey(t.Context(), key)
		switch {
		case err != nil:
			t.Fatal(err)
		case node.Options().Addr == g.Masters[0].Addr():
			hung = key
		default:
			well = key
		}
	}
	if hung == "" || well == "" {
		t.Fatalf("keys %q and %q", hung, well)
	}
	g.Masters[0].Stop()
	defer g.Masters[0].Cont()
	ctx, cancel := context.WithCancel(t.Context())
	ask := func(key string, within time.Duration) error {
		late, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		return failed(echoScript.Run(late, db.Shared(), []string{key}, []string{"x"}))
	}
	var callers, started sync.WaitGroup
	for range 5 {
		started.Add(1)
		callers.Go(func() {
			for first := true; ctx.Err() == nil; first = false {
				err := ask(hung, 100*time.Millisecond)
				if first {
					started.Done()
				}
				if err == nil {
					t.Error("a node that hangs has answered")
				}
			}
		})
	}
	started.Wait()
	for range 3 {
		if err := ask(well, 2*time.Second); err != nil {
			t.Errorf("asked of a node that is well: %v", err)
		}
	}
	cancel()
	callers.Wait()
}
