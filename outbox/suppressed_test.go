package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/outbox/suppression"
	"github.com/postroom/postroom/smtpsend"
)

func TestNobodyLeftMeansNothingQueued(t *testing.T) {
	t.Parallel()
	b := setupSifted(t, Options{})
	b.suppress(t, suppression.Entry{Address: "Dead@x.test", Reason: suppression.HardBounce, Source: "ses"})
	a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{To: for1("dead@X.test"), Text: "x",
		Subject: "Hello"})
	if err != nil {
		t.Fatal(err)
	}
	if a.QueueID == "" || !a.NoneQueued() || a.Skipped.Reason != "hard_bounce" ||
		!slices.Equal(a.Skipped.Recipients, []string{"dead@x.test"}) {
		t.Errorf("answered %+v, %+v", a, a.Skipped)
	}
	page, err := b.Reader.Messages(t.Context(), api.LogQuery{Status: api.StatusSuppressed})
	if err != nil || len(page.Messages) != 1 {
		t.Fatalf("the log has %+v, %v", page, err)
	}
	m := page.Messages[0]
	if m.Subject != "Hello" || m.Reason != "hard_bounce" || m.Recipients[0].Status != "suppressed" ||
		m.AttemptsMade != 0 || m.Ended == nil {
		t.Errorf("logged %+v", m)
	}
	events := b.eventsOf(t, event.MessageSuppressed)
	if len(events) != 1 || !strings.Contains(string(events[0].Data), `"reason":"hard_bounce"`) ||
		!strings.Contains(string(events[0].Data), `"to":["dead@x.test"]`) {
		t.Errorf("told %v", events)
	}
	story, err := b.Reader.MessageEvents(t.Context(), m.QueueID)
	if err != nil || len(story.Events) != 2 || story.Events[1].Event != "messageSuppressed" ||
		story.Events[1].EventID != events[0].ID {
		t.Errorf("its story is %+v, %v", story, err)
	}
	if n := b.store.DB.Client().ZCard(t.Context(), b.store.keys.index(0, "transactional",
		stateWaiting)).Val(); n != 0 {
		t.Errorf("%d messages wait", n)
	}
}

func TestRefusedWhereTheSettingSaysSo(t *testing.T) {
	t.Parallel()
	b := setupSifted(t, Options{RefuseSuppressed: true})
	b.suppress(t, suppression.Entry{Domain: "gone.test", Reason: suppression.Manual})
	_, err := b.Intake.Submit(t.Context(), api.SubmitRequest{To: for1("ann@gone.test"), Text: "x"})
	if f, _ := err.(*fault.Error); f == nil || f.Code != "RecipientSuppressed" ||
		f.Kind != fault.Unprocessable || f.Details["skipped"] == nil {
		t.Errorf("%v", err)
	}
	a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{Text: "x", MailMerge: []api.MailMergeEntry{
		{To: api.Address{Address: "ann@gone.test"}}, {To: api.Address{Address: "bob@x.test"}}}})
	if err != nil || a.MailMerge[0].Success || a.MailMerge[0].Code != "RecipientSuppressed" ||
		a.MailMerge[0].StatusCode != 422 || !a.MailMerge[1].Success {
		t.Errorf("%+v, %v", a.MailMerge, err)
	}
}

// TestKeyWinsOverSuppression repeats a submit whose recipient was suppressed after it was accepted: the
// client gets the first answer.
func TestKeyWinsOverSuppression(t *testing.T) {
	t.Parallel()
	b := setupSifted(t, Options{})
	req := api.SubmitRequest{To: for1("ann@x.test"), Text: "x", IdempotencyKey: "k"}
	first, err := b.Intake.Submit(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	b.suppress(t, suppression.Entry{Address: "ann@x.test", Reason: suppression.Manual})
	again, err := b.Intake.Submit(t.Context(), req)
	if err != nil || again.QueueID != first.QueueID || again.Idempotency == nil ||
		again.Idempotency.Status != "HIT" {
		t.Errorf("%+v, %v", again, err)
	}
}

// TestUnsubscribeOneMomentBeforeDelivery unsubscribes directly before a worker begins the message.
func TestUnsubscribeOneMomentBeforeDelivery(t *testing.T) {
	t.Parallel()
	b := setupSifted(t, Options{})
	b.mailedButForAnn(t, func(id string, unsubscribe func()) {
		unsubscribe()
		b.deliver(t, id)
	})
}

// TestUnsubscribeWhileAMessageIsWritten: the worker began the message a while ago.
func TestUnsubscribeWhileAMessageIsWritten(t *testing.T) {
	t.Parallel()
	b := setupSifted(t, Options{})
	b.mailedButForAnn(t, func(id string, unsubscribe func()) {
		c, _, err := b.Delivery.begin(t.Context(), id)
		if err != nil || c == nil {
			t.Fatal(err)
		}
		began := b.clock.Now()
		unsubscribe()
		b.clock.Advance(clearedFor)
		b.Delivery.record(t.Context(), c, b.Delivery.attempt(t.Context(), c, began))
	})
}

// TestUnsubscribeWhileTheAnswerIsOnItsWay: the answer of begin.lua reaches the worker late.
func TestUnsubscribeWhileTheAnswerIsOnItsWay(t *testing.T) {
	t.Parallel()
	b := setupSifted(t, Options{})
	b.mailedButForAnn(t, func(id string, unsubscribe func()) {
		p, _ := partitionOf(id, b.store.DB.Partitions())
		b.store.DB.Client().AddHook(&lateAnswer{about: b.Delivery.beginKeys(p, id), meanwhile: func() {
			unsubscribe()
			b.clock.Advance(clearedFor)
		}})
		b.deliver(t, id)
	})
}

// lateAnswer lets something happen between a script's end and its answer, once.
type lateAnswer struct {
	about     []string // the keys of the script
	meanwhile func()
}

func (l *lateAnswer) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *lateAnswer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l *lateAnswer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if l.meanwhile != nil && err == nil && len(cmd.Args()) > 4 && cmd.Args()[3] == l.about[0] &&
			cmd.Args()[4] == l.about[1] {
			meanwhile := l.meanwhile
			l.meanwhile = nil
			meanwhile()
		}
		return err
	}
}

// mailedButForAnn submits a message for two; ann unsubscribes before it is delivered.
func (b *bundle) mailedButForAnn(t *testing.T, deliver func(id string, unsubscribe func())) {
	t.Helper()
	to := b.sentTo()
	id := b.submit(t, api.SubmitRequest{To: api.Addresses{{Address: "ann@x.test"}, {Address: "bob@x.test"}},
		Lane: api.Bulk})
	deliver(id, func() {
		b.suppress(t, suppression.Entry{Address: "ann@x.test", Reason: suppression.Unsubscribe, Account: "default"})
	})
	if !slices.Equal(*to, []string{"bob@x.test"}) {
		t.Errorf("mailed %s", *to)
	}
	m, err := b.Reader.Message(t.Context(), id)
	if err != nil || m.Status != api.StatusSent || m.Recipients[0].Status != "suppressed" ||
		m.Recipients[0].Attempts != 0 || m.Recipients[1].Status != "sent" {
		t.Errorf("%+v, %v", m, err)
	}
	if !strings.Contains(m.Recipients[0].Response, "unsubscribe") {
		t.Errorf("says %q", m.Recipients[0].Response)
	}
	for kind, who := range map[event.Type]string{event.MessageSent: "bob@x.test",
		event.MessageSuppressed: "ann@x.test"} {
		events := b.eventsOf(t, kind)
		var data event.Sent
		if len(events) != 1 || json.Unmarshal(events[0].Data, &data) != nil ||
			!slices.Equal(data.Envelope.To, []string{who}) {
			t.Errorf("%s: %v", kind, events)
		}
	}
}

func TestSuppressedBetweenAttempts(t *testing.T) {
	t.Parallel()
	b := setupSifted(t, Options{})
	to := b.sentTo()
	b.sender.replies["ann@x.test"] = "451 4.2.1 later"
	id := b.submit(t, api.SubmitRequest{To: for1("ann@x.test")})
	b.deliver(t, id)
	b.suppress(t, suppression.Entry{Address: "ann@x.test", Reason: suppression.SpamReport, Source: "bounce"})
	b.clock.Advance(time.Hour)
	b.Delivery.Deliver(t.Context(), queue.Task{ID: taskID(id, "1")})
	m, err := b.Reader.Message(t.Context(), id)
	if err != nil || m.Status != api.StatusSuppressed || m.AttemptsMade != 1 || len(m.Log) != 1 ||
		m.Reason != "spam_report" {
		t.Errorf("%+v, %v", m, err)
	}
	if len(*to) != 1 {
		t.Errorf("the relay got it %d times", len(*to))
	}
	if n := len(b.eventsOf(t, event.MessageSuppressed)); n != 1 {
		t.Errorf("%d last words", n)
	}
}

// TestLanesAndReasons: which reasons suppress a recipient in which lane.
func TestLanesAndReasons(t *testing.T) {
	t.Parallel()
	b := setupSifted(t, Options{ServiceURL: func() string { return "https://p.test" }})
	b.store.Tokens = testStamps(t)
	b.suppress(t,
		suppression.Entry{Address: "left@x.test", Reason: suppression.Unsubscribe, Account: "default"},
		suppression.Entry{Address: "leftnews@x.test", Reason: suppression.Unsubscribe, Account: "default",
			List: "news"},
		suppression.Entry{Address: "dead@x.test", Reason: suppression.HardBounce},
	)
	for _, c := range []struct {
		to   string
		req  api.SubmitRequest
		want string
	}{
		{"left@x.test", api.SubmitRequest{}, ""},
		{"left@x.test", api.SubmitRequest{Lane: api.Bulk}, "unsubscribe"},
		{"left@x.test", api.SubmitRequest{Account: "other", Lane: api.Bulk}, ""},
		{"leftnews@x.test", api.SubmitRequest{Lane: api.Bulk}, ""},
		{"leftnews@x.test", api.SubmitRequest{ListID: "news"}, "unsubscribe"},
		{"leftnews@x.test", api.SubmitRequest{ListID: "News"}, "unsubscribe"},
		{"leftnews@x.test", api.SubmitRequest{ListID: "offers"}, ""},
		{"leftnews@x.test", api.SubmitRequest{ListID: "news", Account: "other"}, ""},
		{"left@x.test", api.SubmitRequest{ListID: "news"}, "unsubscribe"},
		{"left@x.test", api.SubmitRequest{ListID: "news", Account: "other"}, ""},
		{"dead@x.test", api.SubmitRequest{}, "hard_bounce"},
		{"ann@x.test", api.SubmitRequest{Lane: api.Bulk, ListID: "news"}, ""},
	} {
		c.req.To, c.req.Text = for1(c.to), "x"
		a, err := b.Intake.Submit(t.Context(), c.req)
		got := ""
		if a.Skipped != nil {
			got = a.Skipped.Reason
		}
		if err != nil || got != c.want {
			t.Errorf("%s, lane %q, list %q: skipped %q, want %q, %v", c.to, c.req.Lane, c.req.ListID, got, c.want, err)
		}
	}
}

func TestMergeSkips(t *testing.T) {
	t.Parallel()
	b := setupSifted(t, Options{})
	list := entries(600)
	for i := 0; i < 600; i += 100 {
		b.suppress(t, suppression.Entry{Address: list[i].To.Address, Reason: suppression.Manual})
	}
	a, err := b.Intake.Submit(t.Context(), api.SubmitRequest{Template: "welcome", MailMerge: list,
		Lane: api.Bulk})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range a.MailMerge {
		if stopped := i%100 == 0; !r.Success || r.QueueID == "" || (r.Skipped != nil) != stopped {
			t.Fatalf("entry %d: %+v", i, r)
		}
	}
	page, err := b.Reader.Messages(t.Context(), api.LogQuery{Status: api.StatusSuppressed})
	if err != nil || page.Total != 6 {
		t.Errorf("%d in the log, %v", page.Total, err)
	}
}

// TestRepliesTeach: which replies of relays suppress an address.
func TestRepliesTeach(t *testing.T) {
	t.Parallel()
	b := setupSiftedOn(t, spread(t), Options{Attempts: func() int { return 1 }}, suppression.Options{
		SoftBounces: 3})
	b.sender.refusals = map[string]*smtpsend.Error{
		"dead@x.test": {Phase: smtpsend.PhaseRcpt, Code: 550, Enhanced: "5.1.1", Line: "550 5.1.1 no such user",
			Verdict: smtpsend.Hard, Scope: smtpsend.ScopeRecipient, Suppress: true},
		"policy@x.test": {Phase: smtpsend.PhaseDot, Code: 554, Line: "554 spam", Verdict: smtpsend.Policy,
			Scope: smtpsend.ScopeMessage},
		"full@x.test": {Phase: smtpsend.PhaseRcpt, Code: 452, Enhanced: "4.2.2", Line: "452 4.2.2 full",
			Verdict: smtpsend.Soft, Scope: smtpsend.ScopeRecipient},
		"filled@x.test": {Phase: smtpsend.PhaseRcpt, Code: 552, Enhanced: "5.2.2", Line: "552 5.2.2 full",
			Verdict: smtpsend.Hard, Scope: smtpsend.ScopeRecipient},
		"away@x.test": {Phase: smtpsend.PhaseConnect, Verdict: smtpsend.Soft, Scope: smtpsend.ScopeConnection,
			Err: context.DeadlineExceeded},
	}
	stopped := func(address string) string {
		found, err := b.store.Suppressions.Check(t.Context(), suppression.Question{Account: "default",
			Addresses: []string{address}})
		if err != nil {
			t.Fatal(err)
		}
		if found[0] == nil {
			return ""
		}
		return string(found[0].Reason)
	}
	var got []string
	for round := range 3 {
		for _, to := range []string{"dead@x.test", "policy@x.test", "full@x.test", "filled@x.test", "away@x.test"} {
			if round > 0 && to == "dead@x.test" {
				continue
			}
			b.deliver(t, b.submit(t, api.SubmitRequest{To: for1(to)}))
			got = append(got, fmt.Sprintf("%d %s %s", round, to, stopped(to)))
		}
	}
	want := []string{
		"0 dead@x.test hard_bounce", "0 policy@x.test ", "0 full@x.test ", "0 filled@x.test ", "0 away@x.test ",
		"1 policy@x.test ", "1 full@x.test ", "1 filled@x.test ", "1 away@x.test ",
		"2 policy@x.test ", "2 full@x.test hard_bounce", "2 filled@x.test hard_bounce", "2 away@x.test ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	all, err := b.store.Suppressions.Find(t.Context(), "dead@x.test")
	if err != nil || len(all) != 1 || all[0].Source != "smtp" || all[0].MessageID == "" ||
		all[0].Response != "550 5.1.1 no such user" || all[0].Account != "default" {
		t.Errorf("evidence %+v, %v", all, err)
	}
	b.clock.Advance(15 * 24 * time.Hour)
	if r := stopped("full@x.test"); r != "" {
		t.Errorf("a full mailbox is stopped after two weeks still: %s", r)
	}
	if r := stopped("dead@x.test"); r == "" {
		t.Error("a dead address may be mailed again")
	}
}

// TestReplayToNobody: a dead letter whose recipient is suppressed is not lost by a replay.
func TestReplayToNobody(t *testing.T) {
	t.Parallel()
	b := setupSifted(t, Options{})
	b.sender.refusals = map[string]*smtpsend.Error{
		"dead@x.test": {Phase: smtpsend.PhaseRcpt, Code: 550, Line: "550 5.1.1 no such user",
			Verdict: smtpsend.Hard, Scope: smtpsend.ScopeRecipient, Suppress: true},
	}
	id := b.submit(t, api.SubmitRequest{To: for1("dead@x.test")})
	b.deliver(t, id)
	if _, err := b.Operations.Retry(t.Context(), id); fault.CodeOf(err) != "RecipientSuppressed" ||
		!fault.Is(err, fault.Conflict) {
		t.Errorf("sent again: %v", err)
	}
	if all, err := b.Operations.ReplayAll(t.Context(), api.ReplayRequest{IDs: []string{id}}); err != nil ||
		all.Replayed != 0 || all.Skipped != 1 {
		t.Errorf("sent again with others: %+v, %v", all, err)
	}
	if m, err := b.Reader.Message(t.Context(), id); err != nil || m.Status != api.StatusDead {
		t.Errorf("it is %+v, %v", m.Status, err)
	}
	if _, err := b.Operations.Replay(t.Context(), id,
		api.Corrections{To: api.Emails{"ann@x.test"}}); err != nil {
		t.Errorf("with a correction: %v", err)
	}
	if _, err := b.store.Suppressions.Remove(t.Context(), suppression.Entry{Address: "dead@x.test",
		Account: "default", Reason: suppression.HardBounce}); err != nil {
		t.Fatal(err)
	}
	other := b.submit(t, api.SubmitRequest{To: for1("dead@x.test")})
	b.deliver(t, other)
	if _, err := b.store.Suppressions.Remove(t.Context(), suppression.Entry{Address: "dead@x.test",
		Account: "default", Reason: suppression.HardBounce}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Operations.Retry(t.Context(), other); err != nil {
		t.Errorf("with the suppression taken away: %v", err)
	}
}
