package audience

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/redisdb"
)

// happened returns the entry of an event about a recipient.
func happened(t *testing.T, what event.Type, recipient, list string, at time.Time) redisdb.Entry {
	t.Helper()
	e, err := event.New("1", what, DefaultAccount, at, event.Learned{Recipient: recipient,
		Later: event.Later{ListID: list}})
	if err != nil {
		t.Fatal(err)
	}
	line, err := e.Line()
	if err != nil {
		t.Fatal(err)
	}
	return redisdb.Entry{Values: map[string]any{field: line}}
}

// TestListsFollowTheLinksOfMail: someone who unsubscribes by an email has left the list, or all lists, and
// comes back to these by the same page. Each unsubscribe is reported once. Repeated events, and another
// list's events, change nothing.
func TestListsFollowTheLinksOfMail(t *testing.T) {
	t.Parallel()
	s := newAudience(t)
	a, b := newList(t, s, "a"), newList(t, s, "b")
	sub, _, err := s.Create(t.Context(), "", api.SubscriberRequest{Email: "ann@example.net",
		Lists: []api.SubscriptionRequest{{ListID: "a"}, {ListID: "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	ordinal, _ := ordinalOf(sub.ID)
	at := s.now()
	for _, step := range []struct {
		what       event.Type
		list       string
		wantA, own State
	}{
		{event.ListUnsubscribe, "a", Left, Subscribed},
		{event.ListUnsubscribe, "a", Left, Subscribed},
		{event.ListSubscribe, "other", Left, Subscribed},
		{event.ListSubscribe, "a", Subscribed, Subscribed},
		{event.ListUnsubscribe, "", Left, Left},
		{event.ListSubscribe, "a", Left, Left}, // it was all mail that was stopped
		{event.ListSubscribe, "", Subscribed, Subscribed},
	} {
		at = at.Add(time.Second)
		entries := []redisdb.Entry{happened(t, event.MessageSent, "ann@example.net", "a", at),
			happened(t, step.what, "Ann@example.net", step.list, at),
			happened(t, step.what, "unknown@example.net", step.list, at)}
		for range 2 {
			if err := s.follow(t.Context(), entries); err != nil {
				t.Fatal(err)
			}
		}
		r, err := s.load(t.Context(), DefaultAccount, ordinal)
		if err != nil {
			t.Fatal(err)
		}
		if r.stateOn(a.Number) != step.wantA || r.stateOn(b.Number) != step.own {
			t.Errorf("%s of %q: %s and %s, want %s and %s", step.what, step.list, r.stateOn(a.Number),
				r.stateOn(b.Number), step.wantA, step.own)
		}
	}
	agree(t, s, a)
	agree(t, s, b)
	want := []string{"a unsubscribe", "a unsubscribe-all", "b unsubscribe-all"}
	if diff := cmp.Diff(want, leavings(t, s)); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// leavings returns the list and the reason in each unsubscribe event.
func leavings(t *testing.T, s *Subscribers) (all []string) {
	t.Helper()
	entries, err := s.db.Client().XRange(t.Context(), redisdb.Key(0, stream), "-", "+").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		e, err := event.Parse([]byte(entry.Values[field].(string)))
		var data event.SubscriptionChange
		if err == nil {
			err = json.Unmarshal(e.Data, &data)
		}
		if err != nil || e.Type != event.SubscriberLeft {
			t.Fatal(e, err)
		}
		all = append(all, data.ListID+" "+data.Reason)
	}
	return all
}
