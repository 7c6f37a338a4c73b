package redisdb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testproxy"
	"github.com/postroom/postroom/internal/testredis"
)

func TestRefusedConnectionsFailFast(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t)
	db := testredis.Connect(t, redisdb.Options{URL: server.URL()})
	server.Kill()
	start := time.Now()
	err := db.Client().Set(context.WithoutCancel(t.Context()), "key", "x", 0).Err()
	if !redisdb.Unavailable(err) {
		t.Errorf("error %v doesn't count as unavailable", err)
	}
	if took := time.Since(start); took > 20*time.Second { // 1.5 on a machine with nothing else to do
		t.Errorf("it took %v to give up", took)
	}
	server.Restart(t)
	within(t, "Redis to be used again",
		func() bool { return db.Client().Set(t.Context(), "key", "x", 0).Err() == nil })
}

func TestDeadlineCutsAHungCall(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t)
	proxy := testproxy.New(t, "unix", server.Socket())
	db := testredis.Connect(t, redisdb.Options{URL: "redis://" + proxy.Addr()})
	script := redisdb.NewScript[struct{}, int]("one", "return 1")
	for name, call := range map[string]func(context.Context) error{
		"command": func(ctx context.Context) error { return db.Client().Set(ctx, "key", "x", 0).Err() },
		"script":  func(ctx context.Context) error { return failed(script.Run(ctx, db.Client(), nil, none)) },
		"shared":  func(ctx context.Context) error { return failed(script.Run(ctx, db.Shared(), nil, none)) },
		"pipeline": func(ctx context.Context) error {
			p := db.Pipeline()
			script.Add(p, nil, none)
			return p.Exec(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := call(t.Context()); err != nil { // connections are open, scripts known
				t.Fatal(err)
			}
			proxy.Hang()
			defer proxy.Up()
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			start := time.Now()
			if err := call(ctx); !redisdb.Unavailable(err) {
				t.Errorf("error %v doesn't count as unavailable", err)
			}
			if took := time.Since(start); took > 8*time.Second { // the client alone gives up after ten
				t.Errorf("a deadline of 200 ms ended after %v", took)
			}
		})
	}
}

func TestCutConnectionsAreRemadeUnnoticed(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t)
	proxy := testproxy.New(t, "unix", server.Socket())
	db := testredis.Connect(t, redisdb.Options{URL: "redis://" + proxy.Addr()})
	for range 5 {
		if err := db.Client().Incr(t.Context(), "n").Err(); err != nil {
			t.Error(err)
		}
		proxy.Cut()
	}
}

func TestRunTellsWhenRedisGoesAndComes(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t)
	proxy := testproxy.New(t, "unix", server.Socket())
	var log logBuffer
	db := testredis.Connect(t, redisdb.Options{URL: "redis://" + proxy.Addr(),
		Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err := db.Client().ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- db.Run(ctx) }()
	for _, step := range []struct {
		do   func()
		line string
	}{
		{func() {}, "append-only file synced every second"},
		{func() {}, "allkeys-lru"},
		{proxy.Down, "redis is unavailable"},
		{proxy.Up, "redis is back"},
	} {
		step.do()
		within(t, "a line about: "+step.line, func() bool { return strings.Contains(log.String(), step.line) })
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
}

// logBuffer may be read while it is written.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func TestUnavailable(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":            {nil, false},
		"absent value":       {redis.Nil, false},
		"refused":            {&net.OpError{Op: "dial", Err: errors.New("connection refused")}, true},
		"end of stream":      {fmt.Errorf("read: %w", io.EOF), true},
		"deadline":           {fmt.Errorf("accept: %w", context.DeadlineExceeded), true},
		"cancelled":          {context.Canceled, false},
		"closed":             {redis.ErrClosed, true},
		"no free connection": {redis.ErrPoolTimeout, true},
		"no sentinels": {errors.New("redis: all sentinels specified in configuration are unreachable: x"),
			true},
		"mistake": {errors.New("accept: no such field"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := redisdb.Unavailable(row.err); got != row.want {
				t.Errorf("Unavailable(%v) = %v", row.err, got)
			}
		})
	}
}

func TestUnavailableReadsTheServersAnswer(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	for text, want := range map[string]bool{
		"LOADING Redis is loading the dataset in memory":                  true,
		"READONLY You can't write against a read only replica.":           true,
		"MISCONF Errors writing to the AOF file: No space left on device": true,
		"OOM command not allowed when used memory > 'maxmemory'.":         true,
		"NOREPLICAS Not enough good replicas to write.":                   true,
		"MOVED 3999 127.0.0.1:6381":                                       true,
		"CLUSTERDOWN The cluster is down":                                 true,
		"ERR unknown command 'FOO'":                                       false,
		"WRONGTYPE Operation against a key holding another kind":          false,
		"ERR user_script:1: attempt to index a nil value":                 false,

		"ERR Error running script (call to f_1): @user_script:1: -OOM command not allowed when used memory > 'max'.": true,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel() // the client tries some of them again for a second
			err := failed(failScript.Run(t.Context(), db.Client(), nil, []string{text}))
			if err == nil || redisdb.Unavailable(err) != want {
				t.Errorf("Unavailable(%v) = %v", err, !want)
			}
		})
	}
}

func TestFullMemoryIsUnavailable(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t, "--maxmemory", "8mb", "--maxmemory-policy", "noeviction")
	db := testredis.Connect(t, redisdb.Options{URL: server.URL()})
	if share, err := db.MemoryShare(t.Context()); err != nil || share <= 0 || share >= 1 {
		t.Errorf("share %v, %v", share, err)
	}
	var err error
	for n := 0; err == nil && n < 200; n++ {
		_, err = fillScript.Run(t.Context(), db.Client(), []string{redisdb.Key(0, "fill", fmt.Sprint(n))}, none)
	}
	if !redisdb.Unavailable(err) {
		t.Errorf("a full server answers %v", err)
	}
	within(t, "the cached share to be renewed", func() bool {
		share, err := db.MemoryShare(t.Context())
		return err == nil && share > 0.9
	})
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	locked := testredis.Server(t, "--requirepass", "hunter2")
	gone := testredis.Server(t)
	gone.Kill()
	for name, row := range map[string]struct {
		o    redisdb.Options
		want string
	}{
		"no password": {redisdb.Options{URL: locked.URL()}, "NOAUTH"},
		"wrong password": {redisdb.Options{URL: strings.Replace(locked.URL(), "unix://", "unix://:swordfish@", 1)},
			"WRONGPASS"},
		"nobody there": {redisdb.Options{URL: gone.URL()}, "redis.url: can't use unix://"},
		"partitions":   {redisdb.Options{URL: gone.URL(), Partitions: -1}, "redis.partitions"},
		"pool size":    {redisdb.Options{URL: gone.URL(), PoolSize: -1}, "pool size"},
		"fsync":        {redisdb.Options{Fsync: "sometimes"}, "redis.fsync"},
		"address":      {redisdb.Options{URL: "localhost"}, "redis.url"},
	} {
		t.Run(name, func(t *testing.T) {
			db, err := redisdb.Open(t.Context(), row.o)
			if err == nil {
				db.Close()
				t.Fatal("opened")
			}
			if !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "swordfish") {
				t.Errorf("error %v, want one with %s and no password", err, row.want)
			}
		})
	}
	db := testredis.Connect(t, redisdb.Options{URL: strings.Replace(locked.URL(), "unix://", "unix://:hunter2@",
		1)})
	if strings.Contains(db.Address(), "hunter2") {
		t.Errorf("address %s", db.Address())
	}
}

func TestOpenWaitsForAServerThatComesLater(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t)
	server.Kill()
	opened := make(chan error, 1)
	go func() {
		db, err := redisdb.Open(t.Context(), redisdb.Options{URL: server.URL()})
		if err == nil {
			err = db.Close()
		}
		opened <- err
	}()
	server.Restart(t)
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

func TestCollectorTellsRedisHealth(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t, "--maxmemory", "100mb")
	db := testredis.Connect(t, redisdb.Options{URL: server.URL()})
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(db.Collector()); err != nil {
		t.Fatal(err)
	}
	want := func(values string) error {
		names := []string{"postroom_redis_up", "postroom_redis_aof_enabled", "postroom_redis_max_memory_bytes",
			"postroom_redis_evicted_keys_total"}
		return testutil.GatherAndCompare(registry, strings.NewReader(values), names...)
	}
	if err := want(`
# HELP postroom_redis_aof_enabled 1 if Redis keeps an append-only file, else 0.
# TYPE postroom_redis_aof_enabled gauge
postroom_redis_aof_enabled 1
# HELP postroom_redis_evicted_keys_total Keys that Redis evicted because its memory was full. Anything but 0 means lost mail.
# TYPE postroom_redis_evicted_keys_total counter
postroom_redis_evicted_keys_total 0
# HELP postroom_redis_max_memory_bytes Redis's maxmemory; 0 means no limit.
# TYPE postroom_redis_max_memory_bytes gauge
postroom_redis_max_memory_bytes 1.048576e+08
# HELP postroom_redis_up 1 if Redis answers this process, else 0.
# TYPE postroom_redis_up gauge
postroom_redis_up 1
`); err != nil {
		t.Error(err)
	}
	server.Kill()
	if err := want(`
# HELP postroom_redis_up 1 if Redis answers this process, else 0.
# TYPE postroom_redis_up gauge
postroom_redis_up 0
`); err != nil {
		t.Error(err)
	}
}
