package outbox

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox/suppression"
	"github.com/postroom/postroom/smtpsend"
)

// accept.lua and begin.lua look for suppressions themselves. These tests count the look-ups beside them.

// lookups counts the recipients that were looked up since the last call.
type lookups struct {
	reg  *prometheus.Registry
	last float64
}

func (l *lookups) since(t *testing.T) int {
	t.Helper()
	families, err := l.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "postroom_suppression_checks_total" {
			before := l.last
			l.last = f.GetMetric()[0].GetCounter().GetValue()
			return int(l.last - before)
		}
	}
	t.Fatal("it is not counted who is looked up")
	return 0
}

func setupCounted(t *testing.T, db *redisdb.DB, o Options) (*bundle, *lookups) {
	t.Helper()
	l := &lookups{reg: prometheus.NewRegistry()}
	return setupSiftedOn(t, db, o, suppression.Options{Registry: l.reg}), l
}

func toMany(n int) (to api.Addresses) {
	for i := range n {
		to = append(to, api.Address{Address: fmt.Sprintf("ann@x%d.test", i)})
	}
	return to
}

// noLookups submits and delivers mail for recipients that are not suppressed.
func noLookups(t *testing.T, db *redisdb.DB) {
	t.Helper()
	b, looked := setupCounted(t, db, Options{})
	b.suppress(t, suppression.Entry{Address: "dead@x.test", Reason: suppression.HardBounce})
	to := b.sentTo()
	for _, req := range []api.SubmitRequest{
		{To: for1("ann@x.test")},
		{To: for1("ann@x.test"), IdempotencyKey: "k"},
		{To: toMany(10), Lane: api.Bulk},
	} {
		*to = nil
		id := b.submit(t, req)
		if n := looked.since(t); n != 0 {
			t.Errorf("%v: %d were looked up as it came in", req.To, n)
		}
		if b.recordOf(t, id)["v"] == "" {
			t.Errorf("%v: it is not noted that nobody is suppressed", req.To)
		}
		b.deliver(t, id)
		if n := looked.since(t); n != 0 || len(*to) != len(req.To) {
			t.Errorf("%v: %d were looked up as it was delivered, to %s", req.To, n, *to)
		}
	}
	if a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{To: for1("dead@x.test"),
		Text: "x"}); err != nil ||
		a.Skipped == nil || looked.since(t) != 1 {
		t.Errorf("dead@x.test: %+v, %v", a, err)
	}
}

func TestNobodyIsLookedUpWithoutNeed(t *testing.T) {
	t.Parallel()
	noLookups(t, spread(t))
}

func TestNobodyIsLookedUpWithReplicas(t *testing.T) {
	t.Parallel()
	g := testredis.Replicated(t, testredis.Topology{})
	noLookups(t, testredis.Connect(t, redisdb.Options{URL: g.URL(), WaitReplicas: 1,
		WaitTimeout: 10 * time.Second}))
}

// TestEverybodyIsLookedUp if a script can't look itself: in a Cluster, and for a message with many
// recipients.
func TestEverybodyIsLookedUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options redisdb.Options
		to      api.Addresses
	}{
		"on a Cluster": {redisdb.Options{URL: testredis.Cluster(t, testredis.Topology{}).URL(), Partitions: 2},
			for1("ann@x.test")},
		"for many": {redisdb.Options{URL: testredis.Server(t).URL()}, toMany(11)},
	} {
		b, looked := setupCounted(t, testredis.Connect(t, c.options), Options{})
		to := b.sentTo()
		id := b.submit(t, api.SubmitRequest{To: c.to})
		if n := looked.since(t); n != len(c.to) || b.recordOf(t, id)["v"] != "" {
			t.Errorf("%s: %d were looked up as it came in; it is %v", name, n, b.recordOf(t, id))
		}
		b.suppress(t, suppression.Entry{Address: c.to[0].Address, Reason: suppression.Manual})
		b.deliver(t, id)
		if n := looked.since(t); n != len(c.to) || slices.Contains(*to, c.to[0].Address) ||
			len(*to) != len(c.to)-1 {
			t.Errorf("%s: %d were looked up as it was delivered, to %s", name, n, *to)
		}
	}
}

// TestLookedUpAgain makes changes between the submit and the attempt, after which the result of the submit is
// no longer valid.
func TestLookedUpAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		happens func(t *testing.T, b *bundle)
		looked  int
	}{
		"nothing": {func(*testing.T, *bundle) {}, 0},
		"somebody else is suppressed": {func(t *testing.T, b *bundle) {
			b.suppress(t, suppression.Entry{Address: "other@x.test", Reason: suppression.Manual})
		}, 1},
		"somebody may be mailed again": {func(t *testing.T, b *bundle) {
			if _, err := b.store.Suppressions.Remove(t.Context(),
				suppression.Entry{Address: "dead@x.test"}); err != nil {
				t.Fatal(err)
			}
		}, 0},
		"the version is lost": {func(t *testing.T, b *bundle) {
			b.store.DB.Client().Del(t.Context(), b.store.Suppressions.VersionKey())
		}, 1},
		"the version is lost, and made again": {func(t *testing.T, b *bundle) {
			b.store.DB.Client().Del(t.Context(), b.store.Suppressions.VersionKey())
			b.submit(t, api.SubmitRequest{To: for1("bob@x.test")})
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, looked := setupCounted(t, testredis.New(t), Options{})
			b.suppress(t, suppression.Entry{Address: "dead@x.test", Reason: suppression.Manual})
			id := b.submit(t, api.SubmitRequest{To: for1("ann@x.test")})
			c.happens(t, b)
			b.deliver(t, id)
			if n := looked.since(t); n != c.looked {
				t.Errorf("%d were looked up, want %d", n, c.looked)
			}
		})
	}
}

// TestEveryAttemptIsCleared: a further attempt does not look up either, until a suppression is added.
func TestEveryAttemptIsCleared(t *testing.T) {
	t.Parallel()
	b, looked := setupCounted(t, testredis.New(t), Options{})
	b.sender.replies["ann@x.test"] = "451 4.2.1 later"
	id := b.submit(t, api.SubmitRequest{To: for1("ann@x.test")})
	for n, want := range []int{0, 0, 1, 1} {
		if n == 2 {
			b.suppress(t, suppression.Entry{Address: "other@x.test", Reason: suppression.Manual})
		}
		b.deliver(t, id)
		b.clock.Advance(time.Hour)
		if n := looked.since(t); n != want {
			t.Errorf("%d were looked up, want %d", n, want)
		}
	}
}

// TestNothingIsLeftOfAMessageThatIsAskedFor: its task was queued with accept.lua, in a queue that may be
// paused, and a large content was stored.
func TestNothingIsLeftOfAMessageThatIsAskedFor(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"small": "x", "large": string(noise(t, 400<<10))} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _ := setupCounted(t, testredis.New(t), Options{})
			b.suppress(t, suppression.Entry{Address: "dead@x.test", Reason: suppression.Manual})
			later := b.clock.Now().Add(time.Hour)
			file := []api.Attachment{{Filename: "f", Content: []byte(text)}}
			for _, at := range []*time.Time{nil, &later} {
				a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{To: for1("dead@x.test"), Text: "x", SendAt: at,
					Attachments: file})
				if err != nil || !a.NoneQueued() {
					t.Fatalf("%+v, %v", a, err)
				}
			}
			for _, pattern := range []string{"asynq:*:t:*", "postroom:*:incoming:*", "postroom:*:message:*"} {
				if keys := b.store.DB.Client().Keys(t.Context(), pattern).Val(); len(keys) > 0 {
					t.Errorf("left behind: %v", keys)
				}
			}
			to := b.sentTo()
			a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{To: append(for1("dead@x.test"),
				for1("bob@x.test")...),
				Text: "x", Attachments: file})
			if err != nil || a.Skipped == nil || !slices.Equal(a.Skipped.Recipients, []string{"dead@x.test"}) {
				t.Fatalf("%+v, %v", a, err)
			}
			tasks := b.store.DB.Client().Keys(t.Context(), "asynq:*:t:*").Val()
			if len(tasks) != 1 || !strings.HasSuffix(tasks[0], taskID(a.QueueID, firstEpoch)) {
				t.Errorf("queued: %v", tasks)
			}
			if keys := b.store.DB.Client().Keys(t.Context(), "postroom:*:incoming:*").Val(); len(keys) > 0 {
				t.Errorf("left behind: %v", keys)
			}
			b.deliver(t, a.QueueID)
			if !slices.Equal(*to, []string{"bob@x.test"}) {
				t.Errorf("mailed %s", *to)
			}
		})
	}
}

// TestKeyOfAMessageForSome repeats a submit: the key is a HIT even if recipients were suppressed since, and
// the answer names the skipped recipients.
func TestKeyOfAMessageForSome(t *testing.T) {
	t.Parallel()
	for _, refuse := range []bool{false, true} {
		b, _ := setupCounted(t, testredis.New(t), Options{RefuseSuppressed: refuse})
		b.suppress(t, suppression.Entry{Address: "dead@x.test", Reason: suppression.Manual})
		req := api.SubmitRequest{To: append(for1("dead@x.test"), for1("bob@x.test")...), Text: "x",
			IdempotencyKey: "k"}
		first, err := b.Intake.Submit(t.Context(), req)
		if err != nil || first.Idempotency.Status != "MISS" || first.Skipped == nil {
			t.Fatalf("%+v, %v", first, err)
		}
		again, err := b.Intake.Submit(t.Context(), req)
		if err != nil || again.QueueID != first.QueueID || again.Idempotency.Status != keyHit ||
			again.Skipped == nil || !slices.Equal(again.Skipped.Recipients, first.Skipped.Recipients) {
			t.Errorf("repeated: %+v, %v", again, err)
		}
		b.suppress(t, suppression.Entry{Address: "bob@x.test", Reason: suppression.Manual})
		again, err = b.Intake.Submit(t.Context(), req)
		if err != nil || again.QueueID != first.QueueID || again.Idempotency.Status != keyHit {
			t.Errorf("repeated, with both suppressed: %+v, %v", again, err)
		}
		req.Text = "y"
		if _, err := b.Intake.Submit(t.Context(), req); fault.CodeOf(err) != "IdempotencyKeyReused" {
			t.Errorf("the key with another body: %v", err)
		}
	}
}

// TestCorrectedRecipientIsLookedUp: the look-up of the former recipients does not count for the new ones.
func TestCorrectedRecipientIsLookedUp(t *testing.T) {
	t.Parallel()
	b, _ := setupCounted(t, testredis.New(t), Options{})
	b.suppress(t,
		suppression.Entry{Address: "dead@x.test", Reason: suppression.Manual},
		suppression.Entry{Address: "left@x.test", Reason: suppression.Manual, Account: "other"},
	)
	b.sender.refusals = map[string]*smtpsend.Error{
		"ann@x.test": {Phase: smtpsend.PhaseDot, Code: 554, Line: "554 spam", Verdict: smtpsend.Policy,
			Scope: smtpsend.ScopeMessage},
		"left@x.test": {Phase: smtpsend.PhaseDot, Code: 554, Line: "554 spam", Verdict: smtpsend.Policy,
			Scope: smtpsend.ScopeMessage},
	}
	to := b.sentTo()
	for _, c := range []struct {
		first string
		then  api.Corrections
		want  []string
	}{
		{"ann@x.test", api.Corrections{To: api.Emails{"dead@x.test", "bob@x.test"}}, []string{"bob@x.test"}},
		{"left@x.test", api.Corrections{Account: "other", To: api.Emails{"left@x.test", "bob@x.test"}},
			[]string{"bob@x.test"}},
	} {
		b.clock.Advance(time.Hour)
		id := b.submit(t, api.SubmitRequest{To: for1(c.first)})
		b.deliver(t, id)
		*to = nil
		if _, err := b.Operations.Replay(t.Context(), id, c.then); err != nil {
			t.Fatal(err)
		}
		b.Delivery.Deliver(t.Context(), queue.Task{ID: taskID(id, "2")})
		if !slices.Equal(*to, c.want) {
			t.Errorf("%s, corrected to %+v: mailed %s", c.first, c.then, *to)
		}
	}
}

// TestMergeLooksUpTheSuppressed: for a mail merge only recipients that may be suppressed are looked up.
func TestMergeLooksUpTheSuppressed(t *testing.T) {
	t.Parallel()
	b, looked := setupCounted(t, spread(t), Options{})
	list := entries(600)
	for i := 0; i < 600; i += 100 {
		b.suppress(t, suppression.Entry{Address: list[i].To.Address, Reason: suppression.Manual})
	}
	b.suppress(t, suppression.Entry{Address: list[1].To.Address, Reason: suppression.Manual,
		Expires: b.clock.Now().Add(time.Second)})
	b.clock.Advance(time.Minute)
	a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{Template: "welcome", MailMerge: list,
		Lane: api.Bulk})
	if err != nil {
		t.Fatal(err)
	}
	if n := looked.since(t); n != 7 {
		t.Errorf("%d were looked up, want 7", n)
	}
	if r := a.MailMerge[1]; !r.Success || r.QueueID == "" {
		t.Errorf("an entry that had expired stopped %+v", r)
	}
	if n := len(b.store.DB.Client().Keys(t.Context(), "asynq:*:t:*").Val()); n != 594 {
		t.Errorf("%d tasks, want 594", n)
	}
	b.deliver(t, a.MailMerge[2].QueueID)
	if n := looked.since(t); n != 0 {
		t.Errorf("%d were looked up as one was delivered", n)
	}
}
