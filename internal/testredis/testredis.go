package testredis

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/postroom/postroom/internal/redisdb"
)

// databases is how many a server has: that many tests of a package may run at the same time.
const databases = 512

// shared is the one server of a test package, started by the first test that needs it.
type shared struct {
	once    sync.Once
	process *Process
	err     error

	mu   sync.Mutex
	free []int // databases nobody uses
}

// server is the package's one server. A test binary has one test package, so a variable is the right scope.
var server shared

func (s *shared) start() {
	for n := range databases {
		s.free = append(s.free, databases-1-n)
	}
	s.process = &Process{args: []string{"--appendonly", "no"}}
	s.err = s.process.start()
}

// take gives a database to a test until it ends.
func (s *shared) take(t testing.TB) int {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) == 0 {
		t.Fatalf("more than %d tests use Redis at the same time", databases)
	}
	n := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.free = append(s.free, n)
	})
	return n
}

// Main runs the tests of a package, stops the package's server, and fails the run when goroutines are left
// over, but for those that ignore names. It returns the exit code: func TestMain(m *testing.M) {
// os.Exit(testredis.Main(m)) }.
func Main(m goleak.TestingM, ignore ...goleak.Option) int {
	code := m.Run()
	server.once.Do(func() {}) // from here on nothing is started
	if server.process != nil {
		server.process.remove() // nothing is left of one that did not start
	}
	if code != 0 {
		return code
	}
	// A client that could not reach its server looks again each second whether it can, and whether it was closed
	// in the meantime.
	err := goleak.Find(ignore...)
	for end := time.Now().Add(5 * time.Second); err != nil && time.Now().Before(end); {
		err = goleak.Find(ignore...)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "goroutines are left after the tests:", err)
		return 1
	}
	return 0
}

// New gives a test its own empty database with one partition. It is closed when the test ends.
func New(t testing.TB) *redisdb.DB {
	t.Helper()
	return Open(t, redisdb.Options{})
}

// Open is New with options, for instance Partitions; the address is filled in.
func Open(t testing.TB, o redisdb.Options) *redisdb.DB {
	t.Helper()
	o.URL = URL(t)
	return Connect(t, o)
}

// URL is the address of an empty database that no other test uses until this one ends. It is for tests that
// connect themselves, several times, or as several processes.
func URL(t testing.TB) string {
	t.Helper()
	server.once.Do(server.start)
	if server.err != nil {
		t.Fatal(server.err)
	}
	url := fmt.Sprintf("%s?db=%d", server.process.URL(), server.take(t))
	flush(t, url)
	return url
}

// flush empties what an earlier test left.
func flush(t testing.TB, url string) {
	t.Helper()
	db, err := open(t, redisdb.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Client().FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
}

// open opens a Redis that answers, or will. On a machine that is busy with other tests that may take longer
// than redisdb.Open waits.
func open(t testing.TB, o redisdb.Options) (*redisdb.DB, error) {
	ctx, cancel := context.WithTimeout(t.Context(), readyWithin)
	defer cancel()
	for {
		db, err := redisdb.Open(ctx, o)
		if err == nil || ctx.Err() != nil || !redisdb.Unavailable(err) {
			return db, err
		}
	}
}

// Connect opens the Redis of o.URL, which may be one of [Server], and closes it when the test ends.
func Connect(t testing.TB, o redisdb.Options) *redisdb.DB {
	t.Helper()
	db, err := open(t, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close redis: %v", err)
		}
	})
	return db
}
