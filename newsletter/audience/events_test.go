package audience_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/newsletter/audience"
)

// told returns the events of subscriptions in the stream, in short, and the whole of the last one.
func (b *bench) told(t testing.TB) (all []string, last event.Event) {
	t.Helper()
	entries, err := b.db.Client().XRange(t.Context(), redisdb.Key(0, "events"), "-", "+").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		e, err := event.Parse([]byte(entry.Values["e"].(string)))
		if err != nil {
			t.Fatal(err)
		}
		if e.Type != event.SubscriberConfirmed && e.Type != event.SubscriberLeft {
			continue
		}
		var d event.SubscriptionChange
		if err := json.Unmarshal(e.Data, &d); err != nil {
			t.Fatal(err)
		}
		last = e
		all = append(all, strings.Join([]string{string(e.Type), e.Account, d.Subscriber, d.Email, d.ListID,
			d.Reason}, " "))
	}
	return all, last
}

// tells expects events.
func (b *bench) tells(t testing.TB, want ...string) {
	t.Helper()
	got, _ := b.told(t)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestAConfirmationIsToldOnce, however often the button is pressed, with the source of the subscription.
// Neither the request for it nor a subscription with a consent is a confirmation.
func TestAConfirmationIsToldOnce(t *testing.T) {
	t.Parallel()
	a := setupAsking(t)
	a.public(t, "weekly", "double")
	a.public(t, "daily", "double")
	a.form(t, "Ann@example.net", "weekly", "daily")
	a.add(t, "bo@example.net", "weekly")
	a.tells(t)
	a.Advance(time.Hour)
	token := a.link(t, "Ann@example.net")
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if _, err := a.Confirm(t.Context(), token, visit); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	a.tells(t, "subscriberConfirmed default s0 Ann@example.net weekly form",
		"subscriberConfirmed default s0 Ann@example.net daily form")
	if _, e := a.told(t); !e.Time.Equal(start.Add(time.Hour)) || e.ID == "" {
		t.Errorf("the last one: %+v", e)
	}
}

// TestLeavingIsToldOnce: unsubscribing from a list, subscribed or pending, is reported with the way by which
// it happened. Anything else isn't: unsubscribing again, an import, an end without a confirmation, and a
// deletion.
func TestLeavingIsToldOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.list(t, "weekly", "single")
	b.list(t, "daily", "double")
	b.add(t, "ann@example.net", "weekly", "daily")
	for range 2 {
		b.leave(t, "ann@example.net", "weekly")
	}
	for range 2 {
		_, err := b.Leave(t.Context(), "", ofDefault, "ann@example.net", "daily", audience.SourcePage)
		if err != nil {
			t.Fatal(err)
		}
	}
	pending := func(email string) {
		t.Helper()
		if _, _, err := b.Create(t.Context(), "", api.SubscriberRequest{Email: email,
			Lists: []api.SubscriptionRequest{{ListID: "daily", State: "pending"}}}); err != nil {
			t.Fatal(err)
		}
	}
	pending("bo@example.net")
	b.leave(t, "bo@example.net", "daily")
	want := []string{"subscriberLeft default s0 ann@example.net weekly api",
		"subscriberLeft default s0 ann@example.net daily page", "subscriberLeft default s1 bo@example.net daily api"}
	b.tells(t, want...)

	pending("cy@example.net")
	b.Advance(31 * 24 * time.Hour)
	if n, err := b.Sweep(t.Context()); n != 1 || err != nil {
		t.Error(n, err)
	}
	b.add(t, "di@example.net", "weekly")
	b.add(t, "ed@example.net", "weekly")
	if _, err := b.Imports.Run(t.Context(), "", strings.NewReader("email\ned@example.net\n"),
		api.SubscriberImportOptions{ID: "left", ListID: []string{"weekly"}, State: "left"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Delete(t.Context(), "", ofDefault, "di@example.net"); err != nil {
		t.Fatal(err)
	}
	if got := b.counts(t, "weekly"); got != (api.ListCounts{Left: 2}) {
		t.Error("the list counts", got)
	}
	b.tells(t, want...)
}

// TestEventsOfSubscribersOnACluster: the script that changes a subscription reaches only the slot of the
// subscriber, and its event comes to the stream of all events nevertheless.
func TestEventsOfSubscribersOnACluster(t *testing.T) {
	t.Parallel()
	b := on(t, testredis.Connect(t, redisdb.Options{URL: testredis.Cluster(t, testredis.Topology{}).URL(),
		Partitions: 2}))
	b.list(t, "weekly", "single")
	b.add(t, "ann@example.net", "weekly")
	b.leave(t, "ann@example.net", "weekly")
	b.tells(t)
	queue := redisdb.Key(0, "subscriber-events")
	if n, err := b.db.Client().XLen(t.Context(), queue).Result(); n != 1 || err != nil {
		t.Fatalf("%d events wait, %v", n, err)
	}
	erased := make(chan error, 1)
	go func() { // it waits: the event must not come to the stream after the stream was searched for the person
		erased <- b.Subscribers.Erase(t.Context(), "default", "ann@example.net",
			func(int, int) error { return nil })
	}()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	if err := <-erased; err != nil {
		t.Error("erase:", err)
	}
	b.tells(t, "subscriberLeft default s0 ann@example.net weekly api")
	if n, err := b.db.Client().XLen(t.Context(), queue).Result(); n != 0 || err != nil {
		t.Errorf("%d events are left behind, %v", n, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
