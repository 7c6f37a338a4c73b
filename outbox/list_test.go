package outbox

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

// fill submits n messages, a millisecond apart: every third is bulk, every fourth is scheduled, and tags and
// subjects differ.
func fill(t *testing.T, b *bundle, n int) []string {
	t.Helper()
	later := b.clock.Now().Add(time.Hour)
	var ids []string
	for i := range n {
		req := api.SubmitRequest{
			To: api.Addresses{{Address: fmt.Sprintf("ann%d@x.test", i)}}, Text: "x", Subject: fmt.Sprintf("Invoice %d",
				i),
			Tags: []string{fmt.Sprintf("t%d", i%2)},
		}
		if i%3 == 0 {
			req.Lane = api.Bulk
		}
		if i%4 == 0 {
			req.SendAt = &later
		}
		a, err := b.Intake.Submit(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, a.QueueID)
		b.clock.Advance(time.Millisecond)
	}
	return ids
}

func numbers(ids []string, page api.OutboxPage) []int {
	var out []int
	for _, m := range page.Messages {
		out = append(out, slices.Index(ids, m.QueueID))
	}
	return out
}

func TestListSelects(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int{1, 3} {
		b := setupOn(t, testredis.Open(t, redisdb.Options{Partitions: partitions}), Options{})
		begin := b.clock.Now()
		ids := fill(t, b, 12)
		for name, c := range map[string]struct {
			q     api.OutboxQuery
			want  []int
			total int
		}{
			"all":                            {api.OutboxQuery{}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 12},
			"page":                           {api.OutboxQuery{Page: 1, PageSize: 5}, []int{5, 6, 7, 8, 9}, 12},
			"last page":                      {api.OutboxQuery{Page: 2, PageSize: 5}, []int{10, 11}, 12},
			"beyond":                         {api.OutboxQuery{Page: 9, PageSize: 5}, nil, 12},
			"delayed, as EmailEngine has it": {api.OutboxQuery{State: api.Delayed}, []int{0, 4, 8}, 3},
			"delayed at the pages":           {api.OutboxQuery{State: OnlyDelayed}, nil, 0},
			"scheduled":                      {api.OutboxQuery{State: api.Scheduled}, []int{0, 4, 8}, 3},
			"waiting":                        {api.OutboxQuery{State: api.Waiting, PageSize: 2}, []int{1, 2}, 9},
			"bulk":                           {api.OutboxQuery{Lane: api.Bulk}, []int{0, 3, 6, 9}, 4},
			"scheduled bulk":                 {api.OutboxQuery{Lane: api.Bulk, State: api.Scheduled}, []int{0}, 1},
			"paused":                         {api.OutboxQuery{State: api.Paused}, nil, 0},
			"account":                        {api.OutboxQuery{Account: "default", PageSize: 3}, []int{0, 1, 2}, 12},
			"another account":                {api.OutboxQuery{Account: "other"}, nil, 0},
			"account, state": {api.OutboxQuery{Account: "default", State: api.Scheduled},
				[]int{0, 4, 8}, 3},
			"tag":       {api.OutboxQuery{Tag: "t1", PageSize: 2}, []int{1, 3}, 6},
			"tag, page": {api.OutboxQuery{Tag: "t1", PageSize: 2, Page: 2}, []int{9, 11}, 6},
			"subject":   {api.OutboxQuery{Search: "INVOICE 1"}, []int{1, 10, 11}, 3},
			"address":   {api.OutboxQuery{Search: "Ann7@"}, []int{7}, 1},
			"after": {api.OutboxQuery{CreatedAfter: begin.Add(8 * time.Millisecond)}, []int{8, 9, 10, 11},
				4},
			"before": {api.OutboxQuery{CreatedBefore: begin.Add(2 * time.Millisecond)}, []int{0, 1}, 2},
		} {
			t.Run(fmt.Sprintf("%s on %d", name, partitions), func(t *testing.T) {
				page, err := b.Reader.List(t.Context(), c.q)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, numbers(ids, page)); diff != "" {
					t.Errorf("rows (-want +got):\n%s", diff)
				}
				if page.Total != c.total {
					t.Errorf("total %d, want %d", page.Total, c.total)
				}
			})
		}
	}
}

// TestCursorSeesEverythingOnce reads the outbox by cursor while messages leave it. Many messages share a
// millisecond.
func TestCursorSeesEverythingOnce(t *testing.T) {
	t.Parallel()
	for _, q := range []api.OutboxQuery{{}, {Tag: "t0"}, {State: api.Waiting}} {
		b := setupOn(t, testredis.Open(t, redisdb.Options{Partitions: 2}), Options{})
		ids := fill(t, b, 20)
		for range 5 {
			b.clock.Advance(-time.Millisecond)
			ids = append(ids, fill(t, b, 1)...)
		}
		q.PageSize = 3
		seen := map[string]int{}
		for n := 0; ; n++ {
			page, err := b.Reader.List(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range page.Messages {
				seen[m.QueueID]++
			}
			if n == 1 { // one that was seen leaves; pages by number would now skip another
				if _, err := b.Operations.Cancel(t.Context(), page.Messages[0].QueueID, ReasonAPI); err != nil {
					t.Fatal(err)
				}
			}
			if page.Cursor == "" {
				break
			}
			q.Cursor = page.Cursor
		}
		q.Cursor, q.PageSize = "", 100
		rest, err := b.Reader.List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range rest.Messages {
			if seen[m.QueueID] != 1 {
				t.Errorf("%+v: message %d was seen %d times", q, slices.Index(ids, m.QueueID), seen[m.QueueID])
			}
		}
	}
}

// TestWhoIsBeingSentDoesNotWait: a message that is being sent is listed and counted as active, not as
// waiting, on every page, by every filter, and waits again after its worker died.
func TestWhoIsBeingSentDoesNotWait(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int{1, 3} {
		testWhoIsBeingSent(t, setupOn(t, testredis.Open(t, redisdb.Options{Partitions: partitions}), Options{}))
	}
}

func testWhoIsBeingSent(t *testing.T, b *bundle) {
	t.Helper()
	begin := b.clock.Now()
	var waiting, active []string // oldest first
	for i := range 15 {
		req := api.SubmitRequest{Account: fmt.Sprint("account", i%2), Text: "x"}
		for n := range 100 {
			req.MailMerge = append(req.MailMerge, api.MailMergeEntry{
				To: api.Address{Address: fmt.Sprintf("r%d@x.test", n)}})
		}
		a, err := b.Intake.Submit(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, one := range a.MailMerge {
			ids = append(ids, one.QueueID)
		}
		slices.Sort(ids) // all in one millisecond
		for n, id := range ids {
			if n%5 != 0 {
				waiting = append(waiting, id)
				continue
			}
			active = append(active, id)
			if c, _, err := b.Delivery.begin(t.Context(), id); err != nil || c == nil {
				t.Fatalf("not begun: %v", err)
			}
		}
		b.clock.Advance(time.Millisecond)
	}
	list := func(q api.OutboxQuery, want []string, total int) {
		t.Helper()
		page, err := b.Reader.List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range page.Messages {
			got = append(got, m.QueueID)
		}
		if diff := cmp.Diff(want, got); diff != "" || page.Total != total {
			t.Errorf("%+v: total %d, want %d: %s", q, page.Total, total, diff)
		}
	}
	list(api.OutboxQuery{State: api.Waiting, PageSize: 50}, waiting[:50], 1200)
	list(api.OutboxQuery{State: api.Waiting, PageSize: 50, Page: 22}, waiting[1100:1150], 1200)
	list(api.OutboxQuery{State: api.Active, PageSize: 50, Page: 5}, active[250:300], 300)
	list(api.OutboxQuery{State: api.Active, Account: "account1", PageSize: 20}, active[20:40], 140)
	list(api.OutboxQuery{State: api.Waiting, Account: "account1", PageSize: 80}, waiting[80:160], 560)
	list(api.OutboxQuery{State: api.Active, Lane: api.Bulk}, nil, 0)
	list(api.OutboxQuery{State: api.Active, Lane: api.Transactional, PageSize: 30}, active[:30], 300)
	second := api.OutboxQuery{PageSize: 80, CreatedAfter: begin.Add(13 * time.Millisecond),
		CreatedBefore: begin.Add(14 * time.Millisecond)}
	second.State = api.Waiting
	list(second, waiting[13*80:14*80], 80)
	second.State = api.Active
	list(second, active[13*20:14*20], 20)
	for _, q := range []api.OutboxQuery{{State: api.Waiting}, {State: api.Active}, {}} {
		q.PageSize = 70
		var seen []string
		for {
			page, err := b.Reader.List(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range page.Messages {
				seen = append(seen, m.QueueID)
			}
			if q.Cursor = page.Cursor; q.Cursor == "" {
				break
			}
		}
		want := map[api.State]int{api.Waiting: 1200, api.Active: 300, "": 1500}[q.State]
		slices.Sort(seen)
		if n := len(seen); n != want || len(slices.Compact(seen)) != want {
			t.Errorf("state %q: %d by cursor, %d of them different; want %d", q.State, n, len(seen), want)
		}
	}
	wanted := map[api.MessageStatus]int{api.StatusQueued: 1200, api.StatusSending: 300, "": 1500}
	for status, want := range wanted {
		page, err := b.Reader.Messages(t.Context(), api.LogQuery{Status: status})
		if err != nil || page.Total != want {
			t.Errorf("%d are %q, want %d, %v", page.Total, status, want, err)
		}
	}
	count := func(account string, want api.Jobs) {
		t.Helper()
		if got, err := b.Queues.Jobs(t.Context(), api.CounterQuery{Account: account}); err != nil || got != want {
			t.Errorf("jobs of %q: %+v, %v; want %+v", account, got, err, want)
		}
	}
	count("", api.Jobs{Waiting: 1200, Active: 300})
	count("account1", api.Jobs{Waiting: 560, Active: 140})
	b.usageIs(t, "account1", "", 700, 700)
	if err := b.Queues.SetPaused(t.Context(), queue.Submit, true); err != nil {
		t.Fatal(err)
	}
	list(api.OutboxQuery{State: api.Paused, PageSize: 50}, waiting[:50], 1200)
	list(api.OutboxQuery{State: api.Active, PageSize: 50}, active[:50], 300)
	count("", api.Jobs{Paused: 1200, Active: 300})
	b.clock.Advance(time.Minute)
	if err := newSweeper(b.Delivery).mend(t.Context()); err != nil {
		t.Fatal(err)
	}
	count("", api.Jobs{Paused: 1500})
}

func TestForeignCursorIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	for _, cursor := range []string{"x", "-", "zz-", "1"} {
		_, err := b.Reader.List(t.Context(), api.OutboxQuery{Cursor: cursor})
		if cursor != "zz-" && !fault.Is(err, fault.Invalid) {
			t.Errorf("cursor %q: %v, want Invalid", cursor, err)
		}
	}
}

// TestPausedQueueListsAndCountsAsPaused pauses each lane and both.
func TestPausedQueueListsAndCountsAsPaused(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	fill(t, b, 12)
	ctx := t.Context()
	jobs := func(name string) api.Jobs {
		t.Helper()
		s, err := b.Queues.QueueStatus(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		return s.Jobs
	}
	if got, want := jobs(queue.Submit), (api.Jobs{Waiting: 9, Scheduled: 3, Delayed: 3}); got != want {
		t.Errorf("submit before: %+v, want %+v", got, want)
	}
	if err := b.Queues.SetPaused(ctx, queue.Bulk, true); err != nil {
		t.Fatal(err)
	}
	both := api.Jobs{Waiting: 6, Paused: 3, Scheduled: 3, Delayed: 3}
	if got, want := jobs(queue.Submit), both; got != want {
		t.Errorf("submit with bulk paused: %+v, want %+v", got, want)
	}
	if got, want := jobs(queue.Bulk), (api.Jobs{Paused: 3, Scheduled: 1, Delayed: 1}); got != want {
		t.Errorf("bulk paused: %+v, want %+v", got, want)
	}
	if err := b.Queues.SetPaused(ctx, queue.Submit, true); err != nil {
		t.Fatal(err)
	}
	page, err := b.Reader.List(ctx, api.OutboxQuery{State: api.Paused})
	if err != nil || page.Total != 9 || page.Messages[0].State != api.Paused {
		t.Errorf("paused messages: %d, %v; want 9", page.Total, err)
	}
	if err := b.Queues.SetPaused(ctx, queue.Submit, false); err != nil {
		t.Fatal(err)
	}
	if got, want := jobs(queue.Submit), (api.Jobs{Waiting: 9, Scheduled: 3, Delayed: 3}); got != want {
		t.Errorf("submit resumed: %+v, want %+v", got, want)
	}
	if err := b.Queues.SetPaused(ctx, "nonsense", true); !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown queue: %v, want NotFound", err)
	}
}

// TestCancelAllTakesTheSelected cancels by query. Messages that are being sent stay.
func TestCancelAllTakesTheSelected(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	ids := fill(t, b, 12)
	if c, _, err := b.Delivery.begin(t.Context(), ids[1]); err != nil || c == nil {
		t.Fatalf("begin: %v", err)
	}
	got, err := b.Operations.CancelAll(t.Context(), api.OutboxQuery{Tag: "t1"}, ReasonAPI)
	if err != nil || got != (api.BulkDeleteAnswer{Deleted: 5, Active: 1}) {
		t.Errorf("cancelled %+v, %v", got, err)
	}
	page, err := b.Reader.List(t.Context(), api.OutboxQuery{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{0, 1, 2, 4, 6, 8, 10}, numbers(ids, page)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// TestCountersAreExact counts what happened in the last hour and day, at the edges of both.
func TestCountersAreExact(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	count := func() api.Counters {
		t.Helper()
		c, err := b.Queues.Counters(t.Context(), api.CounterQuery{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ids := fill(t, b, 3) // the first is scheduled
	for _, id := range ids[1:] {
		b.Delivery.Deliver(t.Context(), queue.Task{ID: taskID(id, "1")})
	}
	want := api.Counters{Pending: 1, QueuedHour: 3, SentHour: 2, AttemptsHour: 2, QueuedDay: 3, SentDay: 2,
		AttemptsDay: 2, PeriodCounters: api.PeriodCounters{MessageQueued: 3, MessageSent: 2, SubmitSuccess: 2}}
	if diff := cmp.Diff(want, count()); diff != "" {
		t.Errorf("now (-want +got):\n%s", diff)
	}
	b.clock.Advance(time.Hour + time.Minute)
	want.QueuedHour, want.SentHour, want.AttemptsHour, want.PeriodCounters = 0, 0, 0, api.PeriodCounters{}
	if diff := cmp.Diff(want, count()); diff != "" {
		t.Errorf("an hour later (-want +got):\n%s", diff)
	}
	b.clock.Advance(23 * time.Hour)
	if diff := cmp.Diff(api.Counters{Pending: 1}, count()); diff != "" {
		t.Errorf("a day later (-want +got):\n%s", diff)
	}
}
