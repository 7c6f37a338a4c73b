package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/outbox"
)

func TestMessageShowsItsStory(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.relay.replies["busy@example.net"] = "451 4.3.2 Come back later"
	id := w.submit(api.SubmitRequest{
		Subject: "Grüße", Text: "Hello Ada,\nhow are you?", Tags: []string{"greeting"},
		Metadata:       json.RawMessage(`{"order":42}`),
		IdempotencyKey: "key-1", To: api.Addresses{{Address: "ada@example.net"}, {Address: "busy@example.net"}},
		Attachments: []api.Attachment{{Filename: "report.pdf", Content: []byte("%PDF"),
			ContentType: "application/pdf"}},
	})
	w.deliver(id)
	p := w.operator().get("/messages/" + id)
	p.has(t, "Grüße", id, "1 of 10 attempts made", "2 recipients", "ada@example.net",
		"250 2.0.0 OK: queued <as> 42",
		"451 4.3.2 Come back later", "Attempt 1", "Next attempt", `"order": 42`, "#greeting", "key-1", "Hello Ada,",
		"Attachments 1",
		"Full source", "Send now", "Yes, cancel it", "Reschedule")
	live := w.operator().get("/messages/" + id + "?part=live")
	live.has(t, "Attempt 1")
	live.has(t, `<details class="dialogue" id="dialogue-1" data-keep>`, "    0 ms  -- connected\n",
		"    7 ms  C: RCPT TO:<busy@example.net>\n", " 1203 ms  S: 451 4.3.2 Come back later\n")
	live.lacks(t, "<html", "Envelope")
}

func TestManyRecipientsAreSummedUp(t *testing.T) {
	t.Parallel()
	w := setup(t)
	req := api.SubmitRequest{}
	for i := range shownRecipients + 50 {
		req.To = append(req.To, api.Address{Address: fmt.Sprintf("r%d@example.net", i)})
	}
	w.relay.replies["r249@example.net"] = "550 5.1.1 No such user"
	w.relay.replies["r248@example.net"] = "451 4.3.2 Come back later"
	id := w.submit(req)
	w.deliver(id)
	p := w.operator().get("/messages/" + id)
	p.has(t, "250 recipients", "sent</span> 248", "r249@example.net", "r248@example.net", "and 50 more")
	if n := strings.Count(p.body, `data-label="Recipient"`); n != shownRecipients {
		t.Errorf("%d recipients are listed", n)
	}
}

func TestInDoubtIsMarked(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.relay.replies["lost@example.net"] = "dies"
	id := w.submit(api.SubmitRequest{To: api.Addresses{{Address: "lost@example.net"}}})
	w.deliver(id)
	b := w.operator()
	b.get("/messages/"+id).has(t, "1 attempt in doubt", "the relay may have accepted the message")
	b.get("/outbox").has(t, "in doubt")
}

func TestFailedMessageCanBeSentAgain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.relay.replies["nobody@example.net"] = "550 5.1.1 No such user"
	id := w.submit(api.SubmitRequest{Subject: "dead", Text: "what was in it", To: api.Addresses{
		{Address: "nobody@example.net"}}})
	w.deliver(id)
	b := w.operator()
	p := b.get("/messages/" + id)
	p.has(t, "no more attempts", "550 5.1.1 No such user", "Failed.", "Send again", "Delete…",
		"what was in it")
	if p := b.get("/messages/" + id + "/content"); !strings.Contains(p.body, "what was in it") {
		t.Errorf("its content: %d %s", p.status, p.body)
	}
	p.lacks(t, "Reschedule", "data-live")
	b.submitForm("/messages/"+id+"/retry", nil).has(t, "The message is due now.", "0 of 10 attempts made")
	if got := w.state(id); got != api.Waiting {
		t.Errorf("the message is %s", got)
	}
}

func TestWhatBecameOfAMessage(t *testing.T) {
	t.Parallel()
	w := setup(t)
	sent := w.submit(api.SubmitRequest{})
	w.deliver(sent)
	cancelled := w.later(api.SubmitRequest{Subject: "no more"})
	b := w.operator()
	b.submitForm("/messages/"+cancelled+"/cancel", nil).has(t, "Message "+cancelled+" was cancelled.")

	p := b.get("/messages/" + sent)
	if p.status != http.StatusOK {
		t.Errorf("status %d", p.status)
	}
	p.has(t, "This message was sent", "250 2.0.0 OK: queued <as> 42", "<time datetime=")
	p.lacks(t, "Send now", "data-live")
	b.get("/messages/"+cancelled).has(t, "This message was cancelled")
	b.get("/messages/"+strings.ToLower(sent)).has(t, "This message was sent")
	b.submitForm("/messages/"+sent+"/cancel", nil).has(t, "was already finished")
	b.submitForm("/messages/"+sent+"/retry", nil).has(t, "was sent")
	if p := b.get("/messages/" + sent + "/content"); p.status != http.StatusNotFound {
		t.Errorf("its content answers %d", p.status)
	}
	for _, id := range []string{"01ARZ3NDEKTSV4RRFFQ69G5F00", "01ARZ3NDEKTSV4RRFFQ69G5FZZ", "nonsense", "..",
		"%3Cscript%3E", "%2e%2e%2fstatus", strings.Repeat("A", 5000)} {
		p := b.get("/messages/" + id)
		if p.status != http.StatusNotFound && p.status != http.StatusMovedPermanently &&
			p.status != http.StatusTemporaryRedirect {
			t.Errorf("GET /messages/%.40s answers %d", id, p.status)
		}
		p.lacks(t, "<script>")
	}
}

// TestMessageThatCameBackIsRed: a relay accepted it, and its recipient did not get it.
func TestMessageThatCameBackIsRed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	id := w.submit(api.SubmitRequest{Subject: "came back"})
	fine := w.submit(api.SubmitRequest{Subject: "arrived"})
	w.deliver(id)
	w.deliver(fine)
	_, err := w.outbox.Facts.RecordFacts(t.Context(), []outbox.Fact{
		{Key: "1", Type: event.MessageBounce, MessageID: id, Recipient: "ann@example.com",
			Details: event.Later{BounceType: "hard", Diagnostic: "550 5.1.1 <nobody>"}},
		{Key: "2", Type: event.MessageDelivered, MessageID: fine}})
	w.must(err)
	b := w.operator()
	p := b.get("/messages/" + id)
	p.has(t, `<span class="chip bounced">bounced</span>`, "<strong>Bounced.</strong> ann@example.com",
		"550 5.1.1 <nobody>", "Ask for another address", `href="/suppressions?q=ann`)
	p.lacks(t, "This message was sent")
	b.get("/messages/"+fine).has(t, `<span class="chip delivered">`, "This message was sent")
	p = b.get("/log?status=bounced")
	if diff := cmp.Diff([]string{"came back"}, p.subjects()); diff != "" {
		t.Errorf("bounced (-want +got):\n%s", diff)
	}
	p.has(t, `<span class="chip bounced">`, `class="error">550 5.1.1 <nobody>`, `aria-current="true">bounced`)
	b.get("/log").has(t, `<span class="chip bounced">`, `<span class="chip delivered">`)
}

// TestABouncedRecipientIsNotGreen: the table of recipients says what became of each, with the relay's reply
// next to it, and the message ended before it came back.
func TestABouncedRecipientIsNotGreen(t *testing.T) {
	t.Parallel()
	w := setup(t)
	id := w.submit(api.SubmitRequest{To: api.Addresses{{Address: "ann@example.com"},
		{Address: "bob@example.com"},
		{Address: "cy@example.com"}}})
	w.deliver(id)
	_, err := w.outbox.Facts.RecordFacts(t.Context(), []outbox.Fact{
		{Key: "1", Type: event.MessageBounce, MessageID: id, Recipient: "Ann@example.com",
			Details: event.Later{BounceType: "hard", Diagnostic: "550 5.1.1 <nobody>"}},
		{Key: "2", Type: event.TrackOpen, MessageID: id, Recipient: "bob@example.com"},
		{Key: "3", Type: event.MessageDelivered, MessageID: id, Recipient: "bob@example.com"},
		{Key: "4", Type: event.TrackOpen, MessageID: id, Recipient: "cy@example.com",
			Details: event.Later{Bot: true}},
		{Key: "5", Type: event.MessageDelivered, MessageID: id, Index: -1}}) // of whom is not said
	w.must(err)
	b := w.operator()
	p := b.get("/messages/" + id)
	row := func(address, status string) string {
		return `>` + address + `</th><td data-label="Status"><span class="chip ` + status + `">` + status +
			`</span></td><td data-label="Attempts" class="num">1</td><td data-label="Last reply" class="reply">250`
	}
	p.has(t, row("ann@example.com", "bounced"), row("bob@example.com", "opened"), row("cy@example.com", "sent"),
		`<span class="chip bounced">bounced</span> 1`)
	if ended, back := strings.Index(p.body, "<strong>Ended</strong>"),
		strings.Index(p.body, "<strong>Bounced</strong>"); ended < 0 || back < ended {
		t.Errorf("the timeline has the end at %d, and the bounce at %d", ended, back)
	}
	b.get("/to/ann@example.com").has(t, `data-label="For the address"><span class="chip bounced">`)
}

// TestAFailedMessageSaysWhenItFailed, on its page and in the log.
func TestAFailedMessageSaysWhenItFailed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.relay.replies["nobody@example.net"] = "550 5.1.1 No such user"
	id := w.submit(api.SubmitRequest{To: api.Addresses{{Address: "nobody@example.net"}}})
	w.deliver(id)
	b := w.operator()
	b.get("/messages/"+id).has(t, "<span>failed <time", "</time> <div><strong>Failed.</strong>")
	b.get("/log").has(t, `<td data-label="Ended"><time`)
}

// TestAMessageOfAMailMergeHasASize before it is filled in to be sent.
func TestAMessageOfAMailMergeHasASize(t *testing.T) {
	t.Parallel()
	w := setup(t)
	answer, err := w.outbox.Intake.Submit(t.Context(), api.SubmitRequest{Subject: "s",
		Text:   "Hello {{rcpt.name}}",
		SendAt: new(time.Now().Add(time.Hour)), MailMerge: []api.MailMergeEntry{{To: api.Address{
			Address: "ann@example.net"}}}})
	w.must(err)
	p := w.operator().get("/messages/" + answer.MailMerge[0].QueueID)
	p.lacks(t, ">0 B<")
	size := regexp.MustCompile(`<dt>Size</dt><dd>([^<]+)</dd>`).FindStringSubmatch(p.body)
	if size == nil || !strings.Contains(p.body, "Download .eml ("+size[1]+")") {
		t.Errorf("the page says the size %q, which is not that of the download", size)
	}
}

func TestReschedule(t *testing.T) {
	t.Parallel()
	w := setup(t)
	id := w.later(api.SubmitRequest{})
	b := w.operator()
	path := "/messages/" + id + "/reschedule"
	b.submitForm(path, url.Values{"at": {"2099-12-31T23:59"}, "attempts": {"3"}}).has(t, "new schedule",
		"2099-12-31 23:59:00 UTC", "of 3 attempts")
	m, err := w.outbox.Reader.Get(t.Context(), id)
	w.must(err)
	if want := time.Date(2099, 12, 31, 23, 59, 0, 0, time.UTC); !m.NextAttempt.Time.Equal(want) ||
		m.Attempts != 3 {
		t.Errorf("next attempt %v of %d", m.NextAttempt.Time, m.Attempts)
	}
	for name, form := range map[string]url.Values{
		"not a date and time":            {"at": {"tomorrow"}},
		"must be a number from 1 to 100": {"attempts": {"1000"}},
	} {
		b.submitForm(path, form).has(t, name)
	}
	if _, err := readPatch("", ""); err != nil {
		t.Errorf("an empty form: %v", err)
	}
}

// evil is what a stranger may write anywhere.
const evil = `</pre></script><script>alert(1)</script><img src=x onerror=alert(2)>"'><a href="javascript:alert(3)">`

func TestStrangersTextStaysText(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.relay.replies["evil@example.net"] = "451 4.3.2 " + evil
	w.relay.replies["dead@example.net"] = "550 5.1.1 " + evil
	meta, err := json.Marshal(map[string]string{evil: evil})
	w.must(err)
	var ids []string
	for _, to := range []string{"evil@example.net", "dead@example.net"} {
		id := w.submit(api.SubmitRequest{
			Subject: evil, Text: evil, HTML: evil, Metadata: meta, Tags: []string{evil[:60]}, IdempotencyKey: evil +
				to,
			To: api.Addresses{{Name: evil, Address: to}}, Headers: api.Headers{"X-Evil": {api.HeaderValue(evil)}},
			Attachments: []api.Attachment{{Filename: evil, Content: []byte(evil), ContentType: "text/html"}},
		})
		w.deliver(id)
		ids = append(ids, id)
	}
	made, err := w.webhooks.Create(t.Context(), api.EndpointRequest{URL: "https://hooks.example/x",
		Description: evil, Headers: map[string]string{"X-A": "b"}})
	w.must(err)
	_, err = w.accounts.Create(t.Context(), api.Account{Account: "evil", Name: evil, Email: "e@example.com",
		SMTP: &api.SMTPServer{Host: "relay.test", Port: 25}})
	w.must(err)
	b := w.operator()
	b.header.Set("Accept", "text/html")
	q := url.QueryEscape(evil)
	for _, path := range []string{
		"/", "/outbox", "/log", "/log?search=" + q, "/log?account=" + q, "/log?status=" + q, "/log?cursor=" + q,
		"/messages/" + ids[1] + "?to=" + q + "&as=" + q + "&gateway=" + q, "/messages/" + ids[0],
		"/messages/" + ids[1], "/webhooks", "/webhooks/" + made.ID, "/accounts",
		"/outbox?search=" + q, "/outbox?tag=" + q,
		"/outbox?account=" + q, "/cancel?search=" + q + "&account=" + q, "/outbox?state=" + q, "/login?next=" + q,
		"/outbox?part=" + q, "/outbox?after=" + q, "/" + url.PathEscape(evil),
	} {
		p := b.get(path)
		p.isSafe(t, path)
		for _, bad := range []string{"<script>alert", "<img src=x", `href="javascript:`, "onerror=alert(2)>"} {
			if strings.Contains(p.body, bad) {
				t.Errorf("GET %s shows %s as markup", path, bad)
			}
		}
	}
	b.get("/messages/"+ids[0]).has(t, evil, "C: RCPT TO:<evil@example.net>")
}

// isSafe fails the test when a page could run or load something that is not ours.
func (p page) isSafe(t *testing.T, path string) {
	t.Helper()
	if p.status == http.StatusSeeOther {
		return
	}
	policy := p.header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "form-action 'self'",
		"base-uri 'none'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("%s: the policy %q lacks %s", path, policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") || p.header.Get("X-Content-Type-Options") != "nosniff" ||
		p.header.Get("Referrer-Policy") != "same-origin" {
		t.Errorf("%s: headers %v", path, p.header)
	}
	for _, tag := range regexp.MustCompile(`<[a-zA-Z][^>]*>`).FindAllString(p.body, -1) {
		names := regexp.MustCompile(`"[^"]*"`).ReplaceAllString(tag, "")
		if regexp.MustCompile(`(?i)\s(on[a-z]+|style)\s*=|^<style`).MatchString(names) {
			t.Errorf("%s has something inline: %s", path, tag)
		}
		if strings.HasPrefix(tag, "<script") && !strings.Contains(tag, ` src="/static/`) {
			t.Errorf("%s has a script of its own: %s", path, tag)
		}
		if regexp.MustCompile(`\s(src|href|action)="(?:[a-z]+:|//)`).MatchString(tag) {
			t.Errorf("%s points elsewhere: %s", path, tag)
		}
	}
}

func TestContent(t *testing.T) {
	t.Parallel()
	w := setup(t)
	id := w.later(api.SubmitRequest{Subject: "x", HTML: "<script>alert(1)</script>"})
	b := w.operator()
	want, err := w.outbox.Reader.Content(t.Context(), id)
	w.must(err)
	for _, tt := range []struct{ query, kind, disposition string }{
		{"", "message/rfc822", `attachment; filename="` + id + `.eml"`},
		{"?view=text", "text/plain; charset=utf-8", ""},
	} {
		p := b.get("/messages/" + id + "/content" + tt.query)
		if p.body != string(want) || p.header.Get("Content-Type") != tt.kind ||
			p.header.Get("Content-Disposition") != tt.disposition {
			t.Errorf("%q: %v\n%s", tt.query, p.header, p.body)
		}
		if !strings.HasPrefix(p.header.Get("Content-Security-Policy"), "sandbox;") ||
			p.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%q: headers %v", tt.query, p.header)
		}
	}
}

// png is an image of one pixel.
const png = "\x89PNG\r\n\x1a\n not much of one"

func TestViewsOfTheContent(t *testing.T) {
	t.Parallel()
	w := setup(t)
	id := w.later(api.SubmitRequest{Subject: "Grüße", Text: "Hello <Ada>",
		Headers: api.Headers{"X-Order": {"42"}},
		HTML:    `<p>Hello</p><img src="cid:logo@x"><img src="https://elsewhere.example/p.png">`,
		Attachments: []api.Attachment{
			{Filename: "logo.png", CID: "logo@x", ContentType: "image/png", Content: []byte(png)},
			{Filename: "Grüße.html", Content: []byte("<script>alert(1)</script>"), ContentType: "text/html"}}})
	b, path := w.operator(), "/messages/"+id
	views := map[string][]string{
		"": {`<iframe class="mail" src="` + path + `/html" sandbox title=`, "Images of other hosts aren’t loaded",
			`href="` + path + `?images=1&view=html#content">Load images`,
			`?view=html&width=phone#content">Phone width`},
		"?view=html&width=phone&images=1": {`<iframe class="mail phone" src="` + path + `/html?images=1"`,
			`href="` + path + `?images=1&view=html#content">Full width`, "Hide images of other hosts"},
		"?view=nonsense": {"<iframe"},
		"?view=text":     {"Hello <Ada>", `?view=text#content" aria-current="true">Text`},
		"?view=source":   {"Content-Type: multipart/mixed", "Full source"},
		"?view=headers":  {`data-label="Field">X-Order</th>`, `data-label="Value">Grüße</td>`, "=?utf-8?"},
		"?view=attachments": {"Attachments 2", path + `/parts/3" download>logo.png`, "shown in the HTML",
			"Grüße.html"},
	}
	for view, want := range views {
		p := b.get(path + view)
		p.has(t, want...)
		p.lacks(t, "<script>alert")
		policy := p.header.Get("Content-Security-Policy")
		if len(p.body) > 100<<10 || !strings.Contains(policy, "frame-src 'self'") {
			t.Errorf("%s: %d bytes, %v", view, len(p.body), p.header)
		}
	}

	frame := b.get(path + "/html")
	frame.has(t, "<p>Hello</p>", `<img src="data:image/png;base64,`, "https://elsewhere.example")
	for images, policy := range map[string]string{"": framePolicy, "?images=1": remotePolicy} {
		if got := b.get(path + "/html" + images).header.Get("Content-Security-Policy"); got != policy {
			t.Errorf("the frame%s may: %s", images, got)
		}
	}
	if !strings.HasPrefix(remotePolicy, "sandbox; default-src 'none'; img-src data: https:") {
		t.Error(remotePolicy)
	}
	file := b.get(path + "/parts/4")
	if file.body != "<script>alert(1)</script>" ||
		file.header.Get("Content-Type") != "application/octet-stream" ||
		file.header.Get("Content-Disposition") != "attachment; filename*=utf-8''Gr%C3%BC%C3%9Fe.html" ||
		file.header.Get("Content-Security-Policy") != filePolicy ||
		file.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%v\n%s", file.header, file.body)
	}
	for _, missing := range []string{"/parts/5", "/parts/0", "/parts/x", "/parts/99999999999999999999"} {
		if p := b.get(path + missing); p.status != http.StatusNotFound {
			t.Errorf("%s answers %d", missing, p.status)
		}
	}
	b.get("/messages/01ARZ3NDEKTSV4RRFFQ69G5FAV/html").has(t, "<p>The content of this message is no longer stored</p>")
	for _, route := range []string{"/html", "/parts/1", "/content"} {
		if p := w.browser().get(path + route); p.status == http.StatusOK {
			t.Errorf("who is not logged in reads %s", route)
		}
	}
}

// TestHugeContentKeepsThePageSmall in every view.
func TestHugeContentKeepsThePageSmall(t *testing.T) {
	t.Parallel()
	w := setup(t)
	headers := api.Headers{}
	for i := range 90 {
		headers[fmt.Sprintf("X-Long-%d", i)] = []api.HeaderValue{api.HeaderValue(strings.Repeat("y ", 400))}
	}
	id := w.later(api.SubmitRequest{Text: strings.Repeat("Hello. ", 50_000), Headers: headers,
		HTML: strings.Repeat("<p>Hello", 50_000)})
	b := w.operator()
	for view, more := range map[string]bool{"html": false, "text": true, "source": true, "headers": true,
		"attachments": false} {
		p := b.get("/messages/" + id + "?view=" + view)
		if len(p.body) > 100<<10 || strings.Contains(p.body, "The content is longer") != more {
			t.Errorf("%s: a page of %d bytes", view, len(p.body))
		}
	}
	if p := b.get("/messages/" + id + "/html"); len(p.body) < 8*50_000 {
		t.Errorf("the frame has only %d bytes", len(p.body))
	}
}

// TestAMessageLeadsToItsWebhooks, and back.
func TestAMessageLeadsToItsWebhooks(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ep, err := w.webhooks.Create(t.Context(), api.EndpointRequest{URL: "https://hooks.example/x"})
	w.must(err)
	id := w.submit(api.SubmitRequest{})
	w.deliver(id)
	w.deliveries(ep.ID, 3) // after the two of the message
	b := w.operator()
	p := b.get("/messages/" + id)
	p.has(t, "<h2>Webhooks</h2>", `<a href="/webhooks/`+ep.ID+`/deliveries/`)
	link := regexp.MustCompile(`/webhooks/` + ep.ID + `/deliveries/[^"]+`).FindString(p.body)
	b.get(link).has(t, `href="/messages/`+id+`"`)
	b.get("/messages/"+w.later(api.SubmitRequest{})+"?part=live").lacks(t, "Webhooks")
}

// TestContentAfterSending is shown as before, with the time until which it is kept.
func TestContentAfterSending(t *testing.T) {
	t.Parallel()
	w := setup(t)
	keeps, err := outbox.New(outbox.Parts{DB: w.db, Queue: queue.NewClient(w.db.Client(), queue.Options{}),
		Control: queue.NewControl(w.db.Client()), Router: w.relay, Accounts: w.accounts, Gateways: w.gateways},
		outbox.Options{KeepContent: time.Hour})
	w.must(err)
	answer, err := w.outbox.Intake.Submit(t.Context(), api.SubmitRequest{
		To: api.Addresses{{Address: "ann@example.net"}}, Subject: "s", HTML: "<p>The code is 1234",
		Text: "The code is 1234"})
	w.must(err)
	keeps.Delivery.Deliver(t.Context(), queue.Task{ID: answer.QueueID + ".1"})
	b, path := w.operator(), "/messages/"+answer.QueueID
	page := b.get(path)
	page.isSafe(t, path)
	page.has(t, "This message was sent", "Postroom keeps the content after sending. It will be deleted <time",
		`src="`+path+`/html"`, "Download .eml")
	page.lacks(t, "not kept")
	b.get(path+"?view=text").has(t, "The code is 1234", "It will be deleted")
	b.get(path+"/html").has(t, "The code is 1234")
	b.get(path+"/parts/1").has(t, "The code is 1234")
	if p := w.browser().get(path + "/html"); p.status == http.StatusOK {
		t.Error("who is not logged in reads it")
	}
	w.must(w.db.Client().Del(t.Context(), "postroom:{0}:content:"+answer.QueueID).Err()) // its time is over
	page = b.get(path)
	page.has(t, "The content of a message is not kept after sending (outbox.keepContent).")
	page.lacks(t, "It will be deleted", "Download")
	b.get(path+"/html").has(t, "not kept after sending")
}
