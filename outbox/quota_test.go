package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

// quotaOf describes the refusal of a quota: its kind, its code, whose and which, limit and used.
func quotaOf(err error) string {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return fmt.Sprint(err)
	}
	d := f.Details
	owner := d["account"]
	if owner == nil {
		owner = d["token"]
	}
	return fmt.Sprint(f.Kind, " ", f.Code, " ", d["quota"], " ", owner, " ", d["used"], "/", d["limit"])
}

// quotaIs fails the test unless err is the refusal of a quota.
func quotaIs(t *testing.T, name string, err error, want string) {
	t.Helper()
	if got := quotaOf(err); got != want {
		t.Errorf("%s: %s, want %s", name, got, want)
	}
}

// usageIs fails the test unless an account uses so much.
func (b *bundle) usageIs(t *testing.T, account, token string, messages, perDay int) api.Usage {
	t.Helper()
	u, err := b.Reader.TokenUsage(t.Context(), api.TokenInfo{ID: token})
	if token == "" {
		var all []api.Usage
		all, err = b.Reader.Usage(t.Context(), account)
		u = all[0]
	}
	if err != nil || u.Messages.Used != messages || u.PerDay.Used != perDay ||
		(u.Bytes.Used > 0) != (messages > 0) {
		t.Errorf("%s%s uses %+v, %v; want %d messages, %d today", account, token, u, err, messages, perDay)
	}
	return u
}

func text(account, to string) api.SubmitRequest {
	return api.SubmitRequest{Account: account, To: for1(to), Text: "x"}
}

// limited is an outbox with quotas of accounts, on three partitions.
func limited(t *testing.T, quotas map[string]accounts.Quota) *bundle {
	t.Helper()
	b := setupOn(t, spread(t), Options{})
	b.people.quota = quotas
	return b
}

// TestQuotaOfWaitingMessages: waiting messages count, until they are sent, cancelled or dead letters; a
// replay counts again. Other accounts have their own room.
func TestQuotaOfWaitingMessages(t *testing.T) {
	t.Parallel()
	b := limited(t, map[string]accounts.Quota{"a": {Messages: 2}})
	const full = `limited QuotaExceeded messages a 2/2`
	refused := func(after string) {
		t.Helper()
		_, err := b.Intake.Submit(t.Context(), text("a", "ben@x.test"))
		quotaIs(t, after, err, full)
	}
	b.sender.replies["ann@x.test"] = "550 5.1.1 no such user"
	first, second := b.submit(t, text("a", "ann@x.test")), b.submit(t, text("a", "ben@x.test"))
	refused("two messages")
	b.submit(t, text("b", "ben@x.test"))
	b.usageIs(t, "a", "", 2, 2)
	b.usageIs(t, "b", "", 1, 1)

	b.deliver(t, second) // it is sent
	third := b.submit(t, text("a", "ben@x.test"))
	refused("one sent, one more")
	if _, err := b.Operations.Cancel(t.Context(), third, ReasonAPI); err != nil {
		t.Fatal(err)
	}
	later := b.clock.Now().Add(time.Hour)
	scheduled := text("a", "ben@x.test")
	scheduled.SendAt = &later
	b.submit(t, scheduled)
	refused("one cancelled, one scheduled")

	b.deliver(t, first) // it fails
	fourth := b.submit(t, text("a", "ben@x.test"))
	refused("one failed, one more")
	_, err := b.Operations.Replay(t.Context(), first, api.Corrections{})
	quotaIs(t, "replay", err, full)
	_, err = b.Operations.Retry(t.Context(), first)
	quotaIs(t, "retry of a dead letter", err, full)
	all, err := b.Operations.ReplayAll(t.Context(), api.ReplayRequest{Account: "a"})
	if want := (api.ReplayAnswer{Skipped: 1, OverQuota: 1}); err != nil || all != want {
		t.Errorf("replay of all: %+v, %v", all, err)
	}
	if _, err := b.Operations.Replay(t.Context(), first, api.Corrections{Account: "b"}); err != nil {
		t.Errorf("replay as another account: %v", err)
	}
	b.usageIs(t, "b", "", 2, 1)
	b.deliver(t, fourth)
	b.usageIs(t, "a", "", 1, 5)
}

// TestQuotaOfWaitingBytes: messages count as they are sent. A message that is larger than the whole quota is
// refused permanently.
func TestQuotaOfWaitingBytes(t *testing.T) {
	t.Parallel()
	b := limited(t, map[string]accounts.Quota{"a": {Bytes: 100_000}})
	large := func(size int) (string, error) {
		req := text("a", "ann@x.test")
		req.Text = strings.Repeat("abcdefg ", size/8)
		a, err := b.Intake.Submit(t.Context(), req)
		return a.QueueID, err
	}
	id, err := large(60_000)
	if err != nil {
		t.Fatal(err)
	}
	size := b.usageIs(t, "a", "", 1, 1).Bytes.Used
	m, err := b.Reader.Message(t.Context(), id)
	if err != nil || m.Size != size {
		t.Errorf("a message of %d bytes counts as %d, %v", m.Size, size, err)
	}
	_, err = large(60_000)
	quotaIs(t, "a second one", err, fmt.Sprint("limited QuotaExceeded bytes a ", size, "/100000"))
	_, err = large(120_000)
	quotaIs(t, "one that never fits", err, fmt.Sprint("too_large QuotaExceeded bytes a ", size, "/100000"))
	for _, size := range []int{10_000, 60_000} {
		if _, err := large(size); err != nil {
			t.Error(err)
		}
		b.deliver(t, id)
	}
}

// TestQuotaOfADay: what was accepted counts until midnight UTC, whatever became of it.
func TestQuotaOfADay(t *testing.T) {
	t.Parallel()
	b := limited(t, map[string]accounts.Quota{"a": {PerDay: 2}})
	midnight := time.Date(2030, 1, 3, 0, 0, 0, 0, time.UTC)
	b.deliver(t, b.submit(t, text("a", "ann@x.test")))
	b.submit(t, text("a", "ann@x.test"))
	_, err := b.Intake.Submit(t.Context(), text("a", "ann@x.test"))
	quotaIs(t, "a third one", err, "limited QuotaExceeded perDay a 2/2")
	f, _ := errors.AsType[*fault.Error](err)
	if f == nil || f.RetryAfter != midnight.Sub(b.clock.Now()) || f.Details["until"] != "2030-01-03T00:00:00Z" ||
		f.Message != `The quota of account "a" is 2 messages accepted today (perDay), and 2 are used: `+
			"there is no room for 1 more until 2030-01-03T00:00:00Z" {
		t.Errorf("%+v", f)
	}
	if u := b.usageIs(t, "a", "", 1, 2); u.PerDay.Until == nil || !u.PerDay.Until.Equal(midnight) {
		t.Errorf("it begins again at %v", u.PerDay.Until)
	}
	b.clock.Advance(midnight.Sub(b.clock.Now()))
	b.submit(t, text("a", "ann@x.test"))
	b.usageIs(t, "a", "", 2, 1)
}

// TestQuotaOfAToken: each token has its own quota, within its account's.
func TestQuotaOfAToken(t *testing.T) {
	t.Parallel()
	b := limited(t, map[string]accounts.Quota{"a": {Messages: 3}})
	with := func(token string) api.SubmitRequest {
		req := text("a", "ann@x.test")
		req.Token, req.TokenQuota = token, &api.TokenQuota{Messages: 2, PerDay: 3}
		return req
	}
	id := b.submit(t, with("t1"))
	b.submit(t, with("t1"))
	_, err := b.Intake.Submit(t.Context(), with("t1"))
	quotaIs(t, "its third", err, "limited QuotaExceeded messages t1 2/2")
	b.submit(t, with("t2"))
	_, err = b.Intake.Submit(t.Context(), with("t2"))
	quotaIs(t, "the account's fourth", err, "limited QuotaExceeded messages a 3/3")
	b.deliver(t, id)
	b.deliver(t, b.submit(t, with("t1")))
	_, err = b.Intake.Submit(t.Context(), with("t1"))
	quotaIs(t, "its fourth of the day", err, "limited QuotaExceeded perDay t1 3/3")
	b.usageIs(t, "", "t1", 1, 3)
	b.usageIs(t, "", "t2", 1, 1)
}

// TestQuotaAndRepeats: a message counts once, however often it is submitted, and a full quota does not refuse
// repeats of accepted messages.
func TestQuotaAndRepeats(t *testing.T) {
	t.Parallel()
	b := limited(t, map[string]accounts.Quota{"a": {Messages: 2, PerDay: 2}})
	keyed := func(key string) api.SubmitRequest {
		req := text("a", "ann@x.test")
		req.IdempotencyKey = key
		return req
	}
	for range 3 {
		for _, key := range []string{"one", "two"} {
			b.submit(t, keyed(key))
		}
	}
	b.usageIs(t, "a", "", 2, 2)
	_, err := b.Intake.Submit(t.Context(), keyed("three"))
	quotaIs(t, "a new one", err, "limited QuotaExceeded messages a 2/2")

	// a client of Redis repeats a command whose answer it lost
	m := &newMessage{id: newID(b.clock.Now(), 0), lane: api.Transactional, attempts: 10, size: 7,
		envelope: envelope{Account: "c", MessageID: "<1@x.test>", From: "shop@x.test", To: []string{"ann@x.test"}}}
	if err := b.Intake.encode(m); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := acceptScript.Run(t.Context(), b.store.DB.Client(), m.keys, m.args); err != nil {
			t.Fatal(err)
		}
	}
	if u := b.usageIs(t, "c", "", 1, 1); u.Bytes.Used != 7 {
		t.Errorf("%d bytes, want 7", u.Bytes.Used)
	}
}

// merge is account a's mail merge with n entries.
func merge(n int) api.SubmitRequest {
	req := api.SubmitRequest{Account: "a", Text: "Hello {{params.name}}"}
	for i := range n {
		req.MailMerge = append(req.MailMerge, api.MailMergeEntry{
			To: api.Address{Address: fmt.Sprintf("r%d@x.test", i)}, IdempotencyKey: fmt.Sprint("key ", i)})
	}
	return req
}

// TestQuotaOfAMailMerge: it is queued as a whole, or not at all. Entries that were queued before need no
// room.
func TestQuotaOfAMailMerge(t *testing.T) {
	t.Parallel()
	b := limited(t, map[string]accounts.Quota{"a": {Messages: 10}})
	_, err := b.Intake.Submit(t.Context(), merge(11))
	quotaIs(t, "more than the quota", err, "too_large QuotaExceeded messages a 0/10")
	b.usageIs(t, "a", "", 0, 0)
	all := func(n int) {
		t.Helper()
		a, err := b.Intake.Submit(t.Context(), merge(n))
		if err != nil || len(a.MailMerge) != n {
			t.Fatalf("%d entries: %+v, %v", n, a, err)
		}
		for _, r := range a.MailMerge {
			if !r.Success {
				t.Errorf("%+v", r)
			}
		}
	}
	all(6)
	other := merge(5)
	other.Text = "Hello"
	other.IdempotencyKey = "merge"
	for i := range other.MailMerge {
		other.MailMerge[i].IdempotencyKey = ""
	}
	_, err = b.Intake.Submit(t.Context(), other)
	quotaIs(t, "more than is left", err, "limited QuotaExceeded messages a 6/10")
	b.usageIs(t, "a", "", 6, 6)
	all(10) // four of them are new
	all(10)
	b.usageIs(t, "a", "", 10, 10)

	b.people.quota["a"] = accounts.Quota{Bytes: 1}
	all(10)
	_, err = b.Intake.Submit(t.Context(), other)
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Kind != fault.TooLarge ||
		f.Details["quota"] != "bytes" {
		t.Errorf("by bytes: %v", err)
	}
}

// TestQuotaIsNeverExceeded has two processes submit at the same moment, with keys and without, to several
// partitions.
func TestQuotaIsNeverExceeded(t *testing.T) {
	t.Parallel()
	const limit = 20
	for name, quota := range map[string]accounts.Quota{"messages": {Messages: limit},
		"perDay": {PerDay: limit}} {
		t.Run(name, func(t *testing.T) {
			b := limited(t, map[string]accounts.Quota{"a": quota})
			other := setupOn(t, b.store.DB, Options{})
			other.people.quota = b.people.quota
			var accepted atomic.Int64
			parallel(t, 10, 200, func(i int) error {
				req := text("a", "ann@x.test")
				if i%2 == 0 {
					req.IdempotencyKey = fmt.Sprint("key", i)
				}
				_, err := []*bundle{b, other}[i/2%2].Intake.Submit(t.Context(), req)
				if err == nil {
					accepted.Add(1)
				} else if fault.CodeOf(err) != "QuotaExceeded" {
					return err
				}
				return nil
			})
			if accepted.Load() != limit {
				t.Errorf("%d accepted", accepted.Load())
			}
			b.usageIs(t, "a", "", limit, limit)
			tasks := 0
			for p := range 3 {
				counts, err := b.store.Control.Counts(t.Context(), queue.Lane(queue.Submit, p))
				if err != nil {
					t.Fatal(err)
				}
				tasks += counts[0].Waiting
			}
			if tasks != limit {
				t.Errorf("%d tasks for %d messages", tasks, limit)
			}
		})
	}
}

// TestQuotaOnACluster: the limit is for all partitions together, whichever a message is in.
func TestQuotaOnACluster(t *testing.T) {
	t.Parallel()
	cluster := testredis.Cluster(t, testredis.Topology{})
	b := setupOn(t, testredis.Connect(t, redisdb.Options{URL: cluster.URL(), Partitions: 4}), Options{})
	b.people.quota = map[string]accounts.Quota{"a": {Messages: 7, PerDay: 100}}
	var ids []string
	for i := range 7 {
		req := text("a", "ann@x.test")
		req.IdempotencyKey = fmt.Sprint("key ", i)
		ids = append(ids, b.submit(t, req))
	}
	for range 20 {
		_, err := b.Intake.Submit(t.Context(), text("a", "ann@x.test"))
		quotaIs(t, "the eighth", err, "limited QuotaExceeded messages a 7/7")
	}
	again := text("a", "ann@x.test")
	again.IdempotencyKey = "key 3"
	b.submit(t, again)
	b.deliver(t, ids[0])
	b.submit(t, text("a", "ann@x.test"))
	b.usageIs(t, "a", "", 7, 8)
}

// TestAQuotaThatIsSetLater counts what was accepted before it, and what is accepted after it is lifted, once.
func TestAQuotaThatIsSetLater(t *testing.T) {
	t.Parallel()
	b := limited(t, map[string]accounts.Quota{})
	b.sender.replies["ann@x.test"] = "550 5.1.1 no such user"
	before := []string{b.submit(t, text("a", "ben@x.test")), b.submit(t, text("a", "ann@x.test"))}
	size := b.usageIs(t, "a", "", 2, 2).Bytes.Used

	b.people.quota["a"] = accounts.Quota{PerDay: 3}
	with := b.submit(t, text("a", "ben@x.test"))
	_, err := b.Intake.Submit(t.Context(), text("a", "ben@x.test"))
	quotaIs(t, "a fourth of the day", err, "limited QuotaExceeded perDay a 3/3")
	b.people.quota["a"] = accounts.Quota{Bytes: size + size/2}
	_, err = b.Intake.Submit(t.Context(), text("a", "ben@x.test"))
	quotaIs(t, "too many bytes", err,
		fmt.Sprint("limited QuotaExceeded bytes a ", b.usageIs(t, "a", "", 3, 3).Bytes.Used, "/", size+size/2))

	delete(b.people.quota, "a")
	after := b.submit(t, text("a", "ann@x.test"))
	b.usageIs(t, "a", "", 4, 4)
	b.deliver(t, before[1]) // it fails
	b.deliver(t, after)     // this one, too
	b.people.quota["a"] = accounts.Quota{Messages: 3}
	if _, err := b.Operations.Replay(t.Context(), after, api.Corrections{}); err != nil {
		t.Fatal(err)
	}
	b.usageIs(t, "a", "", 3, 4)
	delete(b.people.quota, "a")
	if _, err := b.Operations.Replay(t.Context(), before[1], api.Corrections{}); err != nil {
		t.Fatal(err)
	}
	b.usageIs(t, "a", "", 4, 4)
	for _, id := range []string{before[0], before[1], with, after} {
		b.deliver(t, id)
	}
	b.usageIs(t, "a", "", 0, 4)
	for p := range 3 {
		if left := b.store.DB.Client().HGetAll(t.Context(), b.store.keys.quota(p)).Val(); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// TestCountsOfQuotasLeaveNothing: when nothing waits, only the counts of days are left, and these expire.
func TestCountsOfQuotasLeaveNothing(t *testing.T) {
	t.Parallel()
	b := limited(t, nil)
	for i := range 9 {
		req := text(fmt.Sprint("account", i), "ann@x.test")
		req.Token, req.TokenQuota = "t1", &api.TokenQuota{Messages: 100}
		b.deliver(t, b.submit(t, req))
	}
	ctx := context.WithoutCancel(t.Context())
	for p := range 3 {
		if left := b.store.DB.Client().HGetAll(ctx, b.store.keys.quota(p)).Val(); !cmp.Equal(left,
			map[string]string{}) {
			t.Errorf("left: %v", left)
		}
		day := b.store.keys.quotaDay(p, b.clock.Now())
		ttl := b.store.DB.Client().TTL(ctx, day).Val()
		if b.store.DB.Client().Exists(ctx, day).Val() > 0 && ttl <= 24*time.Hour {
			t.Errorf("%s expires in %v", day, ttl)
		}
	}
}
