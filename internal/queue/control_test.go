package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestCounts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	none, err := b.control.Counts(t.Context(), Names()...)
	if err != nil {
		t.Fatal(err)
	}
	want := []Counts{{Queue: Submit}, {Queue: Bulk}, {Queue: Notify}, {Queue: Documents}, {Queue: Digests}}
	if d := cmp.Diff(want, none); d != "" {
		t.Errorf("of queues that do not exist: %s", d)
	}
	b.client = NewClient(b.redis, Options{Keep: func(string) int { return 10 }})
	verdicts := map[string]Verdict{"done.1": Done(), "done.2": Drop(), "bad.1": Bury(errors.New("no")),
		"again.1": RetryAt(time.Now().Add(time.Hour), errors.New("no"))}
	l := logging(func(t Task, _ int) Verdict { return verdicts[t.ID] })
	stop := serve(t, b.redis, ServerOptions{Keep: func(string) int { return 10 }}, map[string]Handler{
		"send": l.handle})
	for id := range verdicts {
		b.enqueue(t, task(id))
	}
	until(t, "all verdicts have their effect", func() bool {
		c := b.counts(t)
		return c.ProcessedTotal == 4 &&
			c.Active == 0
	})
	stop()
	b.enqueue(t, task("w.1"), task("w.2"), later("l.1"))
	got := b.counts(t)
	wanted := Counts{Queue: Submit, Waiting: 2, Scheduled: 1, Retrying: 1, Archived: 1, Completed: 1,
		ProcessedTotal: 4, FailedTotal: 2}
	if d := cmp.Diff(wanted, got, cmpopts.IgnoreFields(Counts{}, "Latency")); d != "" {
		t.Error(d)
	}
	if got.Latency <= 0 || got.Latency > patience {
		t.Errorf("latency %v", got.Latency)
	}
	if n, err := b.control.Memory(t.Context(), Submit); err != nil || n < 500 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// If no server runs, due tasks aren't moved to waiting, but count as waiting anyway.
func TestLatencyOfTasksThatNobodyBringsUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.enqueue(t, later("l.2"))
	if got := b.counts(t); got.Scheduled != 1 || got.Latency != 0 {
		t.Errorf("before its time: %+v", got)
	}
	overdue := later("l.1")
	overdue.At = time.Now().Add(time.Second)
	b.enqueue(t, overdue)
	until(t, "the task that is due counts as waiting", func() bool { return b.counts(t).Latency > 0 })
}

func TestWhenAPauseBegan(t *testing.T) {
	t.Parallel()
	b := setup(t)
	began := time.Now().Add(-time.Second)
	if err := b.control.Pause(t.Context(), time.Now(), Submit); err != nil {
		t.Fatal(err)
	}
	if got := b.counts(t); !got.Paused || got.PausedAt.Before(began) || got.PausedAt.After(time.Now()) {
		t.Errorf("%+v", got)
	}
	if err := b.control.Resume(t.Context(), Submit); err != nil {
		t.Fatal(err)
	}
	if got := b.counts(t); got.Paused || !got.PausedAt.IsZero() {
		t.Errorf("resumed: %+v", got)
	}
}

func TestStatesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var ids []string
	var want []State
	tasks := many(1500) // more than fit in one pipeline
	for i := range tasks {
		ids = append(ids, tasks[i].ID, fmt.Sprintf("none.%d", i))
		want = append(want, Scheduled, "")
		tasks[i].At = time.Now().Add(time.Hour)
	}
	b.enqueue(t, tasks...)
	got, err := b.control.States(t.Context(), Submit, ids...)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if list, err := b.control.List(t.Context(), Submit, Waiting, 1, 10); err != nil || len(list) != 0 {
		t.Errorf("of a queue that does not exist: %v, %v", list, err)
	}
	if _, err := b.control.List(t.Context(), Submit, "sleeping", 1, 10); err == nil {
		t.Error("no error for a state that does not exist")
	}
	b.enqueue(t, many(25)...)
	due := later("l.1")
	b.enqueue(t, due)
	list, err := b.control.List(t.Context(), Submit, Waiting, 2, 10)
	if err != nil || len(list) != 10 {
		t.Fatalf("%d tasks, %v", len(list), err)
	}
	want := Info{Task: task("t00010.1"), State: Waiting}
	if d := cmp.Diff(want, list[0]); d != "" {
		t.Error(d)
	}
	list, err = b.control.List(t.Context(), Submit, Scheduled, 0, 0)
	if err != nil || len(list) != 1 || !list[0].At.Equal(roundUp(due.At)) {
		t.Errorf("%+v, %v; want %v", list, err, roundUp(due.At))
	}
}

func TestMoves(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.enqueue(t, task("busy.1"))
	b.activate(t, "busy.1", time.Now().Add(time.Minute))
	b.enqueue(t, task("waits.1"), later("later.1"), task("old.1"))
	if err := b.control.Archive(t.Context(), Submit, "old.1")[0]; err != nil {
		t.Fatal(err)
	}
	ids := []string{"waits.1", "later.1", "old.1", "busy.1", "none.1"}
	if d := cmp.Diff([]error{ErrWrongState, nil, nil, ErrActive, ErrNoTask},
		b.control.RunNow(t.Context(), Submit, ids...), cmpopts.EquateErrors()); d != "" {
		t.Errorf("run: %s", d)
	}
	if d := cmp.Diff([]error{nil, nil, nil, ErrActive, ErrNoTask}, b.control.Archive(t.Context(), Submit,
		ids...), cmpopts.EquateErrors()); d != "" {
		t.Errorf("archive: %s", d)
	}
	if d := cmp.Diff([]error{nil, nil, nil, ErrActive, ErrNoTask}, b.control.Delete(t.Context(), Submit, ids...),
		cmpopts.EquateErrors()); d != "" {
		t.Errorf("delete: %s", d)
	}
	if n := b.hashes(t); n != 1 {
		t.Errorf("%d tasks left, want the active one", n)
	}
}

func TestBulkOperations(t *testing.T) {
	t.Parallel()
	states := []State{Waiting, Scheduled, Archived}
	for _, from := range states {
		t.Run(string(from), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			tasks := many(350)
			for i := range tasks {
				if from == Scheduled {
					tasks[i].At = time.Now().Add(time.Hour)
				}
			}
			b.enqueue(t, tasks...)
			if from == Archived {
				if n, err := b.control.ArchiveAll(t.Context(), Submit, Waiting, nil); n != 350 || err != nil {
					t.Fatal(n, err)
				}
			} else if _, err := b.control.ArchiveAll(t.Context(), Submit, Archived, nil); !errors.Is(
				err, ErrWrongState) {
				t.Errorf("archiving the archive: %v", err)
			}
			if from != Waiting {
				if n, err := b.control.RunAll(t.Context(), Submit, from, nil); n != 350 || err != nil {
					t.Errorf("run: %d, %v", n, err)
				}
			}
			if n, err := b.control.DeleteAll(t.Context(), Submit, Waiting, nil); n != 350 || err != nil {
				t.Errorf("delete: %d, %v", n, err)
			}
			if n := b.hashes(t); n != 0 {
				t.Errorf("%d tasks left", n)
			}
		})
	}
	b := setup(t)
	if _, err := b.control.DeleteAll(t.Context(), Submit, Active, nil); !errors.Is(err, ErrWrongState) {
		t.Errorf("active: %v", err)
	}
	if _, err := b.control.DeleteAll(t.Context(), Submit, "sleeping", nil); err == nil {
		t.Error("no error for a state that does not exist")
	}
}

func TestLane(t *testing.T) {
	if got := []string{Lane(Submit, 0), Lane(Bulk, 3)}; got[0] != "submit" || got[1] != "bulk-3" {
		t.Error(got)
	}
}

// TestDeleteAllTakesFromTheMiddle has every third task of a long list stay, while workers take from its old
// end.
func TestDeleteAllTakesFromTheMiddle(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const n = 6000
	var tasks []Task
	var want []string
	for i := range n {
		tasks = append(tasks, task(fmt.Sprintf("%05d.1", i)))
		if i%3 == 0 {
			want = append([]string{tasks[i].ID}, want...) // the newest stands first
		}
	}
	b.enqueue(t, tasks...)
	asked := 0
	deleted, err := b.control.DeleteAll(t.Context(), Submit, Waiting,
		func(ctx context.Context, ids []string) []error {
			if asked++; asked > 1 { // a worker takes a few of the oldest in between
				for range 3 {
					id := b.redis.RPop(ctx, "asynq:{submit}:pending").Val()
					want = slices.DeleteFunc(want, func(w string) bool { return w == id })
				}
			}
			errs := make([]error, len(ids))
			for i, id := range ids {
				var number int
				fmt.Sscanf(id, "%d", &number)
				if number%3 == 0 {
					errs[i] = errors.New("it stays")
				}
			}
			return errs
		})
	if err != nil {
		t.Fatal(err)
	}
	left, err := b.redis.LRange(t.Context(), "asynq:{submit}:pending", 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	skipped := len(left) - len(want) // tasks that the scan missed when the worker took others
	if missing := slices.DeleteFunc(slices.Clone(want), func(id string) bool {
		return slices.Contains(left, id)
	}); len(missing) > 0 {
		t.Errorf("%d tasks are gone that were to stay: %v", len(missing), missing[:1])
	}
	if slices.Contains(left, "\x00") {
		t.Error("a mark was left in the list")
	}
	if skipped < 0 || skipped > 3*asked || deleted+skipped != n*2/3 {
		t.Errorf("%d deleted, %d left that were not to stay", deleted, skipped)
	}
}
