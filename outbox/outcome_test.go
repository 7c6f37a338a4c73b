package outbox

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/smtpsend/replies"
)

// listed returns what a status of the log lists, as "id outcome".
func (b *bundle) listed(t *testing.T, q api.LogQuery) []string {
	t.Helper()
	page, err := b.Reader.Messages(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{}
	for _, m := range page.Messages {
		all = append(all, fmt.Sprint(m.QueueID, " ", m.Stands()))
	}
	return all
}

// TestLogKnowsOutcomes: a message is listed under its weightiest report, whatever their order.
func TestLogKnowsOutcomes(t *testing.T) {
	t.Parallel()
	b := setupOn(t, spread(t), Options{KeepEnded: time.Hour, MaxEnded: 1000})
	told := func(kind event.Type, id string, details event.Later) Fact {
		return Fact{Key: fmt.Sprint(kind, details.Bot), Type: kind, MessageID: id, Recipient: "ann@x.test",
			Details: details}
	}
	send := func() string {
		id := b.submit(t, api.SubmitRequest{To: for1("ann@x.test"), Account: "shop"})
		b.deliver(t, id)
		return id
	}
	untold, read, hit, back := send(), send(), send(), send()
	b.learn(t, told(event.TrackOpen, hit, event.Later{Bot: true}),
		told(event.MessageDelivered, read, event.Later{}), told(event.TrackClick, read, event.Later{}),
		told(event.TrackOpen, read, event.Later{}),
		told(event.MessageBounce, back, event.Later{BounceType: "hard", Diagnostic: "550 5.1.1 nobody"}),
		told(event.MessageDelivered, back, event.Later{}))
	for status, want := range map[api.MessageStatus][]string{
		api.OutcomeClicked: {read + " clicked"}, api.OutcomeBounced: {back + " bounced"},
		api.OutcomeDelivered: {}, api.OutcomeOpened: {}, api.OutcomeComplained: {}, api.OutcomeUnsubscribed: {},
		api.StatusSent: {back + " bounced", hit + " sent", read + " clicked", untold + " sent"},
	} {
		for _, account := range []string{"", "shop"} {
			if diff := cmp.Diff(want, b.listed(t, api.LogQuery{Status: status, Account: account})); diff != "" {
				t.Errorf("%s of %q (-want +got):\n%s", status, account, diff)
			}
		}
		if diff := cmp.Diff([]string{}, b.listed(t, api.LogQuery{Status: status, Account: "other"})); diff != "" {
			t.Errorf("%s of another account:\n%s", status, diff)
		}
	}
	m, err := b.Reader.Message(t.Context(), back)
	if err != nil {
		t.Fatal(err)
	}
	want := &api.Outcome{Status: api.OutcomeBounced, Date: b.clock.Now().UTC(),
		Recipients:  []string{"ann@x.test"},
		Details:     api.EventDetails{BounceType: "hard", Diagnostic: "550 5.1.1 nobody"},
		Explanation: new(replies.Explain("550 5.1.1 nobody"))}
	if diff := cmp.Diff(want, m.Outcome); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOutcomesGoWithTheLog: no index names a message that the log has not, or not any more.
func TestOutcomesGoWithTheLog(t *testing.T) {
	t.Parallel()
	b := setupOn(t, spread(t), Options{KeepEnded: time.Hour, MaxEnded: 1000})
	id := b.submit(t, api.SubmitRequest{To: for1("ann@x.test"), Account: "shop"})
	b.deliver(t, id)
	unknown := newID(b.clock.Now(), 0)
	b.learn(t, Fact{Key: "1", Type: event.MessageBounce, MessageID: id, Recipient: "ann@x.test"},
		Fact{Key: "1", Type: event.MessageBounce, MessageID: unknown, Account: "shop", Recipient: "bob@x.test"})
	if got := b.listed(t, api.LogQuery{Status: api.OutcomeBounced}); len(got) != 1 {
		t.Fatalf("listed: %v", got)
	}
	b.clock.Advance(2 * time.Hour)
	if _, err := (&retention{d: b.Operations}).tidy(t.Context(), b.clock.Now()); err != nil {
		t.Fatal(err)
	}
	for p := range b.store.DB.Partitions() {
		keys, err := b.store.DB.Client().Keys(t.Context(), b.store.keys.outcome(p, "*", "*")).Result()
		if err != nil || len(keys) > 0 {
			t.Errorf("left: %v, %v", keys, err)
		}
	}
}
