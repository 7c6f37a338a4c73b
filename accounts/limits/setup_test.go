package limits

import (
	"container/heap"
	"os"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

// start is when simulated clocks begin: not at the edge of any window.
var start = time.Date(2030, 1, 2, 3, 4, 5, 678_000_000, time.UTC)

// bench is Limits on an empty Redis, with a clock that stands still unless it is moved.
type bench struct {
	*Limits
	*testkit.Clock
	db *redisdb.DB
}

func setup(t testing.TB) *bench { return on(t, testredis.New(t)) }

func on(t testing.TB, db *redisdb.DB) *bench {
	t.Helper()
	b := &bench{Clock: testkit.ClockAt(start), db: db}
	var err error
	if b.Limits, err = New(db, Options{Now: b.Now}); err != nil {
		t.Fatal(err)
	}
	return b
}

// take asks for n in the given scopes.
func (b *bench) take(t testing.TB, reservation Reservation, n int, scopes ...Scope) Answer {
	t.Helper()
	a, err := b.Reserve(t.Context(), scopes, n, reservation)
	if err != nil {
		t.Fatal(err)
	}
	if a.OK != (a.At.IsZero() && a.Reservation == "" && a.Reason == "") {
		t.Fatalf("an answer must either let go or say when to come back, with reservation and reason: %+v", a)
	}
	return a
}

// wait is how long a fresh message has to wait, 0 when it may go.
func (b *bench) wait(t testing.TB, n int, scopes ...Scope) time.Duration {
	t.Helper()
	a := b.take(t, "", n, scopes...)
	if a.OK {
		return 0
	}
	return a.At.Sub(b.Now())
}

// drain lets messages come back at their given times, in that order, until all have gone. It counts how often
// each asked.
func (b *bench) drain(t testing.TB, queue []Answer, scopes ...Scope) (asks []int) {
	t.Helper()
	asks = make([]int, len(queue))
	due := &timetable{}
	for i, a := range queue {
		heap.Push(due, arrival{a, i})
	}
	for due.Len() > 0 {
		next := heap.Pop(due).(arrival)
		if next.OK {
			continue
		}
		if next.At.After(b.Now()) {
			b.Set(next.At)
		}
		asks[next.message]++
		next.Answer = b.take(t, next.Reservation, 1, scopes...)
		heap.Push(due, next)
	}
	return asks
}

// arrival is a message that will come back.
type arrival struct {
	Answer
	message int
}

// timetable is a heap of arrivals, the next one first.
type timetable []arrival

func (t timetable) Len() int           { return len(t) }
func (t timetable) Less(i, j int) bool { return t[i].At.Before(t[j].At) }
func (t timetable) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timetable) Push(x any)        { *t = append(*t, x.(arrival)) }
func (t *timetable) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

func account(r Rate) Scope { return Scope{Name: "account:x", Rate: r} }
func gateway(r Rate) Scope { return Scope{Name: "gateway:g", Rate: r} }
