package sendlog

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

// note notes facts, and expects which were fresh: 1 or 0 for each.
func (b *bench) note(t testing.TB, want string, notes ...Note) {
	t.Helper()
	fresh, err := b.Note(t.Context(), run5, chunk3, notes...)
	do(t, err)
	if got := bools(fresh); got != want {
		t.Errorf("%+v: fresh %s, want %s", notes, got, want)
	}
}

func TestBitsAreCountedOnce(t *testing.T) {
	t.Parallel()
	b := opened(t)
	opens := Note{Offset: 9, Bit: Opened, Total: "openedTotal"}
	b.note(t, "1010", opens, opens, Note{Offset: 10, Bit: Opened}, Note{Offset: 10, Bit: Opened})
	b.note(t, "01", opens, Note{Offset: 9, Bit: Clicked, Total: "l:https://example.com/"})
	want := map[string]int{"opened": 2, "openedTotal": 3, "clicked": 1, "l:https://example.com/": 1}
	if diff := cmp.Diff(want, b.chunk(t).Counts.Fields); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	set, err := b.Bits(t.Context(), run5, chunk3, Opened)
	do(t, err)
	for o := range 20 {
		if set.Has(o) != (o == 9 || o == 10) {
			t.Errorf("%d has the bit: %v", o, set.Has(o))
		}
	}
	if set, err := b.Bits(t.Context(), run5, chunk3, Left); err != nil || set.Has(0) || set.Has(ChunkSize-1) {
		t.Errorf("%q, %v", set, err)
	}
	b.exact(t)
}

// TestABitCountsOnceInItsOtherCounter: a repeated note does not raise it, a recount leaves it, and it goes
// down with a person who is forgotten, never below zero.
func TestABitCountsOnceInItsOtherCounter(t *testing.T) {
	t.Parallel()
	b, ctx := opened(t), t.Context()
	batch := b.batch(t, 9, 10)
	b.settle(t, "11", Move{Offset: 9, To: Failed}, Move{Offset: 10, To: Failed})
	do(t, b.Close(ctx, batch, nil))
	at := func(offset int, once string) Note {
		return Note{Offset: offset, Bit: Opened, Total: "all", Once: once}
	}
	b.note(t, "10", at(9, "d:opened:a"), at(9, "d:opened:a"))
	b.note(t, "01", at(9, "d:opened:a"), at(10, "d:opened:b"))
	counters := func(want map[string]int) {
		t.Helper()
		b.exact(t)
		if diff := cmp.Diff(want, b.chunk(t).Counts.Fields); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
	counters(map[string]int{"opened": 2, "all": 4, "d:opened:a": 1, "d:opened:b": 1})
	for range 2 {
		for _, once := range []string{"d:opened:a", "d:opened:c"} { // another domain since
			_, err := b.ForgetPerson(ctx, run5, chunk3*ChunkSize+9, map[Bit]string{Opened: once})
			do(t, err)
		}
	}
	counters(map[string]int{"opened": 1, "all": 4, "d:opened:a": 0, "d:opened:b": 1})
	_, err := b.ForgetPerson(ctx, run5, chunk3*ChunkSize+10, map[Bit]string{Opened: "d:opened:a"})
	do(t, err)
	counters(map[string]int{"opened": 0, "all": 4, "d:opened:a": 0, "d:opened:b": 1})
}

func TestRecountReplacesWrongCounters(t *testing.T) {
	t.Parallel()
	b, ctx := opened(t), t.Context()
	batch := b.batch(t, 0, 1, 2, 3)
	b.mark(t, batch, 0)
	b.settle(t, "11", Move{Offset: 0, To: Sent}, Move{Offset: 1, To: Bounced})
	b.note(t, "1", Note{Offset: 0, Bit: Opened, Total: "openedTotal"})
	b.exact(t)
	want := b.chunk(t)
	do(t, b.db.Client().HSet(ctx, logKey(run5, chunk3)+":counts", "3", 7, "7", 0, "8", 2, "taken", 1,
		"opened", 5, "left", 1).Err())
	n, err := b.Recount(ctx, run5, (chunk3+1)*ChunkSize)
	if err != nil || n != 6 {
		t.Errorf("%d counters were replaced, want 6; %v", n, err)
	}
	got := b.chunk(t)
	delete(got.Counts.States, Failed) // it is 0 now
	delete(got.Counts.Fields, "left")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	b.exact(t)
}

func TestReading(t *testing.T) {
	t.Parallel()
	b, ctx := opened(t), t.Context()
	batch := b.batch(t, 0, 7, 8)
	b.mark(t, batch, 7)
	b.settle(t, "11", Move{Offset: 7, To: Sent}, Move{Offset: 8, To: Failed, Why: "554 no", Attempts: 1})
	b.note(t, "11", Note{Offset: 7, Bit: Opened}, Note{Offset: 99, Bit: Left})
	people, err := b.People(ctx, run5, chunk3, []int{0, 7, 8, 99, ChunkSize - 1})
	do(t, err)
	want := []Person{
		{Ordinal: chunk3 * ChunkSize, State: Taken},
		{Ordinal: chunk3*ChunkSize + 7, State: Sent, Bits: map[Bit]bool{Opened: true}},
		{Ordinal: chunk3*ChunkSize + 8, State: Failed, Why: "554 no", Attempts: 1},
		{Ordinal: chunk3*ChunkSize + 99, Bits: map[Bit]bool{Left: true}},
		{Ordinal: (chunk3+1)*ChunkSize - 1},
	}
	for i := range want {
		for _, bit := range bits {
			if people[i].Bits[bit] != want[i].Bits[bit] {
				t.Errorf("%d: %s is %v", people[i].Ordinal, bit, people[i].Bits[bit])
			}
		}
		if people[i].At.IsZero() == (want[i].Why != "") {
			t.Errorf("%d: tried at %v", people[i].Ordinal, people[i].At)
		}
		people[i].Bits, people[i].At, want[i].Bits = nil, time.Time{}, nil
	}
	if diff := cmp.Diff(want, people); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if states, err := b.States(ctx, run5, 0); err != nil || len(states) != 0 {
		t.Errorf("states of a chunk that nobody touched: %v, %v", states, err)
	}
}

func TestChunksAreAddedUp(t *testing.T) {
	t.Parallel()
	b, ctx := opened(t), t.Context()
	for _, chunk := range []int{0, 17} { // both have the same permission's prefix or the next one
		s, _, _, _, err := b.Claim(ctx, run5, chunk, Claim{To: 5, Offsets: []int{1, 2}, Most: 2})
		do(t, err)
		_, _, err = b.Record(ctx, s, Move{Offset: 1, To: Suppressed})
		do(t, err)
		do(t, b.Close(ctx, s, map[string]int{"d:sent:a": 2}))
	}
	chunks, err := b.Chunks(ctx, run5, 17*ChunkSize+1)
	do(t, err)
	if len(chunks) != 18 || chunks[0].At != 2 || chunks[17].At != 2 || chunks[1].At != 0 {
		t.Errorf("%+v", chunks)
	}
	sum := Sum(chunks)
	want := Counts{Taken: 2, States: map[State]int{Suppressed: 2}, Fields: map[string]int{"d:sent:a": 4}}
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if chunks, err := b.Chunks(ctx, run5, 0); err != nil || len(chunks) != 0 {
		t.Errorf("%v, %v", chunks, err)
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	for end, want := range map[uint32]int{0: 0, 1: 1, ChunkSize: 1, ChunkSize + 1: 2, 1<<32 - 1: 67109} {
		if got := Chunks(end); got != want {
			t.Errorf("%d people are in %d chunks, want %d", end, got, want)
		}
	}
	if chunk, offset := ChunkOf(2*ChunkSize + 5); chunk != 2 || offset != 5 {
		t.Errorf("%d, %d", chunk, offset)
	}
}

func TestForgetLeavesNoKey(t *testing.T) {
	t.Parallel()
	b, ctx := opened(t), t.Context()
	do(t, b.Allow(ctx, Run{Campaign: 5, Number: 2}, 1))
	others := len(b.keys(t)) - shards
	batch := b.batch(t, 1, 2, 3)
	b.settle(t, "11", Move{Offset: 1, To: Deferred, Why: "450"}, Move{Offset: 2, To: Failed, Why: "550"})
	for _, bit := range bits {
		b.note(t, "1", Note{Offset: 1, Bit: bit})
	}
	_ = batch // its worker is gone
	do(t, b.Forget(ctx, run5, (chunk3+1)*ChunkSize))
	left := b.keys(t)
	for _, key := range left {
		if strings.Contains(key, run5.String()) {
			t.Errorf("%s is left", key)
		}
	}
	if len(left) != others {
		t.Errorf("%d keys of others, want %d", len(left), others)
	}
}

func TestARedisThatIsAwayIsUnavailable(t *testing.T) {
	t.Parallel()
	p := testredis.Server(t)
	b, ctx := on(testredis.Connect(t, redisdb.Options{URL: p.URL()}), ""), t.Context()
	do(t, b.Allow(ctx, run5, 1))
	batch := b.batch(t, 1)
	p.Kill()
	var all sync.WaitGroup
	for name, call := range map[string]func() error{
		"allow":      func() error { return b.Allow(ctx, run5, 2) },
		"deny":       func() error { return b.Deny(ctx, run5, 2) },
		"claim":      func() error { _, _, _, _, err := b.Claim(ctx, run5, chunk3, Claim{}); return err },
		"mark":       func() error { _, _, err := b.Mark(ctx, batch, 1, ""); return err },
		"settle":     func() error { _, err := b.Settle(ctx, run5, chunk3, Move{To: Sent}); return err },
		"record":     func() error { _, _, err := b.Record(ctx, batch, Move{To: Sent}); return err },
		"close":      func() error { return b.Close(ctx, batch, nil) },
		"renew":      func() error { return b.Renew(ctx, []*Batch{batch}) },
		"expire":     func() error { _, _, err := b.ExpireLeases(ctx, run5, chunk3, false); return err },
		"note":       func() error { _, err := b.Note(ctx, run5, chunk3, Note{Bit: Left}); return err },
		"owed":       func() error { _, err := b.Owed(ctx, run5, chunk3); return err },
		"enqueued":   func() error { return b.Enqueued(ctx, run5, chunk3, 1) },
		"scan again": func() error { return b.ScanAgain(ctx, run5, chunk3) },
		"recount":    func() error { _, err := b.Recount(ctx, run5, 1); return err },
		"forget":     func() error { return b.Forget(ctx, run5, 1) },
		"prove":      func() error { _, err := b.Prove(ctx, run5, chunk3, 1); return err },
		"chunks":     func() error { _, err := b.Chunks(ctx, run5, 1); return err },
		"states":     func() error { _, err := b.States(ctx, run5, chunk3); return err },
		"bits":       func() error { _, err := b.Bits(ctx, run5, chunk3, Left); return err },
		"people":     func() error { _, err := b.People(ctx, run5, chunk3, []int{1}); return err },
	} {
		all.Go(func() {
			if err := call(); !fault.Is(err, fault.Unavailable) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	all.Wait()
}

// TestGroupsAreCountedApart: by state and bit, as a recount counts them, including people who are given back,
// deferred or erased.
func TestGroupsAreCountedApart(t *testing.T) {
	t.Parallel()
	b, ctx := opened(t), t.Context()
	s, _, _, _, err := b.Claim(ctx, run5, chunk3, Claim{To: 12, Offsets: []int{2, 3, 4, 7, 8, 11},
		Groups: []Group{0, 1, 1, 15, 0, 1}, Most: 5})
	do(t, err)
	b.mark(t, s, 2, 3, 4)
	_, _, err = b.Record(ctx, s, Move{Offset: 2, To: Sent}, Move{Offset: 3, To: Sent},
		Move{Offset: 4, To: InDoubt},
		Move{Offset: 7, To: Deferred})
	do(t, err)
	b.note(t, "1101", Note{Offset: 3, Bit: Opened, Total: "openedTotal"}, Note{Offset: 4, Bit: Opened},
		Note{Offset: 3, Bit: Opened}, Note{Offset: 2, Bit: Delivered})
	do(t, b.Close(ctx, s, nil)) // 8 waits again
	b.settle(t, "1", Move{Offset: 4, To: Sent})
	forgot, err := b.ForgetPerson(ctx, run5, chunk3*ChunkSize+3, nil)
	if do(t, err); !forgot {
		t.Error("3 was not forgotten")
	}
	of := func(taken int, states map[State]int, fields map[string]int) Counts {
		return Counts{Taken: taken, States: states, Fields: fields}
	}
	want := map[Group]Counts{
		0:  of(1, map[State]int{Sent: 1}, map[string]int{"delivered": 1}),
		1:  of(2, map[State]int{Sent: 2, InDoubt: 0}, map[string]int{"opened": 1}),
		15: of(1, map[State]int{Deferred: 1}, map[string]int{}),
	}
	if diff := cmp.Diff(want, b.chunk(t).Counts.Groups); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	b.exact(t)
	do(t, b.db.Client().HSet(ctx, logKey(run5, chunk3)+":counts", "g1:3", 7, "g9:opened", 1,
		"g0:taken", 0).Err())
	if n, err := b.Recount(ctx, run5, (chunk3+1)*ChunkSize); err != nil || n != 3 {
		t.Errorf("%d counters were replaced, want 3; %v", n, err)
	}
	want[9] = of(0, map[State]int{}, map[string]int{"opened": 0})
	if diff := cmp.Diff(want, b.chunk(t).Counts.Groups); diff != "" {
		t.Errorf("after the recount (-want +got)\n%s", diff)
	}
}
