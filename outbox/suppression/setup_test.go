package suppression_test

import (
	"os"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox/suppression"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// bench is a store on an empty Redis, with a clock that stands still unless it is moved.
type bench struct {
	*suppression.Store
	*testkit.Clock
	db *redisdb.DB
}

func setup(t testing.TB) *bench { return on(t, testredis.New(t), suppression.Options{}) }

func on(t testing.TB, db *redisdb.DB, o suppression.Options) *bench {
	t.Helper()
	b := &bench{Clock: testkit.ClockAt(start), db: db}
	o.Now = b.Now
	var err error
	if b.Store, err = suppression.New(db, o); err != nil {
		t.Fatal(err)
	}
	return b
}

// add adds entries and wants so many of them to be new.
func (b *bench) add(t testing.TB, want int, entries ...suppression.Entry) {
	t.Helper()
	got, err := b.Add(t.Context(), entries...)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("%d entries are new, want %d", got, want)
	}
}

// check asks about one address and says for what reason it is not mailed.
func (b *bench) check(t testing.TB, q suppression.Question, address string) suppression.Reason {
	t.Helper()
	q.Addresses = []string{address}
	found, err := b.Check(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if found[0] == nil {
		return ""
	}
	return found[0].Reason
}

// all reads the whole list, page by page.
func (b *bench) all(t testing.TB, f suppression.Filter, size int) []suppression.Entry {
	t.Helper()
	var all []suppression.Entry
	cursor := ""
	for range 10_000 {
		page, err := b.List(t.Context(), f, cursor, size)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Entries) > size {
			t.Errorf("a page of %d, want at most %d", len(page.Entries), size)
		}
		all = append(all, page.Entries...)
		if cursor = page.Next; cursor == "" {
			return all
		}
	}
	t.Fatal("the list does not end")
	return nil
}
