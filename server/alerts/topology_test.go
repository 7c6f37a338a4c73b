package alerts

import (
	"testing"
	"time"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

// In a Cluster the alerts and the stream must share a slot, and every master is asked.
func TestAlertsOnACluster(t *testing.T) {
	t.Parallel()
	group := testredis.Cluster(t, testredis.Topology{})
	b := actual(t, testredis.Connect(t, redisdb.Options{URL: group.URL(), Partitions: 3}))
	b.look(t.Context())
	b.expect()
	third := testredis.Connect(t, redisdb.Options{URL: "redis://" + group.Masters[2].Addr()})
	configure := func(appendonly string) {
		if err := third.Client().ConfigSet(t.Context(), "appendonly", appendonly).Err(); err != nil {
			t.Fatal(err)
		}
	}
	configure("no")
	b.look(t.Context())
	b.expect(event.AlertRaised)
	configure("yes")
	b.after(0)
	b.after(b.quiet())
	b.expect(event.AlertRaised, event.AlertResolved)
}

// actual makes a process that asks the queues and the Redis that there are.
func actual(t *testing.T, db *redisdb.DB) bench {
	b := process(t, db, &instance{now: start}, func(o *Options) {
		o.Queues = []Queue{{Name: "submit", Parts: []string{"submit", "submit-1", "submit-2"}, Age: time.Minute}}
	})
	b.parts.Counts = queue.NewControl(db.Client()).Counts
	b.parts.Durability, b.parts.MemoryShare, b.parts.Evicted = db.Durability, db.MemoryShare, db.Evicted
	return b
}

// expect compares the events so far, all of which are about a Redis that forgets.
func (b bench) expect(want ...event.Type) {
	b.t.Helper()
	got := b.events()
	if len(got) != len(want) {
		b.t.Fatalf("events %+v, want %v\n%s", got, want, b.log)
	}
	for i, e := range got {
		if e.Type != want[i] || e.Data.Alert != redisForgets {
			b.t.Errorf("event %+v, want %s", e, want[i])
		}
	}
}
