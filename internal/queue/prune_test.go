package queue

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// asynq's own "archive all" cuts the archive to 9,999 and leaves the hashes of the rest, whose ids are
// blocked for ever.
func TestOperatorArchiveAllLeaksNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for tasks := many(10_050); len(tasks) > 0; tasks = tasks[min(500, len(tasks)):] {
		b.enqueue(t, tasks[:min(500, len(tasks))]...)
	}
	n, err := b.control.ArchiveAll(t.Context(), Submit, Waiting, nil)
	if err != nil || n != 10_050 {
		t.Fatalf("%d tasks, %v", n, err)
	}
	if c := b.counts(t); c.Waiting != 0 || c.Archived != archiveMost || b.hashes(t) != archiveMost {
		t.Errorf("%d wait, %d are archived, %d take memory", c.Waiting, c.Archived, b.hashes(t))
	}
}

// If somebody used asynq's "archive all" anyway, for example from its command line, Prune cleans up.
func TestPruneCleansUpAfterAsynq(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for tasks := many(10_050); len(tasks) > 0; tasks = tasks[min(500, len(tasks)):] {
		b.enqueue(t, tasks[:min(500, len(tasks))]...)
	}
	if err := b.control.Register(t.Context(), Submit); err != nil {
		t.Fatal(err)
	}
	if _, err := asynq.NewInspectorFromRedisClient(b.redis).ArchiveAllPendingTasks(Submit); err != nil {
		t.Fatal(err)
	}
	pruned, err := b.control.Prune(t.Context(), Submit)
	if err != nil {
		t.Fatal(err)
	}
	if pruned.Orphans != 51 || pruned.Expired != 9_999-archiveMost {
		t.Errorf("pruned %+v", pruned)
	}
	if c := b.counts(t); c.Archived != archiveMost || b.hashes(t) != archiveMost {
		t.Errorf("%d are archived, %d take memory", c.Archived, b.hashes(t))
	}
	if again, err := b.control.Prune(t.Context(), Submit); err != nil || again != (Pruned{}) {
		t.Errorf("the second time it pruned %+v, %v", again, err)
	}
}

func TestPruneMends(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	b.enqueue(t, task("waits.1"), task("lost.1"), later("lost.2"), later("unnamed.1"), later("fine.1"),
		task("half.1"))
	b.redis.LRem(ctx, stateKey(Submit, Waiting), 0, "lost.1")
	b.redis.ZRem(ctx, stateKey(Submit, Scheduled), "lost.2")
	b.redis.Del(ctx, taskKey(Submit, "unnamed.1"))
	b.redis.LRem(ctx, stateKey(Submit, Waiting), 0, "half.1")
	b.redis.HSet(ctx, taskKey(Submit, "half.1"), "state", "completed")
	pruned, err := b.control.Prune(ctx, Submit)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Pruned{Orphans: 1, Returned: 2, Unnamed: 1}); pruned != want {
		t.Errorf("%+v, want %+v", pruned, want)
	}
	for id, want := range map[string]State{
		"waits.1": Waiting, "lost.1": Waiting, "lost.2": Waiting, "unnamed.1": "", "fine.1": Scheduled,
		"half.1": "",
	} {
		if got := b.state(t, id); got != want {
			t.Errorf("%s is %q, want %q", id, got, want)
		}
	}
	if n := b.counts(t).Waiting; n != 3 {
		t.Errorf("%d wait, want 3", n)
	}
}

// TestLostTasksRunWithoutARestart: any list of a queue, or several, may be lost while the tasks themselves
// remain (hibiken/asynq#1144). New tasks may come behind them.
func TestLostTasksRunWithoutARestart(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		lost []string // keys of the queue
	}{
		{"pending", []string{"pending"}}, {"scheduled", []string{"scheduled"}}, {"retry", []string{"retry"}},
		{"active and its leases", []string{"active", "lease"}},
		{"all", []string{"pending", "scheduled", "retry", "active", "lease", "archived", "completed"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			l := logging(nil)
			if err := b.control.Pause(t.Context(), time.Now(), Submit); err != nil {
				t.Fatal(err)
			}
			serve(t, b.redis, ServerOptions{}, map[string]Handler{"send": l.handle})
			until(t, "the first look is over", func() bool {
				return b.redis.Exists(t.Context(), recoveredKey+Submit).Val() == 1
			})
			b.enqueue(t, task("waits.1"), task("active.1"), later("later.1"), later("retry.1"))
			b.activate(t, "active.1", time.Now().Add(time.Hour))
			b.redis.ZRem(t.Context(), stateKey(Submit, Scheduled), "retry.1")
			later := float64(time.Now().Add(time.Hour).Unix())
			b.redis.ZAdd(t.Context(), stateKey(Submit, Retrying), redis.Z{Score: later, Member: "retry.1"})
			b.redis.HSet(t.Context(), taskKey(Submit, "retry.1"), "state", "retry")
			want := map[string]string{"pending": "waits.1", "active": "active.1", "scheduled": "later.1",
				"retry": "retry.1"}
			for _, key := range row.lost {
				b.redis.Del(t.Context(), queueKey(Submit, key))
			}
			b.enqueue(t, task("new.1"))
			if err := b.control.Resume(t.Context(), Submit); err != nil {
				t.Fatal(err)
			}
			for _, key := range row.lost {
				if id := want[key]; id != "" {
					until(t, id+" runs", func() bool { return l.count(id) == 1 })
				}
			}
		})
	}
}

// TestTenThousandLostTasksArePutBack: although others came behind them.
func TestTenThousandLostTasksArePutBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	all := many(13_000)
	for tasks := all; len(tasks) > 0; tasks = tasks[min(500, len(tasks)):] {
		if len(tasks) == 3000 {
			b.redis.Del(t.Context(), stateKey(Submit, Waiting))
		}
		b.enqueue(t, tasks[:min(500, len(tasks))]...)
	}
	found, err := b.control.Recover(t.Context(), Submit)
	if want := (Pruned{Returned: 10_000}); err != nil || found != want {
		t.Errorf("%+v, %v, want %+v", found, err, want)
	}
	if n := b.counts(t).Waiting; n != len(all) {
		t.Errorf("%d wait, want %d", n, len(all))
	}
	if again, err := b.control.Recover(t.Context(), Submit); err != nil || again != (Pruned{}) {
		t.Errorf("a second time: %+v, %v", again, err)
	}
}

// asynq's archiving fails, after it has removed the task from active, when about 8,000 archived tasks are
// past their 90 days at once.
func TestNineThousandExpiredArchivedTasks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	old := float64(time.Now().Add(-100 * 24 * time.Hour).Unix())
	_, err := b.redis.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range 9000 {
			id := fmt.Sprintf("old%d", i)
			p.HSet(t.Context(), taskKey(Submit, id), "msg", "m", "state", "archived")
			p.ZAdd(t.Context(), stateKey(Submit, Archived), redis.Z{Score: old, Member: id})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.redis.Set(t.Context(), prunedKey+Submit, 1, 0) // somebody has pruned within the hour
	b.enqueue(t, task("new.1"))
	l := logging(func(Task, int) Verdict { return Bury(errors.New("550 no")) })
	serve(t, b.redis, ServerOptions{}, map[string]Handler{"send": l.handle})
	until(t, "the new one is buried", func() bool { return b.state(t, "new.1") == Archived })
	until(t, "the old ones are gone", func() bool { return b.hashes(t) == 1 && b.counts(t).Archived == 1 })
}
