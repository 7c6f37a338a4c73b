package feedback

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/suppression"
)

func TestInboxIsBounded(t *testing.T) {
	b := setup(t, func(o *Options) { o.MaxFacts = 3 })
	for n := range 3 {
		if err := b.tell(said("delivered", "ann@example.net", byEcho, fmt.Sprintf(`"id":"d%d"`, n))); err != nil {
			t.Fatal(err)
		}
	}
	err := b.tell(said("delivered", "ann@example.net", byEcho, `"id":"d3"`))
	if !fault.Is(err, fault.Unavailable) || fault.CodeOf(err) != "InboxFull" {
		t.Fatalf("a fourth: %v", err)
	}
	if err := b.tell(said("complained", "ann@example.net", byEcho)); err != nil {
		t.Errorf("a complaint while deliveries are full: %v", err)
	}
	var facts []outbox.Fact
	for n := range 5 {
		facts = append(facts, outbox.Fact{Key: fmt.Sprintf("hit-%d", n), Type: event.TrackOpen, MessageID: ann,
			At: b.now(), Details: event.Later{Source: "track"}})
	}
	for _, f := range facts {
		if err := b.Append(t.Context(), []outbox.Fact{f}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := b.Status(t.Context())
	if err != nil || s.Inbox.Deliveries != 3 || s.Inbox.Urgent != 1 || s.Inbox.Hits != 3 {
		t.Fatalf("%+v, %v", s.Inbox, err)
	}
	if first, _ := parseEntry(b.entries(hits)[0].Text(field)); first.Key != "hit-2" {
		t.Errorf("the oldest hit that is left is %s, want hit-2", first.Key)
	}
}

// A firehose of hits that can't be applied as fast as it comes doesn't hold up a bounce.
func TestHitsDoNotDelayBounces(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stuck := make(chan struct{})
	b.box.failWith(nil)
	var facts []outbox.Fact
	for n := range 3 * workBatch {
		facts = append(facts, outbox.Fact{Key: fmt.Sprintf("hit-%d", n), Type: event.TrackOpen, MessageID: ann,
			At: b.now(), Details: event.Later{Source: "track"}})
	}
	if err := b.Append(t.Context(), facts); err != nil {
		t.Fatal(err)
	}
	slow := &slowHits{fakeOutbox: b.box, stuck: stuck}
	b.Feedback.Outbox = slow
	b.run()
	b.eventually("the hits are stuck", func() bool { return slow.waits.Load() > 0 })
	if err := b.tell(said("bounced", "ann@example.net", hardBounce, byEcho)); err != nil {
		t.Fatal(err)
	}
	b.eventually("the bounce is applied",
		func() bool { return b.suppressed("ann@example.net", "", "") == "hard_bounce generic" })
	close(stuck)
	b.eventually("the hits are applied",
		func() bool { return b.counts("track")["applied"] == int64(len(facts)) })
}

// slowHits is an outbox that gets stuck with hits.
type slowHits struct {
	*fakeOutbox
	stuck chan struct{}
	waits atomic.Int64
}

func (s *slowHits) RecordFacts(ctx context.Context, facts []outbox.Fact) ([]outbox.FactResult, error) {
	if facts[0].Type == event.TrackOpen {
		s.waits.Add(1)
		select {
		case <-s.stuck:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s.fakeOutbox.RecordFacts(ctx, facts)
}

// Our own pages suppress before they answer: doing that again later would undo a change of mind.
func TestOwnUnsubscribeIsOnlyTold(t *testing.T) {
	b := setup(t)
	if err := b.Append(t.Context(), []outbox.Fact{
		{Key: "u", Type: event.ListUnsubscribe, MessageID: ann, Recipient: "ann@example.net", At: b.now(),
			Details: event.Later{Source: "unsubscribe"}},
		{Key: "v", Type: event.ListSubscribe, Account: "shop", Recipient: "zoe@example.net", At: b.now(),
			Details: event.Later{Source: "unsubscribe"}},
	}); err != nil {
		t.Fatal(err)
	}
	if err := b.applyAll(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"listSubscribe  zoe@example.net", "listUnsubscribe " + ann +
		" ann@example.net"}, b.box.all()); diff != "" {
		t.Error(diff)
	}
	if got := b.suppressed("ann@example.net", "shop", ""); got != "" {
		t.Errorf("suppressed: %q", got)
	}
}

// With bounces kept to the account that met them, one whose account is forgotten holds for no one, rather
// than for everybody.
func TestBouncesKeptToTheirAccount(t *testing.T) {
	b := setup(t)
	store, err := suppression.New(b.db, suppression.Options{Now: b.now})
	if err != nil {
		t.Fatal(err)
	}
	b.list.Store = store
	b.box.know("generic:long-ago", "01ARZ3NDEKTSV4RRFFQ69G5Y00")
	for _, body := range []string{said("complained", "ann@example.net", byEcho),
		said("complained", "zoe@example.net", `"providerMessageId":"long-ago"`)} {
		if err := b.tell(body); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.applyAll(); err != nil {
		t.Fatal(err)
	}
	for account, want := range map[string]string{"shop": "spam_report generic", "other": ""} {
		if got := b.suppressed("ann@example.net", account, ""); got != want {
			t.Errorf("%s: %q, want %q", account, got, want)
		}
	}
	if got := b.suppressed("zoe@example.net", "other", ""); got != "" {
		t.Errorf("zoe: %q", got)
	}
}

func TestSeveralPartitions(t *testing.T) {
	t.Parallel()
	b := setupOn(t, testredis.Open(t, redisdb.Options{Partitions: 5}))
	b.run()
	for n := range 40 {
		if err := b.tell(said("delivered", "ann@example.net", byEcho, fmt.Sprintf(`"id":"d%d"`, n))); err != nil {
			t.Fatal(err)
		}
	}
	b.eventually("all is applied", func() bool { return b.counts("generic")["applied"] == 40 })
	if got := len(b.box.all()); got != 40 {
		t.Errorf("%d learnt", got)
	}
}

func TestRestGrowsWithMail(t *testing.T) {
	for pace, want := range map[float64]float64{0: 0, 99: 0, 150: 1, 600: 4, 100_000: restMost} {
		b := &Feedback{opts: Options{Pace: func() float64 { return pace }}}
		if got := b.restFor(); got != want {
			t.Errorf("at %g: %g, want %g", pace, got, want)
		}
	}
	if (&Feedback{}).restFor() != 0 {
		t.Error("nobody says how much mail there is")
	}
}
