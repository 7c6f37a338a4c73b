package redisdb_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

// waits returns the commands with which connections of a database wait, each as often as it is made.
func waits(t *testing.T, db *redisdb.DB) (commands []string) {
	t.Helper()
	list, err := db.Client().ClientList(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	own := fmt.Sprintf(" db=%d ", db.Client().(*redis.Client).Options().DB)
	for line := range strings.Lines(list) {
		_, after, _ := strings.Cut(line, " cmd=")
		if strings.Contains(line, own) && strings.Contains(line, " flags=b") {
			command, _, _ := strings.Cut(after, " ")
			commands = append(commands, command)
		}
	}
	return commands
}

// TestFollowersRestTogether: while nothing happens one connection waits for all, and what happens then is
// seen by all.
func TestFollowersRestTogether(t *testing.T) {
	t.Parallel()
	db := testredis.Open(t, redisdb.Options{Partitions: 3})
	var boxes [3]inbox
	var stops []func()
	for i := range boxes {
		stops = append(stops, follow(t, db, redisdb.Follow{Stream: "events", Group: fmt.Sprint("g", i)},
			boxes[i].handle))
	}
	stops = append(stops, follow(t, db, redisdb.Follow{Stream: "others", Group: "g"}, (&inbox{}).handle))
	for round := range 2 {
		add(t, db, round, round, round+1)
		for i := range boxes {
			within(t, "every group has the entry", func() bool { return len(boxes[i].all()) == round+1 })
		}
		within(t, "one connection waits", func() bool {
			all := waits(t, db)
			return len(all) == 1 && all[0] == "xread"
		})
	}
	began := time.Now()
	for _, stop := range stops {
		stop()
	}
	if took := time.Since(began); took > patience/30 {
		t.Errorf("stopping those that rest took %v", took)
	}
}

// TestFollowTakesOverFromTheDeadAfterARest: the entry came while the reader rested, and another process took
// it.
func TestFollowTakesOverFromTheDeadAfterARest(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	var b inbox
	follow(t, db, redisdb.Follow{Stream: "events", Group: "g", ClaimAfter: 300 * time.Millisecond}, b.handle)
	for n := range 2 {
		within(t, "it rests", func() bool {
			all := waits(t, db)
			return len(all) == 1 && all[0] == "xread"
		})
		_, err := db.Client().TxPipelined(t.Context(), func(p redis.Pipeliner) error {
			p.XAdd(t.Context(), &redis.XAddArgs{Stream: redisdb.Key(0, "events"), Values: []any{"n", n}})
			p.XReadGroup(t.Context(), &redis.XReadGroupArgs{Group: "g", Consumer: "dead",
				Streams: []string{redisdb.Key(0, "events"), ">"}, Block: -1})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		within(t, "the entry of the dead", func() bool { return len(b.all()) == n+1 })
	}
}

// checkRest follows a stream until it pauses, and again.
func checkRest(t *testing.T, db *redisdb.DB) {
	t.Helper()
	var b inbox
	defer follow(t, db, redisdb.Follow{Stream: "events", Group: "rests"}, b.handle)()
	for range 2 {
		time.Sleep(time.Second) // A group that gets nothing pauses after half of it, unseen.
		before := len(b.all())
		for p := range db.Partitions() {
			add(t, db, p, p, p+1)
		}
		within(t, "the entries of all partitions", func() bool { return len(b.all()) == before+db.Partitions() })
	}
}

func TestAwaitEntry(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	key := redisdb.Key(0, "events")
	add(t, db, 0, 0, 1)
	if !db.AwaitEntry(t.Context(), key, "0-0", patience) {
		t.Error("the stream has an entry")
	}
	info, err := db.Client().XInfoStream(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	if db.AwaitEntry(t.Context(), key, info.LastGeneratedID, 50*time.Millisecond) {
		t.Error("the stream has no further entry")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if db.AwaitEntry(ended, key, info.LastGeneratedID, patience) {
		t.Error("the context ended")
	}
}

// asked counts the commands of a client.
type asked struct{ commands atomic.Int64 }

func (*asked) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a *asked) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (a *asked) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		a.commands.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

// TestLoopsLookTogether: twenty loops have nothing to do, until there is a key of one of them.
func TestLoopsLookTogether(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	var a asked
	db.Client().(*redis.Client).AddHook(&a)
	ctx, end := context.WithCancel(t.Context())
	const every = 50 * time.Millisecond
	var woken [20]atomic.Int64
	ended := make(chan struct{}, len(woken))
	for i := range woken {
		work := db.Looks().For(redisdb.Key(i, "work"), redisdb.Key(i, "more"))
		go func() {
			for work.Pause(ctx, every) {
				woken[i].Add(1)
			}
			ended <- struct{}{}
		}()
	}
	began := time.Now()
	within(t, "ten looks", func() bool { return a.commands.Load() >= 10 })
	// Without sharing, the loops would make twenty times as many.
	if n, most := a.commands.Load(), int64(3*(time.Since(began)/every+3)); n > most {
		t.Errorf("%d commands for the looks of 20 loops, want %d at most", n, most)
	}
	key := redisdb.Key(7, "more")
	if err := db.Client().Set(t.Context(), key, "here", 0).Err(); err != nil {
		t.Fatal(err)
	}
	within(t, "the loop has work, again and again", func() bool { return woken[7].Load() > 2 })
	if err := db.Client().Del(t.Context(), key).Err(); err != nil {
		t.Fatal(err)
	}
	within(t, "the loop rests", func() bool {
		before := woken[7].Load()
		time.Sleep(5 * every) // a loop that has work continues in a fifth of it
		return woken[7].Load() == before
	})
	for i := range woken {
		if n := woken[i].Load(); i != 7 && n > 0 {
			t.Errorf("loop %d was woken %d times for nothing", i, n)
		}
	}
	end()
	for range woken {
		<-ended
	}
}

func TestWakeEndsAPause(t *testing.T) {
	t.Parallel()
	work := testredis.New(t).Looks().For(redisdb.Key(0, "work"))
	work.Wake()
	if !work.Pause(t.Context(), patience) {
		t.Error("it was woken before")
	}
	go func() {
		time.Sleep(20 * time.Millisecond)
		work.Wake()
	}()
	if !work.Pause(t.Context(), time.Millisecond) {
		t.Error("it was woken")
	}
	ended, end := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer end()
	if work.Pause(ended, time.Millisecond) {
		t.Error("nothing woke it")
	}
}

// TestLoopsSeeErrors: a loop continues while Redis is away, and so notices it.
func TestLoopsSeeErrors(t *testing.T) {
	t.Parallel()
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: t.TempDir() + "/nobody", MaxRetries: -1})
	defer c.Close()
	work := redisdb.NewLooks(c, true).For("work")
	for range 3 {
		if !work.Pause(t.Context(), 10*time.Millisecond) {
			t.Error("it must go on")
		}
	}
}
