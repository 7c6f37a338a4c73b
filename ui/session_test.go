package ui

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
)

func TestLogin(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.browser()

	p := b.get("/outbox?state=failed")
	if p.status != http.StatusSeeOther || p.to() != "/login?next=%2Foutbox%3Fstate%3Dfailed" {
		t.Fatalf("without a session: %d to %q", p.status, p.to())
	}
	p = b.get(p.to())
	p.has(t, `name="next" value="/outbox?state=failed"`, "Access token")

	p = b.post("/login", url.Values{"token": {"wrong"}, "next": {"/accounts"}})
	if p.status != http.StatusUnauthorized {
		t.Errorf("a wrong token answers %d", p.status)
	}
	p.has(t, "That token is not known here", `value="/accounts"`)
	p.lacks(t, "wrong\"")

	p = b.post("/login", url.Values{"token": {" " + adminToken + "\n"}, "next": {"/outbox?state=failed"}})
	if p.status != http.StatusSeeOther || p.to() != "/outbox?state=failed" {
		t.Fatalf("the right token: %d to %q", p.status, p.to())
	}
	cookie := p.header.Get("Set-Cookie")
	for _, want := range []string{"postroom_session=", "HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=43200"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie %q lacks %s", cookie, want)
		}
	}
	if strings.Contains(cookie, "Secure") {
		t.Error("the cookie is Secure on plain http, where no browser would send it back")
	}
	b.get("/outbox").has(t, "The outbox is empty", "Sign out")
	if p := b.get("/login?next=/status"); p.to() != "/status" {
		t.Errorf("who is logged in stays at the login: %d %q", p.status, p.to())
	}

	jar := b.client.Jar
	base, _ := url.Parse(w.URL)
	old := jar.Cookies(base)
	if p := b.post("/logout", nil); p.to() != "/login" {
		t.Fatalf("logout leads to %q", p.to())
	}
	if len(jar.Cookies(base)) != 0 {
		t.Error("the cookie outlives the session")
	}
	jar.SetCookies(base, old)
	if p := b.get("/"); p.status != http.StatusSeeOther {
		t.Errorf("the cookie of an ended session is let in: %d", p.status)
	}
}

func TestSessionCookieIsSecureOverTLS(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, tt := range []struct {
		name    string
		trusted []netip.Prefix
		secure  bool
	}{
		{"a trusted proxy says so", []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, true},
		{"somebody says so", nil, false},
	} {
		b := w.behind(tt.trusted).browser()
		b.header.Set("X-Forwarded-Proto", "https")
		p := b.post("/login", url.Values{"token": {adminToken}})
		if got := strings.Contains(p.header.Get("Set-Cookie"), "Secure"); got != tt.secure {
			t.Errorf("%s: cookie %q", tt.name, p.header.Get("Set-Cookie"))
		}
	}
}

func TestLoginIsThrottled(t *testing.T) {
	t.Parallel()
	b := setup(t).browser()
	var p page
	for range 21 {
		p = b.post("/login", url.Values{"token": {"guess"}})
	}
	if p.status != http.StatusTooManyRequests || p.header.Get("Retry-After") == "" {
		t.Errorf("after 21 guesses: %d, Retry-After %q", p.status, p.header.Get("Retry-After"))
	}
	p.has(t, "Too many failed attempts from your address. Wait ")
	if p := b.post("/login", url.Values{"token": {adminToken}}); p.to() != "/" {
		t.Errorf("who has the right token is locked out: %d", p.status)
	}
}

// TestLoginIsThrottledByTheRealAddress: clients behind one proxy do not wait for each other.
func TestLoginIsThrottledByTheRealAddress(t *testing.T) {
	t.Parallel()
	b := setup(t).behind([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}).browser()
	guess := func(from string) int {
		b.header.Set("X-Forwarded-For", from)
		return b.post("/login", url.Values{"token": {"guess"}}).status
	}
	for range 20 {
		guess("203.0.113.9")
	}
	if got := guess("203.0.113.9"); got != http.StatusTooManyRequests {
		t.Errorf("after 21 guesses: %d", got)
	}
	if got := guess("203.0.113.10"); got != http.StatusUnauthorized {
		t.Errorf("the first guess of another client: %d", got)
	}
}

func TestWhoMaySeeThePages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, tt := range []struct {
		name   string
		req    api.TokenRequest
		status int
		says   string
	}{
		{"api", api.TokenRequest{}, http.StatusOK, "The outbox is empty"},
		{"admin", api.TokenRequest{Scopes: []api.Scope{api.ScopeAdmin}}, http.StatusOK, "The outbox is empty"},
		{"bound to an account", api.TokenRequest{Account: "default"}, http.StatusForbidden,
			"bound to the account default"},
		{"only to send", api.TokenRequest{Scopes: []api.Scope{api.ScopeSend}}, http.StatusForbidden,
			"scope api or admin"},
		{"only for metrics", api.TokenRequest{Scopes: []api.Scope{api.ScopeMetrics}}, http.StatusForbidden,
			"scope api or admin"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.req.Description = tt.name
			made, err := w.access.Create(t.Context(), tt.req, time.Now())
			w.must(err)
			p := w.program(made.Token).get("/outbox")
			if p.status != tt.status {
				t.Errorf("as a program: %d", p.status)
			}
			p.has(t, tt.says)
			p = w.browser().post("/login", url.Values{"token": {made.Token}})
			if tt.status == http.StatusOK {
				return
			}
			if p.status != tt.status || p.header.Get("Set-Cookie") != "" {
				t.Errorf("at the login: %d, cookie %q", p.status, p.header.Get("Set-Cookie"))
			}
			p.has(t, tt.says)
		})
	}
	if p := w.program("nonsense").get("/"); p.status != http.StatusUnauthorized ||
		p.header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("a program with a bad token: %d", p.status)
	}
}

// TestAFormAfterTheSessionEndedLeadsBackToItsPage, if that is a page of ours, and says why.
func TestAFormAfterTheSessionEndedLeadsBackToItsPage(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for from, want := range map[string]string{
		w.URL + "/campaigns/new?account=shop": "/campaigns/new?account=shop", "": "/", w.URL + "/logout": "/",
		"https://evil.example/campaigns/new": "/", w.URL + "//evil.example/": "/",
	} {
		b := w.browser()
		b.header.Set("Referer", from)
		p := b.post("/campaigns", url.Values{"name": {"Spring"}})
		if to := "/login?ended=1&next=" + url.QueryEscape(want); p.status != http.StatusSeeOther || p.to() != to {
			t.Errorf("from %q: %d, %s; want %s", from, p.status, p.to(), to)
		}
		b.get(p.to()).has(t, "Your session ended", `name="next" value="`+want+`"`)
	}
	w.browser().get("/login?next=/outbox").lacks(t, "Your session ended")
}

// places are what may stand behind next=, and where it leads.
var places = []struct{ next, to string }{
	{"/", "/"},
	{"/status", "/status"},
	{"/outbox?state=failed&tag=a%20b", "/outbox?state=failed&tag=a%20b"},
	{"/messages/01ARZ3NDEKTSV4RRFFQ69G5FAV#x", "/messages/01ARZ3NDEKTSV4RRFFQ69G5FAV"},
	{"", "/"},
	{"status", "/"},
	{"https://evil.example/", "/"},
	{"//evil.example/", "/"},
	{"///evil.example/", "/"},
	{`/\evil.example/`, "/"},
	{`\\evil.example/`, "/"},
	{"/%5Cevil.example", "/"},
	{"/%2fevil.example", "/"},
	{"/\t/evil.example", "/"},
	{"/%09/evil.example", "/"},
	{"\n//evil.example", "/"},
	{"/\r\nSet-Cookie: a=b", "/"},
	{"javascript:alert(1)", "/"},
	{"http:/evil.example", "/"},
	{"/login?next=/login", "/"},
	{"/logout", "/"},
	{"/%zz", "/"},
}

func TestLoginLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	for _, tt := range places {
		if got := local(tt.next); got != tt.to {
			t.Errorf("next=%q leads to %q, want %q", tt.next, got, tt.to)
		}
	}
	b := setup(t).browser()
	p := b.post("/login", url.Values{"token": {adminToken}, "next": {"//evil.example/x"}})
	if p.to() != "/" {
		t.Errorf("the login leads to %q", p.to())
	}
	if p := b.get("/login?next=https://evil.example"); p.to() != "/" {
		t.Errorf("the login page leads to %q", p.to())
	}
	if p := b.post("/queues/submit/pause", url.Values{"back": {"//evil.example"}}); p.to() != "/" {
		t.Errorf("an action leads to %q", p.to())
	}
}

func FuzzLocal(f *testing.F) {
	for _, p := range places {
		f.Add(p.next)
	}
	base, _ := url.Parse("http://postroom.test/login")
	f.Fuzz(func(t *testing.T, next string) {
		to := local(next)
		if strings.ContainsAny(to, "\\\r\n\t") || strings.HasPrefix(to, "//") || !strings.HasPrefix(to, "/") {
			t.Fatalf("%q leads to %q", next, to)
		}
		u, err := base.Parse(to)
		if err != nil || u.Host != "postroom.test" || u.Scheme != "http" {
			t.Fatalf("%q leads to %q: %v %v", next, to, u, err)
		}
	})
}

// changes are all routes that change something.
var changes = []string{
	"/login", "/logout", "/cancel", "/queues/submit/pause", "/queues/submit/resume", "/messages/ID/cancel",
	"/settings",
	"/messages/ID/retry",
	"/messages/ID/reschedule", "/webhooks/E/test", "/webhooks/E/deliveries/D/redeliver",
	"/admin/queues/api/queues/submit:pause",
	"/admin/queues/api/queues/submit/scheduled_tasks/ID.0:run",
}

func TestChangesFromOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	w := setup(t)
	id := w.later(api.SubmitRequest{Subject: "still here"})
	for name, header := range map[string]http.Header{
		"a modern browser says so":      {"Sec-Fetch-Site": {"cross-site"}, "Origin": {"https://evil.example"}},
		"a neighbour in the same site":  {"Sec-Fetch-Site": {"same-site"}, "Origin": {"https://other.test"}},
		"an old browser shows the page": {"Origin": {"https://evil.example"}},
		"a page without an origin":      {"Origin": {"null"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := w.operator()
			for _, path := range changes {
				b.header = header
				if p := b.post(strings.ReplaceAll(path, "ID", id),
					url.Values{"token": {adminToken}}); p.status != http.StatusForbidden {
					t.Errorf("POST %s answered %d", path, p.status)
				}
			}
			if p := b.do(http.MethodDelete, "/admin/queues/api/queues/submit/scheduled_tasks/"+id+".0",
				nil); p.status != http.StatusForbidden {
				t.Errorf("DELETE of a task answered %d", p.status)
			}
			b.header = nil
			b.get("/outbox").has(t, "still here", "Pause sending")
		})
	}
	own := w.operator()
	for name, header := range map[string]http.Header{
		"a modern browser":                     {"Sec-Fetch-Site": {"same-origin"}},
		"plain http, where it only has Origin": {"Origin": {w.URL}},
	} {
		own.header = header
		if p := own.post("/queues/submit/pause", nil); p.status != http.StatusSeeOther {
			t.Errorf("our own page in %s is refused: %d", name, p.status)
		}
	}
	program := w.program(adminToken)
	program.header.Set("Origin", "https://their.app")
	if p := program.post("/queues/submit/resume", nil); p.status != http.StatusSeeOther {
		t.Errorf("a program with a token is refused: %d", p.status)
	}
}

func TestNothingIsOpenButTheLogin(t *testing.T) {
	t.Parallel()
	b := setup(t).browser()
	for _, path := range []string{
		"/", "/outbox?part=rows", "/outbox", "/cancel", "/messages/01ARZ3NDEKTSV4RRFFQ69G5FAV",
		"/messages/01ARZ3NDEKTSV4RRFFQ69G5FAV/content", "/webhooks",
		"/webhooks/x", "/accounts", "/status", "/admin/queues", "/admin/queues/", "/admin/queues/static/js/main.js",
		"/nowhere/at/all",
	} {
		b.header.Set("Accept", "text/html")
		if p := b.get(path); p.status != http.StatusSeeOther || !strings.HasPrefix(p.to(), "/login") {
			t.Errorf("GET %s answered %d to %q", path, p.status, p.to())
		}
	}
	for _, path := range changes {
		if path == "/login" || path == "/logout" {
			continue
		}
		if p := b.post(path, nil); p.status != http.StatusSeeOther && p.status != http.StatusUnauthorized {
			t.Errorf("POST %s answered %d", path, p.status)
		}
	}
	if p := b.get("/admin/queues/api/queues"); p.status != http.StatusUnauthorized {
		t.Errorf("the dashboard's API answered %d", p.status)
	}
}
