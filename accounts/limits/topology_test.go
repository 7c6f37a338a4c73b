package limits

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
)

// story goes through everything once, on whatever Redis it is given, by its own clock.
func story(t *testing.T, db *redisdb.DB) {
	l, err := New(db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Limits: l, Clock: testkit.ClockAt(time.Now()), db: db}
	x, g := account(Rate{PerMinute: 2, PerDay: 100}), gateway(Rate{PerSecond: 0.01, Burst: 1})
	if a := b.take(t, "", 1, x, g); !a.OK {
		t.Fatalf("the first waits: %+v", a)
	}
	a := b.take(t, "", 1, x, g)
	if wait := time.Until(a.At); wait < 30*time.Second || wait > 101*time.Second ||
		a.Reason != "gateway g: 0.01 a second" {
		t.Errorf("waits %v for %q", wait, a.Reason)
	}
	if again := b.take(t, a.Reservation, 1, x, g); again != a {
		t.Errorf("coming too early changed %+v to %+v", a, again)
	}
	b.slowDown(t, "gateway:h", 0)
	a = b.take(t, "", 1, Scope{Name: "gateway:h"})
	if wait := time.Until(a.At); wait < 30*time.Second || wait > time.Minute {
		t.Errorf("after throttling it waits %v", wait)
	}
	if s := b.state(t, "gateway:h"); s.Pauses != 1 || s.Until.IsZero() || s.Reserved.IsZero() {
		t.Errorf("%+v", s)
	}
	d := destination("x.example", Rate{PerMinute: 1}, 1)
	if a := b.take(t, "", 1, d, x, g); a.OK || a.Scope != "account:x" {
		t.Errorf("with a destination: %+v", a)
	}
	b.slowDown(t, d.Name, 0)
	if a := b.take(t, "", 1, d, Scope{Name: "account:y", Rate: Rate{PerDay: 9}}); a.OK || a.Scope != d.Name {
		t.Errorf("with a throttled destination: %+v", a)
	}
	release, err := b.Connect(t.Context(), "gateway:h", 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Connect(t.Context(), "gateway:h", 1); err == nil {
		t.Error("two connections of one")
	}
	b.held.Renew(t.Context())
	if s := b.state(t, "gateway:h"); s.Connections != 1 {
		t.Errorf("%+v", s)
	}
	release()
	if s := b.state(t, "gateway:h"); s.Connections != 0 {
		t.Errorf("%+v", s)
	}
}

// In a Cluster the keys of a script must share a slot; one node with all the slots is as strict about that as
// many.
func TestStoryOnACluster(t *testing.T) {
	t.Parallel()
	port := fmt.Sprint(testkit.PortPair(t, 10000))
	node := testredis.Server(t, "--cluster-enabled", "yes", "--port", port, "--bind", "127.0.0.1",
		"--appendonly", "no")
	direct := redis.NewClient(&redis.Options{Network: "unix", Addr: node.Socket()})
	defer direct.Close()
	if err := direct.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); direct.Set(t.Context(), "x", 1, 0).Err() != nil; {
		if time.Now().After(deadline) {
			t.Fatal("the cluster does not come up")
		}
		time.Sleep(10 * time.Millisecond)
	}
	story(t, testredis.Connect(t, redisdb.Options{URL: "redis+cluster://127.0.0.1:" + port}))
}
