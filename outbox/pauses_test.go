package outbox

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
)

// pauseStory is a message in an outbox whose queues are paused now and then.
type pauseStory struct {
	*bundle
	t *testing.T
}

// at lets the time pass until so many seconds after the beginning.
func (s *pauseStory) at(seconds float64) {
	s.t.Helper()
	end := storyBegin.Add(time.Duration(seconds * float64(time.Second)))
	if end.Before(s.clock.Now()) {
		s.t.Fatalf("it is %s already", s.clock.Now())
	}
	s.clock.Set(end)
	sweep(s.t, s.bundle)
}

func (s *pauseStory) set(name string, paused bool) {
	s.t.Helper()
	must(s.t, s.Queues.SetPaused(s.t.Context(), name, paused))
}

func (s *pauseStory) submitTo(to string) string {
	return s.submit(s.t, api.SubmitRequest{To: for1(to)})
}

func (s *pauseStory) waits(id string) []wait {
	s.t.Helper()
	return s.waitsOf(s.t, id, storyBegin)
}

// TestWaitsForTheEndOfAPauseAreInTheTimeline: only the time counts in which the message was due, no attempt
// had begun, and its own queue was paused. It stays in the timeline when the message has ended.
func TestWaitsForTheEndOfAPauseAreInTheTimeline(t *testing.T) {
	t.Parallel()
	const limit = "the limit of the relay"
	paused := func(from, until string) wait { return wait{from, until, pauseReason} }
	for name, c := range map[string]struct {
		play func(s *pauseStory) (id string)
		want []wait
	}{
		"it came in during the pause": {func(s *pauseStory) string {
			s.set("submit", true)
			s.at(2)
			id := s.submitTo("ann@x.test")
			s.at(60)
			s.set("submit", false)
			s.at(62)
			s.deliver(s.t, id)
			return id
		}, []wait{paused("2s", "1m0s")}},
		"the pause began while it waited for a worker": {func(s *pauseStory) string {
			id := s.submitTo("ann@x.test")
			s.at(5)
			s.set("submit", true)
			s.at(60)
			s.set("submit", false)
			s.deliver(s.t, id)
			return id
		}, []wait{paused("5s", "1m0s")}},
		"it still waits": {func(s *pauseStory) string {
			id := s.submitTo("ann@x.test")
			s.set("submit", true)
			s.at(60)
			return id
		}, []wait{paused("1s", "")}},
		"the pause is over, but no worker has it yet": {func(s *pauseStory) string {
			id := s.submitTo("ann@x.test")
			s.set("submit", true)
			s.at(60)
			s.set("submit", false)
			s.at(90)
			return id
		}, []wait{paused("1s", "1m0s")}},
		"it is scheduled for later": {func(s *pauseStory) string {
			s.set("submit", true)
			at := storyBegin.Add(30 * time.Second)
			id := s.submit(s.t, api.SubmitRequest{To: for1("ann@x.test"), SendAt: &at})
			s.at(20)
			if got := s.waits(id); len(got) > 0 {
				s.t.Errorf("before it was due: %v", got)
			}
			s.at(60)
			s.set("submit", false)
			s.deliver(s.t, id)
			return id
		}, []wait{paused("30s", "1m0s")}},
		"it is tried again": {func(s *pauseStory) string {
			id := s.submitTo("later@x.test")
			s.set("submit", true) // between the attempts
			s.deliver(s.t, id)
			s.at(3600)
			s.set("submit", false)
			s.sender.replies["later@x.test"] = "250 ok"
			s.deliver(s.t, id)
			return id
		}, []wait{paused("11s", "1h0m0s")}},
		"an attempt is made during the pause": {func(s *pauseStory) string {
			id := s.submitTo("ann@x.test")
			c, _, err := s.Delivery.begin(s.t.Context(), id)
			must(s.t, err)
			s.set("submit", true)
			s.clock.Advance(3 * time.Second)
			if got := s.waits(id); len(got) > 0 {
				s.t.Errorf("while it is sent: %v", got)
			}
			s.Delivery.record(s.t.Context(), c, s.Delivery.attempt(s.t.Context(), c, s.clock.Now()))
			s.at(60)
			s.set("submit", false)
			return id
		}, nil},
		"an attempt is made after the pause": {func(s *pauseStory) string {
			s.set("submit", true)
			id := s.submitTo("ann@x.test")
			s.at(10)
			s.set("submit", false)
			_, _, err := s.Delivery.begin(s.t.Context(), id)
			must(s.t, err)
			s.set("submit", true)
			return id
		}, []wait{paused("0s", "10s")}},
		"it waited for a limit, too": {func(s *pauseStory) string {
			id := s.submitTo("ann@x.test")
			s.sender.full = storyBegin.Add(30 * time.Second)
			s.deliver(s.t, id)
			s.at(10)
			s.set("submit", true)
			s.at(60)
			if diff := cmp.Diff([]wait{{"1s", "30s", limit}, paused("30s", "")}, s.waits(id)); diff != "" {
				s.t.Errorf("before the pause ended: %s", diff)
			}
			s.set("submit", false)
			s.deliver(s.t, id)
			return id
		}, []wait{{"1s", "30s", limit}, paused("30s", "1m0s")}},
		"it was cancelled": {func(s *pauseStory) string {
			s.set("submit", true)
			id := s.submitTo("ann@x.test")
			s.at(10)
			_, err := s.Operations.Cancel(s.t.Context(), id, ReasonAPI)
			must(s.t, err)
			if diff := cmp.Diff([]wait{paused("0s", "10s")}, s.waits(id)); diff != "" {
				s.t.Errorf("before the pause ended: %s", diff)
			}
			s.at(20)
			s.set("submit", false)
			return id
		}, []wait{paused("0s", "10s")}},
		"its task was archived": {func(s *pauseStory) string {
			s.set("submit", true)
			id := s.submitTo("ann@x.test")
			s.at(10)
			must(s.t, s.Operations.TaskArchived(s.t.Context(), taskID(id, "1")))
			s.at(20)
			s.set("submit", false)
			return id
		}, []wait{paused("0s", "10s")}},
		"two pauses, set and ended twice": {func(s *pauseStory) string {
			id := s.submitTo("ann@x.test")
			s.set("submit", false)
			s.set("submit", true)
			s.at(5)
			s.set("submit", true)
			s.at(10)
			s.set("submit", false)
			s.at(15)
			s.set("submit", false)
			s.at(20)
			s.set("submit", true)
			s.at(30)
			s.set("submit", false)
			s.deliver(s.t, id)
			return id
		}, []wait{paused("1s", "10s"), paused("20s", "30s")}},
		"a pause that was noted, and could not be ended": {func(s *pauseStory) string {
			id := s.submitTo("ann@x.test")
			s.set("submit", true)
			s.at(5)
			must(s.t, s.store.notePauses(s.t.Context(), lanesOf("submit"), s.clock.Now()))
			s.at(10)
			return id
		}, []wait{paused("1s", "")}},
		"only the other lane is paused": {func(s *pauseStory) string {
			s.set("bulk", true)
			id := s.submitTo("ann@x.test")
			s.at(10)
			s.set("bulk", false)
			return id
		}, nil},
		"asynq's tools paused its queue": {func(s *pauseStory) string {
			id := s.submitTo("ann@x.test")
			p := s.store.partition(id)
			must(s.t, s.store.Control.Pause(s.t.Context(), s.clock.Now(), laneQueue(api.Transactional, p)))
			s.at(10)
			s.set("submit", false)
			return id
		}, []wait{paused("1s", "10s")}},
		"asynq's tools paused another partition": {func(s *pauseStory) string {
			id := s.submitTo("ann@x.test")
			p := (s.store.partition(id) + 1) % s.store.DB.Partitions()
			must(s.t, s.store.Control.Pause(s.t.Context(), s.clock.Now(), laneQueue(api.Transactional, p)))
			s.at(10)
			s.set("submit", false)
			return id
		}, nil},
		"asynq's tools ended the pause": {func(s *pauseStory) string {
			id := s.submitTo("ann@x.test")
			s.set("submit", true)
			s.at(10)
			must(s.t, s.store.Control.Resume(s.t.Context(), laneQueue(api.Transactional, s.store.partition(id))))
			return id
		}, nil},
		"a pause of less than a second": {func(s *pauseStory) string {
			id := s.submitTo("ann@x.test")
			s.set("submit", true)
			s.at(1.9)
			s.set("submit", false)
			return id
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &pauseStory{setupOn(t, spread(t), Options{
				Backoff: queue.Backoff{Base: 5 * time.Second, Factor: 2}}), t}
			s.sender.replies["later@x.test"] = "451 4.7.1 later"
			if diff := cmp.Diff(c.want, s.waits(c.play(s))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPastPausesAreFew: only the last pauses are kept, and old ones go.
func TestPastPausesAreFew(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{KeepEnded: 24 * time.Hour, KeepDeadLetters: time.Hour})
	again := func() {
		t.Helper()
		must(t, b.Queues.SetPaused(t.Context(), queue.Bulk, true))
		b.clock.Advance(2 * time.Second)
		must(t, b.Queues.SetPaused(t.Context(), queue.Bulk, false))
	}
	key := redisdb.Key(0, "pauses")
	kept := func() []string { return b.store.DB.Client().ZRange(t.Context(), key, 0, -1).Val() }
	for range mostPauses + 3 {
		again()
	}
	first := fmt.Sprintf("bulk %d", storyBegin.Add(6*time.Second).UnixMilli())
	if got := kept(); len(got) != mostPauses || got[0] != first {
		t.Errorf("%d pauses are kept, from %s on; want %d from %s on", len(got), got[0], mostPauses, first)
	}
	if got := b.store.DB.Client().TTL(t.Context(), key).Val(); got != 32*24*time.Hour {
		t.Errorf("the key expires after %s", got)
	}
	b.clock.Advance(32 * 24 * time.Hour)
	again()
	if got := kept(); len(got) != 1 {
		t.Errorf("a month later there are %d pauses, want one", len(got))
	}
}
