package archive

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// tell puts events into the stream.
func tell(t *testing.T, db *redisdb.DB, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		e, err := event.New(fmt.Sprintf("e%d", i), event.TrackClick, "shop", noon, event.Learned{
			Message: event.Message{QueueID: fmt.Sprintf("q%d", i), MessageID: "<m@x.test>", Envelope: event.Envelope{
				To: []string{"ann@x.test"}}, Tags: []string{"spring"}},
			Recipient: "ann@x.test", Later: event.Later{URL: "https://shop.test/<a>", Bot: true, Code: 250},
		})
		if err != nil {
			t.Fatal(err)
		}
		line, err := e.Line()
		if err != nil {
			t.Fatal(err)
		}
		add(t, db, i%db.Partitions(), line)
	}
}

func add(t *testing.T, db *redisdb.DB, partition int, line string) {
	t.Helper()
	if err := db.Client().XAdd(t.Context(), &redis.XAddArgs{Stream: redisdb.Key(partition, stream),
		Values: []string{field, line}}).Err(); err != nil {
		t.Fatal(err)
	}
}

// run has an archive work until the test ends, or until stop is called.
func run(t *testing.T, db *redisdb.DB, o Options) (stop func()) {
	t.Helper()
	a, err := New(db, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := a.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return stop
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// ids reads the ids of archived events.
func ids(t *testing.T, text []byte) (all []string) {
	t.Helper()
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		var l line
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			t.Fatalf("%q: %v", s.Text(), err)
		}
		all = append(all, l.EventID)
	}
	slices.Sort(all)
	return slices.Compact(all) // a repetition is allowed
}

func wanted(from, to int) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprintf("e%d", i))
	}
	slices.Sort(all)
	return all
}

func TestFilesOfDays(t *testing.T) {
	t.Parallel()
	db, dir := testredis.Open(t, redisdb.Options{Partitions: 3}), t.TempDir()
	var mu sync.Mutex
	now := noon
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	add(t, db, 0, "no event at all")
	tell(t, db, 0, 20)
	stop := run(t, db, Options{Dir: dir, Now: clock})
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return text[:bytes.LastIndexByte(text, '\n')+1] // the last line may be on its way in
	}
	eventually(t, "the events of the first day",
		func() bool { return len(ids(t, read("events-2030-01-02.ndjson"))) == 20 })
	stop()
	mu.Lock()
	now = now.Add(24 * time.Hour)
	mu.Unlock()
	tell(t, db, 20, 25)
	run(t, db, Options{Dir: dir, Now: clock})
	eventually(t, "the events of the second day",
		func() bool { return cmp.Equal(ids(t, read("events-2030-01-03.ndjson")), wanted(20, 25)) })

	first, _, _ := bytes.Cut(read("events-2030-01-02.ndjson"), []byte("\n"))
	var l line
	if err := json.Unmarshal(first, &l); err != nil {
		t.Fatal(err)
	}
	var data event.Learned
	if err := json.Unmarshal([]byte(l.Data), &data); err != nil || data.URL != "https://shop.test/<a>" {
		t.Errorf("data %s, %v", l.Data, err)
	}
	l.EventID, l.QueueID, l.Data = "", "", ""
	want := line{
		Event: "trackClick", Account: "shop", Date: "2030-01-02T12:00:00.000Z", MS: noon.UnixMilli(),
		MessageID: "<m@x.test>", Recipient: "ann@x.test",
		To: []string{"ann@x.test"}, Tags: []string{"spring"}, Code: 250, URL: "https://shop.test/<a>", Bot: 1,
	}
	if diff := cmp.Diff(want, l); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// store is a column store as its clients see it.
type store struct {
	mu     sync.Mutex
	status int
	poison string // a batch with this in it is refused
	got    []byte
	posts  int
	kinds  []string
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.posts++
	s.kinds = append(s.kinds, r.Method+" "+r.Header.Get("Content-Type")+" "+r.URL.RawQuery)
	switch {
	case s.status != 0:
		http.Error(w, "not now", s.status)
	case s.poison != "" && bytes.Contains(body, []byte(s.poison)):
		http.Error(w, "cannot parse", http.StatusBadRequest)
	default:
		s.got = append(s.got, body...)
	}
}

func (s *store) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *store) has(t *testing.T) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ids(t, s.got)
}

func TestStoreThatWasAway(t *testing.T) {
	t.Parallel()
	db, dir, s := testredis.Open(t, redisdb.Options{}), t.TempDir(), &store{
		status: http.StatusServiceUnavailable}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	o := Options{Dir: dir, URL: server.URL + "/?query=INSERT+INTO+events+FORMAT+JSONEachRow"}
	tell(t, db, 0, 10)
	stop := run(t, db, o)
	eventually(t, "a try", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.posts > 0 })
	pending := func() int64 {
		p, err := db.Client().XPending(t.Context(), redisdb.Key(0, stream), group).Result()
		if err != nil {
			t.Fatal(err)
		}
		return p.Count
	}
	eventually(t, "that Redis need not wait", func() bool { return pending() == 0 })
	stop() // and another process finds the waiting lines on the disk
	tell(t, db, 10, 20)
	s.set(func() { s.status = 0 })
	run(t, db, o)
	eventually(t, "all events in the store", func() bool { return cmp.Equal(s.has(t), wanted(0, 20)) })
	eventually(t, "nothing left on the disk", func() bool { left, _ := os.ReadDir(dir); return len(left) == 0 })
	if want := "POST application/x-ndjson query=INSERT+INTO+events+FORMAT+JSONEachRow"; s.kinds[0] != want {
		t.Errorf("asked %q, want %q", s.kinds[0], want)
	}
}

func TestWhatTheStoreRefusesIsKept(t *testing.T) {
	t.Parallel()
	db, dir, s := testredis.Open(t, redisdb.Options{}), t.TempDir(), &store{poison: `"eventId":"e3"`}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	a, err := New(db, Options{Dir: dir, URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 { // each in a separate file
		if err := a.putAside(fmt.Appendf(nil, "{\"eventId\":\"e%d\"}\n", i)); err != nil {
			t.Fatal(err)
		}
	}
	run(t, db, Options{Dir: dir, URL: server.URL})
	eventually(t, "all others in the store", func() bool { return len(s.has(t)) == 5 })
	var kept []string
	eventually(t, "the one refused in a file", func() bool {
		kept, err = filepath.Glob(filepath.Join(dir, "*"))
		return err == nil && len(kept) == 1 && strings.HasPrefix(filepath.Base(kept[0]), "refused-")
	})
	if text, err := os.ReadFile(kept[0]); err != nil || !strings.Contains(string(text), "e3") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestDiskIsNotFilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, err := New(testredis.Open(t, redisdb.Options{}), Options{Dir: dir, URL: "http://127.0.0.1:1",
		MaxSpool: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if err := a.putAside(fmt.Appendf(nil, "%0100d", i)); err != nil {
			t.Fatal(err)
		}
	}
	files, total, err := a.spool()
	if err != nil || total > 1000 || len(files) != 10 {
		t.Fatalf("%d bytes in %d files, %v", total, len(files), err)
	}
	if oldest, err := os.ReadFile(filepath.Join(dir, files[0].name)); err != nil ||
		string(oldest) != fmt.Sprintf("%0100d", 10) {
		t.Errorf("the oldest left is %s, %v", oldest, err)
	}
}

func TestSecretsOfTheAddressAreNotTold(t *testing.T) {
	t.Parallel()
	a, err := New(testredis.Open(t, redisdb.Options{}),
		Options{Dir: t.TempDir(), URL: "http://user:secret@127.0.0.1:1/?password=secret"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.post(t.Context(), []byte("x"))
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}

func TestLeave(t *testing.T) {
	t.Parallel()
	db := testredis.Open(t, redisdb.Options{Partitions: 2})
	if err := Leave(t.Context(), db); err != nil {
		t.Errorf("where no event ever was: %v", err)
	}
	tell(t, db, 0, 2)
	stop := run(t, db, Options{Dir: t.TempDir()})
	key := redisdb.Key(0, stream)
	eventually(t, "its group",
		func() bool { g, _ := db.Client().XInfoGroups(t.Context(), key).Result(); return len(g) == 1 })
	stop()
	if err := Leave(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if g, err := db.Client().XInfoGroups(t.Context(), key).Result(); err != nil || len(g) != 0 {
		t.Errorf("groups %v, %v", g, err)
	}
}

func TestTheArchiveIsNoMetadataService(t *testing.T) {
	t.Parallel()
	a, err := New(testredis.New(t), Options{Dir: t.TempDir(), URL: "http://169.254.169.254/latest"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.post(t.Context(), []byte("{}\n")); !errors.Is(err, dialing.ErrRefused) {
		t.Error(err)
	}
}
