package search_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox/search"
)

func TestFoundWhileQueuedAndAfterItWasSent(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.tell(event.MessageQueued, message(1))
	w.tell(event.MessageQueued, message(2))
	w.finds("status:queued number1", 1)
	w.finds("status:queued", 2)
	if w.mail.told() != 0 {
		t.Error("the outbox was told that the text of a queued message is needed no longer")
	}
	w.tell(event.MessageSent, sent(1))
	w.finds("status:sent number1", 1)
	until(t, "the outbox is told", func() bool { return w.mail.told() == 1 })

	// A later event of a message whose text is gone leaves the text as it is.
	m := sent(1)
	m.Text, m.TextKnown, m.Status = "", false, api.StatusDead
	w.tell(event.MessageReplayed, m)
	w.finds("status:dead number1", 1)
}

// TestSearchSeesWhatWasGathered: events gather for ten seconds while nobody searches. The first search waits
// for the index to have them.
func TestSearchSeesWhatWasGathered(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.tell(event.MessageQueued, message(1)) // it is read immediately, and later events gather
	until(t, "the first is indexed", func() bool {
		s, err := w.State(t.Context())
		return err == nil && s.Documents == 1
	})
	for n := 2; n < 5; n++ {
		w.tell(event.MessageQueued, message(n))
	}
	if n := w.total("status:queued"); n != 4 {
		t.Errorf("the first search finds %d, want 4", n)
	}
}

// TestEndedMessagesAreIndexedOnce: remaining tasks about a message that was indexed after its end don't index
// it again, but returned mail about it does.
func TestEndedMessagesAreIndexedOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := sent(1)
	w.tell(event.MessageSent, m)
	w.finds("status:sent", 1)
	w.idle()
	m.Subject = "changed"
	w.tell(event.MessageSent, m)
	w.tell(event.MessageQueued, message(2))
	w.finds("status:queued", 1)
	w.idle()
	if n := w.total("changed"); n != 0 {
		t.Error("an event of before the end had the message indexed again")
	}
	m.Outcome = &api.Outcome{Status: api.OutcomeBounced}
	w.tell(event.MessageBounce, m)
	w.finds("status:bounced changed", 1)
}

// TestFoundByWhatCameBack: a message that bounced later is found as sent and as bounced.
func TestFoundByWhatCameBack(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.tell(event.MessageSent, sent(1))
	w.tell(event.MessageSent, sent(2))
	w.finds("status:sent", 2)
	m := sent(1)
	m.Outcome = &api.Outcome{Status: api.OutcomeBounced}
	w.tell(event.MessageBounce, m)
	w.finds("status:bounced status:sent", 1)
	page, err := w.Search(t.Context(), api.DocumentQuery{Q: "status:bounced"})
	if err != nil || page.Documents[0].Stands() != api.OutcomeBounced ||
		page.Documents[0].Status != api.StatusSent {
		t.Errorf("found: %+v, %v", page.Documents, err)
	}
}

// TestWithoutALog: the outbox forgets messages the moment they end; their events provide the index's data.
func TestWithoutALog(t *testing.T) {
	t.Parallel()
	w := setup(t, func(_ *search.Parts, o *search.Options) { o.NoLog = true })
	for n := range 3 {
		w.tell(event.MessageQueued, message(n))
	}
	w.finds("status:queued", 3)
	w.idle()
	for n, kind := range []event.Type{event.MessageSent, event.MessageFailed} {
		w.mail.forget(id(n))
		w.emit(kind, message(n))
	}
	w.finds("status:sent number0", 1)
	w.finds("status:failed number1", 1)
	w.finds("status:queued number2", 1)
}

// TestPausePausesIndexingOnly: while the queue is paused nothing is indexed, and no one waits for it.
func TestPausePausesIndexingOnly(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.tell(event.MessageQueued, message(1))
	w.finds("", 1)
	w.idle()
	if err := w.control.Pause(t.Context(), time.Now(), queue.Documents); err != nil {
		t.Fatal(err)
	}
	w.tell(event.MessageQueued, message(2))
	until(t, "a task waits", func() bool {
		s, err := w.State(t.Context())
		return err == nil && s.Waiting >= 1 && s.Paused && w.read()
	})
	if n := w.total(""); n != 1 {
		t.Errorf("%d are found while the queue is paused", n)
	}
	if err := w.control.Resume(t.Context(), queue.Documents); err != nil {
		t.Fatal(err)
	}
	w.finds("", 2)
}

// TestTooManyTasksWait: beyond MaxWaiting no task is made, and what is missing is read from the log once the
// queue is short.
func TestTooManyTasksWait(t *testing.T) {
	t.Parallel()
	w := setup(t, func(_ *search.Parts, o *search.Options) { o.MaxWaiting = 2 })
	w.tell(event.MessageQueued, message(0))
	w.finds("", 1)
	w.idle()
	if err := w.control.Pause(t.Context(), time.Now(), queue.Documents); err != nil {
		t.Fatal(err)
	}
	sentTo := 0
	until(t, "the index is behind", func() bool {
		if sentTo < 200 {
			sentTo++
			w.tell(event.MessageQueued, message(sentTo))
		}
		s, err := w.State(t.Context())
		return err == nil && s.Behind != nil
	})
	m, ended := sent(0), time.Now() // accepted long before the index fell behind
	m.Ended = &ended
	w.tell(event.MessageSent, m)
	until(t, "all events are read", func() bool { return w.read() })
	if s, err := w.State(t.Context()); err != nil || s.Waiting > 10 {
		t.Errorf("%+v, %v: tasks are not bounded", s, err)
	}
	if err := w.control.Resume(t.Context(), queue.Documents); err != nil {
		t.Fatal(err)
	}
	w.finds("", sentTo+1)
	w.finds("status:sent", 1)
	w.idle()
}

// idle waits until nothing is left to be done.
func (w *world) idle() {
	w.t.Helper()
	until(w.t, "nothing is left to be done", func() bool {
		s, err := w.State(w.t.Context())
		return err == nil && s.Behind == nil && s.Waiting == 0 && w.read()
	})
}

// read says whether the reader has read, and acknowledged, every event.
func (w *world) read() bool {
	for p := range 2 {
		groups, err := w.db.Client().XInfoGroups(w.t.Context(), redisdb.Key(p, "events")).Result()
		if redis.HasErrorPrefix(err, "ERR no such key") {
			continue // no event yet
		}
		if err != nil || len(groups) != 1 || groups[0].Lag != 0 || groups[0].Pending != 0 {
			return false
		}
	}
	return true
}

// TestAnIndexThatFailsLosesNothing: tasks come back until the index works.
func TestAnIndexThatFailsLosesNothing(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	w := setup(t, func(p *search.Parts, _ *search.Options) { p.Store = &brokenStore{p.Store, &broken} })
	w.tell(event.MessageQueued, message(1))
	w.finds("", 1)
	broken.Store(true)
	w.tell(event.MessageQueued, message(2))
	var counts []queue.Counts
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the queue had %+v", counts)
		}
	})
	until(t, "a task waits for another try", func() (ok bool) {
		var err error
		counts, err = w.control.Counts(t.Context(), queue.Documents)
		return err == nil && counts[0].Retrying > 0
	})
	broken.Store(false)
	w.finds("", 2)
}

// brokenStore takes nothing while it is broken.
type brokenStore struct {
	search.Store
	broken *atomic.Bool
}

func (s *brokenStore) Put(ctx context.Context, docs []search.Document) error {
	if s.broken.Load() {
		return errors.New("disk full")
	}
	return s.Store.Put(ctx, docs)
}

func (s *brokenStore) Search(ctx context.Context, q search.Query) (search.Found, error) {
	if s.broken.Load() {
		return search.Found{}, errors.New("disk full")
	}
	return s.Store.Search(ctx, q)
}

// TestAnIndexThatBeginsIsFilled: what was sent before there was an index is found, as far as the log
// remembers.
func TestAnIndexThatBeginsIsFilled(t *testing.T) {
	t.Parallel()
	db, mail, dir := testredis.Open(t, redisdb.Options{Partitions: 2}), newMailbox(), t.TempDir()
	for n := range 1200 { // several pages of the log
		mail.set(sent(n))
	}
	w := runOn(t, db, mail, dir)
	w.finds("", 1200)
	until(t, "nothing is missing", func() bool {
		s, err := w.State(t.Context())
		return err == nil && s.Behind == nil && s.Documents == 1200 && s.Bytes > 0 && s.Indexer == "here:"+dir
	})
	w.stop()

	// It does not begin again where it was.
	mail.set(message(5000))
	again := runOn(t, db, mail, dir)
	again.finds("", 1200)
	if err := db.Client().Del(t.Context(), redisdb.Key(0, "documents", "index")).Err(); err != nil {
		t.Fatal(err)
	}
	again.stop()
	runOn(t, db, mail, dir).finds("", 1201) // another index seems to have been kept in the meantime
}

// TestALostIndexComesBack: the directory is deleted; the next process immediately fills a new index, though
// the claim of the old one still holds.
func TestALostIndexComesBack(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for n := range 20 {
		w.tell(event.MessageQueued, message(n))
	}
	w.finds("", 20)
	w.stop()
	fresh := t.TempDir()
	again := runOn(t, w.db, w.mail, fresh, func(_ *search.Parts, o *search.Options) {
		k, err := w.db.Client().Get(t.Context(), redisdb.Key(0, "documents", "indexer")).Result()
		if err != nil {
			t.Fatal(err)
		}
		o.Place = k[len(k)-len(o.Place):]
		for i := range k {
			if k[i] == ' ' {
				o.Place = k[i+1:]
			}
		}
	})
	again.finds("", 20)
}

// TestOneProcessKeepsTheIndex: a second process with its own index waits, and says where to search; it takes
// over when the first is gone.
func TestOneProcessKeepsTheIndex(t *testing.T) {
	t.Parallel()
	first := setup(t)
	first.tell(event.MessageQueued, message(1))
	first.finds("", 1)
	second := runOn(t, first.db, first.mail, t.TempDir())
	_, err := second.Search(t.Context(), api.DocumentQuery{})
	if fault.KindOf(err) != fault.Unavailable || fault.CodeOf(err) != "SearchElsewhere" {
		t.Errorf("search in the second process: %v", err)
	}
	if s, err := second.State(t.Context()); err != nil || s.Indexer == "" {
		t.Errorf("state in the second process: %+v, %v", s, err)
	}
	first.tell(event.MessageQueued, message(2))
	first.finds("", 2)
	first.stop()
	// as time does
	if err := first.db.Client().Del(t.Context(), redisdb.Key(0, "documents", "indexer")).Err(); err != nil {
		t.Fatal(err)
	}
	second.finds("", 2)
}

func TestRebuildKeepsWhatTheLogForgot(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for n := range 30 {
		w.tell(event.MessageSent, sent(n))
	}
	w.finds("status:sent text:customer", 30)
	for n := range 10 {
		w.mail.forget(id(n))
	}
	w.mail.set(message(100)) // its event was lost
	b, err := w.Rebuild(t.Context())
	if err != nil || b.Status != "wanted" {
		t.Fatalf("%+v, %v", b, err)
	}
	until(t, "it is done", func() bool {
		s, err := w.State(t.Context())
		return err == nil && s.Rebuild != nil && s.Rebuild.Status == "done"
	})
	w.finds("text:customer", 31)
	w.finds("number3", 1)
	w.tell(event.MessageQueued, message(101))
	w.finds("", 32)
	s, err := w.State(t.Context())
	if err != nil || s.Rebuild.Done != 31 || s.Rebuild.Total != 31 || s.Rebuild.Started == nil ||
		s.Rebuild.Ended == nil {
		t.Errorf("%+v, %v", s.Rebuild, err)
	}
}

// TestRebuildThatDiedBeginsAgain: Redis says that a rebuild runs, and nobody runs it.
func TestRebuildThatDiedBeginsAgain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.tell(event.MessageQueued, message(1))
	w.finds("", 1)
	err := w.db.Client().Set(t.Context(), redisdb.Key(0, "documents", "rebuild"),
		`{"status":"running","wanted":"2030-01-01T00:00:00Z"}`, time.Hour).Err()
	if err != nil {
		t.Fatal(err)
	}
	until(t, "it is done", func() bool {
		s, err := w.State(t.Context())
		return err == nil && s.Rebuild != nil && s.Rebuild.Status == "done"
	})
	w.finds("", 1)
}

func TestRebuildIsAskedForOnce(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	d, err := search.New(search.Parts{DB: db, Queues: queue.NewControl(db.Client()), Outbox: newMailbox()},
		search.Options{Kind: "embedded"})
	if err != nil {
		t.Fatal(err)
	}
	first, err := d.Rebuild(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Millisecond) // for another time to be wanted at
	second, err := d.Rebuild(t.Context())
	if err != nil || !second.Wanted.Equal(first.Wanted) {
		t.Errorf("first %+v, second %+v, %v", first, second, err)
	}
}

func TestRetention(t *testing.T) {
	t.Parallel()
	db, mail, dir := testredis.Open(t, redisdb.Options{Partitions: 2}), newMailbox(), t.TempDir()
	w := runOn(t, db, mail, dir)
	old := sent(1)
	old.Created = began.Add(-100 * time.Hour)
	w.tell(event.MessageSent, old)
	w.tell(event.MessageSent, sent(2))
	w.finds("", 2)
	w.stop()
	again := runOn(t, db, mail, dir, func(_ *search.Parts, o *search.Options) {
		o.Retention = 50 * time.Hour
	})
	again.finds("", 1)
	again.finds("number2", 1)
}

func TestLeaveLetsTheStreamGo(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.tell(event.MessageQueued, message(0))
	w.tell(event.MessageQueued, message(1))
	w.finds("", 2)
	w.stop()
	for range 2 {
		if err := search.Leave(t.Context(), w.db); err != nil {
			t.Fatal(err)
		}
	}
	for p := range 2 {
		if groups, err := w.db.Client().XInfoGroups(t.Context(), redisdb.Key(p, "events")).Result(); err != nil ||
			len(groups) != 0 {
			t.Errorf("partition %d: groups %v, %v", p, groups, err)
		}
	}
	if err := search.Leave(t.Context(), testredis.New(t)); err != nil {
		t.Errorf("without a stream: %v", err)
	}
}

func TestWithoutAnIndex(t *testing.T) {
	t.Parallel()
	db := testredis.New(t)
	d, err := search.New(search.Parts{DB: db, Queues: queue.NewControl(db.Client()), Outbox: newMailbox()},
		search.Options{Kind: "none"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Search(t.Context(), api.DocumentQuery{}); fault.CodeOf(err) != "SearchOff" {
		t.Errorf("search: %v", err)
	}
	if _, err := d.Rebuild(t.Context()); fault.CodeOf(err) != "SearchOff" {
		t.Errorf("rebuild: %v", err)
	}
	if s, err := d.State(t.Context()); err != nil || s.Store != "none" {
		t.Errorf("state: %+v, %v", s, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Run(ctx); err != nil {
		t.Error(err)
	}
}
