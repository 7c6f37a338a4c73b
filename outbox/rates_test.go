package outbox

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

// countAll counts the events that are not counted yet.
func (b *bundle) countAll(t *testing.T) {
	t.Helper()
	if err := b.Counts.countNew(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (b *bundle) rates(t *testing.T, q api.RatesQuery) []api.Rate {
	t.Helper()
	got, err := b.Counts.Rates(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return got.Rates
}

func TestRatesOfMail(t *testing.T) {
	t.Parallel()
	b := setupOn(t, spread(t), Options{KeepEnded: time.Minute})
	b.sender.replies["r3@x.test"] = "550 5.1.1 no such user"
	ids := make([]string, 6)
	for i := range ids {
		to := api.Addresses{{Address: fmt.Sprintf("r%d@x.test", i)}}
		if i == 5 {
			to = append(to, api.Address{Address: "bob@y.test"})
		}
		ids[i] = b.submit(t, api.SubmitRequest{To: to, Tags: []string{"spring"}, Lane: api.Bulk})
		b.deliver(t, ids[i])
	}
	fact := func(i int, kind event.Type, key string, d event.Later) Fact {
		return Fact{Key: key, Type: kind, MessageID: ids[i], Index: 0, Details: d}
	}
	b.learn(t,
		fact(0, event.MessageDelivered, "d", event.Later{}),
		fact(0, event.TrackOpen, "1", event.Later{}), fact(0, event.TrackOpen, "2", event.Later{}),
		fact(0, event.TrackOpen, "3", event.Later{Bot: true}), fact(1, event.TrackClick, "1", event.Later{}),
		fact(1, event.MessageComplaint, "c", event.Later{}), fact(1, event.ListUnsubscribe, "u", event.Later{}),
		fact(2, event.MessageBounce, "h", event.Later{BounceType: "hard"}),
		fact(2, event.MessageBounce, "again", event.Later{BounceType: "hard"}),
		fact(4, event.MessageBounce, "s", event.Later{BounceType: "soft"}),
		fact(1, event.MessageBounce, "alone", event.Later{BounceType: "soft", Reason: event.Unconfirmed}),
		fact(0, event.MessageBounce, "forged", event.Later{BounceType: "soft", Reason: event.Unproven}),
		fact(0, event.MessageComplaint, "forged", event.Later{FeedbackType: "abuse", Reason: event.Unproven}),
		fact(5, event.MessageBounce, "b", event.Later{BounceType: "soft", Reason: "blocked"}),
		fact(5, event.MessageDeferred, "w", event.Later{}),
	)
	want := api.Rate{Sent: 6, Accepted: 7, Failed: 1, Delivered: 1, Deferred: 1, Hard: 2, Soft: 1, Blocked: 1,
		Complained: 1, Unsubscribed: 1, Opened: 1, Clicked: 1, OpenedBots: 1,
		BounceRate: 2. / 6, ComplaintRate: 1. / 6}
	named := func(name string, r api.Rate) api.Rate { r.Name = name; return r }
	b.countAll(t)
	b.clock.Advance(50 * 24 * time.Hour) // the log has nothing of it any more
	if err := b.Outbox.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	from := b.clock.Now().Add(-60 * 24 * time.Hour)
	other := api.Rate{Name: "y.test", Sent: 1}
	tagged := named("spring", want)
	tagged.Accepted = 0
	here := named("x.test", tagged)
	here.Sent, here.BounceRate, here.ComplaintRate = 5, .4, .2
	for _, row := range []struct {
		q    api.RatesQuery
		want []api.Rate
	}{
		{api.RatesQuery{}, []api.Rate{want}},
		{api.RatesQuery{Account: "default"}, []api.Rate{want}},
		{api.RatesQuery{Account: "other"}, []api.Rate{}},
		{api.RatesQuery{By: "lane"}, []api.Rate{named("bulk", want)}},
		{api.RatesQuery{By: "tag"}, []api.Rate{tagged}},
		{api.RatesQuery{By: "tag", Name: "winter"}, []api.Rate{}},
		{api.RatesQuery{By: "domain"}, []api.Rate{here, other}},
		{api.RatesQuery{By: "domain", Name: "y.test"}, []api.Rate{other}},
		{api.RatesQuery{By: "gateway"}, []api.Rate{}},
		{api.RatesQuery{To: from.Add(24 * time.Hour)}, []api.Rate{}},
	} {
		row.q.From = from
		if diff := cmp.Diff(row.want, b.rates(t, row.q)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", row.q, diff)
		}
	}
	steps := b.rates(t, api.RatesQuery{From: from, Step: "hour"})
	if at := b.clock.Now().Add(-50 * 24 * time.Hour).UTC().Truncate(time.Hour); len(steps) != 1 ||
		!steps[0].Time.Equal(at) || steps[0].Sent != 6 {
		t.Errorf("by hour: %+v", steps)
	}
	for name, q := range map[string]api.RatesQuery{
		"by": {By: "size"}, "step": {Step: "minute"}, "name": {Name: "x"}, "from": {From: from.AddDate(-2, 0, 0)},
	} {
		if _, err := b.Counts.Rates(t.Context(), q); !invalidAt(err, name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEventsAreCountedOnce: processes read the same events, die after each step, and lose answers.
func TestEventsAreCountedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	for i := range 10 {
		b.deliver(t, b.submit(t, api.SubmitRequest{To: for1(fmt.Sprintf("r%d@x.test", i))}))
	}
	former, entries, err := b.Counts.uncounted(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		from, to int
		want     bool
	}{
		{0, 7, true},
		{0, 7, false}, // the answer was lost, and it is repeated
		{0, 20, false},
		{5, 12, false},
		{7, 12, true},
	} {
		after := former
		if row.from > 0 {
			after = entries[row.from-1].ID
		}
		if got, err := b.Counts.count(t.Context(), 0, after, entries[row.from:row.to]); err != nil ||
			got != row.want {
			t.Errorf("%d to %d: %t, %v", row.from, row.to, got, err)
		}
	}
	b.lagOfRates(t, 8)
	b.countAll(t)
	b.lagOfRates(t, 0)
	if got := b.rates(t, api.RatesQuery{}); len(got) != 1 || got[0].Sent != 10 {
		t.Errorf("%+v", got)
	}
	accounts := []api.AccountInfo{{Account: api.Account{Account: "default"}},
		{Account: api.Account{Account: "other"}}}
	if err := b.Counts.CountEvents(t.Context(), accounts); err != nil {
		t.Fatal(err)
	}
	if events := accounts[0].Counters.Events; !maps.Equal(events, map[string]int{"messageSent": 10}) ||
		accounts[1].Counters.Events != nil {
		t.Errorf("%v, %v", events, accounts[1].Counters)
	}
}

// TestEventsOfADeletedAccountAreForgotten: those that were counted, and those that were not yet.
func TestEventsOfADeletedAccountAreForgotten(t *testing.T) {
	t.Parallel()
	b := setupOn(t, spread(t), Options{})
	send := func() {
		for range 6 {
			b.deliver(t, b.submit(t, api.SubmitRequest{To: for1("ann@x.test")}))
		}
	}
	counted := func() map[string]int {
		b.countAll(t)
		accounts := []api.AccountInfo{{Account: api.Account{Account: "default"}}}
		if err := b.Counts.CountEvents(t.Context(), accounts); err != nil {
			t.Fatal(err)
		}
		return accounts[0].Counters.Events
	}
	send()
	if n := counted()["messageSent"]; n != 6 {
		t.Fatalf("%d messages sent, want 6", n)
	}
	send()
	if err := b.Counts.ForgetEvents(t.Context(), "default"); err != nil || counted() != nil {
		t.Errorf("%v, %v", counted(), err)
	}
	if got := b.rates(t, api.RatesQuery{Account: "default"}); len(got) != 1 || got[0].Sent != 12 {
		t.Errorf("the rates, which stay: %+v", got)
	}
}

// lagOfRates checks how many events are not counted: retention must not delete them.
func (b *bundle) lagOfRates(t *testing.T, want int64) {
	t.Helper()
	groups, err := b.store.DB.Client().XInfoGroups(t.Context(), b.store.keys.events(0)).Result()
	if err != nil || len(groups) != 1 || groups[0].Lag != want || groups[0].Pending != 0 {
		t.Errorf("%+v, %v; want a lag of %d", groups, err, want)
	}
}

// TestCountingGoesOnAfterTrimming: the group is right about its lag although old events are gone, and a
// stream that was deleted is counted from its beginning.
func TestCountingGoesOnAfterTrimming(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	send := func() { b.deliver(t, b.submit(t, api.SubmitRequest{To: for1("ann@x.test")})) }
	for range 3 {
		send()
	}
	b.countAll(t)
	rdb, key := b.store.DB.Client(), b.store.keys.events(0)
	if err := rdb.XTrimMaxLen(t.Context(), key, 2).Err(); err != nil {
		t.Fatal(err)
	}
	send()
	b.lagOfRates(t, 2)
	b.countAll(t)
	b.lagOfRates(t, 0)
	if err := rdb.Del(t.Context(), key).Err(); err != nil {
		t.Fatal(err)
	}
	send()
	b.countAll(t)
	if got := b.rates(t, api.RatesQuery{}); len(got) != 1 || got[0].Sent != 5 {
		t.Errorf("%+v", got)
	}
}

// TestManyTagsAreCountedTogether: the memory of a day is bounded, and the sums are right.
func TestManyTagsAreCountedTogether(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	for i := range partsMost + 50 {
		b.deliver(t, b.submit(t, api.SubmitRequest{To: for1("ann@x.test"),
			Tags: []string{fmt.Sprintf("t%03d", i)}}))
	}
	b.countAll(t)
	rows := b.rates(t, api.RatesQuery{By: "tag"})
	if len(rows) != partsMost+1 || !rows[0].Other || rows[0].Sent != 50 || rows[1].Sent != 1 {
		t.Errorf("%d rows, %+v", len(rows), rows[0])
	}
	b.deliver(t, b.submit(t, api.SubmitRequest{To: for1("ann@x.test"), Tags: []string{"t000"}}))
	b.countAll(t)
	got := b.rates(t, api.RatesQuery{By: "tag", Name: "t000", Step: "hour"})
	if len(got) != 1 || got[0].Sent != 2 {
		t.Errorf("%+v", got)
	}
	keys, err := b.store.DB.Client().Keys(t.Context(), redisdb.Key(0, "rates", "*")).Result()
	if err != nil || len(keys) != 5 {
		t.Errorf("%q, %v", keys, err)
	}
	for _, key := range keys {
		if ttl := b.store.DB.Client().TTL(t.Context(), key).Val(); ttl <= 0 || ttl > keepRates {
			t.Errorf("%s is kept for %s", key, ttl)
		}
	}
}

// invalidAt reports whether an error is about one field.
func invalidAt(err error, field string) bool {
	f, ok := errors.AsType[*fault.Error](err)
	return ok && f.Kind == fault.Invalid && len(f.Fields) == 1 && f.Fields[0].Key == field
}
