package outbox

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

// submit submits a message for one recipient and advances the clock by a second.
func (b *bundle) submit(t *testing.T, req api.SubmitRequest) string {
	t.Helper()
	req.Text = "x"
	a, err := b.Intake.Submit(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(time.Second)
	return a.QueueID
}

func (b *bundle) deliver(t *testing.T, id string) {
	t.Helper()
	b.Delivery.Deliver(t.Context(), queue.Task{ID: taskID(id, "1")})
}

func for1(address string) api.Addresses { return api.Addresses{{Address: address}} }

// logOf returns the ids of a page of the log.
func (b *bundle) logOf(t *testing.T, q api.LogQuery) []string {
	t.Helper()
	page, err := b.Reader.Messages(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, len(page.Messages))
	for i, m := range page.Messages {
		ids[i] = m.QueueID
	}
	return ids
}

// TestLogKnowsEveryMessage takes messages through every state and lists them by every filter.
func TestLogKnowsEveryMessage(t *testing.T) {
	t.Parallel()
	b := setupOn(t, spread(t), Options{})
	ctx := t.Context()
	b.sender.replies["dead@x.test"] = "550 5.1.1 no such user"
	b.sender.replies["later@x.test"] = "451 4.7.1 later"
	sent := b.submit(t, api.SubmitRequest{To: for1("ann@x.test"), Subject: "Hello Ann", Tags: []string{"a"},
		IdempotencyKey: "key-1"})
	b.deliver(t, sent)
	dead := b.submit(t, api.SubmitRequest{To: for1("dead@x.test"), Account: "shop", Lane: api.Bulk})
	b.deliver(t, dead)
	cancelled := b.submit(t, api.SubmitRequest{To: for1("bob@x.test"), Account: "shop", Tags: []string{"a"}})
	if a, err := b.Operations.Cancel(ctx, cancelled, ReasonAPI); err != nil || !a.Deleted {
		t.Fatal(a, err)
	}
	failed := b.submit(t, api.SubmitRequest{To: for1("dead@x.test"), Account: "shop"})
	b.deliver(t, failed)
	if a, err := b.Operations.DeleteDeadLetter(ctx, failed); err != nil || !a.Deleted {
		t.Fatal(a, err)
	}
	delayed := b.submit(t, api.SubmitRequest{To: for1("later@x.test")})
	b.deliver(t, delayed)
	active := b.submit(t, api.SubmitRequest{To: for1("eve@x.test")})
	if c, _, err := b.Delivery.begin(ctx, active); c == nil {
		t.Fatal("begin:", err)
	}
	waiting := b.submit(t, api.SubmitRequest{To: for1("zoë@x.test"), Subject: "Grüße"})

	all := []string{waiting, active, delayed, failed, cancelled, dead, sent}
	second := func(n int) time.Time { return storyBegin.Add(time.Duration(n) * time.Second) }
	for name, row := range map[string]struct {
		q    api.LogQuery
		want []string
	}{
		"all":                    {api.LogQuery{}, all},
		"queued":                 {api.LogQuery{Status: api.StatusQueued}, []string{waiting, delayed}},
		"sending":                {api.LogQuery{Status: api.StatusSending}, []string{active}},
		"sent":                   {api.LogQuery{Status: api.StatusSent}, []string{sent}},
		"dead":                   {api.LogQuery{Status: api.StatusDead}, []string{dead}},
		"failed":                 {api.LogQuery{Status: api.StatusFailed}, []string{failed, dead}},
		"cancelled":              {api.LogQuery{Status: api.StatusCancelled}, []string{cancelled}},
		"suppressed":             {api.LogQuery{Status: api.StatusSuppressed}, []string{}},
		"account":                {api.LogQuery{Account: "shop"}, []string{failed, cancelled, dead}},
		"account and lane":       {api.LogQuery{Account: "shop", Lane: api.Bulk}, []string{dead}},
		"account and status":     {api.LogQuery{Account: "shop", Status: api.StatusFailed}, []string{failed, dead}},
		"an account without any": {api.LogQuery{Account: "none"}, []string{}},
		"tag":                    {api.LogQuery{Tag: "a"}, []string{cancelled, sent}},
		"tag and status":         {api.LogQuery{Tag: "a", Status: api.StatusSent}, []string{sent}},
		"part of an address":     {api.LogQuery{Search: "DEAD@"}, []string{failed, dead}},
		"part of a subject":      {api.LogQuery{Search: "grüß"}, []string{waiting}},
		"an idempotency key":     {api.LogQuery{Search: "key-1"}, []string{sent}},
		"part of a key":          {api.LogQuery{Search: "key-"}, []string{}},
		"from a time on":         {api.LogQuery{CreatedAfter: second(5)}, []string{waiting, active}},
		"before a time":          {api.LogQuery{CreatedBefore: second(1)}, []string{sent}},
		"between": {api.LogQuery{CreatedAfter: second(1), CreatedBefore: second(3)},
			[]string{cancelled, dead}},
		"between, with a tag": {api.LogQuery{CreatedAfter: second(1), CreatedBefore: second(3), Tag: "a"},
			[]string{cancelled}},
	} {
		if diff := cmp.Diff(row.want, b.logOf(t, row.q)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, q := range []api.LogQuery{{PageSize: 2}, {PageSize: 2, Search: "x.test"}} {
		if diff := cmp.Diff(all, b.turnPages(t, q)); diff != "" {
			t.Errorf("page by page with search %q (-want +got):\n%s", q.Search, diff)
		}
	}
	if diff := cmp.Diff(all[2:4], b.logOf(t, api.LogQuery{Page: 1, PageSize: 2})); diff != "" {
		t.Errorf("second page (-want +got):\n%s", diff)
	}
	if _, err := b.Reader.Messages(ctx, api.LogQuery{Cursor: "x"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a bad cursor: %v", err)
	}
}

// turnPages reads all pages of a list by cursor.
func (b *bundle) turnPages(t *testing.T, q api.LogQuery) []string {
	t.Helper()
	var ids []string
	for range 20 {
		page, err := b.Reader.Messages(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page.Messages {
			ids = append(ids, m.QueueID)
		}
		if q.Cursor = page.Cursor; q.Cursor == "" {
			return ids
		}
	}
	t.Fatal("the list has no end")
	return nil
}

// TestStoryOfAMessage checks the events of a message that is refused in part, retried, fails, and is replayed
// to another recipient.
func TestStoryOfAMessage(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{Attempts: func() int { return 2 }})
	b.sender.replies["ann@x.test"] = "550 5.1.1 no such user"
	b.sender.replies["bob@x.test"] = "451 4.7.1 later"
	id := b.submit(t, api.SubmitRequest{To: api.Addresses{{Address: "ann@x.test"}, {Address: "bob@x.test"},
		{Address: "eve@x.test"}}, Subject: "Hello"})
	b.deliver(t, id)
	b.clock.Advance(time.Minute)
	b.deliver(t, id)
	account := "shop"
	if _, err := b.Operations.Replay(t.Context(), id, api.Corrections{To: api.Emails{"zoe@X.test", "bob@x.test"},
		Account: account}); err != nil {
		t.Fatal(err)
	}
	delete(b.sender.replies, "bob@x.test")
	b.deliver(t, id)

	story, err := b.Reader.MessageEvents(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, e := range story.Events {
		attempt := 0
		if e.Attempt != nil {
			attempt = e.Attempt.Number
		}
		told = append(told, fmt.Sprintf("%s %v %d %s", e.Event, e.Recipients, attempt, e.Response))
	}
	want := []string{
		"messageQueued [ann@x.test bob@x.test eve@x.test] 0 ",
		"messageSent [eve@x.test] 1 250 2.0.0 queued",
		"messageFailed [ann@x.test] 1 ",
		"messageDeliveryError [bob@x.test] 1 ",
		"messageFailed [bob@x.test] 2 ",
		"messageReplayed [bob@x.test zoe@x.test] 0 ",
		"messageSent [bob@x.test zoe@x.test] 3 250 2.0.0 queued",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	m, err := b.Reader.Message(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if m.Status != api.StatusSent || m.Account != account || m.Ended == nil || len(m.Log) != 3 ||
		m.NextAttempt.Time != nil || m.Recipients[0].Status != rcptReplaced {
		t.Errorf("message %+v", m)
	}
	if got := b.logOf(t, api.LogQuery{Account: account}); !slices.Equal(got, []string{id}) {
		t.Errorf("the log of the new account: %v", got)
	}
	if got := b.logOf(t, api.LogQuery{Account: "default"}); len(got) != 0 {
		t.Errorf("the log of the former account: %v", got)
	}
	b.sameEvents(t, story)
}

// sameEvents compares the log's events with the stream's.
func (b *bundle) sameEvents(t *testing.T, story api.MessageEvents) {
	t.Helper()
	entries, err := b.store.DB.Client().XRange(t.Context(), b.store.keys.events(0), "-", "+").Result()
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, entry := range entries {
		e, err := event.Parse([]byte(entry.Values["e"].(string)))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprint(e.ID, e.Type, e.Time))
	}
	for _, e := range story.Events {
		got = append(got, fmt.Sprint(e.EventID, e.Event, e.Date))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-stream +log):\n%s", diff)
	}
}

func TestLogForgets(t *testing.T) {
	t.Parallel()
	t.Run("the old", func(t *testing.T) {
		b := setup(t, Options{KeepEnded: time.Hour, KeepDeadLetters: 2 * time.Hour})
		old := b.submit(t, api.SubmitRequest{To: for1("ann@x.test")})
		b.deliver(t, old)
		dead := fail(t, b)
		b.clock.Advance(50 * time.Minute)
		young := b.submit(t, api.SubmitRequest{To: for1("bob@x.test")})
		b.deliver(t, young)
		b.clock.Advance(50 * time.Minute)
		sweep(t, b)
		if got := b.logOf(t, api.LogQuery{}); !slices.Equal(got, []string{young, dead}) {
			t.Errorf("left %v, want %v", got, []string{young, dead})
		}
		if _, err := b.Reader.Message(t.Context(), old); !fault.Is(err, fault.NotFound) {
			t.Errorf("a forgotten message: %v", err)
		}
		b.clock.Advance(time.Hour)
		sweep(t, b)
		if m, err := b.Reader.Message(t.Context(), dead); err != nil || m.Status != api.StatusFailed ||
			m.Error == nil ||
			m.Reason != reasonRetention {
			t.Errorf("a dead letter past its retention: %+v, %v", m, err)
		}
		if _, err := b.Operations.Replay(t.Context(), dead, api.Corrections{}); fault.CodeOf(err) != "ContentGone" {
			t.Errorf("its replay: %v", err)
		}
	})
	t.Run("the surplus", func(t *testing.T) {
		b := setup(t, Options{MaxEnded: 3, MaxDeadLetters: 2})
		for n := range 7 {
			id := b.submit(t, api.SubmitRequest{To: for1("ann@x.test")})
			b.deliver(t, id)
			if n == 4 {
				b.sender.replies["ann@x.test"] = "550 5.1.1 no such user"
			}
		}
		b.deliver(t, b.submit(t, api.SubmitRequest{To: for1("ann@x.test")}))
		sweep(t, b)
		b.clock.Advance(retentionEvery + time.Second)
		sweep(t, b)
		page, err := b.Reader.Messages(t.Context(), api.LogQuery{})
		if err != nil || page.Total != 5 || len(page.Messages) != 5 {
			t.Errorf("%d of %d left (%v), want 2 dead letters and 3 more", len(page.Messages), page.Total, err)
		}
	})
	t.Run("all at once", func(t *testing.T) {
		b := setup(t, Options{KeepEnded: -1})
		id := b.submit(t, api.SubmitRequest{To: for1("ann@x.test")})
		b.deliver(t, id)
		if _, err := b.Reader.Message(t.Context(), id); !fault.Is(err, fault.NotFound) {
			t.Errorf("a message that must not be remembered: %v", err)
		}
		if _, err := b.Reader.Get(t.Context(), id); fault.CodeOf(err) != "MessageNotFound" {
			t.Errorf("and in the outbox: %v", err)
		}
	})
}

// TestRetentionKeepsUp ends many more messages than one batch holds.
func TestRetentionKeepsUp(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{KeepEnded: time.Minute})
	for range 3 * sweepBatch {
		b.deliver(t, one(t, b))
	}
	b.clock.Advance(2 * time.Minute)
	sweep(t, b)
	if page, err := b.Reader.Messages(t.Context(), api.LogQuery{}); err != nil || page.Total != 0 {
		t.Errorf("%d left, %v", page.Total, err)
	}
	keys, err := b.store.DB.Client().Keys(t.Context(), "postroom:{0}:ended*").Result()
	if err != nil || len(keys) != 0 {
		t.Errorf("keys left: %v, %v", keys, err)
	}
}

func TestCorrectionsAreChecked(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	b.sender.replies["ann@x.test"] = "550 5.1.1 no such user"
	id := b.submit(t, api.SubmitRequest{To: api.Addresses{{Address: "ann@x.test"}, {Address: "bob@x.test"}}})
	b.deliver(t, id)
	nowhere := "nowhere"
	for name, row := range map[string]struct {
		c    api.Corrections
		code string
		key  string
	}{
		"an address that is none":       {api.Corrections{To: api.Emails{"eve@x.test", "eve"}}, "", "to[1]"},
		"somebody who has it":           {api.Corrections{To: api.Emails{"bob@x.test"}}, "", "to[0]"},
		"a gateway that does not exist": {api.Corrections{Gateway: &nowhere}, "GatewayNotFound", ""},
		"an account that does not":      {api.Corrections{Account: "gone"}, "AccountNotFound", ""},
	} {
		_, err := b.Operations.Replay(t.Context(), id, row.c)
		if fault.CodeOf(err) != row.code || row.key != "" && !names(err, row.key) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.Operations.ReplayAll(t.Context(), api.ReplayRequest{Tag: "x", Corrections: &api.Corrections{
		Gateway: &nowhere}}); fault.CodeOf(err) != "GatewayNotFound" {
		t.Errorf("in bulk: %v", err)
	}
	if d, err := b.Reader.DeadLetter(t.Context(), id); err != nil || d.State != api.Failed {
		t.Errorf("after all refusals: %+v, %v", d.State, err)
	}
}

// names reports whether an error is about a field.
func names(err error, key string) bool {
	var f *fault.Error
	f, _ = err.(*fault.Error) //nolint:errorlint // it comes unwrapped
	return f != nil && slices.ContainsFunc(f.Fields, func(field fault.Field) bool { return field.Key == key })
}

// TestCountersOfAPeriod: to the minute up to a day, then recipients by hour.
func TestCountersOfAPeriod(t *testing.T) {
	t.Parallel()
	b := setupOn(t, spread(t), Options{})
	b.sender.replies["dead@x.test"] = "550 5.1.1 no such user"
	id := b.submit(t, api.SubmitRequest{To: append(for1("ann@x.test"), for1("bob@x.test")...), Lane: api.Bulk})
	b.deliver(t, id)
	b.deliver(t, b.submit(t, api.SubmitRequest{To: for1("dead@x.test")}))
	b.learn(t, Fact{Key: "o", Type: event.TrackOpen, MessageID: id},
		Fact{Key: "b", Type: event.TrackOpen, MessageID: id, Details: event.Later{Bot: true}},
		Fact{Key: "h", Type: event.MessageBounce, MessageID: id, Details: event.Later{BounceType: "hard"}})
	b.countAll(t)
	b.clock.Advance(90 * time.Minute)
	later := api.PeriodCounters{MessageBounce: 1, TrackOpen: 2}
	day, bulk, rated := later, later, later
	day.MessageQueued, day.MessageSent, day.SubmitSuccess, day.MessageFailed, day.SubmitFail = 2, 1, 1, 1, 1
	bulk.MessageQueued, bulk.MessageSent, bulk.SubmitSuccess = 1, 1, 1
	rated.MessageSent, rated.SubmitSuccess = 2, 2
	week := rated
	week.MessageFailed, week.SubmitFail = 1, 1
	none := api.PeriodCounters{}
	for name, row := range map[string]struct {
		q    api.CounterQuery
		want api.PeriodCounters
	}{
		"an hour, the default": {api.CounterQuery{}, none},
		"90 minutes":           {api.CounterQuery{Seconds: 90 * 60}, none},
		"a second more":        {api.CounterQuery{Seconds: 90*60 + 1}, day},
		"a day":                {api.CounterQuery{Seconds: daySeconds}, day},
		"a day of a lane":      {api.CounterQuery{Seconds: daySeconds, Lane: api.Bulk}, bulk},
		"a week":               {api.CounterQuery{Seconds: 7 * daySeconds}, week},
		"a week of a lane":     {api.CounterQuery{Seconds: 7 * daySeconds, Lane: api.Bulk}, rated},
		"a week of nobody":     {api.CounterQuery{Seconds: 7 * daySeconds, Account: "none"}, none},
	} {
		got, err := b.Queues.Counters(t.Context(), row.q)
		if diff := cmp.Diff(row.want, got.PeriodCounters); diff != "" || err != nil {
			t.Errorf("%s (-want +got):\n%s%v", name, diff, err)
		}
	}
}

func TestCountersByAccountAndLane(t *testing.T) {
	t.Parallel()
	b := setupOn(t, testredis.Open(t, redisdb.Options{Partitions: 2}), Options{})
	b.sender.replies["dead@x.test"] = "550 5.1.1 no such user"
	for _, m := range []api.SubmitRequest{
		{To: for1("ann@x.test"), Account: "shop"}, {To: for1("ann@x.test"), Account: "shop", Lane: api.Bulk},
		{To: for1("ann@x.test")},
		{To: for1("dead@x.test"), Account: "shop"},
	} {
		b.deliver(t, b.submit(t, m))
	}
	b.clock.Advance(30 * time.Minute)
	b.deliver(t, b.submit(t, api.SubmitRequest{To: for1("ann@x.test"), Account: "shop"}))
	b.submit(t, api.SubmitRequest{To: for1("bob@x.test"), Account: "shop"})
	b.clock.Advance(40 * time.Minute)
	for name, row := range map[string]struct {
		q    api.CounterQuery
		want api.Counters
	}{
		"all": {api.CounterQuery{}, api.Counters{
			Pending: 1, Failed: 1, Dead: 1, QueuedHour: 2, SentHour: 1, AttemptsHour: 1, QueuedDay: 6, SentDay: 4,
			FailedDay: 1, AttemptsDay: 5,
		}},
		"an account": {api.CounterQuery{Account: "shop"}, api.Counters{
			Pending: 1, Failed: 1, Dead: 1, QueuedHour: 2, SentHour: 1, AttemptsHour: 1, QueuedDay: 5, SentDay: 3,
			FailedDay: 1, AttemptsDay: 4,
		}},
		"a lane": {api.CounterQuery{Lane: api.Bulk}, api.Counters{QueuedDay: 1, SentDay: 1, AttemptsDay: 1}},
		"both": {api.CounterQuery{Account: "shop", Lane: api.Bulk}, api.Counters{QueuedDay: 1, SentDay: 1,
			AttemptsDay: 1}},
		"none": {api.CounterQuery{Account: "none"}, api.Counters{}},
	} {
		got, err := b.Queues.Counters(t.Context(), row.q)
		if err != nil {
			t.Fatal(err)
		}
		got.PeriodCounters = api.PeriodCounters{} // TestCountersOfAPeriod
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
