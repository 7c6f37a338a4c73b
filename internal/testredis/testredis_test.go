package testredis_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

func TestEachTestHasItsOwnDatabase(t *testing.T) {
	a, b := testredis.New(t), testredis.New(t)
	if err := a.Client().Set(t.Context(), "key", "a", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := b.Client().Exists(t.Context(), "key").Result(); err != nil || n != 0 {
		t.Errorf("the other test's key is visible: %d, %v", n, err)
	}
}

func TestDatabaseIsEmptyWhenUsedAgain(t *testing.T) {
	for range 3 { // each subtest gives its database back, and the next one gets it
		t.Run("round", func(t *testing.T) {
			db := testredis.New(t)
			if n, err := db.Client().DBSize(t.Context()).Result(); err != nil || n != 0 {
				t.Errorf("%d keys, %v", n, err)
			}
			db.Client().Set(t.Context(), "left", "behind", 0)
		})
	}
}

func TestServerKeepsWhatItAcknowledgedWhenKilled(t *testing.T) {
	p := testredis.Server(t)
	db := testredis.Connect(t, redisdb.Options{URL: p.URL()})
	if err := db.Client().Set(t.Context(), "key", "kept", 0).Err(); err != nil {
		t.Fatal(err)
	}
	p.Kill()
	if err := db.Client().Get(t.Context(), "key").Err(); err == nil {
		t.Fatal("a killed server answers")
	}
	p.Restart(t)
	if got, err := db.Client().Get(t.Context(), "key").Result(); err != nil || got != "kept" {
		t.Errorf("after restart: %q, %v", got, err)
	}
}

func TestServerStopAndCont(t *testing.T) {
	p := testredis.Server(t)
	db := testredis.Connect(t, redisdb.Options{URL: p.URL()})
	p.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := db.Client().Ping(ctx).Err(); err == nil {
		t.Fatal("a frozen server answers")
	}
	p.Cont()
	if err := db.Client().Ping(t.Context()).Err(); err != nil {
		t.Errorf("after Cont: %v", err)
	}
}
