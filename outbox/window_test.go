package outbox

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
)

// tasksIn counts the tasks that a worker could take now.
func tasksIn(t *testing.T, b *bundle, lane api.Lane) int {
	t.Helper()
	counts, err := b.store.Control.Counts(t.Context(), laneQueue(lane, 0))
	if err != nil {
		t.Fatal(err)
	}
	return counts[0].Waiting
}

func submitAs(t *testing.T, b *bundle, account string, n int) (ids []string) {
	t.Helper()
	for i := range n {
		a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{Account: account, Text: "x",
			To: api.Addresses{{Address: fmt.Sprintf("p%d@x.test", i)}}})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, a.QueueID)
		b.clock.Advance(time.Millisecond)
	}
	return ids
}

// TestABacklogStaysOutOfTheQueue: the messages of an account beyond its window have no task. So the mail of
// another account stands behind a few of them, however many there are.
func TestABacklogStaysOutOfTheQueue(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{Window: 3})
	flood := submitAs(t, b, "flood", 50)
	if n := tasksIn(t, b, api.Transactional); n > 4 { // the first beyond the window has one: nobody knew yet
		t.Errorf("%d messages of the flood have a task", n)
	}
	single := submitAs(t, b, "single", 1)[0]
	if tasksOf(t, b, single, firstEpoch) != queue.Waiting {
		t.Error("the mail of another account has no task")
	}
	page, err := b.Reader.List(t.Context(), api.OutboxQuery{Account: "flood", State: api.Waiting, PageSize: 100})
	if err != nil || len(page.Messages) != 50 {
		t.Errorf("%d messages are listed as waiting: %v", len(page.Messages), err)
	}

	// each that ends is followed by the oldest of the backlog
	for i, id := range flood {
		v := b.Delivery.Deliver(t.Context(), queue.Task{Queue: queue.Submit, ID: taskID(id, firstEpoch)})
		if v.String() != "done" {
			t.Fatalf("message %d: %s", i, v)
		}
		if left := 50 - i - 1 - 3; left >= 0 {
			if n := b.store.DB.Client().ZCard(t.Context(), "postroom:{0}:backlog:transactional:flood").Val(); int(n) != left {
				t.Fatalf("after %d messages the backlog has %d, want %d", i+1, n, left)
			}
		}
	}
}

// TestALateTaskOfTheBacklogIsDropped: messages that come due together go to the backlog as their tasks are
// taken.
func TestALateTaskOfTheBacklogIsDropped(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{Window: 3})
	at := b.clock.Now().Add(time.Minute)
	var ids []string
	for i := range 10 {
		a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{Account: "flood", Text: "x", SendAt: &at,
			To: api.Addresses{{Address: fmt.Sprintf("p%d@x.test", i)}}})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, a.QueueID)
	}
	slices.Sort(ids) // the first come due first, and the others are in the backlog
	slices.Reverse(ids)
	b.clock.Advance(2 * time.Minute)
	sweep(t, b)
	verdicts := map[string]int{}
	for _, id := range ids {
		verdicts[b.Delivery.Deliver(t.Context(), queue.Task{Queue: queue.Submit,
			ID: taskID(id, firstEpoch)}).String()]++
	}
	if verdicts["drop"] == 0 || verdicts["done"] == 0 {
		t.Errorf("%v", verdicts)
	}
	for range 10 {
		sweep(t, b)
		for _, id := range ids {
			b.Delivery.Deliver(t.Context(), queue.Task{Queue: queue.Submit, ID: taskID(id, firstEpoch)})
		}
	}
	if c, err := b.Queues.Counters(t.Context(), api.CounterQuery{}); err != nil || c.SentHour != 10 {
		t.Errorf("%d were sent: %v", c.SentHour, err)
	}
}

// TestABacklogSurvivesItsProcess: the process that was to queue the next message died. The sweeper does it.
func TestABacklogSurvivesItsProcess(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{Window: 2})
	ids := submitAs(t, b, "flood", 6)
	for _, id := range ids[:3] { // withdrawn by an operator: no attempt ends
		if _, err := b.Operations.Cancel(t.Context(), id, ReasonAPI); err != nil {
			t.Fatal(err)
		}
	}
	sweep(t, b)
	if n := b.store.DB.Client().ZCard(t.Context(), "postroom:{0}:backlog:transactional:flood").Val(); n != 1 {
		t.Errorf("the backlog has %d messages, want 1", n)
	}
}

// TestPriority: in a backlog high goes first, low after earlier messages. High has as much room again in the
// queue, but not more: else an account could fill it.
func TestPriority(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{Window: 2})
	names, ids := map[string]string{}, map[string]string{}
	for _, name := range []string{"low 1", "normal 1", "low 2", "normal 2", "high 1", "normal 3", "high 2",
		"high 3", "high 4"} {
		word, _, _ := strings.Cut(name, " ")
		ids[name] = b.submit(t, api.SubmitRequest{To: for1("ann@x.test"), Priority: api.Priority(word)})
		names[ids[name]] = name
		b.clock.Advance(time.Millisecond)
	}
	backlog := func() (in []string) {
		key := redisdb.Key(0, "backlog", "transactional", "default")
		for _, id := range b.store.DB.Client().ZRange(t.Context(), key, 0, -1).Val() {
			in = append(in, names[id])
		}
		return in
	}
	if diff := gocmp.Diff([]string{"high 3", "high 4", "normal 2", "normal 3", "low 2"}, backlog()); diff != "" {
		t.Error(diff)
	}
	for id, name := range names {
		m, err := b.Reader.Get(t.Context(), id)
		want, _, _ := strings.Cut(name, " ")
		if err != nil || cmp.Or(m.Priority, api.Normal) != api.Priority(want) {
			t.Errorf("%s is shown as %q: %v", name, m.Priority, err)
		}
	}
	for _, name := range []string{"high 1", "high 2", "normal 1", "low 1"} {
		b.deliver(t, ids[name])
	}
	if diff := gocmp.Diff([]string{"normal 2", "normal 3", "low 2"}, backlog()); diff != "" {
		t.Error(diff)
	}
}
