package outbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

// TestDeepPagesAreThoseOfTheWholeList compares pages of a long list, which are found with seek, with the same
// list read as a whole.
func TestDeepPagesAreThoseOfTheWholeList(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	indexes := []index{{key: "postroom:{0}:a"}, {key: "postroom:{0}:b"}, {key: "postroom:{0}:none"}}
	random := rand.New(rand.NewPCG(1, 2))
	var all []entry
	members := map[string][]redis.Z{}
	for i := range 6000 {
		e := entry{id: fmt.Sprintf("%06d", random.IntN(1_000_000)) + fmt.Sprint(i), created: 1_800_000_000_000 +
			int64(random.IntN(3000))}
		if i%3 == 0 {
			e.created = 1_800_000_001_000 // a thousand and more in one millisecond
		}
		all = append(all, e)
		key := indexes[i%2].key
		members[key] = append(members[key], redis.Z{Score: float64(e.created), Member: e.id})
	}
	for key, m := range members {
		if err := b.store.DB.Client().ZAdd(t.Context(), key, m...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range []window{
		{}, {newest: true},
		{after: redisdb.Time(1_800_000_000_500), before: redisdb.Time(1_800_000_002_800)},
		{after: redisdb.Time(1_800_000_000_500), before: redisdb.Time(1_800_000_002_800), newest: true},
	} {
		w.indexes, w.size = indexes, 7
		want := slices.DeleteFunc(slices.Clone(all), func(e entry) bool {
			return !w.after.IsZero() && (e.created < redisdb.Millis(w.after) || e.created >= redisdb.Millis(w.before))
		})
		slices.SortFunc(want, w.order)
		for _, w.page = range []int{0, 140, 150, 200, 333, 400, 500, 600, 700, 857, 858, 1000} {
			found, err := b.Reader.look(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			from := min(w.page*w.size, len(want))
			if d := cmp.Diff(want[from:min(from+w.size, len(want))], append([]entry{}, found.page...),
				cmp.AllowUnexported(entry{})); d != "" {
				t.Errorf("newest first: %v, bounded: %v, page %d (-want +got):\n%s", w.newest, !w.after.IsZero(), w.page,
					d)
			}
			if found.total != len(want) || found.more != (from+w.size < len(want)) {
				t.Errorf("page %d: %d in all, more: %v; want %d", w.page, found.total, found.more, len(want))
			}
		}
	}
}

// TestBulkCancelReadsTheOutboxOnce counts the round trips of a bulk cancel by tag. It once read the whole
// outbox again for each thousand messages, and had Redis search the queue for each message.
func TestBulkCancelReadsTheOutboxOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	const n = 5 * scanChunk
	fillFast(t, b, n)
	commands := testredis.CountCommands(b.store.DB)
	got, err := b.Operations.CancelAll(t.Context(), api.OutboxQuery{Tag: "t1"}, ReasonAPI)
	if err != nil || got.Deleted != n/2 {
		t.Fatalf("cancelled %+v, %v; want %d", got, err, n/2)
	}
	if sent := commands.Sent(); sent > 100 {
		t.Errorf("%d round trips for %d messages", sent, n)
	}
	var left []string
	for _, name := range []string{"submit", "bulk"} {
		for _, state := range []queue.State{queue.Waiting, queue.Scheduled} {
			ids, err := b.tasksIn(t.Context(), name, state)
			if err != nil {
				t.Fatal(err)
			}
			left = append(left, ids...)
		}
	}
	page, err := b.Reader.List(t.Context(), api.OutboxQuery{PageSize: 1})
	if err != nil || page.Total != n/2 || len(left) != n/2 {
		t.Errorf("%d messages and %d tasks are left, %v; want %d", page.Total, len(left), err, n/2)
	}
	errs := b.Operations.needed(t.Context(), left)
	if slices.ContainsFunc(errs, func(err error) bool { return !errors.Is(err, errNeeded) }) {
		t.Errorf("a task was left without its message, or the other way round: %v", errs)
	}
}

// tasksIn lists the tasks of a queue.
func (b *bundle) tasksIn(ctx context.Context, name string, state queue.State) ([]string, error) {
	key := "asynq:{" + name + "}:" + string(state)
	if state == queue.Waiting {
		return b.store.DB.Client().LRange(ctx, key, 0, -1).Result()
	}
	return b.store.DB.Client().ZRange(ctx, key, 0, -1).Result()
}

// fillFast submits messages as fill does, several at a time.
func fillFast(t *testing.T, b *bundle, n int) {
	t.Helper()
	later := b.clock.Now().Add(time.Hour)
	parallel(t, 8, n, func(i int) error {
		req := api.SubmitRequest{To: api.Addresses{{Address: "ann@x.test"}}, Text: "x",
			Tags: []string{fmt.Sprintf("t%d", i%2)}}
		if i%10 == 0 || i%10 == 1 {
			req.Lane = api.Bulk
		}
		if i%20 == 2 || i%20 == 3 {
			req.SendAt = &later
		}
		b.clock.Advance(time.Millisecond)
		_, err := b.Intake.Submit(t.Context(), req)
		return err
	})
}

// TestTheStreamIsTrimmedHoweverLongItGrew adds more events than Redis drops at a time.
func TestTheStreamIsTrimmedHoweverLongItGrew(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{MaxEvents: 1000})
	key := b.store.keys.events(0)
	pipe := b.store.DB.Client().Pipeline()
	for range 35_000 {
		pipe.XAdd(t.Context(), &redis.XAddArgs{Stream: key, Values: []string{"e", "x"}})
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := (&retention{d: b.Operations}).tidy(t.Context(), b.clock.Now()); err != nil {
		t.Fatal(err)
	}
	if n := b.store.DB.Client().XLen(t.Context(), key).Val(); n > 1200 { // Redis drops whole nodes of 100
		t.Errorf("%d events are left, want about 1,000", n)
	}
}

// parallel does n things, some at a time.
func parallel(t *testing.T, at, n int, do func(i int) error) {
	t.Helper()
	errs := make(chan error, at)
	for w := range at {
		go func() {
			var err error
			for i := w; i < n && err == nil; i += at {
				err = do(i)
			}
			errs <- err
		}()
	}
	var all []string
	for range at {
		if err := <-errs; err != nil {
			all = append(all, err.Error())
		}
	}
	if len(all) > 0 {
		t.Fatal(strings.Join(all, "\n"))
	}
}

// TestASearchOfTheLogEndsInTime: it ends with a part of the log when its time is over, and its cursors lead
// to the oldest message.
func TestASearchOfTheLogEndsInTime(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	oldest := b.submit(t, api.SubmitRequest{To: api.Addresses{{Address: "ann@x.test"}}, Subject: "needle"})
	fillFast(t, b, 2*scanChunk)
	q, before := api.LogQuery{Search: "needle"}, b.clock.Now().Add(time.Hour)
	for parts := 1; ; parts++ {
		page, err := b.Reader.Within(1).Messages(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Messages) > 0 {
			if parts != 3 || page.Messages[0].QueueID != oldest || page.Cursor != "" {
				t.Errorf("part %d of 3: %+v", parts, page)
			}
			return
		}
		to := ReadTo(page.Cursor)
		if q.Cursor = page.Cursor; to.IsZero() || to.After(before) {
			t.Fatalf("part %d: nothing was found back to %s", parts, to)
		}
		before = to
	}
}

// TestASearchOfTheOutboxEndsInTime: it ends with a part of the outbox, and its cursors lead to the newest
// message.
func TestASearchOfTheOutboxEndsInTime(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	fillFast(t, b, 2*scanChunk)
	b.clock.Advance(time.Second)
	newest := b.submit(t, api.SubmitRequest{To: api.Addresses{{Address: "ann@x.test"}}, Subject: "needle"})
	q := api.OutboxQuery{Search: "needle"}
	for part := 1; part <= 3; part++ {
		page, err := b.Reader.Within(1).List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if last := part == 3; last != (page.Cursor == "") || last != (len(page.Messages) == 1) {
			t.Fatalf("part %d of 3: %+v", part, page)
		}
		if q.Cursor = page.Cursor; part == 3 && page.Messages[0].QueueID != newest {
			t.Errorf("found %s, not %s", page.Messages[0].QueueID, newest)
		}
	}
	if page, err := b.Reader.List(t.Context(), api.OutboxQuery{Search: "needle"}); err != nil ||
		page.Total != 1 {
		t.Errorf("with all the time it needs: %+v, %v", page, err)
	}
}
