package webhooks

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

// logIDs lists the ids of a page of an endpoint's log.
func logIDs(t *testing.T, b *bundle, endpoint string, page, size int) (ids []string, total int) {
	t.Helper()
	got, err := b.Deliveries(t.Context(), endpoint, page, size)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range got.Deliveries {
		ids = append(ids, d.ID)
	}
	return ids, got.Total
}

func TestLogIsPagedNewestFirstAndCapped(t *testing.T) {
	t.Parallel()
	rc := answering(t, 200)
	b := setup(t, func(o *Options) { o.LogSize = 4 })
	ep := b.endpoint(rc.URL)
	for i := range 8 {
		id := "E" + strconv.Itoa(i)
		b.advance(time.Second)
		b.emit(id, event.MessageSent, "snd")
		if err := b.fanOut(t.Context(), b.entries()[i:]); err != nil {
			t.Fatal(err)
		}
		if i < 6 {
			b.run(ep.ID, id)
		}
	}
	// Six are finished and four of them kept; two are pending and always kept.
	if ids, total := logIDs(t, b, ep.ID, 0, 4); total != 6 ||
		!slices.Equal(ids, []string{"E7", "E6", "E5", "E4"}) {
		t.Errorf("first page %v of %d", ids, total)
	}
	if ids, _ := logIDs(t, b, ep.ID, 1, 4); !slices.Equal(ids, []string{"E3", "E2"}) {
		t.Errorf("second page %v", ids)
	}
	if _, err := b.Delivery(t.Context(), ep.ID, "E0"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a delivery past the cap: %v", err)
	}
	if _, err := b.Deliveries(t.Context(), "nowhere", 0, 10); !fault.Is(err, fault.NotFound) {
		t.Errorf("the log of an unknown endpoint: %v", err)
	}
}

func TestLogForgetsWhatIsOld(t *testing.T) {
	t.Parallel()
	rc := answering(t, 200)
	b := setup(t)
	ep := b.endpoint(rc.URL)
	for i := range 250 {
		b.emit("E"+strconv.Itoa(i), event.MessageSent, "snd")
	}
	b.fanOutAll()
	for i := range 249 {
		r := ref{Endpoint: ep.ID, Delivery: "E" + strconv.Itoa(i)}
		if _, err := b.finish(t.Context(), r, finishing{status: statusDelivered}); err != nil {
			t.Fatal(err)
		}
	}
	b.advance(7*24*time.Hour + time.Minute)
	if ids, total := logIDs(t, b, ep.ID, 0, 1000); total != 1 || !slices.Equal(ids, []string{"E249"}) {
		t.Errorf("%d left: %v; the pending one must be", total, ids)
	}
}

func TestRedeliver(t *testing.T) {
	t.Parallel()
	rc := answering(t, 200)
	b := setup(t)
	ep := b.endpoint(rc.URL)
	b.emit("E1", event.MessageSent, "snd")
	b.fanOutAll()
	b.run(ep.ID, "E1")
	again, err := b.Redeliver(t.Context(), ep.ID, "E1")
	if err != nil || again.ID == "E1" {
		t.Fatalf("%+v, %v", again, err)
	}
	if v := b.run(ep.ID, again.ID); v != "done" {
		t.Fatal(v)
	}
	got := rc.got()
	if len(got) != 2 || got[0].header.Get("webhook-id") != got[1].header.Get("webhook-id") ||
		string(got[0].body) != string(got[1].body) {
		t.Error("the second delivery is not the first one's event")
	}
	if got[1].header.Get("X-EE-Wh-Id") != again.ID || b.delivery(ep.ID, again.ID).EventID != "E1" {
		t.Error("it is not a delivery of its own")
	}
	// A redelivery of a redelivery is about the same event.
	third, err := b.Redeliver(t.Context(), ep.ID, again.ID)
	if err != nil {
		t.Fatal(err)
	}
	if d := b.delivery(ep.ID, third.ID); d.EventID != "E1" || d.Status != "pending" {
		t.Errorf("%+v", d)
	}
	if _, err := b.Redeliver(t.Context(), ep.ID, "nothing"); !fault.Is(err, fault.NotFound) {
		t.Errorf("unknown delivery: %v", err)
	}
	off := false
	if _, err := b.Update(t.Context(), ep.ID, api.EndpointRequest{URL: rc.URL, Enabled: &off}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Redeliver(t.Context(), ep.ID, "E1"); !fault.Is(err, fault.Conflict) {
		t.Errorf("disabled endpoint: %v", err)
	}
}

func TestReplaySendsWhatHappenedSince(t *testing.T) {
	t.Parallel()
	rc := answering(t, 200)
	b := build(t, testredis.Open(t, redisdb.Options{Partitions: 2}), nil)
	for i := range 1100 { // more than two chunks
		kind := event.MessageSent
		if i%2 == 1 {
			kind = event.MessageFailed
		}
		b.emit("E"+strconv.Itoa(i), kind, "snd")
	}
	ep := b.endpoint(rc.URL, func(r *api.EndpointRequest) { r.Events = []string{"messageSent"} })
	got, err := b.Replay(t.Context(), ep.ID, time.Now().Add(-time.Hour))
	if err != nil || got.Replayed != 550 || len(b.spool.ids()) != 550 {
		t.Fatalf("%+v, %v, %d tasks", got, err, len(b.spool.ids()))
	}
	if got, err = b.Replay(t.Context(), ep.ID, time.Now().Add(time.Hour)); err != nil || got.Replayed != 0 {
		t.Errorf("events of the future: %+v, %v", got, err)
	}
	if got, err = b.Replay(t.Context(), ep.ID, time.Time{}); err != nil || got.Replayed != 550 {
		t.Errorf("from the beginning, again: %+v, %v", got, err)
	}
	ids, _ := logIDs(t, b, ep.ID, 0, 1)
	if v := b.run(ep.ID, ids[0]); v != "done" {
		t.Fatal(v)
	}
	h := rc.got()[0].header
	if h.Get("webhook-id") != webhookID(h.Get("X-EE-Wh-Event-Id"), ep.ID) {
		t.Error("a replay must carry the webhook-id of the first delivery")
	}
}

func TestReplaysOfOneEndpointTakeTurns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ep := b.endpoint("http://example.com/")
	if ok, err := b.store.lock(ep.ID, "another").Claim(t.Context()); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if _, err := b.Replay(t.Context(), ep.ID, time.Time{}); !fault.Is(err, fault.Conflict) {
		t.Errorf("a second replay: %v", err)
	}
	if err := b.store.lock(ep.ID, "another").Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := b.Replay(t.Context(), ep.ID, time.Time{}); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	}
	if _, err := b.Replay(t.Context(), "nowhere", time.Time{}); !fault.Is(err, fault.NotFound) {
		t.Errorf("unknown endpoint: %v", err)
	}
}

func TestReplayStopsWhereThereIsNoRoom(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *Options) { o.MaxPending = 3 })
	for i := range 5 {
		b.emit("E"+strconv.Itoa(i), event.MessageSent, "snd")
	}
	ep := b.endpoint("http://example.com/")
	got, err := b.Replay(t.Context(), ep.ID, time.Time{})
	if !fault.Is(err, fault.Limited) || got.Replayed != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	e, ok := err.(*fault.Error)
	if !ok || e.Details["replayed"] != 3 || e.Details["since"] == nil {
		t.Errorf("it does not say where to go on: %+v", e)
	}
}

// overdue makes a delivery overdue, so that the sweep looks at it.
func overdue(t *testing.T, b *bundle) {
	t.Helper()
	b.advance(sweepOverdue + time.Minute)
	if err := b.sweepOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestSweepGivesANewTask: as often as it is gone, before the first attempt and after one.
func TestSweepGivesANewTask(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ep := b.endpoint(answering(t, 500).URL)
	b.emit("E1", event.MessageSent, "snd")
	b.fanOutAll()
	id := "E1." + ep.ID
	overdue(t, b)
	sameIDs(t, b.spool.ids(), []string{id}) // its task waits: all is well
	for range 3 {
		delete(b.spool.tasks, id)
		overdue(t, b)
		sameIDs(t, b.spool.ids(), []string{id})
		b.run(ep.ID, "E1")
	}
	b.spool.fail = errors.New("Redis is away")
	delete(b.spool.tasks, id)
	b.advance(time.Minute)
	if err := b.sweepOnce(t.Context()); err == nil {
		t.Error("a task that could not be queued is no error")
	}
	b.spool.fail = nil
	overdue(t, b)
	sameIDs(t, b.spool.ids(), []string{id})
	if d := b.delivery(ep.ID, "E1"); d.Status != "pending" || d.Attempts != 3 {
		t.Errorf("%+v", d)
	}
}

func TestSweepSkipsWhatAnOperatorTookAway(t *testing.T) {
	t.Parallel()
	rc := answering(t, 500)
	b := setup(t)
	ep := b.endpoint(rc.URL)
	b.emit("E1", event.MessageSent, "snd")
	b.emit("E2", event.MessageSent, "snd")
	b.fanOutAll()
	b.run(ep.ID, "E1")
	b.run(ep.ID, "E2")
	if err := b.TaskDeleted(t.Context(), ref{Endpoint: ep.ID, Delivery: "E1"}.task().Payload); err != nil {
		t.Error(err)
	}
	if err := b.TaskDeleted(t.Context(), []byte("{}")); err != nil {
		t.Errorf("a task that names no delivery: %v", err)
	}
	delete(b.spool.tasks, "E1."+ep.ID)
	b.spool.state = map[string]queue.State{"E2." + ep.ID: queue.Archived}
	overdue(t, b)
	for _, id := range []string{"E1", "E2"} {
		if d := b.delivery(ep.ID, id); d.Status != "skipped" || d.Error != "its task was taken out of the queue" {
			t.Errorf("%s: %+v", id, d)
		}
	}
	again, err := b.Redeliver(t.Context(), ep.ID, "E1")
	if err != nil || b.delivery(ep.ID, again.ID).Status != "pending" {
		t.Errorf("it can't be sent again: %v", err)
	}
}

func TestDeliveriesOfADeletedEndpointEndQuietly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ep := b.endpoint("http://example.com/")
	b.emit("E1", event.MessageSent, "snd")
	b.fanOutAll()
	if _, err := b.Delete(t.Context(), ep.ID); err != nil {
		t.Fatal(err)
	}
	if v := b.run(ep.ID, "E1"); v != "drop" {
		t.Errorf("verdict %s", v)
	}
	if refs, err := b.store.overdue(t.Context(), b.clock().Add(time.Hour), 10); err != nil || len(refs) != 0 {
		t.Errorf("still due: %v, %v", refs, err)
	}
}

// TestLogExpires: whatever an endpoint leaves behind goes automatically, even when it is deleted before
// another event comes.
func TestLogExpires(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ep := b.endpoint(answering(t, 200).URL)
	b.emit("E1", event.MessageSent, "snd")
	b.emit("E2", event.MessageSent, "snd")
	b.fanOutAll()
	expiry := func() (log, done time.Duration) {
		t.Helper()
		ctx, rdb := t.Context(), b.db.Client()
		return rdb.PTTL(ctx, logKey(ep.ID)).Val(), rdb.PTTL(ctx, redisdb.Key(0, "webhook", "done", ep.ID)).Val()
	}
	b.run(ep.ID, "E1")
	pending := b.options.pendingAge()
	if log, done := expiry(); log <= pending-time.Hour || log > pending || done <= pending-time.Hour ||
		done > pending {
		t.Errorf("while one is pending: log %v, done %v, want %v", log, done, pending)
	}
	if _, err := b.Delete(t.Context(), ep.ID); err != nil {
		t.Fatal(err)
	}
	if v := b.run(ep.ID, "E2"); v != "drop" {
		t.Errorf("verdict %s", v)
	}
	age := b.options.LogAge
	if log, done := expiry(); log <= age-time.Hour || log > age || done <= age-time.Hour || done > age {
		t.Errorf("once all are over: log %v, done %v, want %v", log, done, age)
	}
	keys, err := b.db.Client().Keys(t.Context(), "*"+ep.ID+"*").Result()
	if err != nil || len(keys) != 5 {
		t.Errorf("%v, %v", keys, err)
	}
	for _, key := range keys {
		if left := b.db.Client().PTTL(t.Context(), key).Val(); left <= 0 {
			t.Errorf("%s stays for ever", key)
		}
	}
}
