package queue

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

// TestDelayedSets answers from memory until a look finds a task that waits for its time.
func TestDelayedSets(t *testing.T) {
	t.Parallel()
	c := testredis.New(t).Client()
	d := delayedSets{looks: redisdb.NewLooks(c, true)}
	d.add(Pool{Queues: map[string]int{"submit": 1, "notify": 1}})
	if !d.empty(t.Context()) {
		t.Fatal("no task waits for its time")
	}
	waits := redis.Z{Score: 1, Member: "1"}
	if err := c.ZAdd(t.Context(), stateKey("notify", Retrying), waits).Err(); err != nil {
		t.Fatal(err)
	}
	d.asked = time.Now().Add(-delayedFresh)
	if !d.empty(t.Context()) {
		t.Error("Redis was asked again before the next look")
	}
	d.found()
	if d.empty(t.Context()) {
		t.Error("a task waits for its next attempt")
	}
}

// TestForward recognizes asynq's call by its keys, as in version 0.26.
func TestForward(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		keys []string
		want bool
	}{
		{[]string{"asynq:{submit}:scheduled", "asynq:{submit}:pending"}, true},
		{[]string{"asynq:{submit}:retry", "asynq:{submit}:pending"}, true},
		{[]string{"asynq:{submit}:archived", "asynq:{submit}:pending"}, false},
		{[]string{"asynq:{submit}:t:1", "asynq:{submit}:scheduled"}, false},
		{[]string{"asynq:{submit}:pending", "asynq:{submit}:paused", "asynq:{submit}:active"}, false},
	} {
		if got := isForward(row.keys); got != row.want {
			t.Errorf("%v: %t", row.keys, got)
		}
	}
}
