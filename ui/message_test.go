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
	"github.com/postroom/postroom/event"
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
		"report.pdf", "Subject",
		"View source", "Send now", "Yes, cancel it", "Reschedule")
	live := w.operator().get("/messages/" + id + "?part=live")
	live.has(t, "Attempt 1")
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
	b.get("/messages/"+id).has(t, "1 attempt in doubt", "nobody knows whether the relay took the message")
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
	p.has(t, "no attempt will follow", "550 5.1.1 No such user", "Failed for good.", "Send again", "Delete…",
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
	b.submitForm("/messages/"+sent+"/cancel", nil).has(t, "had ended already")
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
	_, err := w.outbox.RecordFacts(t.Context(), []outbox.Fact{
		{Key: "1", Type: event.MessageBounce, MessageID: id, Recipient: "ann@example.com",
			Details: event.Later{BounceType: "hard", Diagnostic: "550 5.1.1 <nobody>"}},
		{Key: "2", Type: event.MessageDelivered, MessageID: fine}})
	w.must(err)
	b := w.operator()
	p := b.get("/messages/" + id)
	p.has(t, `<span class="chip bounced">bounced</span>`, "<strong>Bounced.</strong> ann@example.com",
		"550 5.1.1 <nobody>", "Ask for another one", `href="/suppressions?search=ann`)
	p.lacks(t, "This message was sent")
	b.get("/messages/"+fine).has(t, `<span class="chip delivered">`, "This message was sent")
	p = b.get("/log?status=bounced")
	if diff := cmp.Diff([]string{"came back"}, p.subjects()); diff != "" {
		t.Errorf("bounced (-want +got):\n%s", diff)
	}
	p.has(t, `<span class="chip bounced">`, `class="error">550 5.1.1 <nobody>`, `aria-current="true">bounced`)
	b.get("/log").has(t, `<span class="chip bounced">`, `<span class="chip delivered">`)
}

func TestReschedule(t *testing.T) {
	t.Parallel()
	w := setup(t)
	id := w.later(api.SubmitRequest{})
	b := w.operator()
	path := "/messages/" + id + "/reschedule"
	b.submitForm(path, url.Values{"at": {"2099-12-31T23:59"}, "attempts": {"3"}}).has(t, "new schedule",
		"2099-12-31 23:59:00 UTC", "of 3 attempts")
	m, err := w.outbox.Get(t.Context(), id)
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
	b.get("/messages/"+ids[0]).has(t, evil)
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
	want, err := w.outbox.Content(t.Context(), id)
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

func TestReadContent(t *testing.T) {
	for _, tt := range []struct {
		name, raw string
		want      contentView
	}{
		{"plain", "Subject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=\r\nX-Long: a\r\n b\r\n\r\nHello", contentView{
			Headers: []headerLine{{"Subject", "Grüße"}, {"X-Long", "a b"}}, Parts: []partView{
				{Type: "text/plain", Size: 5, Text: "Hello"}},
		}},
		{"another charset", "Content-Type: text/plain; charset=windows-1252\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=80 5", contentView{
			Headers: []headerLine{{"Content-Type", "text/plain; charset=windows-1252"},
				{"Content-Transfer-Encoding", "quoted-printable"}},
			Parts: []partView{{Type: "text/plain", Size: 5, Text: "€ 5"}},
		}},
		{"parts", "Content-Type: multipart/mixed; boundary=B\n\n--B\nContent-Type: text/html\nContent-Transfer-Encoding: base64\n\nPGI+\n--B\n" +
			"Content-Type: text/html; name=a.html\nContent-Disposition: attachment\n\n<i>\n--B--\n", contentView{
			Headers: []headerLine{{"Content-Type", "multipart/mixed; boundary=B"}},
			Parts: []partView{{Type: "text/html", Size: 3, Text: "<b>"}, {Type: "text/html", Name: "a.html",
				Size: 3}},
		}},
		{"no header at all", "nonsense",
			contentView{Parts: []partView{{Type: "text/plain", Size: 8, Text: "nonsense"}}}},
		{"no bytes of a charset", "A: b\r\n\r\n\xff\xfe", contentView{
			Headers: []headerLine{{"A", "b"}}, Parts: []partView{{Type: "text/plain", Size: 2, Text: "\uFFFD"}},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Size = len(tt.raw)
			if diff := cmp.Diff(&tt.want, readContent([]byte(tt.raw))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadContentIsBounded(t *testing.T) {
	long := readContent([]byte("\r\n\r\n" + strings.Repeat("ü", shownText)))
	if p := long.Parts[0]; !p.Cut || len(p.Text) > shownText || !strings.HasSuffix(p.Text, "ü") {
		t.Errorf("a long text is %d bytes, cut %t", len(p.Text), p.Cut)
	}
	many := "Content-Type: multipart/mixed; boundary=B\r\n\r\n" + strings.Repeat("--B\r\n\r\nx\r\n",
		10*shownParts)
	if n := len(readContent([]byte(many)).Parts); n != shownParts {
		t.Errorf("%d parts are shown", n)
	}
	deep := strings.Repeat("Content-Type: multipart/mixed; boundary=B\r\n\r\n--B\r\n", 1000)
	if n := len(readContent([]byte(deep)).Parts); n > shownParts {
		t.Errorf("%d parts are shown", n)
	}
}

func FuzzReadContent(f *testing.F) {
	f.Add([]byte("Subject: =?utf-8?B?eA==?=\r\nContent-Type: multipart/mixed; boundary=B\r\n\r\n--B\r\nContent-Transfer-Encoding: base64\r\n\r\neA==\r\n--B--"))
	f.Add([]byte("Content-Type: text/plain; charset=shift_jis\n\n\x83\x65"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		v := readContent(raw)
		if len(v.Parts) > shownParts {
			t.Fatalf("%d parts", len(v.Parts))
		}
		for _, p := range v.Parts {
			if len(p.Text) > 3*shownText {
				t.Fatalf("a text of %d bytes", len(p.Text))
			}
		}
	})
}
