package search_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/search"
	"github.com/postroom/postroom/outbox/search/bleve"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

// patience is how long a condition may take on a machine that is busy with other things.
const patience = 3 * time.Minute

// until waits for a condition.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// mailbox plays the outbox: it remembers messages, and forgets the text of those that ended and are indexed.
type mailbox struct {
	mu       sync.Mutex
	messages map[string]outbox.Document
	fail     error
	indexed  int
}

func newMailbox() *mailbox { return &mailbox{messages: map[string]outbox.Document{}} }

func (b *mailbox) set(m outbox.Document) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages[m.QueueID] = m
}

func (b *mailbox) forget(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.messages, id)
}

func (b *mailbox) told() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.indexed
}

// Documents implements search.Outbox.
func (b *mailbox) Documents(_ context.Context, ids []string) ([]outbox.Document, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []outbox.Document
	for _, id := range ids {
		if m, ok := b.messages[id]; ok {
			found = append(found, m)
		}
	}
	return found, b.fail
}

// Indexed implements search.Outbox.
func (b *mailbox) Indexed(_ context.Context, ids []string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		if m, ok := b.messages[id]; ok {
			m.Text, m.TextKnown = "", false
			b.messages[id] = m
			b.indexed++
		}
	}
	return nil
}

// Messages implements search.Outbox.
func (b *mailbox) Messages(_ context.Context, q api.LogQuery) (api.LogPage, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []api.LoggedMessage
	for _, m := range b.messages {
		all = append(all, m.LoggedMessage)
	}
	slices.SortFunc(all, func(x, y api.LoggedMessage) int {
		return cmp.Or(y.Created.Compare(x.Created), cmp.Compare(y.QueueID, x.QueueID))
	})
	from, _ := strconv.Atoi(q.Cursor)
	to := min(from+q.PageSize, len(all))
	page := api.LogPage{Total: len(all), Messages: all[from:to]}
	if to < len(all) {
		page.Cursor = strconv.Itoa(to)
	}
	return page, nil
}

// world is a search index with everything around it.
type world struct {
	t       *testing.T
	db      *redisdb.DB
	mail    *mailbox
	store   search.Store
	control *queue.Control
	*search.Documents
	stop func() // stops it; again does nothing
}

var began = time.Now().UTC().Truncate(time.Second).Add(-time.Hour)

// setup makes a world and runs it until the test ends.
func setup(t *testing.T, change ...func(*search.Parts, *search.Options)) *world {
	return runOn(t, testredis.Open(t, redisdb.Options{Partitions: 2}), newMailbox(), t.TempDir(), change...)
}

// runOn is setup on what there is.
func runOn(t *testing.T, db *redisdb.DB, mail *mailbox, dir string, change ...func(*search.Parts,
	*search.Options)) *world {
	t.Helper()
	index, err := bleve.Open(dir, bleve.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, db: db, mail: mail, store: index, control: queue.NewControl(db.Client())}
	parts := search.Parts{
		DB: db, Tasks: queue.NewClient(db.Client(), queue.Options{}), Queues: w.control, Outbox: mail, Store: index,
		Work: func(ctx context.Context, handle queue.Handler) error {
			s, err := queue.NewServer(db.Client(), map[string]queue.Handler{search.TaskType: handle},
				queue.ServerOptions{
					Pools: []queue.Pool{{Name: queue.Documents, Queues: map[string]int{queue.Documents: 1}, Workers: 4}},
					Grace: time.Second,
				})
			if err != nil {
				return err
			}
			return s.Run(ctx)
		},
	}
	o := search.Options{
		Kind: "embedded", Read: true, Exclusive: true, TakeOver: index.Fresh(), Place: "here:" + dir,
		Every: 20 * time.Millisecond, SearchTimeout: patience,
	}
	for _, c := range change {
		c(&parts, &o)
	}
	w.store = parts.Store
	if w.Documents, err = search.New(parts, o); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	var once sync.Once
	w.stop = func() {
		once.Do(func() {
			cancel()
			if err := errors.Join(<-done, index.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(w.stop)
	return w
}

// id is a queue id; its partition is n's parity.
func id(n int) string { return fmt.Sprintf("01HZZZZZZZZZZZZZZZZZ%04d%02d", n, n%2) }

// message is the n-th message, queued.
func message(n int) outbox.Document {
	return outbox.Document{
		LoggedMessage: api.LoggedMessage{
			QueueID: id(n), Account: []string{"shop", "news"}[n%2], MessageID: fmt.Sprintf("<m%d@shop.test>", n),
			Subject:  fmt.Sprintf("Invoice %d", n),
			Envelope: api.Envelope{From: "billing@shop.test", To: []string{fmt.Sprintf("ann%d@example.com", n)}},
			Status:   api.StatusQueued,
			Created:  began.Add(time.Duration(n) * time.Second), Lane: api.Transactional, Tags: []string{"invoice"},
		},
		Text: fmt.Sprintf("Dear customer, this is the text of number%d.", n), TextKnown: true,
	}
}

// sent is the n-th message after it was sent.
func sent(n int) outbox.Document {
	m, ended := message(n), began.Add(30*time.Minute)
	m.Status, m.Ended = api.StatusSent, &ended
	return m
}

// tell changes a message and writes the event of that.
func (w *world) tell(kind event.Type, m outbox.Document) {
	w.t.Helper()
	w.mail.set(m)
	w.emit(kind, m)
}

// emit writes an event.
func (w *world) emit(kind event.Type, m outbox.Document) {
	w.t.Helper()
	e, err := event.New("e-"+m.QueueID+string(kind), kind, m.Account, time.Now(),
		event.Message{QueueID: m.QueueID})
	if err != nil {
		w.t.Fatal(err)
	}
	line, err := e.Line()
	if err != nil {
		w.t.Fatal(err)
	}
	partition := int(m.QueueID[len(m.QueueID)-1]-'0') % 2
	err = w.db.Client().XAdd(w.t.Context(), &redis.XAddArgs{Stream: redisdb.Key(partition, "events"),
		Values: []any{"e", line}}).Err()
	if err != nil {
		w.t.Fatal(err)
	}
}

// total is how many messages a query finds; -1 while it can't be asked.
func (w *world) total(q string) int {
	page, err := w.Search(w.t.Context(), api.DocumentQuery{Q: q})
	if err != nil {
		return -1
	}
	return page.Total
}

// finds waits until a query finds so many.
func (w *world) finds(q string, n int) {
	w.t.Helper()
	last := 0
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if last = w.total(q); last == n {
			return
		}
		if time.Now().After(deadline) {
			_, err := w.Search(w.t.Context(), api.DocumentQuery{Q: q})
			state, stateErr := w.State(w.t.Context())
			w.t.Fatalf("%q finds %d, want %d; %v; %+v, %v", q, last, n, err, state, stateErr)
		}
	}
}
