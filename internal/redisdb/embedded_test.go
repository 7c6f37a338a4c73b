//go:build unix

package redisdb_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

// pidOf asks the embedded server for its process.
func pidOf(t *testing.T, db *redisdb.DB) int {
	t.Helper()
	info, err := db.Client().Info(t.Context(), "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(info, "process_id:")
	pid, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestEmbeddedKeepsItsDataOverARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for round, fsync := range []string{"everysec", "always"} {
		db, err := redisdb.Open(t.Context(), redisdb.Options{Dir: dir, Fsync: fsync})
		if err != nil {
			t.Fatal(err)
		}
		n, err := db.Client().Incr(t.Context(), "rounds").Result()
		if err != nil || n != int64(round+1) {
			t.Errorf("round %d: counter %d, %v", round, n, err)
		}
		d, err := db.Durability(t.Context())
		if err != nil || !d.Persistent || !d.AOF || d.Fsync != fsync || d.Policy != "noeviction" ||
			len(d.Warnings) > 0 {
			t.Errorf("durability %+v, %v", d, err)
		}
		if db.Mode() != redisdb.Embedded {
			t.Errorf("mode %s", db.Mode())
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	stat, err := os.Stat(filepath.Join(dir, "redis"))
	if err != nil || stat.Mode().Perm() != 0o700 {
		t.Errorf("the directory of the socket is open to others: %v, %v", stat.Mode(), err)
	}
}

// TestEmbeddedHasALimitOfMemory fills the embedded server: it refuses, keeps all it has, and has the same
// limit after it died.
func TestEmbeddedHasALimitOfMemory(t *testing.T) {
	t.Parallel()
	const limit = 16 << 20
	// With fsync each second Redis answers before it writes, while a disk is slow (flushAppendOnlyFile).
	db, err := redisdb.Open(t.Context(), redisdb.Options{Dir: t.TempDir(), MaxMemory: limit, Fsync: "always"})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	stored, megabyte := 0, strings.Repeat("x", 1<<20)
	for err == nil && stored < 100 {
		if err = db.Client().RPush(t.Context(), "all", megabyte).Err(); err == nil {
			stored++
		}
	}
	if err == nil || !strings.Contains(err.Error(), "OOM") || stored < 8 || stored > 16 {
		t.Errorf("%d MB were stored, then: %v", stored, err)
	}
	if err := syscall.Kill(pidOf(t, db), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	within(t, "the server is back with all it had", func() bool {
		return db.Client().LLen(t.Context(), "all").Val() == int64(stored)
	})
	if d, err := db.Durability(t.Context()); err != nil || d.MaxMemory != limit || d.Policy != "noeviction" {
		t.Errorf("after a restart: %+v, %v", d, err)
	}
}

func TestMachineMemory(t *testing.T) {
	t.Parallel()
	if n, err := redisdb.MachineMemory(); err != nil || n < 64<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func TestEmbeddedIsRestartedAndLosesNothing(t *testing.T) {
	t.Parallel()
	db, err := redisdb.Open(t.Context(), redisdb.Options{Dir: t.TempDir(), Fsync: "always"})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var mu sync.Mutex
	acknowledged := 0
	var writers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for w := range 4 {
		writers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if err := db.Client().SAdd(ctx, "all", fmt.Sprintf("%d-%d", w, n)).Err(); err == nil {
					mu.Lock()
					acknowledged++
					mu.Unlock()
				}
			}
		})
	}
	count := func() int { mu.Lock(); defer mu.Unlock(); return acknowledged }
	for range 2 {
		before := count()
		within(t, "writes", func() bool { return count() > before+200 })
		if err := syscall.Kill(pidOf(t, db), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		before = count()
		within(t, "writes after the kill", func() bool { return count() > before+200 })
	}
	cancel()
	writers.Wait()
	stored, err := db.Client().SCard(t.Context(), "all").Result()
	if err != nil || int(stored) < count() {
		t.Errorf("%d of %d acknowledged writes are stored, %v", stored, count(), err)
	}
}

func TestEmbeddedDirectoryHasOneOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := redisdb.Open(t.Context(), redisdb.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	second, err := redisdb.Open(ctx, redisdb.Options{Dir: dir})
	if err == nil {
		second.Close()
		t.Fatal("two servers share a directory")
	}
	if !strings.Contains(err.Error(), "another postroom is using the data directory "+dir) {
		t.Errorf("error %v", err)
	}
}

func TestEmbeddedInALongPath(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	db, err := redisdb.Open(t.Context(), redisdb.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	socket := strings.TrimPrefix(db.Address(), "unix://")
	if err := db.Client().Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(socket)); !os.IsNotExist(err) {
		t.Errorf("the socket's directory is left behind: %v", err)
	}
}

func TestEmbeddedSaysWhyItDoesNotStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "redis"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "redis", "appendonlydir"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := redisdb.Open(t.Context(), redisdb.Options{Dir: dir})
	if err == nil {
		db.Close()
		t.Fatal("started on a broken directory")
	}
	if !strings.Contains(err.Error(), "ended immediately (exit status 1), saying: ") ||
		!strings.Contains(err.Error(), "appendonlydir") {
		t.Errorf("error %v", err)
	}
}

// TestEmbeddedAfterOurProcessIsKilled kills a process that has an embedded Redis, as a crash would, and opens
// its directory immediately. The new server must wait until the old one has written everything.
func TestEmbeddedAfterOurProcessIsKilled(t *testing.T) {
	if dir := os.Getenv("REDISDB_TEST_CRASH_DIR"); dir != "" {
		writeUntilKilled(t, dir)
	}
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestEmbeddedAfterOurProcessIsKilled$")
	cmd.Env = append(os.Environ(), "REDISDB_TEST_CRASH_DIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	last := 0
	for lines := bufio.NewScanner(out); last < 500 && lines.Scan(); {
		last, _ = strconv.Atoi(lines.Text())
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	db, err := redisdb.Open(t.Context(), redisdb.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if n, err := db.Client().Get(t.Context(), "n").Int(); err != nil || n < last || last < 500 {
		t.Errorf("the counter is %d, %v, though %d was acknowledged", n, err, last)
	}
}

// writeUntilKilled is the other process: it counts in Redis and prints what was acknowledged.
func writeUntilKilled(t *testing.T, dir string) {
	db, err := redisdb.Open(t.Context(), redisdb.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for {
		n, err := db.Client().Incr(t.Context(), "n").Result()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(n)
	}
}

// install puts a program of this name into a folder that becomes the whole PATH, as a link to the real
// redis-server, or as a script if there is one.
func install(t *testing.T, name, script string) string {
	t.Helper()
	real, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if script != "" {
		err = os.WriteFile(path, []byte(script), 0o700) //nolint:gosec // a program
	} else {
		err = os.Symlink(real, path)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(path))
	return path
}

func TestValkeyServesWhereThereIsNoRedis(t *testing.T) {
	path := install(t, "valkey-server", "")
	if got, err := redisdb.ServerProgram(); got != path || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
	db, err := redisdb.Open(t.Context(), redisdb.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	checkEverythingWorks(t, db)
}

func TestRedisIsPreferredToValkey(t *testing.T) {
	redis := install(t, "redis-server", "")
	if err := os.Symlink(redis, filepath.Join(filepath.Dir(redis), "valkey-server")); err != nil {
		t.Fatal(err)
	}
	if got, err := redisdb.ServerProgram(); got != redis || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
}

// TestNoServerProgramMakesNothing: nothing is made where no server can run.
func TestNoServerProgramMakesNothing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := filepath.Join(t.TempDir(), "data")
	db, err := redisdb.Open(t.Context(), redisdb.Options{Dir: dir})
	if err == nil {
		db.Close()
		t.Fatal("opened without a server")
	}
	for _, want := range []string{"apt install redis-server", "dnf install valkey", "apk add redis",
		"brew install redis", "redis.url", "POSTROOM_REDIS_URL"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the data directory was made: %v", err)
	}
}

// TestBrokenServerSaysWhy: each server fails with its own text, and isn't started a second time.
func TestBrokenServerSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		mode   os.FileMode
		want   string
	}{
		"a library is missing": {"#!/bin/sh\necho 'libssl.so.3: cannot open shared object file' >&2\nexit 127\n",
			0o700, "libssl.so.3: cannot open shared object file"},
		"it ends in silence":       {"#!/bin/sh\nexit 0\n", 0o700, "ended immediately (exit status 0)"},
		"it is for another system": {"\x7fELF\x00", 0o700, "exec format error"},
		"it is not executable":     {"#!/bin/sh\n", 0o600, "redis-server can't be run: it isn't executable"},
	} {
		t.Run(name, func(t *testing.T) {
			path := install(t, "redis-server", c.script)
			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			db, err := redisdb.Open(t.Context(), redisdb.Options{Dir: t.TempDir(),
				Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err == nil {
				db.Close()
				t.Fatal("opened with a broken server")
			}
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) || log.Len() > 0 {
				t.Errorf("got %v and the log %s", err, &log)
			}
		})
	}
}

// checkEverythingWorks is what every kind of Redis must do: scripts, pipelines over all partitions, and
// streams with groups.
func checkEverythingWorks(t *testing.T, db *redisdb.DB) {
	t.Helper()
	ctx := t.Context()
	s := redisdb.NewScript[[]int, string]("append",
		"-- ARGV: values...\nreturn redis.call('XADD', KEYS[1], '*', 'n', ARGV[values])")
	p := db.Pipeline()
	for n := range 12 {
		s.Add(p, []string{redisdb.Key(n%db.Partitions(), "events")}, []int{n})
		p.Pipeliner().Set(ctx, redisdb.Key(n%db.Partitions(), "plain"), n, 0)
	}
	if err := p.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	var b inbox
	stop := follow(t, db, redisdb.Follow{Stream: "events", Group: "g", ClaimAfter: 300 * time.Millisecond},
		b.handle)
	within(t, "the entries of all partitions", func() bool { return len(b.all()) >= 12 })
	if _, err := s.Run(ctx, db.Client(), []string{redisdb.Key(0, "events")}, []int{12}); err != nil {
		t.Fatal(err)
	}
	within(t, "an entry added while waiting", func() bool { return len(b.all()) >= 13 })
	stop()
	add(t, db, 0, 13, 14)
	if err := db.Client().XReadGroup(ctx, readAs("dead", redisdb.Key(0, "events"))).Err(); err != nil {
		t.Fatal(err)
	}
	follow(t, db, redisdb.Follow{Stream: "events", Group: "g", ClaimAfter: 300 * time.Millisecond}, b.handle)
	within(t, "an entry of a dead consumer", func() bool { return len(b.all()) >= 14 })
	if _, err := db.MemoryShare(ctx); err != nil {
		t.Error(err)
	}
	if d, err := db.Durability(ctx); err != nil || d.Mode != db.Mode() {
		t.Errorf("durability %+v, %v", d, err)
	}
}

func TestSharedServerDoesEverything(t *testing.T) {
	t.Parallel()
	checkEverythingWorks(t, testredis.Open(t, redisdb.Options{Partitions: 2}))
}

// TestRunningEmbeddedIsJoined: a command that runs next to the process with the embedded server reads what
// that process wrote.
func TestRunningEmbeddedIsJoined(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "100% data")
	if url := redisdb.Running(t.Context(), dir); url != "" {
		t.Errorf("before anything runs there: %s", url)
	}
	home, err := redisdb.Open(t.Context(), redisdb.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := home.Client().Set(t.Context(), "word", "spoken", 0).Err(); err != nil {
		t.Error(err)
	}
	beside, err := redisdb.Open(t.Context(), redisdb.Options{URL: redisdb.Running(t.Context(), dir)})
	if err != nil {
		t.Fatal(err)
	}
	if word, err := beside.Client().Get(t.Context(), "word").Result(); err != nil || word != "spoken" {
		t.Errorf("got %q, %v", word, err)
	}
	for _, db := range []*redisdb.DB{beside, home} {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	if url := redisdb.Running(t.Context(), dir); url != "" {
		t.Errorf("after the server has stopped: %s", url)
	}
}
