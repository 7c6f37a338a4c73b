package ui

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend"
)

// counts makes the outbox count what happened, and stops it.
func (w *world) counts(accepted int) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- w.outbox.Run(ctx) }()
	for {
		got, err := w.outbox.Counts.Rates(ctx, api.RatesQuery{})
		w.must(err)
		if len(got.Rates) == 1 && got.Rates[0].Accepted == accepted {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	cancel()
	w.must(<-done)
}

func TestOverviewOfNothing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	p := b.get("/")
	p.isSafe(t, "/")
	p.has(t, "<h1>Overview</h1>", "No message was sent in the last 10 minutes, and none is due.", "no messages sent yet",
		"There are no figures yet.", "No messages of this period failed.", "<p>None.</p>",
		`data-live="/?part=all&days=1"`, `href="/" aria-current="page">Overview`, `href="/outbox">Outbox`)
	p.lacks(t, `id="alerts"`, "What to do")
	part := b.get("/?part=all&days=7")
	part.lacks(t, "<html")
	if got := b.get("/?days=2"); got.status != http.StatusBadRequest {
		t.Errorf("two days: %d", got.status)
	}
}

func TestOverviewOfMail(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.relay.replies["bob@example.net"] = "550 5.1.1 <bob@example.net> is nobody " + evilText
	w.deliver(w.submit(api.SubmitRequest{Subject: "one"}))
	failed := ""
	for range 2 {
		failed = w.submit(api.SubmitRequest{To: api.Addresses{{Address: "bob@example.net"}}})
		w.deliver(failed)
	}
	waits := w.submit(api.SubmitRequest{})
	w.later(api.SubmitRequest{})
	w.counts(5)
	b := w.operator()
	for _, days := range []string{"1", "7", "30"} {
		p := b.get("/?days=" + days)
		p.isSafe(t, "/")
		p.eachFieldHasALabel(t, "/")
		p.has(t, "Messages were sent in the last 10 minutes, and 1 due message is waiting.", "/messages/"+waits,
			`accepted <strong>5</strong>`, `sent <strong>1</strong>`, `failed <strong>2</strong>`,
			`data-label="Messages">2</td>`, "<…> is nobody", "/messages/"+failed,
			"Counted over the newest 2 messages of 2", "newest 1 message sent", "The figures",
			`href="/outbox?state=failed"`)
		p.lacks(t, "bob@example.net")
		if len(p.body) > 100_000 {
			t.Errorf("%s days are a page of %d bytes", days, len(p.body))
		}
	}
	w.must(w.outbox.Queues.SetPaused(t.Context(), "submit", true))
	b.get("/").has(t, "Sending is paused (transactional and bulk mail)", ">paused</span>", "/outbox?state=paused")
}

func TestOverviewOfTrouble(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.alerts = []api.Alert{
		{Alert: "relayAway", Queue: "gateway:ses", Text: "Gateway ses " + evilText, Since: time.Now()},
		{Alert: "queuePaused", Queue: "notify", Text: "It is paused.", Since: time.Now()},
		{Alert: "ofTomorrow", Text: "It is new.", Since: time.Now()}}
	w.account("mine")
	w.accounts.Outcome(t.Context(), "mine", &smtpsend.Error{Phase: smtpsend.PhaseAuth, Verdict: smtpsend.Auth,
		Scope: smtpsend.ScopeAccount, Code: 535, Line: "535 5.7.8 wrong password"})
	w.gateway("ses")
	w.gateways.Opened(t.Context(), "ses", time.Now().Add(time.Hour))
	b := w.operator()
	for path, here := range map[string]bool{"/": true, "/log": false, "/settings": false,
		"/messages/nowhere": false} {
		p := b.get(path)
		p.has(t, `id="alerts" href="/">3 alerts</a>`)
		if strings.Contains(p.body, "What to do") != here {
			t.Errorf("%s: its alerts", path)
		}
	}
	p := b.get("/")
	p.isSafe(t, "/")
	p.has(t, "relayAway gateway:ses", `href="/playbooks#a-relay-rests"`, "postroom gateway verify ses",
		`href="/playbooks#the-queue-grows"`, "postroom queue resume notify", `href="/webhooks">Resume`,
		"ofTomorrow", `href="/playbooks">What to do`, `account <span class="id">mine</span>`)
	books := b.get("/playbooks")
	books.isSafe(t, "/playbooks")
	books.has(t, `id="a-relay-rests"`, `id="an-account-cant-log-in"`, "postroom gateway verify",
		`<strong>Symptom:</strong> alerts <code>queueAge</code>`, `href="/docs/guide/delivery"`,
		`<a href="#all-mail-is-deferred">All mail is deferred</a>`)
	books.lacks(t, "**Symptom", "](", "`")
}

// TestOverviewOfAnAccount: who is bound to an account sees neither alerts of the instance, nor the numbers of
// others.
func TestOverviewOfAnAccount(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.alerts = []api.Alert{{Alert: "redisMemory", Text: "Redis is nearly full.", Since: time.Now()}}
	w.account("mine")
	w.account("theirs")
	w.deliver(w.submit(api.SubmitRequest{Account: "mine"}))
	w.relay.replies["ada@example.net"] = "550 5.1.1 of theirs"
	w.deliver(w.submit(api.SubmitRequest{Account: "theirs"}))
	w.deliver(w.submit(api.SubmitRequest{Account: "theirs"}))
	w.counts(3)
	b := w.person("ann", api.RoleOperator, "mine")
	p := b.get("/")
	p.isSafe(t, "/")
	p.has(t, `accepted <strong>1</strong>`, `sent <strong>1</strong>`, `failed <strong>0</strong>`,
		"No messages of this period failed.", "Problems with the account, its gateways and webhooks", `/log?account=mine`)
	p.lacks(t, "redisMemory", `id="alerts"`, "theirs", "Gateways")
	b.get("/log").lacks(t, `id="alerts"`)
	if got := b.get("/?account=theirs"); got.status != http.StatusForbidden {
		t.Errorf("another account: %d", got.status)
	}
	w.operator().get("/?account=theirs").has(t, "of theirs", `data-live="/?part=all&days=1&account=theirs"`,
		`href="/?days=7&account=theirs"`)
}
