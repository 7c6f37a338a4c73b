package redisdb_test

import (
	"fmt"
	"testing"

	"github.com/postroom/postroom/internal/redisdb"
)

func TestKey(t *testing.T) {
	if got := redisdb.Key(0, "message", "01J8"); got != "postroom:{0}:message:01J8" {
		t.Error(got)
	}
	if got := redisdb.Key(12, "events"); got != "postroom:{12}:events" {
		t.Error(got)
	}
}

// TestPartitionForNeverChanges: what was stored under a key by any version of Postroom must be found by every
// later one.
func TestPartitionForNeverChanges(t *testing.T) {
	for key, want := range map[string]int{"": 1, "a": 0, "order-4711": 5, "01J8ZC6T2N8V5R3W9X0Y1Z2A3B": 6} {
		if got := redisdb.PartitionFor(key, 16); got != want {
			t.Errorf("PartitionFor(%q, 16) = %d, want %d", key, got, want)
		}
	}
	if redisdb.PartitionFor("a", 1) != 0 || redisdb.PartitionFor("a", 0) != 0 {
		t.Error("one partition is number 0")
	}
}

func TestPartitionForSpreadsEvenly(t *testing.T) {
	const keys, partitions = 16_000, 16
	var count [partitions]int
	for n := range keys {
		count[redisdb.PartitionFor(fmt.Sprintf("order-%d", n), partitions)]++
	}
	for p, n := range count {
		if n < keys/partitions*8/10 || n > keys/partitions*12/10 {
			t.Errorf("partition %d has %d of %d keys", p, n, keys)
		}
	}
}

func BenchmarkKey(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		redisdb.Key(3, "message", "01J8ZC6T2N8V5R3W9X0Y1Z2A3B")
	}
}
