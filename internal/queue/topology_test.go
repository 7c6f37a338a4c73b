package queue

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

// story goes through everything once, on whatever Redis it is given.
func story(t *testing.T, b bench) {
	l := logging(func(k Task, call int) Verdict {
		switch {
		case k.ID == "bury.1":
			return Bury(errors.New("550 no"))
		case k.ID == "retry.1" && call == 1:
			return RetryAt(time.Now(), errors.New("451 later"))
		}
		return Done()
	})
	b.enqueue(t, task("lost.1"))
	b.activate(t, "lost.1", time.Now())
	b.enqueue(t, many(150)...)
	b.enqueue(t, task("bury.1"), task("retry.1"), later("later.1"), later("later.2"),
		Task{Queue: Bulk, Type: "send", ID: "bulk.1"}, Task{Queue: Lane(Submit, 1), Type: "send", ID: "lane.1"})
	stop := serve(t, b.redis, ServerOptions{Pools: []Pool{
		{Queues: map[string]int{Submit: 3, Bulk: 1}, Workers: 10, Servers: 2},
		{Queues: map[string]int{Lane(Submit, 1): 1}, Workers: 1},
	}}, map[string]Handler{"send": l.handle})
	counts := func() []Counts {
		all, err := b.control.Counts(t.Context(), Submit, Bulk, Lane(Submit, 1))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	until(t, "what can be done is done", func() bool {
		return l.total() == 156 &&
			b.state(t, "bury.1") == Archived
	})
	until(t, "it is acknowledged, in every queue", func() bool {
		return !slices.ContainsFunc(counts(), func(c Counts) bool { return c.Active > 0 })
	})
	if n := l.count("lost.1"); n != 1 {
		t.Errorf("the task of the dead worker ran %d times", n)
	}
	if all := counts(); all[0].Scheduled != 2 || all[1].ProcessedTotal != 1 || all[2].ProcessedTotal != 1 {
		t.Errorf("%+v", all)
	}
	if err := b.control.Delete(t.Context(), Submit, "later.1")[0]; err != nil {
		t.Error(err)
	}
	if n, err := b.control.RunAll(t.Context(), Submit, Scheduled, nil); n != 1 || err != nil {
		t.Error(n, err)
	}
	until(t, "it has run", func() bool { return l.count("later.2") == 1 })
	stop() // it would clean up, too
	b.redis.ZAdd(t.Context(), stateKey(Submit, Completed),
		redis.Z{Score: float64(time.Now().Add(time.Hour).Unix()), Member: "unnamed.1"})
	b.redis.HSet(t.Context(), taskKey(Submit, "orphan.1"), "msg", "m", "state", "archived")
	if pruned, err := b.control.Prune(t.Context(), Submit, Bulk); err != nil ||
		pruned != (Pruned{Orphans: 1, Unnamed: 1}) {
		t.Errorf("pruned %+v, %v", pruned, err)
	}
	if _, err := b.control.Memory(t.Context(), Submit); err != nil {
		t.Error(err)
	}
	if _, err := NewDashboard(b.redis, DashboardOptions{Path: "/q"}); err != nil {
		t.Error(err)
	}
}

// In a Cluster the keys of a script must share a slot, and the queues of different partitions live on
// different nodes.
func TestStoryOnACluster(t *testing.T) {
	t.Parallel()
	db := testredis.Connect(t, redisdb.Options{URL: testredis.Cluster(t, testredis.Topology{}).URL()})
	story(t, on(db.Client()))
}
