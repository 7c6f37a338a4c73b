package redisdb_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

// patience is how long a test waits for what should happen soon, on a machine busy with other things.
const patience = time.Minute

// within waits until ok, or fails the test.
func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// inbox is a handler that remembers what it was given, unless refuse says no.
type inbox struct {
	mu     sync.Mutex
	seen   []string
	refuse func(batch []redisdb.Entry) error
}

func (b *inbox) handle(_ context.Context, batch []redisdb.Entry) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse != nil {
		if err := b.refuse(batch); err != nil {
			return err
		}
	}
	for _, e := range batch {
		b.seen = append(b.seen, e.Text("n"))
	}
	return nil
}

func (b *inbox) all() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.seen)
}

// follow runs Follow until the function it returns is called, or the test ends.
func follow(t *testing.T, db *redisdb.DB, f redisdb.Follow, fn func(context.Context, []redisdb.Entry) error) (
	stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- db.Follow(ctx, f, fn) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Follow: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// add appends entries n = from … to-1 to a partition of the stream "events".
func add(t *testing.T, db *redisdb.DB, partition, from, to int) {
	t.Helper()
	p := db.Client().Pipeline()
	for n := from; n < to; n++ {
		p.XAdd(t.Context(), &redis.XAddArgs{Stream: redisdb.Key(partition, "events"), Values: []any{"n", n}})
	}
	if _, err := p.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func numbers(from, to int) []string {
	var s []string
	for n := from; n < to; n++ {
		s = append(s, strconv.Itoa(n))
	}
	return s
}

// pending counts what the group was given and has not acknowledged.
func pending(t *testing.T, db *redisdb.DB, partition int) int64 {
	t.Helper()
	p, err := db.Client().XPending(t.Context(), redisdb.Key(partition, "events"), "g").Result()
	if err != nil {
		t.Fatal(err)
	}
	return p.Count
}

func TestFollowInOrderFromTheOldest(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	add(t, db, 0, 0, 700)
	var b inbox
	stop := follow(t, db, redisdb.Follow{Stream: "events", Group: "g"}, b.handle)
	within(t, "the old entries", func() bool { return len(b.all()) >= 700 })
	add(t, db, 0, 700, 710)
	within(t, "the new entries", func() bool { return len(b.all()) >= 710 })
	stop()
	if diff := cmp.Diff(numbers(0, 710), b.all()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := pending(t, db, 0); n != 0 {
		t.Errorf("%d entries are not acknowledged", n)
	}
	consumers, err := db.Client().XInfoConsumers(t.Context(), redisdb.Key(0, "events"), "g").Result()
	if err != nil || len(consumers) != 0 {
		t.Errorf("left behind: %v, %v", consumers, err)
	}
}

func TestFollowEveryPartitionAndGroup(t *testing.T) {
	t.Parallel()
	db := testredis.Open(t, redisdb.Options{Partitions: 3})
	var one, two inbox
	follow(t, db, redisdb.Follow{Stream: "events", Group: "g"}, one.handle)
	follow(t, db, redisdb.Follow{Stream: "events", Group: "h"}, two.handle)
	for partition := range 3 {
		add(t, db, partition, partition*10, partition*10+10)
	}
	for name, b := range map[string]*inbox{"one": &one, "two": &two} {
		within(t, "30 entries for group "+name, func() bool { return len(b.all()) >= 30 })
		got := b.all()
		slices.SortFunc(got, func(a, b string) int {
			x, _ := strconv.Atoi(a)
			y,
				_ := strconv.Atoi(b)
			return x - y
		})
		if diff := cmp.Diff(numbers(0, 30), got); diff != "" {
			t.Errorf("group %s (-want +got):\n%s", name, diff)
		}
	}
}

func TestFollowRepeatsWhatFailedInOrder(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	failures := 2
	b := inbox{refuse: func([]redisdb.Entry) error {
		if failures--; failures >= 0 {
			return errors.New("not now")
		}
		return nil
	}}
	add(t, db, 0, 0, 20)
	follow(t, db, redisdb.Follow{Stream: "events", Group: "g"}, b.handle)
	within(t, "all entries", func() bool { return len(b.all()) >= 20 })
	if diff := cmp.Diff(numbers(0, 20), b.all()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFollowWaitsForWhatIsAway(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	calls := 0
	b := inbox{refuse: func([]redisdb.Entry) error {
		if calls++; calls <= 4 { // more often than entries that are at fault themselves are tried together
			return fmt.Errorf("enqueue: %w", context.DeadlineExceeded)
		}
		return nil
	}}
	add(t, db, 0, 0, 5)
	follow(t, db, redisdb.Follow{Stream: "events", Group: "g"}, b.handle)
	within(t, "all entries", func() bool { return len(b.all()) >= 5 })
	if calls != 5 {
		t.Errorf("fn was called %d times, want 5: the batch must stay together", calls)
	}
}

func TestFollowSetsAPoisonedEntryAside(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	healed := false
	b := inbox{}
	b.refuse = func(batch []redisdb.Entry) error {
		for _, e := range batch {
			if e.Text("n") == "7" && !healed {
				panic("can't read this")
			}
		}
		return nil
	}
	add(t, db, 0, 0, 10)
	follow(t, db, redisdb.Follow{Stream: "events", Group: "g", ClaimAfter: 300 * time.Millisecond}, b.handle)
	within(t, "the entries around the poison", func() bool { return len(b.all()) >= 9 })
	add(t, db, 0, 10, 12)
	within(t, "the entries after it", func() bool { return len(b.all()) >= 11 })
	if slices.Contains(b.all(), "7") {
		t.Fatal("the poison was handled")
	}
	within(t, "all but the poison to be acknowledged", func() bool { return pending(t, db, 0) == 1 })
	b.mu.Lock()
	healed = true
	b.mu.Unlock()
	within(t, "the poison, once it can be handled", func() bool {
		return slices.Contains(b.all(), "7") &&
			pending(t, db, 0) == 0
	})
	if len(b.all()) != 12 {
		t.Errorf("handled %v", b.all())
	}
}

// readAs takes all new entries for a consumer, which then never says anything again.
func readAs(consumer, key string) *redis.XReadGroupArgs {
	return &redis.XReadGroupArgs{Group: "g", Consumer: consumer, Streams: []string{key, ">"}}
}

func TestFollowTakesOverFromTheDead(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	add(t, db, 0, 0, 3)
	key := redisdb.Key(0, "events")
	db.Client().XGroupCreate(t.Context(), key, "g", "0")
	if err := db.Client().XReadGroup(t.Context(), readAs("dead", key)).Err(); err != nil {
		t.Fatal(err)
	}
	var b inbox
	follow(t, db, redisdb.Follow{Stream: "events", Group: "g", ClaimAfter: 300 * time.Millisecond}, b.handle)
	within(t, "the dead consumer's entries", func() bool { return len(b.all()) >= 3 })
	if diff := cmp.Diff(numbers(0, 3), b.all()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFollowKeepsWhatItIsBusyWith(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	add(t, db, 0, 0, 1)
	var mu sync.Mutex
	calls := 0
	slow := func(ctx context.Context, _ []redisdb.Entry) error {
		mu.Lock()
		calls++
		mu.Unlock()
		select {
		case <-time.After(9 * time.Second): // half as long again as an entry may be silent
		case <-ctx.Done():
		}
		return nil
	}
	// a busy machine may not come to hold it for a while
	f := redisdb.Follow{Stream: "events", Group: "g", ClaimAfter: 6 * time.Second}
	follow(t, db, f, slow)
	follow(t, db, f, slow)
	within(t, "the entry to be read", func() bool { mu.Lock(); defer mu.Unlock(); return calls > 0 })
	within(t, "the entry to be done", func() bool { return pending(t, db, 0) == 0 })
	mu.Lock()
	defer mu.Unlock()
	if calls != 1 {
		t.Errorf("a slow entry was handled %d times", calls)
	}
}

func TestFollowSurvivesALostStream(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	var b inbox
	add(t, db, 0, 0, 1)
	follow(t, db, redisdb.Follow{Stream: "events", Group: "g"}, b.handle)
	within(t, "the first entry", func() bool { return len(b.all()) == 1 })
	if err := db.Client().FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	add(t, db, 0, 1, 2)
	within(t, "the entry of the new stream", func() bool { return len(b.all()) == 2 })
}

func TestFollowFinishesTheWorkInHand(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	add(t, db, 0, 0, 1)
	begun := make(chan struct{})
	release := make(chan struct{})
	stop := follow(t, db, redisdb.Follow{Stream: "events", Group: "g"},
		func(ctx context.Context, _ []redisdb.Entry) error {
			close(begun)
			<-release
			return ctx.Err()
		})
	<-begun
	go func() { time.Sleep(50 * time.Millisecond); close(release) }()
	stop()
	if n := pending(t, db, 0); n != 0 {
		t.Errorf("%d entries unfinished", n)
	}
}

func TestFollowLosesNothingWhenRedisIsKilled(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t)
	// shown when the test fails
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	db := testredis.Connect(t, redisdb.Options{URL: server.URL(), Logger: log})
	var b inbox
	follow(t, db, redisdb.Follow{Stream: "events", Group: "g", ClaimAfter: time.Second}, b.handle)
	for round := range 3 {
		add(t, db, 0, round*100, round*100+100)
		server.Kill()
		server.Restart(t)
	}
	defer func() {
		if t.Failed() {
			info := db.Client().XInfoGroups(context.Background(), redisdb.Key(0, "events"))
			t.Logf("the group: %+v; the stream: %d entries", info.Val(), db.Client().XLen(context.Background(),
				redisdb.Key(0, "events")).Val())
		}
	}()
	within(t, "all entries at least once", func() bool {
		seen := map[string]bool{}
		for _, n := range b.all() {
			seen[n] = true
		}
		return len(seen) == 300
	})
}

func TestFollowRefusesNamelessStreams(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	if err := db.Follow(t.Context(), redisdb.Follow{Stream: "events"}, nil); err == nil {
		t.Error("no group, no error")
	}
}
