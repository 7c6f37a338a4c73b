package sendlog

import (
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testredis"
)

// marked expects the answer to a mark.
func (b *bench) marked(t testing.TB, want Marking, batch *Batch, offset int) {
	t.Helper()
	if m, _, err := b.Mark(t.Context(), batch, offset, ""); err != nil || m != want {
		t.Errorf("mark of %d: %v, want %v; %v", offset, m, want, err)
	}
}

func TestMarkIsGoodForTheRestOfTheLease(t *testing.T) {
	t.Parallel()
	b := opened(t)
	batch := b.batch(t, 4, 5)
	m, until, err := b.Mark(t.Context(), batch, 5, "")
	rest := time.Until(until)
	if err != nil || m != Go || rest > b.Lease() || rest < b.Lease()-10*time.Minute {
		t.Errorf("%v for %v, %v", m, rest, err)
	}
	b.marked(t, Go, batch, 5) // the answer was lost
	b.states(t, map[int]State{4: Taken, 5: AtDot})
}

func TestNobodyIsMarkedOncePermissionIsDenied(t *testing.T) {
	t.Parallel()
	b, ctx := opened(t), t.Context()
	batch := b.batch(t, 1)
	do(t, b.Deny(ctx, run5, 2))
	b.marked(t, Denied, batch, 1)
	b.states(t, map[int]State{1: Taken})
	do(t, b.Allow(ctx, run5, 3))
	b.marked(t, Denied, batch, 1) // what it sends may have changed in the meantime
	do(t, b.Close(ctx, batch, nil))
	b.marked(t, Go, b.batch(t, 1), 1)
}

func TestNobodyIsMarkedOnceTheLeaseHasEnded(t *testing.T) {
	t.Parallel()
	b, ctx := opened(t), t.Context()
	batch := b.batch(t, 1, 2)
	b.ends(t, batch)
	b.marked(t, Lost, batch, 1)
	_, _, err := b.ExpireLeases(ctx, run5, chunk3, false)
	do(t, err)
	b.marked(t, Lost, batch, 1)
	b.states(t, map[int]State{})
	next := b.batch(t, 1, 2)
	b.marked(t, Lost, batch, 1)
	b.marked(t, Go, next, 1)
	do(t, b.Close(ctx, next, nil))
	b.marked(t, Lost, next, 2)
}

func TestMarkAsksForTheSuppressionsAgain(t *testing.T) {
	t.Parallel()
	const key = "postroom:{0}:version"
	b, ctx := on(testredis.New(t), key), t.Context()
	do(t, b.Allow(ctx, run5, 1))
	batch := b.batch(t, 1)
	expect := func(version string, want Marking) {
		t.Helper()
		if m, _, err := b.Mark(ctx, batch, 1, version); err != nil || m != want {
			t.Errorf("version %q: %v, want %v; %v", version, m, want, err)
		}
	}
	do(t, b.db.Client().Set(ctx, key, 7, 0).Err())
	expect("", Changed)
	expect("6", Changed)
	b.states(t, map[int]State{1: Taken})
	expect("7", Go)
	do(t, b.db.Client().Del(ctx, key).Err())
	expect("7", Changed)
	expect("0", Go) // nobody was ever suppressed
}

// TestWhoHasAResultIsNotMarked: not even by the batch that has the person.
func TestWhoHasAResultIsNotMarked(t *testing.T) {
	t.Parallel()
	b := opened(t)
	batch := b.batch(t, 1, 2, 3)
	b.mark(t, batch, 2)
	b.settle(t, "111", Move{Offset: 1, To: Suppressed}, Move{Offset: 2, To: Sent},
		Move{Offset: 3, To: Deferred})
	for o := range 5 { // 0 and 4 wait
		b.marked(t, Lost, batch, o)
	}
	b.states(t, map[int]State{1: Suppressed, 2: Sent, 3: Deferred})
}
