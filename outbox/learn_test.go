package outbox

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/redisdb"
)

// eventsOf reads the events of a type from the stream.
func (b *bundle) eventsOf(t *testing.T, kind event.Type) []event.Event {
	t.Helper()
	var all []event.Event
	for p := range b.store.DB.Partitions() {
		entries, err := b.store.DB.Client().XRange(t.Context(), b.store.keys.events(p), "-", "+").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			e, err := event.Parse([]byte(entry.Values["e"].(string)))
			if err != nil {
				t.Fatal(err)
			}
			if e.Type == kind {
				all = append(all, e)
			}
		}
	}
	return all
}

func (b *bundle) learn(t *testing.T, facts ...Fact) []FactResult {
	t.Helper()
	results, err := b.Facts.RecordFacts(t.Context(), facts)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func TestLaterFactsJoinTheStory(t *testing.T) {
	t.Parallel()
	b := setupOn(t, spread(t), Options{})
	id := b.submit(t, api.SubmitRequest{
		To: api.Addresses{{Address: "ann@x.test"}, {Address: "bob@x.test"}}, Tags: []string{"a"},
		Metadata: json.RawMessage(`{"order":1}`),
	})
	b.deliver(t, id)
	at := b.clock.Now()
	bounce := Fact{Key: "ses:1", Type: event.MessageBounce, MessageID: id, Recipient: "bob@x.test", At: at,
		Details: event.Later{
			Source: "ses", BounceType: "hard", Status: "5.1.1", Code: 550, Diagnostic: "550 5.1.1 no such user",
		}}
	opened := Fact{Key: "open", Type: event.TrackOpen, MessageID: id, Index: -1, At: at.Add(-time.Minute),
		Details: event.Later{Source: "track", Bot: true, BotReason: "head"}}
	b.clock.Advance(time.Second)
	if diff := cmp.Diff([]FactResult{FactRecorded, FactRecorded, FactKnown},
		b.learn(t, bounce, opened, bounce)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}

	story, err := b.Reader.MessageEvents(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range story.Events {
		got = append(got, fmt.Sprint(e.Event, e.Recipients))
	}
	want := []string{"messageQueued[ann@x.test bob@x.test]", "messageSent[ann@x.test bob@x.test]",
		"trackOpen[ann@x.test bob@x.test]", "messageBounce[bob@x.test]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("story (-want +got):\n%s", diff)
	}
	last := story.Events[3]
	if last.Details == nil || last.Details.BounceType != "hard" ||
		last.Details.Diagnostic != "550 5.1.1 no such user" || !last.Date.Equal(at) {
		t.Errorf("the bounce reads %+v, %+v", last, last.Details)
	}

	events := b.eventsOf(t, event.MessageBounce)
	if len(events) != 1 {
		t.Fatalf("%d bounces in the stream", len(events))
	}
	var data event.Learned
	if err := json.Unmarshal(events[0].Data, &data); err != nil {
		t.Fatal(err)
	}
	if data.QueueID != id || data.Recipient != "bob@x.test" || string(data.Metadata) != `{"order":1}` ||
		!slices.Equal(data.Envelope.To, []string{"bob@x.test"}) || data.Status != "5.1.1" {
		t.Errorf("the webhook would say %+v", data)
	}
	if events[0].ID != last.EventID || events[0].Account != "default" {
		t.Errorf("event %s of account %s, in the story %s", events[0].ID, events[0].Account, last.EventID)
	}
	c, err := b.Queues.Counters(t.Context(), api.CounterQuery{})
	if err != nil || c.LaterHour != (api.LaterCounters{Bounced: 1, OpenedBots: 1}) || c.LaterDay != c.LaterHour {
		t.Errorf("counted %+v, %v", c.LaterHour, err)
	}
}

func TestLearningHasBounds(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{KeepEnded: time.Minute})
	id := b.submit(t, api.SubmitRequest{To: for1("ann@x.test")})
	b.deliver(t, id)
	const most = maxFacts + maxFactsEach
	clicks, deliveries, bounces := make([]Fact, most+1), make([]Fact, most+1), make([]Fact, most)
	for i := range clicks {
		clicks[i] = Fact{Key: fmt.Sprint(i), Type: event.TrackClick, MessageID: id}
		deliveries[i] = Fact{Key: fmt.Sprint(i), Type: event.MessageDelivered, MessageID: id}
	}
	for i := range bounces {
		bounces[i] = Fact{Key: fmt.Sprint(i), MessageID: id, Recipient: "ann@x.test",
			Type: []event.Type{event.MessageBounce, event.MessageComplaint, event.ListUnsubscribe}[i%3]}
	}
	for _, some := range [][]Fact{clicks, deliveries} {
		if results := b.learn(t, some...); results[most-2] != FactRecorded || results[most-1] != FactLimit {
			t.Errorf("the last three came to %v", results[most-2:])
		}
	}
	if results := b.learn(t, bounces...); slices.ContainsFunc(results,
		func(r FactResult) bool { return r != FactRecorded }) {
		t.Errorf("bounces, complaints and unsubscribes came to %v", results)
	}
	unknown := b.learn(t,
		Fact{Key: "1", Type: event.TrackOpen, MessageID: newID(b.clock.Now(), 0)},
		Fact{Key: "2", Type: event.TrackOpen, MessageID: newID(b.clock.Now(), 0), Account: "default"},
		Fact{Key: "3", Type: event.ListSubscribe, Account: "default", Recipient: "ann@x.test"},
		Fact{Key: "3", Type: event.ListSubscribe, Account: "default", Recipient: "ann@x.test"},
		Fact{Key: "4", Type: event.TrackOpen, MessageID: "no id"},
	)
	if diff := cmp.Diff([]FactResult{FactUnmatched, FactRecorded, FactRecorded, FactKnown, FactUnmatched},
		unknown); diff != "" {
		t.Errorf("of unknown messages (-want +got):\n%s", diff)
	}

	b.clock.Advance(time.Hour)
	if err := b.Outbox.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	keys, err := b.store.DB.Client().Keys(t.Context(), redisdb.Key(0, "later", "*")).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if ttl := b.store.DB.Client().TTL(t.Context(), key).Val(); ttl <= 0 {
			t.Errorf("%s is there for ever", key)
		}
	}
	if slices.Contains(keys, b.store.keys.facts(0, id)) {
		t.Error("what was known of a message outlived its entry in the log")
	}
}

// TestTheLastOfManyRecipients: a message to 250 is opened by bots, and then bounces for each.
func TestTheLastOfManyRecipients(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	var to api.Addresses
	for i := range 250 {
		to = append(to, api.Address{Address: fmt.Sprintf("r%d@x.test", i)})
	}
	id := b.submit(t, api.SubmitRequest{To: to})
	b.deliver(t, id)
	var facts []Fact
	for i := range 2 * maxFacts {
		facts = append(facts, Fact{Key: fmt.Sprint(i), Type: event.TrackOpen, MessageID: id, Index: -1})
	}
	for _, kind := range []event.Type{event.MessageDeferred, event.MessageDelivered, event.MessageBounce} {
		for i := range to {
			facts = append(facts, Fact{Key: fmt.Sprint(i), Type: kind, MessageID: id, Index: i})
		}
	}
	i := slices.IndexFunc(b.learn(t, facts...), func(r FactResult) bool { return r != FactRecorded })
	if i >= 0 {
		t.Errorf("fact %d is not recorded", i)
	}
}

// TestRecipientsOfAForgottenMessage: the log has it no more, and yet it is known whose it was and whom it
// went to.
func TestRecipientsOfAForgottenMessage(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{KeepReferences: time.Hour, KeepEnded: time.Minute})
	to := api.Addresses{{Address: "Ann@x.test"}, {Address: "bob@x.test"}}
	id := b.submit(t, api.SubmitRequest{To: to})
	b.deliver(t, id)
	b.clock.Advance(time.Hour)
	if err := b.Outbox.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	who, err := b.Facts.Recipients(t.Context(), []string{id, newID(b.clock.Now(), 0)})
	if err != nil {
		t.Fatal(err)
	}
	if a := who[0]; a.Known || a.Account != "default" || !a.Went("ann@x.test") || !a.Went("BOB@x.test") ||
		a.Went("eve@x.test") || who[1].Went("ann@x.test") || who[1].Account != "" {
		t.Errorf("%+v", who)
	}
	left := b.store.DB.Client().TTL(t.Context(), b.store.keys.reference(0, referenceHash(id))).Val()
	if left < 395*24*time.Hour {
		t.Errorf("known for %s", left)
	}
}

func TestFactsOfAMessageTheLogKeepsNothingOf(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{KeepEnded: -1})
	id := b.submit(t, api.SubmitRequest{To: for1("ann@x.test")})
	early := Fact{Key: "early", Type: event.MessageDelivered, MessageID: id, Recipient: "ann@x.test"}
	b.learn(t, early)
	b.deliver(t, id)
	if got := b.learn(t, early, Fact{Key: "late", Type: event.TrackOpen, MessageID: id,
		Account: "default"}); !slices.Equal(got, []FactResult{FactUnmatched, FactRecorded}) {
		t.Errorf("came to %v", got)
	}
	if ttl := b.store.DB.Client().TTL(t.Context(), b.store.keys.facts(0, id)).Val(); ttl <= 0 ||
		ttl > 72*time.Hour {
		t.Errorf("its facts stay for %s", ttl)
	}
}

func TestMessagesAreFoundByWhatOthersCallThem(t *testing.T) {
	t.Parallel()
	b := setupOn(t, spread(t), Options{KeepReferences: time.Hour})
	b.sender.host = "email-smtp.eu-west-1.amazonaws.com:587"
	b.sender.replies["ann@x.test"] = "250 Ok 0102018c8e1b7f3a-11111111-2222-3333-4444-555555555555-000000"
	own := b.submit(t, api.SubmitRequest{To: for1("ann@x.test"), MessageID: "<order-1@shop.test>"})
	b.deliver(t, own)
	ours := b.submit(t, api.SubmitRequest{To: for1("bob@x.test")})
	b.deliver(t, ours)
	ids, err := b.Facts.Lookup(t.Context(), []string{"<order-1@shop.test>",
		"ses:0102018c8e1b7f3a-11111111-2222-3333-4444-555555555555-000000", "ses:other"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range ids {
		ids[i], _, _ = MessageOf(ids[i])
	}
	if diff := cmp.Diff([]string{own, own, ""}, ids); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	m, err := b.Reader.Message(t.Context(), ours)
	if err != nil {
		t.Fatal(err)
	}
	if id, _, ok := MessageOf(m.MessageID); !ok || id != ours {
		t.Errorf("message id %s of message %s tells %q", m.MessageID, ours, id)
	}
	if id, _, ok := MessageOf("<order-1@shop.test>"); ok {
		t.Errorf("somebody else's message id tells %q", id)
	}
	who, err := b.Facts.Recipients(t.Context(), []string{own, newID(b.clock.Now(), 1)})
	if err != nil || !who[0].Known || who[0].Account != "default" ||
		!slices.Equal(who[0].To, []string{"ann@x.test"}) || who[1].Known {
		t.Errorf("recipients %+v, %v", who, err)
	}
}
