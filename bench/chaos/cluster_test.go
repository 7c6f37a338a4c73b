package main

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/postroom/postroom/bench/rig"
	"github.com/postroom/postroom/internal/redisdb"
)

// TestCluster: a process that is cut off reaches no node while another does, a dead master is replaced by its
// replica, and the dead one comes back as the replica.
func TestCluster(t *testing.T) {
	ctx := t.Context()
	h := &testbed{o: options{cluster: true, partitions: 2 * masters, workers: 2}, dir: t.TempDir(),
		ledger: newLedger(0, 0, 0)}
	defer h.Close()
	if err := h.openCluster(ctx); err != nil {
		t.Fatal(err)
	}
	var dbs []*redisdb.DB
	for _, name := range h.names() {
		db, err := redisdb.Open(ctx, redisdb.Options{URL: h.cluster.url(name), Partitions: h.o.partitions})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		h.workers, dbs = append(h.workers, &postroom{program: &program{name: name}}), append(dbs, db)
	}
	used := map[string]bool{}
	for p := range h.o.partitions {
		n, err := h.redis.rdb.ClusterKeySlot(ctx, redisdb.Key(p, "x")).Result()
		if err != nil {
			t.Fatal(err)
		}
		used[h.cluster.nodes[n*masters/slots].name] = true
	}
	if len(used) != masters {
		t.Errorf("the partitions are on %v, want %d masters", used, masters)
	}
	h.checkCutOff(t, dbs[0], dbs[1])
	h.checkFailover(t)
}

func (h *testbed) checkCutOff(t *testing.T, cut, other *redisdb.DB) {
	t.Helper()
	write := func(db *redisdb.DB, patience time.Duration) error {
		for p := range h.o.partitions {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			err := db.Client().Set(ctx, redisdb.Key(p, "x"), "", 0).Err()
			cancel()
			if err != nil {
				return err
			}
		}
		return nil
	}
	reconnect := h.cutOff(t.Context(), 0)
	if err := write(cut, time.Second); err == nil {
		t.Error("a process that is cut off reaches Redis")
	}
	if err := write(other, agreeWithin); err != nil {
		t.Errorf("another process: %v", err)
	}
	reconnect()
	if err := write(cut, agreeWithin); err != nil {
		t.Errorf("the process, when it is over: %v", err)
	}
}

func (h *testbed) checkFailover(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	roles := func() []role {
		var out []role
		for _, n := range h.cluster.nodes {
			out = append(out, n.role(ctx))
		}
		return out
	}
	if got, want := roles(), []role{replicated, replicated, replicated, replica, replica,
		replica}; !slices.Equal(got, want) {
		t.Fatalf("roles %v, want %v", got, want)
	}
	restart := h.killMaster(ctx, 0)
	promoted := []role{gone, replicated, replicated, alone, replica, replica}
	if err := rig.Until(ctx, agreeWithin, 50*time.Millisecond, func() (bool, error) {
		return slices.Equal(roles(), promoted), nil
	}); err != nil {
		t.Fatalf("roles %v, want %v", roles(), promoted)
	}
	restart()
	if h.ledger.injected["cluster: a replica took over"] != 1 {
		t.Errorf("noted: %v", h.ledger.injected)
	}
	swapped := []role{replica, replicated, replicated, replicated, replica, replica}
	if err := rig.Until(ctx, agreeWithin, 50*time.Millisecond, func() (bool, error) {
		return slices.Equal(roles(), swapped), nil
	}); err != nil {
		t.Fatalf("roles %v, want %v", roles(), swapped)
	}
	if err := h.cluster.inStep(ctx); err != nil {
		t.Error(err)
	}
}
