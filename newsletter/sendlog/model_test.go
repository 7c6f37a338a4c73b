package sendlog

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
)

const (
	chaos = 1000  // steps with faults
	calm  = 60000 // steps without, in which a run must end
)

var (
	histories = flag.Int("histories", 120, "random histories of a test")
	seed      = flag.Uint64("seed", 0, "of the first history; 0: a random one")
)

// TestAnyHistoryKeepsThePromises sends campaigns in small worlds: processes that scan, claim, mark, send,
// settle, enqueue and close; keepers; an outbox; somebody who pauses, and people who leave. Steps of all of
// them come in a random order. Processes crash and stall, leases end, calls to Redis are repeated, fail,
// lose their answer or arrive once more much later. In the end all goes well, until the keepers end the
// run. The world notes what really happened, and compares it with the promises of the package comment.
//
// -run AnyHistory -histories=10000 makes a long run; -run AnyHistory -seed=N -histories=1 repeats a history.
func TestAnyHistoryKeepsThePromises(t *testing.T) {
	t.Parallel()
	for _, resend := range []bool{false, true} {
		t.Run(fmt.Sprintf("resend %v", resend), func(t *testing.T) {
			t.Parallel()
			db := splitting(t)
			first, sum := cmp.Or(*seed, rand.Uint64()), tally{}
			for n := range uint64(*histories) {
				w := newWorld(t, db, first+n, resend, flawless)
				if w.play(); w.wrong != nil {
					t.Fatalf("seed %d: %v\n%s", first+n, w.wrong, w.story())
				}
				sum.add(w.tally)
			}
			if t.Logf("%+v", sum); *seed == 0 {
				sum.check(t)
			}
		})
	}
}

// TestPlantedFlawsAreFound breaks the algorithm in one place each, and expects that a history shows it.
func TestPlantedFlawsAreFound(t *testing.T) {
	t.Parallel()
	for _, f := range flaws {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			db := splitting(t)
			first := rand.Uint64()
			for n := range uint64(8 * *histories) { // most are found early
				w := newWorld(t, db, first+n, false, f)
				if w.play(); w.wrong != nil {
					t.Logf("found in history %d: %v", n+1, w.wrong)
					return
				}
			}
			t.Errorf("not found in %d histories from seed %d", 8**histories, first)
		})
	}
}

// flaw is a fault that is planted in the algorithm.
type flaw string

const (
	flawless      flaw = ""
	settlesEarly  flaw = "settles before the reply"
	enqueuesEarly flaw = "enqueues before the state is deferred"
	unfenced      flaw = "marks though the batch has ended"
	settlesLost   flaw = "settles though the batch has ended"
	marksLate     flaw = "marks after the dot"
	asksOnce      flaw = "reads the permission once for each batch"
	unversioned   flaw = "ignores the version of the suppressions"
	endsEarly     flaw = "ends the run when there are no batches"
	forgetsLeft   flaw = "notes who was left out only with the last claim"
)

var flaws = []flaw{settlesEarly, enqueuesEarly, unfenced, settlesLost, marksLate, asksOnce, unversioned,
	endsEarly, forgetsLeft}

// tally is what happened in histories: a model in which nothing happens finds nothing.
type tally struct{ sent, doubts, deferred, suppressed, crashes, lapses, denials, left, moved int }

func (t *tally) add(o tally) {
	t.sent, t.doubts, t.deferred = t.sent+o.sent, t.doubts+o.doubts, t.deferred+o.deferred
	t.suppressed, t.crashes, t.lapses = t.suppressed+o.suppressed, t.crashes+o.crashes, t.lapses+o.lapses
	t.denials, t.left, t.moved = t.denials+o.denials, t.left+o.left, t.moved+o.moved
}

func (t *tally) check(tb testing.TB) {
	tb.Helper()
	if min(t.sent, t.deferred, t.suppressed, t.crashes, t.lapses, t.denials, t.left, t.moved) == 0 {
		tb.Errorf("something never happened: %+v", t)
	}
}
