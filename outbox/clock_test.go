package outbox

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

// machine is an outbox on a machine whose clock is wrong.
func machine(t *testing.T, db *redisdb.DB, wrong time.Duration) *bundle {
	t.Helper()
	b := setupOn(t, db, Options{Lease: time.Minute, Backoff: queue.Backoff{Base: 30 * time.Second}})
	b.Outbox.store.clock = newClock(nil)
	b.Outbox.store.clock.now = func() time.Time { return time.Now().Add(wrong) }
	return b
}

// field reads a time in a message's record, relative to the time of Redis.
func field(t *testing.T, b *bundle, id, name string) time.Duration {
	t.Helper()
	ms, err := b.store.DB.Client().HGet(t.Context(), b.store.keys.message(0, id), name).Int64()
	if err != nil {
		t.Fatal(err)
	}
	now, err := b.store.DB.Client().Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return redisdb.Time(ms).Sub(now)
}

func near(got, want time.Duration) bool { return (got - want).Abs() < 10*time.Second }

// TestClocksAMinuteApart runs two machines on one Redis, one with a clock 90 seconds fast or slow, with
// leases of a minute. None of their operations waits for the sweeper to compare the clocks.
func TestClocksAMinuteApart(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]time.Duration{"ahead": 90 * time.Second, "behind": -90 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := testredis.New(t)
			right, skewed := machine(t, db, 0), machine(t, db, wrong)
			for _, pair := range [][2]*bundle{{right, skewed}, {skewed, right}} {
				first, second := pair[0], pair[1]
				id := one(t, first)
				c, v, err := second.Delivery.begin(t.Context(), id)
				if err != nil || c == nil {
					t.Fatalf("what one machine accepted is not due on the other: %s, %v", v, err)
				}
				if lease := field(t, second, id, "lease"); !near(lease, time.Minute) {
					t.Errorf("the lease lasts %s", lease)
				}
				sweep(t, first)
				if err := second.Delivery.doubt(t.Context(), c); err != nil {
					t.Errorf("the other machine stole the lease: %v", err)
				}
				now := second.Outbox.store.clock.Now()
				second.Delivery.record(t.Context(), c, decide(c, attempted{start: now, end: now,
					err: refusal("451 4.7.1 later")},
					second.Delivery.policy(c, accounts.Sender{})))
				if due := field(t, second, id, "due"); !near(due, time.Minute) {
					t.Errorf("the next attempt is due in %s, want a minute", due)
				}
				if c, v, err := first.Delivery.begin(t.Context(), id); c != nil || err != nil || v.String() != "not_now" {
					t.Errorf("the next attempt does not wait for its time: %s, %v", v, err)
				}
			}
			right.countAll(t)
			if counted := counted(t, db); counted["queued"] != 2 || counted["attempts"] != 2 {
				t.Errorf("counted in this minute and the last: %v", counted)
			}
		})
	}
}

// counted adds up the counters of this minute and the last, as Redis has the time.
func counted(t *testing.T, db *redisdb.DB) map[string]int {
	t.Helper()
	now, err := db.Client().Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	sum, minute := map[string]int{}, now.Unix()/60
	for at := minute - 1; at <= minute; at++ {
		fields, err := db.Client().HGetAll(t.Context(),
			redisdb.Key(0, "stats", strconv.FormatInt(at/60, 10))).Result()
		if err != nil {
			t.Fatal(err)
		}
		for field, value := range fields { // its name, perhaps the lane, and the minute of the hour
			words := strings.Split(field, ":")
			if n, err := strconv.Atoi(value); err == nil && words[len(words)-1] == strconv.FormatInt(at%60, 10) {
				sum[words[0]] += n
			}
		}
	}
	return sum
}

// slowTime delays the answers of TIME.
type slowTime struct{ fates }

// ProcessHook implements redis.Hook.
func (slowTime) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if cmd.Name() == "time" {
			time.Sleep(stalled + 50*time.Millisecond)
		}
		return err
	}
}

// TestNothingIsDoneByAnUnknownClock: the first answer of TIME came too late. Until there is a better one, no
// lease is ended, no message accepted and none begun.
func TestNothingIsDoneByAnUnknownClock(t *testing.T) {
	t.Parallel()
	url := testredis.URL(t)
	right := machine(t, testredis.Connect(t, redisdb.Options{URL: url}), 0)
	id := one(t, right)
	c, _, err := right.Delivery.begin(t.Context(), id)
	if err != nil || c == nil {
		t.Fatalf("begin: %v", err)
	}
	waiting := one(t, right)

	slow := testredis.Connect(t, redisdb.Options{URL: url})
	slow.Client().AddHook(slowTime{})
	skewed := machine(t, slow, 90*time.Second)
	if err := skewed.Outbox.sweep(t.Context()); err == nil {
		t.Error("it sweeps")
	}
	if _, err := skewed.Intake.Submit(t.Context(), api.SubmitRequest{To: api.Addresses{{Address: "ann@x.test"}},
		Text: "x"}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("submit: %v", err)
	}
	if c, _, err := skewed.Delivery.begin(t.Context(), waiting); c != nil || err == nil {
		t.Errorf("begin: %v", err)
	}
	if err := right.Delivery.doubt(t.Context(), c); err != nil {
		t.Errorf("the lease was ended: %v", err)
	}
}

// stuck is a line to Redis that holds back the scripts of an idempotency key.
type stuck struct {
	key  string
	free chan struct{} // closed when they may pass
	past chan struct{} // closed when the first of them has passed
	once sync.Once
}

func (*stuck) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*stuck) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (s *stuck) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "evalsha" || !slices.Contains(cmd.Args(), any(s.key)) {
			return next(ctx, cmd)
		}
		<-s.free
		err := next(context.WithoutCancel(ctx), cmd)
		s.once.Do(func() { close(s.past) })
		return err
	}
}

// TestALateAcceptHasNoEffect: a submit that was answered with 503 may be repeated, and what that accepted may
// be cancelled, which frees the key. What was stuck on its way to Redis then is not accepted afterwards.
func TestALateAcceptHasNoEffect(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	b := machine(t, db, 0)
	one(t, b) // so that Redis knows the script
	line := &stuck{key: b.store.keys.ofRequest("default", "order-1", 1), free: make(chan struct{}),
		past: make(chan struct{})}
	db.Client().AddHook(line)
	req := api.SubmitRequest{To: for1("ann@x.test"), Text: "x", IdempotencyKey: "order-1"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := b.Intake.Submit(ctx, req); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a submit whose Redis does not answer: %v", err)
	}
	time.Sleep(stalled) // the clocks may differ by less
	close(line.free)
	<-line.past
	if used := db.Client().Exists(t.Context(), line.key).Val(); used > 0 {
		t.Error("the message was accepted after its caller gave up")
	}
	if got, err := b.Intake.Submit(t.Context(), req); err != nil || got.Idempotency.Status != "MISS" {
		t.Errorf("repeated: %+v, %v", got, err)
	}
}
