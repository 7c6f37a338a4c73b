package sendlog

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

// run5 is the run of all tests, and chunk3 one of its chunks.
var run5 = Run{Campaign: 5, Number: 1}

const chunk3 = 3

// bench is a send log on an empty Redis.
type bench struct {
	*Log
	db *redisdb.DB
}

func setup(t testing.TB) *bench { return on(testredis.New(t), "") }

// on is a send log with the key of the version of the suppressions.
func on(db *redisdb.DB, version string) *bench {
	return &bench{Log: New(db, time.Hour, version), db: db}
}

// opened is setup with permission given.
func opened(t testing.TB) *bench {
	b := setup(t)
	do(t, b.Allow(t.Context(), run5, 1))
	return b
}

func do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// batch claims people of chunk3, in order.
func (b *bench) batch(t testing.TB, offsets ...int) *Batch {
	t.Helper()
	chunks, err := b.Chunks(t.Context(), run5, (chunk3+1)*ChunkSize)
	do(t, err)
	at := chunks[chunk3].At
	s, _, moved, denied, err := b.Claim(t.Context(), run5, chunk3, Claim{From: at,
		To: max(at, offsets[len(offsets)-1]+1), Offsets: offsets, Most: len(offsets)})
	do(t, err)
	if s == nil || moved || denied {
		t.Fatalf("no batch of %v: moved %v, denied %v", offsets, moved, denied)
	}
	return s
}

// mark marks people of a batch.
func (b *bench) mark(t testing.TB, batch *Batch, offsets ...int) {
	t.Helper()
	for _, o := range offsets {
		if m, _, err := b.Mark(t.Context(), batch, o, ""); err != nil || m != Go {
			t.Fatalf("%d was not marked: %v, %v", o, m, err)
		}
	}
}

// settle changes states, and expects which were changed: 1 or 0 for each.
func (b *bench) settle(t testing.TB, want string, moves ...Move) {
	t.Helper()
	changed, err := b.Settle(t.Context(), run5, chunk3, moves...)
	do(t, err)
	if got := bools(changed); got != want {
		t.Errorf("%+v changed %s, want %s", moves, got, want)
	}
}

func bools(all []bool) (text string) {
	for _, b := range all {
		text += map[bool]string{true: "1", false: "0"}[b]
	}
	return text
}

// states expects states of chunk3 by offset; those that are not named wait.
func (b *bench) states(t testing.TB, want map[int]State) {
	t.Helper()
	states, err := b.States(t.Context(), run5, chunk3)
	do(t, err)
	got := map[int]State{}
	for o, s := range states {
		if s != Waiting {
			got[o] = s
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("states (-want +got)\n%s", diff)
	}
	b.exact(t)
}

// chunk reads chunk3.
func (b *bench) chunk(t testing.TB) Chunk {
	t.Helper()
	chunks, err := b.Chunks(t.Context(), run5, (chunk3+1)*ChunkSize)
	do(t, err)
	return chunks[chunk3]
}

// exact expects that the counters agree with the states.
func (b *bench) exact(t testing.TB) {
	t.Helper()
	if n, err := b.Recount(t.Context(), run5, (chunk3+1)*ChunkSize); err != nil || n != 0 {
		t.Errorf("%d counters differed from the states, %v", n, err)
	}
}

// end makes the lease of a batch end.
func (b *bench) end(ctx context.Context, r Run, chunk int, number string) error {
	return b.db.Client().Do(ctx, "ZADD", logKey(r, chunk)+":batches", "XX", 1, number).Err()
}

func (b *bench) ends(t testing.TB, batch *Batch) {
	t.Helper()
	do(t, b.end(t.Context(), batch.Run, batch.Chunk, batch.number))
}

// owed expects who is owed a message, in any order.
func (b *bench) owed(t testing.TB, want ...int) {
	t.Helper()
	got, err := b.Owed(t.Context(), run5, chunk3)
	do(t, err)
	left := map[int]bool{}
	for _, o := range got {
		left[o] = true
	}
	for _, o := range want {
		if !left[o] {
			t.Errorf("%d is owed no message", o)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%v are owed a message, want %v", got, want)
	}
}

// keys lists the keys of Redis.
func (b *bench) keys(t testing.TB) []string {
	t.Helper()
	all, err := b.db.Client().Keys(t.Context(), "*").Result()
	do(t, err)
	return all
}

func (batch *Batch) String() string { return fmt.Sprint(batch.number, batch.Offsets) }
