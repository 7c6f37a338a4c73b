//go:build unix

package redisdb_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

var addScript = redisdb.NewScript[[]string, int64]("add",
	"-- ARGV: values...\nredis.call('RPUSH', KEYS[1], ARGV[values]); return redis.call('LLEN', KEYS[1])")

// TestConfirmedWritesSurviveTheirMaster writes from many sides while the master is killed, promotes its
// replica, and looks for everything that was confirmed.
func TestConfirmedWritesSurviveTheirMaster(t *testing.T) {
	t.Parallel()
	g := testredis.Replicated(t, testredis.Topology{})
	db := testredis.Connect(t, redisdb.Options{URL: g.URL(), WaitReplicas: 1, WaitTimeout: 2 * time.Second})
	var mu sync.Mutex
	var confirmed []string
	enough, killed := make(chan struct{}), make(chan struct{})
	var writers sync.WaitGroup
	for w := range 8 {
		writers.Go(func() {
			for i := 0; ; i++ {
				value := fmt.Sprintf("%d-%d", w, i)
				if err := write(t, db, w, value); err != nil {
					if !redisdb.Unavailable(err) && !fault.Is(err, fault.Unavailable) {
						t.Errorf("write %s: %v", value, err)
					}
					select {
					case <-killed:
						return
					default: // a replica that is slow for once
						continue
					}
				}
				mu.Lock()
				confirmed = append(confirmed, value)
				if len(confirmed) == 500 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	g.Masters[0].Kill()
	close(killed)
	writers.Wait()
	g.Replicas[0].Promote(t)
	kept := map[string]bool{}
	for w := range 8 {
		for _, v := range g.Replicas[0].Client(t).LRange(t.Context(), redisdb.Key(0, "list", fmt.Sprint(w)), 0,
			-1).Val() {
			kept[v] = true
		}
	}
	for _, v := range confirmed {
		if !kept[v] {
			t.Errorf("%s was confirmed, and the replica does not have it", v)
		}
	}
	t.Logf("%d confirmed, all of them on the replica", len(confirmed))
}

// write takes turns between the two ways to write.
func write(t *testing.T, db *redisdb.DB, w int, value string) error {
	keys := []string{redisdb.Key(0, "list", fmt.Sprint(w))}
	if w%2 == 0 {
		return failed(addScript.RunReplicated(t.Context(), db, keys, []string{value}))
	}
	p := db.ReplicatedPipeline()
	addScript.Add(p, keys, []string{value})
	p.Pipeliner().Incr(t.Context(), redisdb.Key(0, "count"))
	return p.Exec(t.Context())
}

// TestUnconfirmedWritesAreNotTakenForDone freezes the replica: a write stays written, and is refused anyway.
func TestUnconfirmedWritesAreNotTakenForDone(t *testing.T) {
	t.Parallel()
	g := testredis.Replicated(t, testredis.Topology{})
	db := testredis.Connect(t, redisdb.Options{URL: g.URL(), WaitReplicas: 1,
		WaitTimeout: 50 * time.Millisecond})
	keys := []string{redisdb.Key(0, "list")}
	add := func() (*redisdb.Reply[int64], *redis.StatusCmd, error) {
		p := db.ReplicatedPipeline()
		reply := addScript.Add(p, keys, []string{"x"})
		set := p.Pipeliner().Set(t.Context(), "plain", "x", 0)
		return reply, set, p.Exec(t.Context())
	}
	// 50 ms may be too little once
	within(t, "a confirmed write", func() bool { _, _, err := add(); return err == nil })
	g.Replicas[0].Stop()
	reply, set, err := add()
	if fault.CodeOf(err) != "NotReplicated" || !fault.Is(err, fault.Unavailable) ||
		fault.CodeOf(failed(reply.Read())) != "NotReplicated" || set.Err() != nil {
		t.Errorf("with a frozen replica: %v, script %v, command %v", err, failed(reply.Read()), set.Err())
	}
	if err := failed(addScript.RunReplicated(t.Context(), db, keys, []string{"y"})); fault.CodeOf(
		err) != "NotReplicated" {
		t.Errorf("RunReplicated: %v", err)
	}
	if n, err := db.Client().LLen(t.Context(), keys[0]).Result(); n < 3 || err != nil {
		t.Errorf("%d entries are there, %v: they were written, if not confirmed", n, err)
	}
	g.Replicas[0].Cont()
	within(t, "writes to be confirmed again", func() bool {
		return failed(addScript.RunReplicated(t.Context(), db, keys, []string{"z"})) == nil
	})
}

// TestTooFewReplicasAreNoticedBeforehand: a write that can't be confirmed is not made.
func TestTooFewReplicasAreNoticedBeforehand(t *testing.T) {
	t.Parallel()
	g := testredis.Replicated(t, testredis.Topology{})
	db := testredis.Connect(t, redisdb.Options{URL: g.URL(), WaitReplicas: 1,
		WaitTimeout: 50 * time.Millisecond})
	keys := []string{redisdb.Key(0, "list")}
	g.Replicas[0].Kill()
	within(t, "the replica to be missed", func() bool {
		return fault.CodeOf(failed(addScript.RunReplicated(t.Context(), db, keys,
			[]string{"x"}))) == "TooFewReplicas"
	})
	before := db.Client().LLen(t.Context(), keys[0]).Val()
	p := db.ReplicatedPipeline()
	reply := addScript.Add(p, keys, []string{"x"})
	p.Pipeliner().Set(t.Context(), "plain", "x", 0)
	if err := p.Exec(t.Context()); fault.CodeOf(err) != "TooFewReplicas" ||
		fault.CodeOf(failed(reply.Read())) != "TooFewReplicas" {
		t.Errorf("Exec: %v, script %v", err, failed(reply.Read()))
	}
	if err := p.Exec(t.Context()); err != nil {
		t.Errorf("the pipeline was not emptied: %v", err)
	}
	if after := db.Client().LLen(t.Context(), keys[0]).Val(); after != before ||
		db.Client().Exists(t.Context(), "plain").Val() != 0 {
		t.Errorf("%d entries before, %d after: nothing should have been written", before, after)
	}
	d, err := db.Durability(t.Context())
	if err != nil || d.Refusal == "" || len(d.Warnings) != 1 {
		t.Errorf("durability does not tell: %+v, %v", d, err)
	}
	g.Replicas[0].Restart(t)
	within(t, "writes to be confirmed again", func() bool {
		return failed(addScript.RunReplicated(t.Context(), db, keys, []string{"z"})) == nil
	})
}

// TestReplicatedScriptsInACluster goes to the node that has the keys, whatever it was that the client knew of
// the Cluster before.
func TestReplicatedScriptsInACluster(t *testing.T) {
	t.Parallel()
	g := testredis.Cluster(t, testredis.Topology{Replicas: 1})
	db := testredis.Connect(t, redisdb.Options{URL: g.URL(), Partitions: 6, WaitReplicas: 1,
		WaitTimeout: 5 * time.Second})
	p := db.ReplicatedPipeline()
	var sums []*redisdb.Reply[int64]
	for round := range 3 {
		for partition := range 6 {
			sums = append(sums, addScript.Add(p, []string{redisdb.Key(partition, "list")},
				[]string{fmt.Sprint(round)}))
		}
	}
	plain := p.Pipeliner().Set(t.Context(), "plain", "x", 0)
	if err := p.Exec(t.Context()); err != nil || plain.Err() != nil {
		t.Fatalf("Exec: %v, plain command %v", err, plain.Err())
	}
	var got []int64
	for _, reply := range sums {
		n, _ := reply.Read() // an error would be Exec's
		got = append(got, n)
	}
	if diff := cmp.Diff([]int64{1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3}, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	var copies int64
	for _, r := range g.Replicas {
		c := r.Client(t)
		for _, key := range c.Keys(t.Context(), "postroom:*").Val() {
			c.Do(t.Context(), "readonly")
			copies += c.LLen(t.Context(), key).Val()
		}
	}
	if copies != 18 {
		t.Errorf("the replicas have %d of 18 entries", copies)
	}

	// Move the slots of one master to its replica, as a failover does: the client's map is out of date at the
	// next write.
	if err := g.Replicas[0].Client(t).Do(t.Context(), "cluster", "failover", "takeover").Err(); err != nil {
		t.Fatal(err)
	}
	old := g.Masters[0].Client(t)
	within(t, "the old master to follow its replica", func() bool {
		role := old.Do(t.Context(), "role").Val().([]any)
		return role[0] == "slave" && role[3] == "connected"
	})
	within(t, "writes to every partition, confirmed by a replica", func() bool {
		for partition := range 6 {
			if err := failed(addScript.RunReplicated(t.Context(), db, []string{redisdb.Key(partition, "list")},
				[]string{"after"})); err != nil {
				t.Logf("partition %d: %v", partition, err)
				return false
			}
		}
		return true
	})
}

// TestNothingIsWaitedForUnlessAsked: without the option both are what they are without the word replicated.
func TestNothingIsWaitedForUnlessAsked(t *testing.T) {
	t.Parallel()
	// other tests have the common server forget its scripts
	db := testredis.Connect(t, redisdb.Options{URL: testredis.Server(t).URL()})
	sent := testredis.CountCommands(db)
	keys := []string{redisdb.Key(0, "list")}
	p := db.ReplicatedPipeline()
	var trips []int64
	for range 2 { // the first opens a connection and makes the script known
		before := sent.Sent()
		reply := addScript.Add(p, keys, []string{"y"})
		if err := p.Exec(t.Context()); err != nil || failed(reply.Read()) != nil {
			t.Errorf("%v, %v", err, failed(reply.Read()))
		}
		trips = append(trips, sent.Sent()-before)
	}
	if trips[1] != 1 {
		t.Errorf("%d round trips, want 1", trips[1])
	}
	if n, err := addScript.RunReplicated(t.Context(), db, keys, []string{"x"}); n != 3 || err != nil {
		t.Errorf("%d entries, %v", n, err)
	}
}
