package outbox

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox/suppression"
)

// ttlOf is the time to live of an idempotency key: -1 for a key that does not expire, -2 for a free one.
func (b *bundle) ttlOf(t *testing.T, key string) time.Duration {
	t.Helper()
	whole, _, _ := strings.Cut(key, "\x00") // a merge's, whose messages are in one partition
	p := redisdb.PartitionFor(keyHash("default", whole), b.store.DB.Partitions())
	ttl, err := b.store.DB.Client().TTL(t.Context(), b.store.keys.idempotency(p,
		keyHash("default", key))).Result()
	if err != nil {
		t.Fatal(err)
	}
	return ttl
}

// again submits a request again, and says what the answer says of the key.
func (b *bundle) again(t *testing.T, req api.SubmitRequest) (word string, id string) {
	t.Helper()
	a, err := b.Intake.Submit(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(a.Idempotency.Status + " " + string(a.Idempotency.State)), a.QueueID
}

// TestKeyLivesAsLongAsItsMessage: in each state and after each end of a message, what its key answers and
// when it expires.
func TestKeyLivesAsLongAsItsMessage(t *testing.T) {
	t.Parallel()
	const kept, stays, free = time.Minute, time.Duration(-1), time.Duration(-2)
	replies := map[string]string{"dead@x.test": "550 5.1.1 nobody", "later@x.test": "451 4.7.1 later"}
	for name, c := range map[string]struct {
		to      string
		letters time.Duration // Options.KeepDeadLetters
		end     func(b *bundle, id string)
		ttl     time.Duration
		again   string
	}{
		"it waits": {"ann@x.test", 0, func(*bundle, string) {}, stays, "HIT queued"},
		"it is being sent": {"ann@x.test", 0, func(b *bundle, id string) {
			_, _, err := b.Delivery.begin(t.Context(), id)
			must(t, err)
		}, stays, "HIT sending"},
		"it was sent": {"ann@x.test", 0, func(b *bundle, id string) { b.deliver(t, id) }, kept, "HIT sent"},
		"it is tried again": {"later@x.test", 0, func(b *bundle, id string) { b.deliver(t, id) }, stays,
			"HIT queued"},
		"it is a dead letter": {"dead@x.test", 0, func(b *bundle, id string) { b.deliver(t, id) }, stays,
			"HIT dead"},
		"it failed and is not kept": {"dead@x.test", -1, func(b *bundle, id string) { b.deliver(t, id) }, kept,
			"HIT failed"},
		"it was archived and is not kept": {"ann@x.test", -1, func(b *bundle, id string) {
			must(t, b.Operations.TaskArchived(t.Context(), taskID(id, "1")))
		}, kept, "HIT failed"},
		"its recipient was suppressed": {"ann@x.test", 0, func(b *bundle, id string) {
			b.suppress(t, suppression.Entry{Address: "ann@x.test", Reason: suppression.Manual})
			b.Delivery.Deliver(t.Context(), queue.Task{ID: taskID(id, "1")})
		}, kept, "HIT suppressed"},
		"its dead letter was replayed": {"dead@x.test", 0, func(b *bundle, id string) {
			b.deliver(t, id)
			_, err := b.Operations.Retry(t.Context(), id)
			must(t, err)
		}, stays, "HIT queued"},
		"its dead letter is too old": {"dead@x.test", 0, func(b *bundle, id string) {
			b.deliver(t, id)
			b.clock.Advance(200 * time.Hour)
			must(t, b.Outbox.sweep(t.Context()))
		}, kept, "HIT failed"},
		"its dead letter was deleted": {"dead@x.test", 0, func(b *bundle, id string) {
			b.deliver(t, id)
			_, err := b.Operations.DeleteDeadLetter(t.Context(), id)
			must(t, err)
		}, free, "MISS"},
		"it was cancelled": {"ann@x.test", 0, func(b *bundle, id string) {
			_, err := b.Operations.Cancel(t.Context(), id, ReasonAPI)
			must(t, err)
		}, free, "MISS"},
		"its task was deleted": {"later@x.test", 0, func(b *bundle, id string) {
			b.deliver(t, id)
			must(t, b.Operations.TaskDeleted(t.Context(), taskID(id, "1")))
		}, free, "MISS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupSifted(t, Options{KeyRetention: kept, KeepDeadLetters: c.letters})
			b.sender.replies = replies
			req := api.SubmitRequest{To: for1(c.to), Text: "x", IdempotencyKey: "k"}
			word, id := b.again(t, req)
			if word != "MISS" {
				t.Fatal(word)
			}
			c.end(b, id)
			if ttl := b.ttlOf(t, "k"); ttl != c.ttl && (c.ttl != kept || ttl <= 0 || ttl > kept) {
				t.Errorf("the key expires after %s, want %s", ttl, c.ttl)
			}
			if _, err := b.store.Suppressions.Remove(t.Context(), suppression.Entry{Address: c.to,
				Reason: suppression.Manual}); err != nil && !fault.Is(err, fault.NotFound) {
				t.Fatal(err)
			}
			word, then := b.again(t, req)
			if word != c.again || (then == id) != (c.ttl != free) {
				t.Errorf("submitted again: %s, %s after %s; want %s", word, then, id, c.again)
			}
			req.Text = "y"
			if _, err := b.Intake.Submit(t.Context(), req); fault.CodeOf(err) != "IdempotencyKeyReused" {
				t.Errorf("another body: %v", err)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestKeyOfAMergeLivesAsLongAsItsMessages: the key of the request expires after the last of its messages, and
// is free once all of them were withdrawn.
func TestKeyOfAMergeLivesAsLongAsItsMessages(t *testing.T) {
	t.Parallel()
	b := setupSifted(t, Options{KeyRetention: time.Minute})
	later := storyBegin.Add(time.Hour)
	req := api.SubmitRequest{Text: "x", MailMerge: entries(3), IdempotencyKey: "k"}
	req.MailMerge[2].SendAt = &later
	submit := func(status string, words ...string) (ids []string) {
		t.Helper()
		a, err := b.Intake.Submit(t.Context(), req)
		must(t, err)
		if a.Idempotency.Status != status {
			t.Errorf("the request is a %s, want %s", a.Idempotency.Status, status)
		}
		for i, r := range a.MailMerge {
			word := strings.TrimSpace(r.Idempotency.Status + " " + string(r.Idempotency.State))
			if word != words[i] {
				t.Errorf("entry %d is a %s, want %s", i, word, words[i])
			}
			ids = append(ids, r.QueueID)
		}
		return ids
	}
	expires := func(want ...time.Duration) {
		t.Helper()
		for i, key := range []string{"k", "k\x000", "k\x001", "k\x002"} {
			if ttl := b.ttlOf(t, key); ttl != want[i] && (want[i] < 0 || ttl <= 0) {
				t.Errorf("key %q expires after %s, want %s", key, ttl, want[i])
			}
		}
	}
	ids := submit("MISS", "MISS", "MISS", "MISS")
	expires(-1, -1, -1, -1)
	b.deliver(t, ids[0])
	_, err := b.Operations.Cancel(t.Context(), ids[1], ReasonAPI)
	must(t, err)
	expires(-1, time.Minute, -2, -1)
	again := submit("HIT", "HIT sent", "MISS", "HIT queued")
	_, err = b.Operations.Cancel(t.Context(), again[1], ReasonAPI)
	must(t, err)
	_, err = b.Operations.Cancel(t.Context(), ids[2], ReasonAPI)
	must(t, err)
	expires(time.Minute, time.Minute, -2, -2)
	other := req
	other.Text = "y"
	if _, err := b.Intake.Submit(t.Context(), other); fault.CodeOf(err) != "IdempotencyKeyReused" {
		t.Errorf("another merge: %v", err)
	}

	req.IdempotencyKey = "l"
	for _, id := range submit("MISS", "MISS", "MISS", "MISS") {
		_, err = b.Operations.Cancel(t.Context(), id, ReasonAPI)
		must(t, err)
	}
	if ttl := b.ttlOf(t, "l"); ttl != -2 {
		t.Errorf("the key of a merge that was taken back expires after %s", ttl)
	}
	req.Text = "a correction"
	submit("MISS", "MISS", "MISS", "MISS")

	req.IdempotencyKey = "m"
	for _, e := range req.MailMerge {
		b.suppress(t, suppression.Entry{Address: e.To.Address, Reason: suppression.Manual})
	}
	submit("MISS", "MISS", "MISS", "MISS")
	submit("HIT", "HIT suppressed", "HIT suppressed", "HIT suppressed")
	if ttl := b.ttlOf(t, "m"); ttl <= 0 {
		t.Errorf("the key of a merge to nobody expires after %s", ttl)
	}
	for p := range b.store.DB.Partitions() {
		for name, n := range b.store.DB.Client().HGetAll(t.Context(), redisdb.Key(p, "merges")).Val() {
			if name != keyHash("default", "l") || n != "3" {
				t.Errorf("%s messages of merge %s are counted", n, name)
			}
		}
	}
}

// TestKeyOfASkippedSubmit: a submit whose recipients are all suppressed has a queue id, and its key answers
// the same again, even when no one is suppressed any more.
func TestKeyOfASkippedSubmit(t *testing.T) {
	t.Parallel()
	for _, refuse := range []bool{false, true} {
		b := setupSifted(t, Options{RefuseSuppressed: refuse})
		entry := suppression.Entry{Address: "dead@x.test", Reason: suppression.HardBounce}
		b.suppress(t, entry)
		req := api.SubmitRequest{To: for1("dead@x.test"), Text: "x", IdempotencyKey: "k"}
		first, err := b.Intake.Submit(t.Context(), req)
		if refuse {
			if fault.CodeOf(err) != "RecipientSuppressed" || b.ttlOf(t, "k") != -2 {
				t.Errorf("refused with %v; the key expires after %s", err, b.ttlOf(t, "k"))
			}
			continue
		}
		if err != nil || first.QueueID == "" || !first.NoneQueued() || first.SendAt != nil ||
			first.Idempotency == nil || first.Idempotency.Status != "MISS" {
			t.Fatalf("%+v, %v", first, err)
		}
		if m, err := b.Reader.Message(t.Context(), first.QueueID); err != nil || m.IdempotencyKey != "k" {
			t.Errorf("the log has %+v, %v", m, err)
		}
		hit := api.IdempotencyStatus{Key: "k", Status: "HIT", State: api.StatusSuppressed}
		for range 2 {
			again, err := b.Intake.Submit(t.Context(), req)
			if err != nil || again.QueueID != first.QueueID || again.Response != first.Response ||
				!again.NoneQueued() || again.Skipped.Reason != "hard_bounce" || *again.Idempotency != hit {
				t.Errorf("again: %+v, %v", again, err)
			}
			if _, err := b.store.Suppressions.Remove(t.Context(), entry); err != nil &&
				!fault.Is(err, fault.NotFound) {
				t.Fatal(err)
			}
		}
		req.Text = "y"
		if _, err := b.Intake.Submit(t.Context(), req); fault.CodeOf(err) != "IdempotencyKeyReused" {
			t.Errorf("another body: %v", err)
		}
		b.suppress(t, entry)
		if _, err := b.Intake.Submit(t.Context(), req); fault.CodeOf(err) != "IdempotencyKeyReused" {
			t.Errorf("another body, suppressed: %v", err)
		}
	}
}

// TestKeyIsTheAccountsHoweverItIsNamed: the default account named or not.
func TestKeyIsTheAccountsHoweverItIsNamed(t *testing.T) {
	t.Parallel()
	b := setup(t, Options{})
	req := api.SubmitRequest{To: for1("ann@x.test"), Text: "x", IdempotencyKey: "k"}
	_, first := b.again(t, req)
	req.Account = "default"
	if word, id := b.again(t, req); word != "HIT queued" || id != first {
		t.Errorf("with its name: %s", word)
	}
	req.Account = "other"
	if word, _ := b.again(t, req); word != "MISS" {
		t.Errorf("of another account: %s", word)
	}
}

// TestKeyMayBeRequired by the instance, the account or the token.
func TestKeyMayBeRequired(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		o        Options
		req      api.SubmitRequest
		required bool
	}{
		"by nobody":       {},
		"by the instance": {o: Options{RequireKey: true}, required: true},
		"by the account":  {req: api.SubmitRequest{Account: "careful"}, required: true},
		"by the token":    {req: api.SubmitRequest{KeyRequired: true}, required: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, c.o)
			wrong := func(err error) string {
				if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind == fault.Invalid && len(f.Fields) == 1 {
					return f.Fields[0].Key
				}
				return fmt.Sprint(err)
			}
			want := map[bool]string{true: "idempotencyKey", false: "<nil>"}[c.required]
			single := c.req
			single.To, single.Text = for1("ann@x.test"), "x"
			if _, err := b.Intake.Submit(t.Context(), single); wrong(err) != want {
				t.Errorf("without a key: %v", err)
			}
			single.IdempotencyKey = "k"
			if _, err := b.Intake.Submit(t.Context(), single); err != nil {
				t.Errorf("with a key: %v", err)
			}
			raw := c.req
			raw.Raw = []byte("To: ann@x.test\r\nFrom: a@x.test\r\nX-Postroom-Idempotency-Key: r\r\n\r\nx\r\n")
			if _, err := b.Intake.Submit(t.Context(), raw); err != nil {
				t.Errorf("with a key in its header: %v", err)
			}
			merge := c.req
			merge.Text, merge.MailMerge = "x", entries(2)
			merge.MailMerge[0].IdempotencyKey = "own"
			a, err := b.Intake.Submit(t.Context(), merge)
			if err != nil || !a.MailMerge[0].Success || a.MailMerge[1].Success == c.required ||
				c.required && (len(a.MailMerge[1].Fields) != 1 || a.MailMerge[1].Fields[0].Key != want) {
				t.Errorf("a merge of which one has a key: %+v, %v", a.MailMerge, err)
			}
			merge.IdempotencyKey = "all"
			if a, err = b.Intake.Submit(t.Context(), merge); err != nil || !a.MailMerge[1].Success {
				t.Errorf("a merge with a key: %+v, %v", a.MailMerge, err)
			}
		})
	}
}

// TestAKeyThatIsBlocked has no message: a submit that comes later is refused, even in a mail merge. A message
// that came before is named, and stays.
func TestAKeyThatIsBlocked(t *testing.T) {
	t.Parallel()
	b := setupSifted(t, Options{})
	late := api.SubmitRequest{To: for1("a@x.test"), Text: "x", IdempotencyKey: "late"}
	for range 2 {
		if id, err := b.Intake.BlockKey(t.Context(), "default", "late"); id != "" || err != nil {
			t.Fatalf("blocked: %q, %v", id, err)
		}
	}
	merge := api.SubmitRequest{MailMerge: []api.MailMergeEntry{{To: api.Address{Address: "b@x.test"}}},
		Text: "x", IdempotencyKey: "late"}
	for _, req := range []api.SubmitRequest{late, merge} {
		if a, err := b.Intake.Submit(t.Context(), req); fault.CodeOf(err) != "IdempotencyKeyReused" {
			t.Errorf("late: %+v, %v", a, err)
		}
	}
	if id, err := b.Reader.Accepted(t.Context(), "default", "late"); id != "" || err != nil {
		t.Errorf("accepted %q, %v", id, err)
	}
	if left := b.ttlOf(t, "late"); left <= 0 {
		t.Errorf("blocked for %v", left)
	}
	late.Account, late.IdempotencyKey = "other", "early"
	answer, err := b.Intake.Submit(t.Context(), late)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := b.Intake.BlockKey(t.Context(), "other", "early"); id != answer.QueueID || err != nil {
		t.Errorf("of one that was accepted: %q, %v; want %q", id, err, answer.QueueID)
	}
	if again, err := b.Intake.Submit(t.Context(), late); err != nil || again.QueueID != answer.QueueID {
		t.Errorf("again: %+v, %v", again, err)
	}
}

// TestAcceptedKnowsTheMessageOfAKey: none of another account or key, nor one to nobody.
func TestAcceptedKnowsTheMessageOfAKey(t *testing.T) {
	t.Parallel()
	b := setupSifted(t, Options{})
	b.suppress(t, suppression.Entry{Address: "dead@x.test", Reason: suppression.HardBounce})
	for key, to := range map[string]string{"k": "a@x.test", "nobody": "dead@x.test"} {
		b.again(t, api.SubmitRequest{To: for1(to), Text: "x", IdempotencyKey: key})
	}
	_, want := b.again(t, api.SubmitRequest{To: for1("a@x.test"), Text: "x", IdempotencyKey: "k"})
	for _, row := range []struct{ account, key, want string }{{"default", "k", want}, {"other", "k", ""},
		{"default", "other", ""}, {"default", "nobody", ""}} {
		if id, err := b.Reader.Accepted(t.Context(), row.account, row.key); err != nil || id != row.want {
			t.Errorf("of %s under %s: %q, %v; want %q", row.account, row.key, id, err, row.want)
		}
	}
}
