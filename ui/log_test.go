package ui

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
)

// older is the address of the link to older messages.
func (p page) older() string {
	m := regexp.MustCompile(`<a href="([^"]+)" rel="next">Older`).FindStringSubmatch(p.text())
	if m == nil {
		return ""
	}
	return m[1]
}

// logged fills a log with one message of each status, oldest first, and tells their ids.
func (w *world) logged() map[api.MessageStatus]string {
	w.t.Helper()
	w.relay.replies["nobody@example.net"] = "550 5.1.1 No such user"
	w.relay.replies["busy@example.net"] = "451 4.3.2 Come back later"
	ids := map[api.MessageStatus]string{
		api.StatusSent: w.submit(api.SubmitRequest{Subject: "a receipt", Tags: []string{"shop"},
			IdempotencyKey: "order-1"}),
		api.StatusDead: w.submit(api.SubmitRequest{Subject: "to nobody", To: api.Addresses{
			{Address: "nobody@example.net"}}, Lane: api.Bulk}),
		api.StatusQueued: w.submit(api.SubmitRequest{Subject: "to busy", To: api.Addresses{
			{Address: "busy@example.net"}}}),
		api.StatusCancelled: w.later(api.SubmitRequest{Subject: "no more", Tags: []string{"shop"}}),
	}
	for _, status := range []api.MessageStatus{api.StatusSent, api.StatusDead, api.StatusQueued} {
		w.deliver(ids[status])
	}
	_, err := w.outbox.Operations.Cancel(w.t.Context(), ids[api.StatusCancelled], reason)
	w.must(err)
	return ids
}

func TestLogShowsWhatBecameOfMail(t *testing.T) {
	t.Parallel()
	w := setup(t)
	_, err := w.accounts.Create(t.Context(), api.Account{Account: "other", Email: "o@example.com",
		SMTP: &api.SMTPServer{Host: "relay.test", Port: 25}})
	w.must(err)
	b := w.operator()
	b.get("/log").has(t, "The log is empty.", `aria-current="page">Log`)
	w.logged()
	w.deliver(w.submit(api.SubmitRequest{Account: "other", Subject: "of another"}))

	p := b.get("/log")
	p.isSafe(t, "/log")
	p.eachFieldHasALabel(t, "/log")
	all := []string{"of another", "no more", "to busy", "to nobody", "a receipt"}
	if diff := cmp.Diff(all, p.subjects()); diff != "" {
		t.Errorf("newest first (-want +got):\n%s", diff)
	}
	p.has(t, "5 messages", "250 2.0.0 OK: queued <as> 42", "451 4.3.2 Come back later", "550 5.1.1 No such user",
		"operator", "#shop",
		`1</span> <span class="l">pending`, `1</span> <span class="l">failed<`,
		`1</span> <span class="l">dead letters`,
		`2</span> <span class="l">sent in the last hour`, `2</span> <span class="l">sent in the last 24 hours`,
		`href="/log?status=dead"`)
	for query, want := range map[string][]string{
		"status=sent":                               {"of another", "a receipt"},
		"status=queued":                             {"to busy"},
		"status=dead":                               {"to nobody"},
		"status=cancelled":                          {"no more"},
		"status=failed":                             {"to nobody"},
		"status=sent&account=other":                 {"of another"},
		"account=nobody":                            nil,
		"lane=bulk":                                 {"to nobody"},
		"tag=shop":                                  {"no more", "a receipt"},
		"search=BUSY":                               {"to busy"},
		"search=order-1":                            {"a receipt"},
		"tag=shop&status=sent&search=receipt":       {"a receipt"},
		"before=2020-01-01T00:00":                   nil,
		"after=2020-01-01&lane=transactional":       {"of another", "no more", "to busy", "a receipt"},
		"after=2020-01-01T00:00&search=%E2%82%AC+x": nil,
	} {
		if diff := cmp.Diff(want, b.get("/log?"+query).subjects()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	b.get("/log?account=other").has(t, `1</span> <span class="l">sent in the last hour`,
		`0</span> <span class="l">pending`, "of account <strong>other</strong>",
		`href="/log?account=other&status=dead"`)
	b.get("/log?lane=bulk").has(t, `0</span> <span class="l">sent in the last hour`,
		`1</span> <span class="l">failed<`, "in the <strong>bulk</strong> stream")
	b.get("/log?search=nothing").has(t, "No messages match.", "Clear")
}

func TestLogRefusesNonsense(t *testing.T) {
	t.Parallel()
	b := setup(t).operator()
	p := b.get("/log?status=lost&lane=fast&after=yesterday&search=" + strings.Repeat("x", 1025) + "&tag=" +
		strings.Repeat("x", 257))
	if p.status != http.StatusBadRequest {
		t.Errorf("status %d", p.status)
	}
	p.has(t, "is not a status", "neither transactional nor bulk", "not a date and time",
		"longer than 256", "longer than 1024")
	for _, cursor := range []string{"nonsense", "%00", "..", strings.Repeat("9", 1024),
		strings.Repeat("9", 1025), "<script>alert(1)</script>", "0:0"} {
		p := b.get("/log?cursor=" + url.QueryEscape(cursor))
		if p.status >= 500 {
			t.Errorf("cursor %.40q answers %d", cursor, p.status)
		}
		p.isSafe(t, "/log?cursor")
	}
	if p := b.get("/log?state=lost&page=-7&part=%3Cscript%3E"); p.status != http.StatusOK {
		t.Errorf("what the page does not know answers %d", p.status)
	}
}

// TestLogGoesOnByCursor: what arrives between two pages does not push a row onto both.
// TestPagesTakeAgesInDays wherever they take a time in the past, as the command line does.
func TestPagesTakeAgesInDays(t *testing.T) {
	t.Parallel()
	w := setup(t)
	id := w.submit(api.SubmitRequest{})
	b := w.operator()
	b.get("/log?after=7d").has(t, id)
	b.get("/log?before=1w").lacks(t, id)
	b.get("/outbox?after=7d").has(t, id)
	for _, path := range []string{"/audit?from=7d&to=1h", "/digests/runs?after=2w&before=1d"} {
		if p := b.get(path); p.status != http.StatusOK {
			t.Errorf("%s answers %d", path, p.status)
		}
	}
	b.get("/log?after=week").has(t, "or an age such as 7d")
}

func TestLogGoesOnByCursor(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for i := range rowsPerPage + 3 {
		w.later(api.SubmitRequest{Subject: fmt.Sprintf("number %d", i), Tags: []string{"n"}})
	}
	b := w.operator()
	for _, query := range []string{"?status=queued&tag=n", "?tag=n", "?status=queued", ""} {
		first := b.get("/log" + query)
		if rows := first.subjects(); len(rows) != rowsPerPage || first.older() == "" {
			t.Fatalf("%q: the first page has %d rows, older: %q", query, len(rows), first.older())
		}
		w.later(api.SubmitRequest{Subject: "a new one"})
		second := b.get(first.older())
		all := append(first.subjects(), second.subjects()...)
		for i, subject := range all[len(all)-(rowsPerPage+3):] {
			if want := fmt.Sprintf("number %d", rowsPerPage+2-i); subject != want {
				t.Errorf("%q: row %d is %q, want %q", query, i, subject, want)
			}
		}
		second.has(t, "Newest", "(continued)")
		second.lacks(t, `/log?part=rows`)
		if second.older() != "" {
			t.Errorf("%q: there is a third page", query)
		}
	}
}

func TestPartsOfTheLogAreForTheScript(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.logged()
	b := w.operator()
	rows := b.get("/log?part=rows&status=sent")
	rows.has(t, "a receipt")
	rows.lacks(t, "<html", "pending", "to busy")
	counts := b.get("/log?part=counts")
	counts.has(t, "pending")
	counts.lacks(t, "<html", "a receipt")
	b.get("/log").has(t, `data-live="/log?part=rows"`)
	b.get("/log?search=x").lacks(t, `part=rows`)
}

// TestMessageTellsItsStoryAfterItsEnd: attempts and events of a sent message are as visible as those of a
// live one.
func TestMessageTellsItsStoryAfterItsEnd(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.relay.replies["busy@example.net"] = "451 4.3.2 Come back later"
	id := w.submit(api.SubmitRequest{Subject: "a receipt", Tags: []string{"shop"}, To: api.Addresses{
		{Address: "busy@example.net"}, {Address: "ada@example.net"}}})
	w.deliver(id)
	w.relay.replies["busy@example.net"] = "550 5.1.1 No such user"
	_, err := w.outbox.Operations.Retry(t.Context(), id)
	w.must(err)
	w.deliver(id)
	ids := w.logged()
	b := w.operator()
	p := b.get("/messages/" + id)
	p.isSafe(t, "/messages")
	p.has(t, "Attempt 1", "Sent: ada@example.net", "Will be retried: busy@example.net", "Attempt 2",
		"Failed: busy@example.net", "451 4.3.2 Come back later", "Send again with corrections")
	if strings.Index(p.body, "Will be retried") > strings.Index(p.body, "Attempt 2") {
		t.Error("the story is out of order")
	}

	sent := b.get("/messages/" + ids[api.StatusSent])
	sent.has(t, "This message was sent", "Attempt 1", "relay.example:25", "250 2.0.0 OK: queued <as> 42",
		"Ended", `href="/log?tag=shop"`, `href="/log?account=default"`, "order-1",
		"The content of a message is not kept after sending (outbox.keepContent).", `<a href="/log">Log</a>`, `aria-current="page">Log`)
	sent.lacks(t, "Send again", "Download", "data-live", "Reschedule",
		"<form method=\"post\" action=\"/messages")
	b.get("/messages/"+ids[api.StatusCancelled]).has(t, "This message was cancelled",
		"Reason: operator", "<strong>Cancelled</strong>: ada@example.net", "0 of 10 attempts made")
	b.get("/messages/"+ids[api.StatusQueued]).has(t, "Will be retried", "Send now", "delayed",
		`aria-current="page">Outbox`)
}

func TestDeletedDeadLetterStaysInTheLog(t *testing.T) {
	t.Parallel()
	w := setup(t)
	id := w.logged()[api.StatusDead]
	b := w.operator()
	b.submitForm("/messages/"+id+"/cancel", nil).has(t, id)
	p := b.get("/messages/" + id)
	p.has(t, "This message failed", "It was deleted: operator", "550 5.1.1 No such user",
		"Attempt 1")
	p.lacks(t, "Send again")
	p = b.get("/log?status=failed")
	p.has(t, "to nobody", "550 5.1.1 No such user")
	p.lacks(t, "operator")
}

func TestDeadLetterIsSentAgainWithCorrections(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.gateway("spare")
	_, err := w.accounts.Create(t.Context(), api.Account{Account: "other", Email: "o@example.com",
		SMTP: &api.SMTPServer{Host: "relay.test", Port: 25}})
	w.must(err)
	id := w.logged()[api.StatusDead]
	b := w.operator()
	path := "/messages/" + id
	p := b.get(path)
	p.eachFieldHasALabel(t, path)
	p.has(t, "Send again with corrections", `action="`+path+`/replay"`, `<option value="spare">`,
		`<option value="other">`)
	p.lacks(t, `<details class="card" open>`)

	p = b.submitForm(path+"/replay", url.Values{"to": {"ann@example.net, bob"}, "gateway": {"spare"},
		"as": {"other"}})
	p.has(t, `class="flash bad"`, "is not a valid email address", `<details class="card" open>`,
		`value="ann@example.net, bob"`, `<option value="spare" selected>`, `value="other"`)
	b.submitForm(path+"/replay", url.Values{"as": {"none"}}).has(t, `class="flash bad"`)
	if got := w.state(id); got != api.Failed {
		t.Fatalf("a refused replay left the message %s", got)
	}
	b.submitForm(path+"/replay", url.Values{"to": {" ann@example.net;bea@example.net\r\n"}, "gateway": {"spare"},
		"as": {"other"}}).
		has(t, "The message is due again.", "replaced", "ann@example.net", "bea@example.net", "<dd>spare</dd>",
			`href="/outbox?account=other"`, "Sent again by hand")
	b.submitForm(path+"/replay", url.Values{}).has(t, `class="flash bad"`, "hasn't failed")
	w.deliver(id)
	b.get(path).has(t, "This message was sent", "replaced", "Sent: ann@example.net and 1 other")
}

func TestManyAreSentAgainOtherwise(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.gateway("spare")
	id := w.logged()[api.StatusDead]
	b := w.operator()
	p := b.get("/replay?account=default&state=failed")
	p.eachFieldHasALabel(t, "/replay")
	p.has(t, "Use another gateway or account", `<option value="spare">`)
	b.submitForm("/replay", url.Values{"account": {"default"}, "gateway": {"spare"},
		"to": {"x@example.net"}}).has(t, "1 message is due again.")
	m, err := w.outbox.Reader.Get(t.Context(), id)
	w.must(err)
	if m.Gateway == nil || *m.Gateway != "spare" || m.Account != "default" ||
		m.Envelope.To[0] != "nobody@example.net" || len(m.Envelope.To) != 1 {
		t.Errorf("it is %+v", m)
	}
}

func TestReadCorrections(t *testing.T) {
	none, spare := "", "spare"
	for _, tt := range []struct {
		name string
		form url.Values
		want api.Corrections
	}{
		{"nothing", url.Values{"to": {" , ;\n"}, "gateway": {" "}, "as": {" "}}, api.Corrections{}},
		{"several addresses", url.Values{"to": {"a@x.example,b@x.example; c@x.example\td@x.example"}},
			api.Corrections{To: api.Emails{"a@x.example", "b@x.example", "c@x.example", "d@x.example"}}},
		{"the account's own relays", url.Values{"gateway": {noGateway}}, api.Corrections{Gateway: &none}},
		{"a gateway and an account", url.Values{"gateway": {"spare"}, "as": {" shop "}},
			api.Corrections{Gateway: &spare, Account: "shop"}},
	} {
		if diff := cmp.Diff(tt.want, readCorrections(tt.form)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestSteps(t *testing.T) {
	at := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	minute := func(n int) time.Time { return at.Add(time.Duration(n) * time.Minute) }
	log := []api.Attempt{{Number: 1, Start: minute(1)}, {Number: 1, Start: minute(5)}}
	unknown := api.Attempt{Number: 3, Start: minute(7)}
	events := []api.MessageEvent{
		{Event: "messageQueued", Date: at}, {Event: "messageFailed", Date: minute(2), Attempt: &log[0]},
		{Event: "messageReplayed", Date: minute(3)},
		{Event: "messageSent", Date: minute(6), Attempt: &log[1]}, {Event: "messageDeliveryError", Date: minute(6),
			Attempt: &log[1]}, {Event: "trackOpen", Date: minute(8), Attempt: &unknown},
	}
	want := []step{
		{At: minute(1), Attempt: &log[0], Events: events[1:2]}, {At: minute(3), Events: events[2:3]},
		{At: minute(5), Attempt: &log[1], Events: events[3:5]}, {At: minute(8), Events: events[5:]},
	}
	if diff := cmp.Diff(want, steps(api.LoggedMessage{Log: log}, events)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := happened("messageSung"); got != "messageSung" {
		t.Errorf("an event that has no words yet is %q", got)
	}
}

func TestReaders(t *testing.T) {
	hit := func(kind, url string, bot bool) api.MessageEvent {
		return api.MessageEvent{Event: kind, Details: &api.EventDetails{URL: url, Bot: bot}}
	}
	for _, tt := range []struct {
		want   string
		events []api.MessageEvent
	}{
		{"", []api.MessageEvent{{Event: "messageSent"}}},
		{"opened 1 time", []api.MessageEvent{{Event: "messageSent"}, hit("trackOpen", "", false)}},
		{"1 hit by bots", []api.MessageEvent{hit("trackOpen", "", true)}},
		{"opened 2 times, 2 links followed 3 times, 2 hits by bots", []api.MessageEvent{
			hit("trackOpen", "", false), hit("trackClick", "a", false), hit("trackClick", "b", true),
			hit("trackClick", "c", false),
			hit("trackClick", "a", false), hit("trackOpen", "", false), hit("trackOpen", "", true),
		}},
	} {
		if got := readers(tt.events); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

func TestLogFilterStandsInAddresses(t *testing.T) {
	f := logFilter{Status: api.StatusDead, filter: filter{
		Account: "a&b=c", Lane: api.Bulk, Tag: "x y", Search: `"><script>`, After: time.Date(2026, 1, 2, 3, 4, 0, 0,
			time.UTC),
	}}
	u, err := url.Parse(f.URL())
	if err != nil {
		t.Fatal(err)
	}
	got, err := readLogFilter(u.Query())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, got, cmp.AllowUnexported(logFilter{})); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}
