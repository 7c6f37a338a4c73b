package outbox

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb"
)

// readStream reads what the group has not read yet, as Follow does.
func (b *bundle) readStream(t *testing.T) [][]redisdb.Entry {
	t.Helper()
	var all [][]redisdb.Entry
	for p := range b.DB.Partitions() {
		key := b.keys.events(p)
		b.DB.Client().XGroupCreateMkStream(t.Context(), key, ratesGroup, "0") // it may exist
		got, err := b.DB.Client().XReadGroup(t.Context(), &redis.XReadGroupArgs{Group: ratesGroup, Consumer: "test",
			Streams: []string{key, ">"}, Count: 100_000, Block: -1}).Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var entries []redisdb.Entry
		for _, m := range got[0].Messages {
			entries = append(entries, redisdb.Entry{ID: m.ID, Partition: p, Values: m.Values})
		}
		all = append(all, entries)
	}
	return all
}

// countAll counts the events that are not counted yet.
func (b *bundle) countAll(t *testing.T) {
	t.Helper()
	for _, entries := range b.readStream(t) {
		if err := b.count(t.Context(), entries); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *bundle) rates(t *testing.T, q api.RatesQuery) []api.Rate {
	t.Helper()
	got, err := b.Rates(t.Context(), q)
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
		fact(5, event.MessageBounce, "b", event.Later{BounceType: "soft", Reason: "blocked"}),
		fact(5, event.MessageDeferred, "w", event.Later{}),
	)
	want := api.Rate{Sent: 6, Failed: 1, Delivered: 1, Deferred: 1, Hard: 1, Soft: 1, Blocked: 1, Complained: 1,
		Unsubscribed: 1, Opened: 1, Clicked: 1, OpenedBots: 1, BounceRate: 1. / 6, ComplaintRate: 1. / 6}
	named := func(name string, r api.Rate) api.Rate { r.Name = name; return r }
	b.countAll(t)
	b.clock.Advance(50 * 24 * time.Hour) // the log has nothing of it any more
	if err := b.Outbox.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	from := b.clock.Now().Add(-60 * 24 * time.Hour)
	other := api.Rate{Name: "y.test", Sent: 1}
	here := named("x.test", want)
	here.Sent, here.BounceRate, here.ComplaintRate = 5, .2, .2
	for _, row := range []struct {
		q    api.RatesQuery
		want []api.Rate
	}{
		{api.RatesQuery{}, []api.Rate{want}},
		{api.RatesQuery{Account: "default"}, []api.Rate{want}},
		{api.RatesQuery{Account: "other"}, []api.Rate{}},
		{api.RatesQuery{By: "lane"}, []api.Rate{named("bulk", want)}},
		{api.RatesQuery{By: "tag"}, []api.Rate{named("spring", want)}},
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
		if _, err := b.Rates(t.Context(), q); !invalidAt(err, name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEventsAreCountedOnce: a process dies after each step of counting, and others are given its entries.
func TestEventsAreCountedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	for i := range 10 {
		b.deliver(t, b.submit(t, api.SubmitRequest{To: for1(fmt.Sprintf("r%d@x.test", i))}))
	}
	entries := b.readStream(t)[0]
	for _, some := range [][]redisdb.Entry{
		entries[:7], // counted, and its answer lost
		entries[:7], // by the next process, in the same batch
		entries[5:], // in another one
		entries, entries[:1],
	} {
		if err := b.count(t.Context(), some); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.rates(t, api.RatesQuery{}); len(got) != 1 || got[0].Sent != 10 {
		t.Errorf("%+v", got)
	}
	if left, err := b.DB.Client().XPending(t.Context(), b.keys.events(0), ratesGroup).Result(); err != nil ||
		left.Count != 0 {
		t.Errorf("%+v, %v", left, err)
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
	keys, err := b.DB.Client().Keys(t.Context(), redisdb.Key(0, "rates", "*")).Result()
	if err != nil || len(keys) != 4 {
		t.Errorf("%q, %v", keys, err)
	}
	for _, key := range keys {
		if ttl := b.DB.Client().TTL(t.Context(), key).Val(); ttl <= 0 || ttl > keepRates {
			t.Errorf("%s is kept for %s", key, ttl)
		}
	}
}

// invalidAt reports whether an error is about one field.
func invalidAt(err error, field string) bool {
	f, ok := errors.AsType[*fault.Error](err)
	return ok && f.Kind == fault.Invalid && len(f.Fields) == 1 && f.Fields[0].Key == field
}
