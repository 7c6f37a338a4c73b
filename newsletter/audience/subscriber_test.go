package audience_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/outbox/suppression"
)

var ofDefault = api.SubscriberAccount{}

func TestASubscriberIsStoredWhole(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.list(t, "weekly", "double")
	made, created, err := b.Create(t.Context(), "", api.SubscriberRequest{
		Email: " Ann@EXAMPLE.net", Name: "Ann", Locale: "de-at", TZ: "Europe/Vienna",
		Tags:       []string{"beta", "beta"},
		Attributes: map[string]any{"plan": "pro", "seats": 3.0, "vip": true, "colors": []any{"red"}},
		Lists:      []api.SubscriptionRequest{{ListID: "weekly", State: "subscribed"}},
		Consent:    consent,
	})
	if err != nil || !created {
		t.Fatal(created, err)
	}
	want := api.Subscriber{ID: "s0", Account: "default", Email: "Ann@example.net", Name: "Ann", Locale: "de-AT",
		TZ: "Europe/Vienna", Tags: []string{"beta"},
		Attributes: map[string]any{"plan": "pro", "seats": 3.0, "vip": true, "colors": []any{"red"}},
		Lists:      []api.Subscription{{ListID: "weekly", State: "subscribed", Since: start, Source: "checkout"}},
		Version:    1, Created: start, Updated: start}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Error("the answer:", diff)
	}
	for _, name := range []string{"s0", "ann@example.net", "ANN@example.NET"} {
		got, err := b.Get(t.Context(), "", ofDefault, name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(name, diff)
		}
	}
	history, err := b.Consents(t.Context(), "", ofDefault, "s0")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]api.ConsentEntry{{ListID: "weekly", State: "subscribed", Since: start,
		Source: "checkout", Text: "Send me news", Network: "192.0.2.0/24", Current: true}},
		history.Consents); diff != "" {
		t.Error("the history:", diff)
	}
}

func TestAnAddressIsUniqueInItsAccount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.add(t, "ann@example.net")
	_, _, err := b.Create(t.Context(), "", api.SubscriberRequest{Email: "ANN@example.net"})
	if fault.CodeOf(err) != "SubscriberExists" {
		t.Error("the same address again:", err)
	}
	if _, created, err := b.Create(t.Context(), "", api.SubscriberRequest{Email: "ann@example.net",
		Account: "other"}); err != nil || !created {
		t.Error("in another account:", created, err)
	}
	sub, created, err := b.Create(t.Context(), "", api.SubscriberRequest{Email: "ANN@example.net", Name: "Ann",
		Upsert: true})
	if err != nil || created || sub.ID != "s0" || sub.Name != "Ann" || sub.Version != 2 {
		t.Error("an upsert:", sub, created, err)
	}
}

// TestSimultaneousCreationsMakeOneSubscriber: one creates it, and the others get that answer.
func TestSimultaneousCreationsMakeOneSubscriber(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.list(t, "weekly", "single")
	var group sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for i := range 16 {
		group.Go(func() {
			_, created, err := b.Create(t.Context(), "", api.SubscriberRequest{Email: "ann@example.net",
				Name: fmt.Sprint(i), Upsert: i%2 == 0, Lists: []api.SubscriptionRequest{{ListID: "weekly"}}})
			if err != nil && fault.CodeOf(err) != "SubscriberExists" {
				t.Error(err)
			}
			if created {
				mu.Lock()
				made++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if made != 1 {
		t.Errorf("%d creations say that they made it", made)
	}
	if n, err := b.Count(t.Context(), "default"); n != 1 || err != nil {
		t.Error("counted:", n, err)
	}
	if got := b.counts(t, "weekly"); got != (api.ListCounts{Subscribed: 1}) {
		t.Error("the list counts", got)
	}
}

func TestFaultsOfASubscriberNameTheirFields(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.list(t, "weekly", "double")
	long := strings.Repeat("x", 5000)
	for _, row := range []struct {
		name string
		in   api.SubscriberRequest
		want string
	}{
		{"no address", api.SubscriberRequest{Email: "ann"}, "email"},
		{"zone", api.SubscriberRequest{Email: "a@example.net", TZ: "CEST"}, "tz"},
		{"local zone", api.SubscriberRequest{Email: "a@example.net", TZ: "Local"}, "tz"},
		{"locale", api.SubscriberRequest{Email: "a@example.net", Locale: "??"}, "locale"},
		{"name", api.SubscriberRequest{Email: "a@example.net", Name: "a\x00b"}, "name"},
		{"tag", api.SubscriberRequest{Email: "a@example.net", Tags: []string{"a", " "}}, "tags[1]"},
		{"attribute name", api.SubscriberRequest{Email: "a@example.net",
			Attributes: map[string]any{"__proto__": "x"}}, "attributes"},
		{"attribute too deep", api.SubscriberRequest{Email: "a@example.net",
			Attributes: map[string]any{"a": map[string]any{"b": 1}}}, "attributes.a"},
		{"attributes too large", api.SubscriberRequest{Email: "a@example.net",
			Attributes: map[string]any{"a": long}}, "attributes"},
		{"no consent", api.SubscriberRequest{Email: "a@example.net",
			Lists: []api.SubscriptionRequest{{ListID: "weekly", State: "subscribed"}}}, "lists[0].state"},
		{"a list twice", api.SubscriberRequest{Email: "a@example.net",
			Lists: []api.SubscriptionRequest{{ListID: "weekly"}, {ListID: "WEEKLY"}}}, "lists[1].listId"},
		{"future consent", api.SubscriberRequest{Email: "a@example.net",
			Consent: &api.Consent{Source: "x", Time: new(start.Add(48 * time.Hour))}}, "consent.time"},
		{"address of a consent", api.SubscriberRequest{Email: "a@example.net",
			Consent: &api.Consent{Source: "x", IP: "nowhere"}}, "consent.ip"},
	} {
		_, _, err := b.Create(t.Context(), "", row.in)
		f, ok := err.(*fault.Error)
		if !ok || f.Kind != fault.Invalid || len(f.Fields) == 0 || f.Fields[0].Key != row.want {
			t.Errorf("%s: %v, want a fault of %s", row.name, err, row.want)
		}
	}
	_, _, err := b.Create(t.Context(), "", api.SubscriberRequest{Email: "a@example.net",
		Lists: []api.SubscriptionRequest{{ListID: "none"}}})
	if fault.CodeOf(err) != "ListNotFound" {
		t.Error("an unknown list:", err)
	}
	_, _, err = b.Create(t.Context(), "", api.SubscriberRequest{Email: "a@example.net", Account: "nobody"})
	if fault.CodeOf(err) != "AccountNotFound" {
		t.Error("an unknown account:", err)
	}
}

// TestWhoLeftStaysAway: neither an upsert nor an import brings back who left, unless there is a consent.
func TestWhoLeftStaysAway(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.list(t, "weekly", "single")
	b.add(t, "ann@example.net", "weekly")
	left, err := b.Leave(t.Context(), "", ofDefault, "ann@example.net", "weekly", audience.SourceAPI)
	if !left || err != nil {
		t.Fatal(left, err)
	}
	if got := b.counts(t, "weekly"); got != (api.ListCounts{Left: 1}) {
		t.Error("the list counts", got)
	}
	again := api.SubscribeRequest{Lists: []api.SubscriptionRequest{{ListID: "weekly"}}}
	for _, row := range []struct {
		name        string
		consent     *api.Consent
		resubscribe bool
		skipped     bool
	}{
		{"plainly", nil, false, true}, {"with a consent", consent, false, true},
		{"without a consent", nil, true, true}, {"with both", consent, true, false},
	} {
		again.Consent, again.Resubscribe = row.consent, row.resubscribe
		sub, err := b.Subscribe(t.Context(), "", ofDefault, "ann@example.net", again)
		if err != nil {
			t.Fatal(row.name, err)
		}
		if got := len(sub.Skipped) == 1; got != row.skipped {
			t.Errorf("%s: skipped %v", row.name, sub.Skipped)
		}
	}
	if got := b.state(t, "s0", "weekly"); got != "subscribed" {
		t.Error("the state is", got)
	}
	found, err := b.Suppressions.Check(t.Context(), suppression.Question{Account: "default", List: "weekly",
		Bulk: true, Addresses: []string{"ann@example.net"}})
	if err != nil || found[0] != nil {
		t.Error("still suppressed:", found[0], err)
	}
}

// TestWhoBouncedNeverComesBack: after a bounce or a complaint even a consent does not help.
func TestWhoBouncedNeverComesBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.list(t, "weekly", "single")
	for i, reason := range []suppression.Reason{suppression.HardBounce, suppression.SpamReport,
		suppression.Manual} {
		address := fmt.Sprintf("ann%d@example.net", i)
		if _, err := b.Suppressions.Add(t.Context(), suppression.Entry{Address: address, Account: "default",
			Reason: reason}); err != nil {
			t.Fatal(err)
		}
		sub, _, err := b.Create(t.Context(), "", api.SubscriberRequest{Email: address, Consent: consent,
			Resubscribe: true, Lists: []api.SubscriptionRequest{{ListID: "weekly"}}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]api.SkippedList{{ListID: "weekly", Reason: string(reason)}},
			sub.Skipped); diff != "" || len(sub.Lists) > 0 {
			t.Error(reason, sub.Lists, diff)
		}
	}
}

func TestUpdatesChangeWhatTheyName(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.list(t, "weekly", "single")
	b.add(t, "ann@example.net", "weekly")
	b.add(t, "bo@example.net")
	got, err := b.Update(t.Context(), "", ofDefault, "s0", api.SubscriberPatch{Name: new("Ann"),
		Attributes: map[string]any{"plan": "pro", "seats": 2.0}, Version: new(1)})
	if err != nil || got.Name != "Ann" || got.Version != 2 || len(got.Lists) != 1 {
		t.Fatal(got, err)
	}
	got, err = b.Update(t.Context(), "", ofDefault, "s0", api.SubscriberPatch{
		Attributes: map[string]any{"plan": nil}})
	if err != nil || len(got.Attributes) != 1 {
		t.Error("an attribute was not removed:", got.Attributes, err)
	}
	if _, err = b.Update(t.Context(), "", ofDefault, "s0", api.SubscriberPatch{Name: new("X"),
		Version: new(1)}); fault.CodeOf(err) != "SubscriberChanged" {
		t.Error("an old version:", err)
	}
	if _, err = b.Update(t.Context(), "", ofDefault, "s0", api.SubscriberPatch{
		Email: new("BO@example.net")}); fault.CodeOf(err) != "SubscriberExists" {
		t.Error("the address of another:", err)
	}
	if _, err = b.Update(t.Context(), "", ofDefault, "s0", api.SubscriberPatch{
		Email: new("ann@example.org")}); err != nil {
		t.Fatal(err)
	}
	if _, err = b.Get(t.Context(), "", ofDefault, "ann@example.net"); !fault.Is(err, fault.NotFound) {
		t.Error("the old address is still found:", err)
	}
	if sub := b.add(t, "ann@example.net"); sub.ID == "s0" {
		t.Error("the old address leads to the same subscriber")
	}
}

func TestADeletedSubscriberIsGone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.list(t, "weekly", "single")
	b.add(t, "ann@example.net", "weekly")
	if done, err := b.Delete(t.Context(), "", ofDefault, "ann@example.net"); !done || err != nil {
		t.Fatal(done, err)
	}
	if done, err := b.Delete(t.Context(), "", ofDefault, "s0"); done || err != nil {
		t.Error("again:", done, err)
	}
	if got := b.counts(t, "weekly"); got != (api.ListCounts{}) {
		t.Error("the list counts", got)
	}
	if sub := b.add(t, "ann@example.net"); sub.ID == "s0" {
		t.Error("an ordinal was given twice")
	}
}

// TestAccountsDoNotSeeEachOther: lists and subscribers of another account do not exist.
func TestAccountsDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.list(t, "weekly", "single")
	b.add(t, "ann@example.net", "weekly")
	if _, err := b.Lists.Get(t.Context(), "other", "weekly"); fault.CodeOf(err) != "ListNotFound" {
		t.Error("the list of another:", err)
	}
	if _, err := b.Get(t.Context(), "other", ofDefault, "ann@example.net"); !fault.Is(err, fault.NotFound) {
		t.Error("the subscriber of another:", err)
	}
	if _, err := b.Get(t.Context(), "other", api.SubscriberAccount{Account: "default"},
		"s0"); !fault.Is(err, fault.Forbidden) {
		t.Error("by naming the account:", err)
	}
	_, _, err := b.Create(t.Context(), "other", api.SubscriberRequest{Email: "eve@example.net",
		Lists: []api.SubscriptionRequest{{ListID: "weekly"}}})
	if fault.CodeOf(err) != "ListNotFound" {
		t.Error("onto the list of another:", err)
	}
	if _, err := b.Lists.Delete(t.Context(), "other", "weekly"); fault.CodeOf(err) != "ListNotFound" {
		t.Error("deleting the list of another:", err)
	}
}

func TestPagesOfSubscribers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.list(t, "weekly", "single")
	for i := range 100 {
		lists := []string{}
		if i%3 == 0 {
			lists = append(lists, "weekly")
		}
		b.add(t, fmt.Sprintf("p%d@example.net", i), lists...)
	}
	read := func(q api.SubscriberQuery) []string {
		var emails []string
		for {
			page, err := b.Page(t.Context(), "", q)
			if err != nil {
				t.Fatal(err)
			}
			for _, sub := range page.Subscribers {
				emails = append(emails, sub.Email)
			}
			if q.Cursor = page.Cursor; q.Cursor == "" {
				return emails
			}
		}
	}
	all := api.SubscriberQuery{CursorQuery: api.CursorQuery{PageSize: 7}}
	if got := read(all); len(got) != 100 || got[99] != "p99@example.net" {
		t.Errorf("%d rows: %v", len(got), got)
	}
	weekly := api.SubscriberQuery{ListID: "weekly", State: "subscribed",
		CursorQuery: api.CursorQuery{PageSize: 10}}
	if got := read(weekly); len(got) != 34 || got[1] != "p3@example.net" {
		t.Errorf("%d rows of the list: %v", len(got), got)
	}
	if got := read(api.SubscriberQuery{Search: "P5"}); len(got) != 11 {
		t.Errorf("%d rows of a search: %v", len(got), got)
	}
	if got := read(api.SubscriberQuery{Search: "p5@EXAMPLE.net"}); len(got) != 1 {
		t.Errorf("%d rows of an address: %v", len(got), got)
	}
	page, err := b.Page(t.Context(), "", api.SubscriberQuery{ListID: "weekly"})
	if err != nil || page.Total == nil || *page.Total != 34 {
		t.Error("the total:", page.Total, err)
	}
	wrong := api.SubscriberQuery{CursorQuery: api.CursorQuery{Cursor: "!"}}
	if _, err := b.Page(t.Context(), "", wrong); !fault.Is(err, fault.Invalid) {
		t.Error("a wrong cursor:", err)
	}
}

// TestNobodyConfirmed: a pending subscription ends after its time. Who had left before has left again, and a
// visitor who confirmed nothing is forgotten.
func TestNobodyConfirmed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.list(t, "weekly", "double")
	b.add(t, "left@example.net", "weekly")
	b.leave(t, "left@example.net", "weekly")
	pending := []api.SubscriptionRequest{{ListID: "weekly"}}
	if _, err := b.Subscribe(t.Context(), "", ofDefault, "left@example.net", api.SubscribeRequest{
		Lists: pending, Resubscribe: true}); err != nil {
		t.Fatal(err)
	}
	for email, source := range map[string]string{"form@example.net": "form", "api@example.net": "shop"} {
		if _, _, err := b.Create(t.Context(), "", api.SubscriberRequest{Email: email, Lists: pending,
			Consent: &api.Consent{Source: source}}); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.counts(t, "weekly"); got != (api.ListCounts{Pending: 3}) {
		t.Fatal("the list counts", got)
	}
	b.Advance(29 * 24 * time.Hour)
	if n, err := b.Sweep(t.Context()); n != 0 || err != nil {
		t.Fatal("too early:", n, err)
	}
	b.Advance(48 * time.Hour)
	if n, err := b.Sweep(t.Context()); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	if got := b.counts(t, "weekly"); got != (api.ListCounts{Left: 1}) {
		t.Error("the list counts", got)
	}
	if _, err := b.Get(t.Context(), "", ofDefault, "form@example.net"); !fault.Is(err, fault.NotFound) {
		t.Error("the visitor is still there:", err)
	}
	if got := b.state(t, "left@example.net", "weekly"); got != "left" {
		t.Error("who left is", got)
	}
	if got := b.state(t, "api@example.net", "weekly"); got != "" {
		t.Error("who was added is", got)
	}
}
