package ui

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"
)

// demo makes the pages those of a demo that caught mails.
func (w *world) demo(mails ...CaughtMail) {
	u, err := New(w.ui.Parts, Options{Demo: &Demo{Secret: "0123456789abcdef", Token: adminToken,
		Mails: func() []CaughtMail { return mails }}})
	w.must(err)
	e := echo.New()
	u.Mount(e)
	w.Server = httptest.NewServer(e)
	w.t.Cleanup(w.Close)
}

// TestTheLinkOfTheDemoLogsInOnce: it stands on a terminal, which others may see later.
func TestTheLinkOfTheDemoLogsInOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.demo()
	for _, wrong := range []string{"", "?t=", "?t=0123456789abcdeF"} {
		p := w.browser().get("/demo" + wrong)
		if p.status != http.StatusNotFound || p.header.Get("Set-Cookie") != "" {
			t.Errorf("%q: %d, cookie %q", wrong, p.status, p.header.Get("Set-Cookie"))
		}
	}
	b := w.browser()
	if p := b.get(DemoLink("0123456789abcdef")); p.status != http.StatusSeeOther || p.to() != "/inbox" {
		t.Fatalf("%d to %q: %s", p.status, p.to(), p.body)
	}
	b.get("/inbox").has(t, "No messages yet", "Sign out", `aria-current="page">Inbox</a>`)
	if p := w.browser().get(DemoLink("0123456789abcdef")); p.status != http.StatusNotFound {
		t.Errorf("the second time: %d", p.status)
	}
	var did []string
	for _, e := range w.entries() {
		did = append(did, string(e.Who.Kind)+" "+e.Action)
	}
	if diff := cmp.Diff([]string{"session login"}, did); diff != "" {
		t.Errorf("the audit log (-want +got)\n%s", diff)
	}
}

// TestTheInboxShowsMailAsReceived, and runs nothing of it.
func TestTheInboxShowsMailAsReceived(t *testing.T) {
	t.Parallel()
	w := setup(t)
	raw := "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n" +
		"--b\r\nContent-Type: text/plain\r\n\r\nHello <you>\r\n--b\r\nContent-Type: text/html\r\n\r\n" +
		"<script>alert(1)</script><p>Hello</p>\r\n--b--\r\n"
	w.demo(CaughtMail{ID: "2", To: []string{"ann@example.com", "ben@example.com"}, Subject: "<b>Grüße</b>",
		Received: time.Now(), Raw: []byte(raw)}, CaughtMail{ID: "1", To: []string{"c@example.com"},
		Raw: []byte("Subject: \r\n\r\nplain\r\n")})
	b := w.operator()
	list := b.get("/inbox")
	list.isSafe(t, "/inbox")
	list.has(t, `<a href="/inbox/2"><b>Grüße</b></a>`, "ann@example.com, ben@example.com",
		"<em>no subject</em>")
	if head, rows := b.get("/inbox?format=csv").table(t); len(rows) != 2 || !slices.Equal(head,
		[]string{"id", "to", "subject", "received"}) || rows[0][1] != `["ann@example.com","ben@example.com"]` {
		t.Errorf("as a file: %q %q", head, rows)
	}
	p := b.get("/inbox/2")
	p.has(t, `<iframe class="mail" src="/inbox/2/html" sandbox`, "Hello <you>", "<dd>Grüße</dd>")
	if strings.Contains(p.body, "<script>alert") {
		t.Error("the page has the script of the mail")
	}
	frame := b.get("/inbox/2/html")
	frame.has(t, "<p>Hello</p>")
	if frame.header.Get("Content-Security-Policy") != framePolicy || !strings.HasPrefix(framePolicy, "sandbox") {
		t.Errorf("the frame may do more than be seen: %v", frame.header)
	}
	b.get("/inbox/1").has(t, "plain")
	b.get("/inbox/1").lacks(t, "<iframe")
	if p := b.get("/inbox/3"); p.status != http.StatusNotFound {
		t.Errorf("no such mail: %d", p.status)
	}
	if p := w.browser().get("/inbox/2/html"); p.status == http.StatusOK {
		t.Error("who is not logged in reads mail")
	}
}

// TestOnlyDemosHaveAnInbox: elsewhere there is neither the link nor the entry of the menu.
func TestOnlyDemosHaveAnInbox(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	for _, path := range []string{"/inbox", "/inbox/1", "/demo?t=0123456789abcdef"} {
		if p := b.get(path); p.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, p.status)
		}
	}
	b.get("/").lacks(t, "/inbox")
}
