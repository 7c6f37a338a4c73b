package redisdb_test

import (
	"context"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

// TestCacheForgetsWhatAnotherProcessChanged reads through a cache while the version is raised beside it.
func TestCacheForgetsWhatAnotherProcessChanged(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	changes := 0
	c := redisdb.NewCache[string](db, redisdb.Key(0, "things", "version"), func() { changes++ })
	loads, now := 0, time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	get := func() {
		t.Helper()
		v, ok, err := c.Get(t.Context(), "x", now, func(context.Context) (string, bool, error) {
			loads++
			return "value", true, nil
		})
		if err != nil || !ok || v != "value" {
			t.Fatalf("%q, %t, %v", v, ok, err)
		}
	}
	get()
	get()
	if loads != 1 {
		t.Errorf("%d loads for two reads, want 1", loads)
	}
	if err := db.Client().Incr(t.Context(), redisdb.Key(0, "things", "version")).Err(); err != nil {
		t.Fatal(err)
	}
	get()
	if loads != 1 {
		t.Errorf("%d loads within a second, want 1", loads)
	}
	now = now.Add(time.Second)
	get()
	if loads != 2 || changes != 1 {
		t.Errorf("%d loads and %d changes after a second, want 2 and 1", loads, changes)
	}
	c.Clear()
	get()
	if loads != 3 {
		t.Errorf("%d loads after Clear, want 3", loads)
	}
}

// TestCacheDropsALoadThatBeganBeforeAChange: what was read before a change must not be kept after it.
func TestCacheDropsALoadThatBeganBeforeAChange(t *testing.T) {
	t.Parallel()
	c := redisdb.NewCache[string](testredis.New(t), redisdb.Key(0, "things", "version"), nil)
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	_, _, err := c.Get(t.Context(), "x", now, func(context.Context) (string, bool, error) {
		c.Clear()
		return "old", true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := c.Get(t.Context(), "x", now, func(context.Context) (string, bool, error) {
		return "new", true,
			nil
	})
	if err != nil || v != "new" {
		t.Errorf("%q, %v: the old value was kept", v, err)
	}
}
