package sendlog

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// put makes a person have a state, by allowed ways.
func (b *bench) put(t testing.TB, batch *Batch, offset int, state State) {
	t.Helper()
	switch state {
	case Waiting, Taken:
	case AtDot:
		b.mark(t, batch, offset)
	case Sent, InDoubt:
		b.mark(t, batch, offset)
		b.settle(t, "1", Move{Offset: offset, To: state})
	case Cancelled:
		b.settle(t, "11", Move{Offset: offset, To: Deferred}, Move{Offset: offset, To: state})
	default:
		b.settle(t, "1", Move{Offset: offset, To: state})
	}
}

var states = []State{Waiting, Taken, AtDot, Sent, Deferred, Suppressed, Unsubscribed, Bounced, Failed,
	InDoubt, Cancelled}

// TestOnlySomeStatesFollowEach: * marks the states that Settle goes to.
func TestOnlySomeStatesFollowEach(t *testing.T) {
	t.Parallel()
	follow := map[State]string{
		//            WTASDSUBFIC
		Waiting:      "...........",
		Taken:        "....*****..",
		AtDot:        ".*.**..***.",
		Sent:         ".......*...",
		Deferred:     "...*.****.*",
		Suppressed:   "...........",
		Unsubscribed: "...........",
		Bounced:      "...........",
		Failed:       "...........",
		InDoubt:      "...*...*...",
		Cancelled:    "...........",
	}
	b := opened(t)
	offset := 0
	want := map[int]State{}
	for _, from := range states {
		for i, to := range states {
			batch := b.batch(t, offset)
			if from == Waiting {
				do(t, b.Close(t.Context(), batch, nil))
			}
			b.put(t, batch, offset, from)
			changed, err := b.Settle(t.Context(), run5, chunk3, Move{Offset: offset, To: to})
			do(t, err)
			if allowed := follow[from][i] == '*'; changed[0] != allowed {
				t.Errorf("from %d to %d: changed %v", from, to, changed[0])
			}
			if want[offset] = from; changed[0] {
				want[offset] = to
			}
			if want[offset] == Waiting {
				delete(want, offset)
			}
			offset++
		}
	}
	b.states(t, want)
	var owed []int
	for o, batch := range want {
		if batch == Deferred {
			owed = append(owed, o)
		}
	}
	b.owed(t, owed...)
}

func TestCountersFollowTheStates(t *testing.T) {
	t.Parallel()
	b := opened(t)
	batch := b.batch(t, 10, 11, 12, 13, 14)
	expect := func(want Counts) {
		t.Helper()
		got := b.chunk(t).Counts
		for state, n := range got.States {
			if n == 0 {
				delete(got.States, state)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
	none := map[string]int{}
	expect(Counts{Taken: 5, States: map[State]int{}, Fields: none})
	b.mark(t, batch, 10, 11)
	b.settle(t, "111", Move{Offset: 10, To: Sent}, Move{Offset: 11, To: Deferred},
		Move{Offset: 12, To: Suppressed})
	expect(Counts{Taken: 5, States: map[State]int{Sent: 1, Deferred: 1, Suppressed: 1}, Fields: none})
	if n := b.chunk(t).Counts.Sending(); n != 2 {
		t.Errorf("%d people are being sent to, want 2", n)
	}
	b.settle(t, "010", Move{Offset: 10, To: Sent}, Move{Offset: 11, To: Sent}, Move{Offset: 12, To: Sent})
	do(t, b.Close(t.Context(), batch, nil)) // 13 and 14 wait again
	expect(Counts{Taken: 3, States: map[State]int{Sent: 2, Suppressed: 1}, Fields: none})
	b.states(t, map[int]State{10: Sent, 11: Sent, 12: Suppressed})
}

func TestDeferredPeopleAreOwedAMessage(t *testing.T) {
	t.Parallel()
	b, ctx := opened(t), t.Context()
	batch := b.batch(t, 1, 2, 3)
	b.owed(t)
	b.settle(t, "111", Move{Offset: 1, To: Deferred}, Move{Offset: 2, To: Deferred},
		Move{Offset: 3, To: Deferred})
	do(t, b.Close(ctx, batch, nil))
	b.owed(t, 1, 2, 3)
	do(t, b.Enqueued(ctx, run5, chunk3, 2))
	do(t, b.Enqueued(ctx, run5, chunk3, 2)) // repeated
	b.owed(t, 1, 3)
	b.settle(t, "1", Move{Offset: 3, To: Failed}) // the subscriber was deleted
	b.owed(t, 1)
	b.settle(t, "0", Move{Offset: 2, To: Deferred}) // repeated late
	b.owed(t, 1)
}

func TestRepliesAreKept(t *testing.T) {
	t.Parallel()
	b, ctx := opened(t), t.Context()
	b.batch(t, 1, 2, 3)
	b.settle(t, "11", Move{Offset: 1, To: Bounced, Why: "550 5.1.1 no such user", Attempts: 1},
		Move{Offset: 2, To: Suppressed})
	b.settle(t, "0", Move{Offset: 1, To: Failed, Why: "another"})
	people, err := b.People(ctx, run5, chunk3, []int{1, 2})
	do(t, err)
	if p := people[0]; p.Why != "550 5.1.1 no such user" || time.Since(p.At) > time.Minute {
		t.Errorf("%+v", p)
	}
	if p := people[1]; p.Why != "" || !p.At.IsZero() {
		t.Errorf("%+v", p)
	}
	fill := map[string]any{}
	for n := range mostReplies - 1 {
		fill[fmt.Sprint(10_000+n)] = "x"
	}
	do(t, b.db.Client().HSet(ctx, logKey(run5, chunk3)+":why", fill).Err())
	b.settle(t, "1", Move{Offset: 3, To: Failed, Why: "one too many"})
	if people, err = b.People(ctx, run5, chunk3, []int{3}); err != nil || people[0].Why != "" {
		t.Errorf("%+v, %v", people, err)
	}
}

// TestAttemptsAreCounted: the reply belongs to the state, and a dead letter that is replayed is deferred
// again.
func TestAttemptsAreCounted(t *testing.T) {
	t.Parallel()
	b, ctx := opened(t), t.Context()
	b.batch(t, 1, 2)
	first := time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)
	person := func() Person {
		people, err := b.People(ctx, run5, chunk3, []int{1})
		do(t, err)
		people[0].Ordinal, people[0].Bits = 0, nil
		return people[0]
	}
	for n, c := range []struct {
		do   func() error
		want Person
	}{
		{func() error {
			_, err := b.Settle(ctx, run5, chunk3, Move{Offset: 1, To: Deferred, Why: "451 later", Attempts: 1,
				At: first})
			return err
		}, Person{State: Deferred, Why: "451 later", Attempts: 1, At: first}},
		{func() error {
			return b.Ended(ctx, run5, chunk3, Move{Offset: 1, To: Deferred, Why: "451 again", Attempts: 2,
				At: first.Add(time.Minute)})
		}, Person{State: Deferred, Why: "451 again", Attempts: 2, At: first.Add(time.Minute)}},
		{func() error {
			return b.Ended(ctx, run5, chunk3, Move{Offset: 1, To: Failed, Why: "554 no", Attempts: OneMore,
				At: first.Add(time.Hour)})
		}, Person{State: Failed, Why: "554 no", Attempts: 3, At: first.Add(time.Hour)}},
		{func() error { return b.Reopened(ctx, run5, chunk3, 1) },
			Person{State: Deferred, Attempts: 3, At: first.Add(time.Hour)}},
		{func() error {
			return b.Ended(ctx, run5, chunk3, Move{Offset: 1, To: Sent, Attempts: OneMore,
				At: first.Add(2 * time.Hour)})
		}, Person{State: Sent, Attempts: 4, At: first.Add(2 * time.Hour)}},
		{func() error { return b.Reopened(ctx, run5, chunk3, 1) },
			Person{State: Sent, Attempts: 4, At: first.Add(2 * time.Hour)}},
	} {
		do(t, c.do())
		if diff := cmp.Diff(c.want, person()); diff != "" {
			t.Errorf("step %d (-want +got)\n%s", n, diff)
		}
	}
	b.owed(t)
	b.exact(t)
}

// TestAWorkerWithoutItsBatchOnlySaysWhoWasSent: the others may be with another worker.
func TestAWorkerWithoutItsBatchOnlySaysWhoWasSent(t *testing.T) {
	t.Parallel()
	b, ctx := opened(t), t.Context()
	batch := b.batch(t, 1, 2, 3)
	b.mark(t, batch, 1, 2)
	b.ends(t, batch)
	if back, doubts, err := b.ExpireLeases(ctx, run5, chunk3, false); err != nil || back != 1 || doubts != 2 {
		t.Fatalf("%d wait again, %d are in doubt, %v", back, doubts, err)
	}
	next := b.batch(t, 3)
	b.mark(t, next, 3)
	for _, to := range []State{Deferred, Bounced, Failed, Suppressed, Unsubscribed, Taken, InDoubt} {
		changed, _, err := b.Record(ctx, batch, Move{Offset: 2, To: to}, Move{Offset: 3, To: to})
		if err != nil || bools(changed) != "00" {
			t.Errorf("to %d: changed %v, %v", to, changed, err)
		}
	}
	if changed, _, err := b.Record(ctx, batch, Move{Offset: 1, To: Sent}); err != nil || bools(changed) != "1" {
		t.Errorf("changed %v, %v", changed, err)
	}
	if changed, _, err := b.Record(ctx, next, Move{Offset: 3, To: Taken}); err != nil || bools(changed) != "1" {
		t.Errorf("changed %v, %v", changed, err)
	}
	b.states(t, map[int]State{1: Sent, 2: InDoubt, 3: Taken})
}

func TestOnlyDoubtIsProved(t *testing.T) {
	t.Parallel()
	b, ctx := opened(t), t.Context()
	for offset, state := range states {
		batch := b.batch(t, offset)
		if state == Waiting {
			do(t, b.Close(ctx, batch, nil))
		}
		b.put(t, batch, offset, state)
		proved, err := b.Prove(ctx, run5, chunk3, offset)
		if err != nil || proved != (state == InDoubt) {
			t.Errorf("state %d: %v, %v", state, proved, err)
		}
	}
	got, err := b.States(ctx, run5, chunk3)
	do(t, err)
	for offset, state := range states {
		if state == InDoubt {
			state = Sent
		}
		if got[offset] != state {
			t.Errorf("%d has state %d, want %d", offset, got[offset], state)
		}
	}
	b.exact(t)
}

func TestToSettleNobodyAsksNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if changed, err := b.Settle(t.Context(), run5, chunk3); changed != nil || err != nil {
		t.Errorf("%v, %v", changed, err)
	}
	if fresh, err := b.Note(t.Context(), run5, chunk3); fresh != nil || err != nil {
		t.Errorf("%v, %v", fresh, err)
	}
	if people, err := b.People(t.Context(), run5, chunk3, nil); people != nil || err != nil {
		t.Errorf("%v, %v", people, err)
	}
}

// TestAttemptsGoOnAfterAReplay: a message that is replayed counts its attempts from 1 again, and the person's
// count continues, even if the events of the replay are applied once more.
func TestAttemptsGoOnAfterAReplay(t *testing.T) {
	t.Parallel()
	b := opened(t)
	batch := b.batch(t, 7)
	b.put(t, batch, 7, Deferred)
	ended := func(m Move) func() {
		m.Offset = 7
		return func() { do(t, b.Ended(t.Context(), run5, chunk3, m)) }
	}
	reopened := func() { do(t, b.Reopened(t.Context(), run5, chunk3, 7)) }
	for i, row := range []struct {
		do   func()
		want int
	}{
		{ended(Move{To: Deferred, Attempts: 2}), 2},
		{ended(Move{To: Failed, Attempts: OneMore}), 3},
		{reopened, 3},
		{ended(Move{To: Deferred, Attempts: 1}), 4},
		{reopened, 4},
		{ended(Move{To: Deferred, Attempts: 1}), 4},
		{ended(Move{To: Deferred, Attempts: 2}), 5},
		{ended(Move{To: Failed, Attempts: OneMore}), 6},
		{reopened, 6},
		{ended(Move{To: Deferred, Attempts: 1}), 7},
		{ended(Move{To: InDoubt, Attempts: OneMore}), 8},
		{reopened, 8},
		{ended(Move{To: Sent, Attempts: OneMore}), 9},
	} {
		row.do()
		people, err := b.People(t.Context(), run5, chunk3, []int{7})
		if do(t, err); people[0].Attempts != row.want {
			t.Errorf("step %d: %d attempts, want %d", i, people[0].Attempts, row.want)
		}
	}
}
