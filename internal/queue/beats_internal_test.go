package queue

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// TestServersSayWhatTheyDo: the dashboard's list has a server that has nothing to do, its task while it has
// one, and not for longer.
func TestServersSayWhatTheyDo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	goOn := make(chan struct{})
	stop := serve(t, b.redis, ServerOptions{}, map[string]Handler{"wait": func(context.Context, Task) Verdict {
		<-goOn
		return Done()
	}})
	inspector := asynq.NewInspectorFromRedisClient(b.redis)
	working := func(want int) func() bool {
		return func() bool {
			servers, err := inspector.Servers()
			return err == nil && len(servers) == 1 && len(servers[0].ActiveWorkers) == want
		}
	}
	until(t, "an idle server", working(0))
	for _, err := range b.client.Enqueue(t.Context(), Task{Queue: Submit, Type: "wait", ID: "1"}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	until(t, "a server with a task", working(1))
	close(goOn)
	until(t, "an idle server again", working(0))
	stop()
	if servers, err := inspector.Servers(); err != nil || len(servers) != 0 {
		t.Errorf("after the stop: %v, %v", servers, err)
	}
}

// TestAnIdleServerBeatsSeldom: the second of two beats asks nothing of Redis.
func TestAnIdleServerBeatsSeldom(t *testing.T) {
	t.Parallel()
	b := setup(t)
	client := &pollingClient{ackClient: &ackClient{UniversalClient: b.redis, scripts: b.redis}}
	keys := []string{serversKey + ":{a}", workersKey + ":{a}"}
	beat := func() {
		t.Helper()
		for _, set := range []string{serversKey, workersKey} {
			if err := client.ZAdd(t.Context(), set, redis.Z{Score: 1, Member: "a"}).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if err := client.EvalSha(t.Context(), "unknown", keys, 10.0, "state").Err(); err != nil {
			t.Fatal(err)
		}
	}
	there := func() bool { return b.redis.Exists(t.Context(), keys[0]).Val() == 1 }
	beat()
	if left := b.redis.TTL(t.Context(), keys[0]).Val(); left < 2*beatEvery {
		t.Errorf("it is there for %v", left)
	}
	b.redis.Del(t.Context(), keys[0])
	if beat(); there() {
		t.Error("it beats again at once")
	}
	client.beats.idle = time.Now().Add(-beatEvery)
	if beat(); !there() {
		t.Error("it does not beat again")
	}
	err := client.EvalSha(t.Context(), "unknown", keys, 10.0, "state", "task", "what").Err()
	if !redis.HasErrorPrefix(err, "NOSCRIPT") {
		t.Errorf("what a server works on is not written at once: %v", err)
	}
}

// TestSubscriptionsArePingedSeldom: a second ping in a row is not sent, and one after pingEvery is.
func TestSubscriptionsArePingedSeldom(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer ours.Close()
	const ping, other = "*1\r\n$4\r\nping\r\n", "*1\r\n$4\r\nquit\r\n"
	c := &quietConn{Conn: ours, pinged: time.Now()}
	go func() {
		for _, text := range []string{ping, ping, other} {
			_, _ = c.Write([]byte(text))
		}
		c.pinged = time.Now().Add(-pingEvery)
		_, _ = c.Write([]byte(ping))
	}()
	got := make([]byte, len(ping))
	for _, want := range []string{other, ping} {
		if n, err := theirs.Read(got); err != nil || string(got[:n]) != want {
			t.Errorf("sent %q, %v", got[:n], err)
		}
	}
}
