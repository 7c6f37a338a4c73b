package ui

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox/search"
	"github.com/postroom/postroom/outbox/search/query"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/webhooks"
)

func TestEveryPageIsSafeAndWhole(t *testing.T) {
	t.Parallel()
	w := setup(t)
	id := w.later(api.SubmitRequest{Subject: "one"})
	w.template(api.TemplateRequest{ID: "t", Name: "T", TemplateDefinition: api.TemplateDefinition{
		Content: api.TemplateContent{HTML: "<p>{{params.a}}"}}})
	w.list("default", "news")
	at := w.subscriber("default", "ann@example.com", "news")
	b := w.operator()
	for _, path := range []string{"/campaigns/new", "/lists",
		"/lists/news", "/lists/news/form", "/lists/none", "/audience", "/imports", "/imports?id=x",
		"/imports/default/none", at, "/templates",
		"/templates/t", "/templates/none", "/", "/playbooks", "/outbox", "/log", "/search",
		"/search?q=x", "/cancel", "/messages/" +
			id, "/webhooks", "/accounts", "/gateways", "/replay?account=default", "/suppressions",
		"/suppressions?q=ann@example.com", "/suppressions/imports/none", "/rates?by=tag",
		"/status", "/messages/none"} {
		p := b.get(path)
		p.isSafe(t, path)
		p.has(t, `<html lang="en">`, `name="viewport"`, `<main id="main">`, `<h1`, "Sign out", "API</a>")
		p.eachFieldHasALabel(t, path)
		for _, table := range regexp.MustCompile(`(?s)<table.*?</table>`).FindAllString(p.body, -1) {
			rows := path == "/playbooks" || strings.Contains(table, `<th scope="row"`) // Markdown has none
			if !rows || !strings.Contains(table, `<th scope="col"`) {
				t.Errorf("%s has a table without headers: %.200s", path, table)
			}
		}
	}
	login := w.browser().get("/login")
	login.isSafe(t, "/login")
	login.eachFieldHasALabel(t, "/login")
	login.lacks(t, "Sign out", "<nav")
}

// eachFieldHasALabel fails the test when somebody who can't see a page would not know what to fill in.
func (p page) eachFieldHasALabel(t *testing.T, path string) {
	t.Helper()
	inLabels := strings.Join(regexp.MustCompile(`(?s)<label[ >].*?</label>`).FindAllString(p.body, -1), "")
	for _, field := range regexp.MustCompile(`<(?:input|select)[^>]*>`).FindAllString(p.body, -1) {
		id := regexp.MustCompile(` id="([^"]+)"`).FindStringSubmatch(field)
		switch {
		case strings.Contains(field, `type="hidden"`), strings.Contains(inLabels, field):
		case id != nil && strings.Contains(p.body, `<label for="`+id[1]+`"`):
		default:
			t.Errorf("%s has a field without a label: %s", path, field)
		}
	}
}

func TestFilesAreKeptByBrowsers(t *testing.T) {
	t.Parallel()
	b := setup(t).browser()
	p := b.get("/login")
	for _, m := range regexp.MustCompile(`(?:src|href)="(/static/[^"]+)"`).FindAllStringSubmatch(p.body, -1) {
		f := b.get(m[1])
		if f.status != http.StatusOK || !strings.Contains(f.header.Get("Cache-Control"), "immutable") ||
			f.header.Get("Content-Type") == "" {
			t.Errorf("%s: %d %v", m[1], f.status, f.header)
		}
		old := b.get(m[1] + "0")
		if strings.Contains(old.header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s of another version may be kept", m[1])
		}
	}
	for _, path := range []string{"/static/none.css", "/static/..%2fui.go", "/static/"} {
		if p := b.get(path); p.status == http.StatusOK {
			t.Errorf("%s is there", path)
		}
	}
}

func TestNoSuchPage(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	b.header.Set("Accept", "text/html,*/*")
	p := b.get("/nowhere")
	p.has(t, "Nothing here", "There is no such page", "To the overview")
	if p.status != http.StatusNotFound {
		t.Errorf("status %d", p.status)
	}
	if p := b.get("/v1/nowhere"); strings.Contains(p.body, "<html") {
		t.Error("a program's path answers with a page")
	}
	if p := b.get("/v1/outbox"); p.body != "the API" {
		t.Errorf("the API is hidden by %q", p.body)
	}
	b.header.Set("Accept", "application/json")
	if p := b.get("/nowhere"); strings.Contains(p.body, "<html") {
		t.Error("a program gets a page")
	}
}

func TestFlashIsOnlyText(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	base, _ := url.Parse(w.URL)
	for _, value := range []string{
		base64.RawURLEncoding.EncodeToString([]byte(`{"t":"<script>alert(1)</script>"}`)), "%%%", "e30",
		base64.RawURLEncoding.EncodeToString([]byte(`[`)),
	} {
		b.client.Jar.SetCookies(base, []*http.Cookie{{Name: flashCookie, Value: value, Path: "/"}})
		p := b.get("/")
		p.isSafe(t, "/")
		if p.status != http.StatusOK {
			t.Errorf("flash %q answers %d", value, p.status)
		}
	}
}

func TestWebhooks(t *testing.T) {
	t.Parallel()
	w := setup(t)
	answer := http.StatusNoContent
	hooks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(answer)
		if answer >= 300 {
			_, _ = io.WriteString(w, "<b>out of order</b>")
		}
	}))
	t.Cleanup(hooks.Close)
	b := w.operator()
	b.get("/webhooks").has(t, "No endpoints yet")
	e, err := w.webhooks.Create(t.Context(), api.EndpointRequest{URL: hooks.URL + "/in", Description: "the shop",
		Headers: map[string]string{"X-Key": "very secret"}})
	w.must(err)
	p := b.get("/webhooks")
	p.has(t, hooks.URL+"/in", "the shop", `href="/webhooks/`+e.ID+`"`, "on</span>")
	p.has(t, `href="/webhooks/settings"`)
	p = b.get("/webhooks/" + e.ID)
	p.has(t, "X-Key", "Send a test event", "No recent deliveries")
	p.lacks(t, "very secret", e.Secret)
	b.submitForm("/webhooks/"+e.ID+"/test", nil).has(t, "The endpoint answered 204 within ")
	answer = http.StatusInternalServerError
	b.submitForm("/webhooks/"+e.ID+"/test", nil).has(t, "The endpoint answered 500", "<b>out of order</b>")
	b.get("/webhooks/settings").has(t, "Endpoint of the settings", "No recent deliveries")
	hooks.Close()
	b.submitForm("/webhooks/"+e.ID+"/test", nil).has(t, "couldn't reach the endpoint")
	for _, path := range []string{"/webhooks/none", "/webhooks/%3Cscript%3E"} {
		if p := b.get(path); p.status != http.StatusNotFound {
			t.Errorf("GET %s answers %d", path, p.status)
		}
	}
	b.submitForm("/webhooks/"+e.ID+"/deliveries/none/redeliver", nil).has(t, `class="flash bad"`)
}

func TestDeliveriesAreFound(t *testing.T) {
	t.Parallel()
	w := setup(t)
	hooks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, evilText, http.StatusInternalServerError)
	}))
	t.Cleanup(hooks.Close)
	e, err := w.webhooks.Create(t.Context(), api.EndpointRequest{URL: hooks.URL})
	w.must(err)
	b, at := w.operator(), "/webhooks/"+e.ID
	w.deliveries(e.ID, 2_100) // more than are searched
	newest, err := w.webhooks.Deliveries(t.Context(), e.ID, 0, 120)
	w.must(err)
	w.webhooks.Deliver(t.Context(), queue.Task{Type: webhooks.TaskType, Payload: []byte(
		`{"endpoint":"` + e.ID + `","delivery":"` + newest.Deliveries[0].ID + `"}`)})
	for _, d := range newest.Deliveries {
		w.index.found.Hits = append(w.index.found.Hits, search.Hit{
			Document: search.Document{QueueID: d.QueueID}})
	}
	p := b.get(at + "?" + url.Values{"q": {"to:ann " + evilText}}.Encode())
	p.isSafe(t, at)
	p.eachFieldHasALabel(t, at)
	p.has(t, "120 deliveries found", `href="/messages/`+newest.Deliveries[0].QueueID+`"`, evilText,
		"There are older deliveries", `href="`+at+`"`, "page=2")
	wanted, err := query.Parse("to:ann "+evilText, time.Now())
	w.must(err)
	if among := w.index.asked[0].Where.(query.And); !reflect.DeepEqual(among[:len(among)-1], wanted) {
		t.Errorf("asked for %v, want %v", among, wanted)
	}
	w.index.found = search.Found{}
	b.get(at+"?q=nobody").has(t, "No deliveries for matching messages")
	if p := b.get(at + "?q=x%3A1"); p.status != http.StatusBadRequest {
		t.Errorf("status %d", p.status)
	} else {
		p.has(t, "This search isn’t possible: at character 1", `value="x:1"`)
	}
	w.searchWith(search.Options{Kind: "none"})
	b.get(at+"?q=x").has(t, "There is no search index")
}

func TestAccounts(t *testing.T) {
	t.Parallel()
	w := setup(t)
	_, err := w.accounts.Create(t.Context(), api.Account{
		Account: "shop", Name: "The Shop", Email: "orders@example.com",
		SMTP: &api.SMTPServer{Host: "mail.example.com", Port: 587, Auth: &api.SMTPAuth{
			User: "shop", Pass: "very secret"}},
		Quota: &api.Quota{Messages: new(1500), Templates: new(7)},
	})
	w.must(err)
	p := w.operator().get("/accounts")
	p.has(t, "0 of 1\u202f500 <small>waiting</small>", "0 of 7 <small>templates</small>")
	p.has(t, "The Shop", "orders@example.com", "mail.example.com:587", "logs in as shop",
		`href="/outbox?account=shop"`, "default")
	p.lacks(t, "very secret")
}

func TestAccountsSayHowTheySend(t *testing.T) {
	t.Parallel()
	none := false
	w := setup(t)
	w.gateway("main")
	w.gateway("spare")
	pin := base64.StdEncoding.EncodeToString(make([]byte, 32))
	for _, account := range []api.Account{
		{
			Account: "shop", Email: "orders@example.com", Limits: &api.Limits{PerMinute: 30, Connections: 3},
			Proxy: "socks5://user:secret@proxy.test",
			SMTP: &api.SMTPServer{Preset: "office365", TLS: &api.SMTPTLS{PinSHA256: pin,
				RejectUnauthorized: &none}},
			OAuth2: &api.OAuth2{Provider: "office365", User: "orders@example.com", ClientID: "id",
				RefreshToken: "t"},
			AccountTrouble: "hold",
		},
		{Account: "news", Email: "news@example.com", Gateways: []api.Route{
			{Gateway: "main", Weight: 3}, {Gateway: "spare"}}},
	} {
		_, err := w.accounts.Create(t.Context(), account)
		w.must(err)
	}
	w.accounts.Outcome(t.Context(), "shop", &smtpsend.Error{Phase: smtpsend.PhaseAuth, Verdict: smtpsend.Auth,
		Scope: smtpsend.ScopeAccount, Code: 535, Line: "535 5.7.139 Authentication unsuccessful"})
	p := w.operator().get("/accounts")
	p.isSafe(t, "/accounts")
	p.has(t, `<span class="chip held">held</span>`, "535 5.7.139 Authentication unsuccessful", "Its messages wait",
		"30 a minute, 3 connections", "office365",
		"pinned", "any certificate is accepted", "OAuth 2.0 of office365, as orders@example.com",
		"through socks5://user:******@proxy.test", "main</span><small> × 3", "spare",
		`href="/outbox?account=shop&state=failed"`)
}

func TestGateways(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	b.get("/gateways").has(t, "No gateways yet", "postroom gateway add")
	ctx := t.Context()
	for _, g := range []api.Gateway{
		{Gateway: "main", Name: "The main one", Host: "mail.example.com", Port: 587, User: "shop", Pass: "secret"},
		{Gateway: "spare", Name: "spare", Preset: "sendgrid", User: "apikey", Pass: "secret"},
	} {
		_, err := w.gateways.Create(ctx, g)
		w.must(err)
	}
	w.gateway("unused")
	w.gateways.Outcome(ctx, "main", 12345, nil)
	w.gateways.Outcome(ctx, "spare", 0, &smtpsend.Error{Phase: smtpsend.PhaseConnect,
		Verdict: smtpsend.Soft, Err: errors.New("connect: <refused>")})
	w.gateways.Opened(ctx, "spare", time.Now().Add(time.Hour))
	p := b.get("/gateways")
	p.isSafe(t, "/gateways")
	p.has(t, "The main one", "mail.example.com:587", "logs in as shop", "12\u202f345", "sendgrid", "paused",
		"ESOCKET", "connect: <refused>", "not used yet")
	for i := range endpointsPerPage {
		w.gateway(fmt.Sprint("z", i))
	}
	b.get("/gateways").has(t, "Page 1 of 2", `href="/gateways?page=2"`)
	b.get("/gateways?page=2").lacks(t, "sendgrid")
}

func TestStatus(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.later(api.SubmitRequest{})
	p := w.operator().get("/status")
	p.has(t, "what is on its disk is lost with its disk.</p>") // no replicas, as the log says at the start
	p.lacks(t, "Nothing of note")
	p.has(t, "Ready.", "redis", "a warning of durability", "noeviction", "submit", "documents", "Last 24 hours",
		"1 message still to be sent", "work waits for a <worker>")
}

// TestPagesSayThatRedisIsAway: within seconds, and on the page itself, whether Redis refuses connections or
// accepts them and never answers.
func TestPagesSayThatRedisIsAway(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*testredis.Process){
		"gone": (*testredis.Process).Kill, "silent": (*testredis.Process).Stop,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis := testredis.Server(t)
			w := setupOn(t, testredis.Connect(t, redisdb.Options{URL: redis.URL()}))
			b, stranger := w.operator(), w.browser()
			leave(redis)
			for path, p := range map[string]page{
				"/": b.soon(t, "GET", "/"), "/status": b.soon(t, "GET", "/status"),
				"/login": stranger.soon(t, "GET", "/login"),
			} {
				if p.status != http.StatusServiceUnavailable || p.header.Get("Retry-After") == "" {
					t.Errorf("%s answers %d, Retry-After %q", path, p.status, p.header.Get("Retry-After"))
				}
				p.isSafe(t, path)
				p.has(t, "can’t answer right now", "tries again", `http-equiv="refresh"`, "Redis doesn’t answer",
					"redis.url")
				p.lacks(t, `<a href="/status">Status</a> says`)
			}
			b.header.Set("Referer", w.URL+"/queues?of=submit")
			p := b.soon(t, "POST", "/queues/submit/pause")
			if p.status != http.StatusServiceUnavailable {
				t.Errorf("a change answers %d", p.status)
			}
			p.has(t, "Redis doesn’t answer", `<a href="/queues?of=submit">back to the form</a>`)
			p.lacks(t, "refresh")
			p = w.program(adminToken).soon(t, "GET", "/status")
			if p.status != http.StatusOK {
				t.Errorf("the status answers %d", p.status)
			}
			p.has(t, "Not ready.", "Redis does not answer")
		})
	}
}

// soon makes a request, which must be answered well before the client of Redis gives up by itself: after ten
// seconds. Without other work it takes two.
func (b *browser) soon(t *testing.T, method, path string) page {
	t.Helper()
	start := time.Now()
	p := b.do(method, path, nil)
	if took := time.Since(start); took > 8*time.Second {
		t.Errorf("%s %s took %v", method, path, took)
	}
	return p
}

func TestDashboardIsPartOfThePages(t *testing.T) {
	t.Parallel()
	b := setup(t).operator()
	for _, path := range []string{"/admin/queues", "/admin/queues/", "/admin/queues/queues/submit"} {
		p := b.get(path)
		p.has(t, `<a href="/"`, "← Postroom", `id="root"`)
		p.lacks(t, "manifest")
		if policy := p.header.Get("Content-Security-Policy"); !strings.Contains(policy, "nonce-") ||
			strings.Contains(policy, "'unsafe-eval'") {
			t.Errorf("%s has the policy %q", path, policy)
		}
	}
	if p := b.get("/admin/queues/api/queues"); p.status != http.StatusOK ||
		!strings.Contains(p.header.Get("Content-Type"), "json") {
		t.Errorf("its API answers %d %s", p.status, p.body)
	}
}

func TestInternalErrorsStayInTheLog(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	w := setup(t)
	w.must(w.db.Client().Set(t.Context(), redisdb.Key(0, "accounts"), "no list", 0).Err())
	parts := w.ui.Parts
	parts.Webhooks = &webhooks.Webhooks{}
	u, err := New(parts, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for path, logged := range map[string]string{"/accounts": "WRONGTYPE", "/webhooks": "nil pointer"} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Authorization", "Bearer "+adminToken)
		w := httptest.NewRecorder()
		w.Header().Set("X-Request-Id", "REQ-1")
		u.ServeHTTP(w, r)
		p := page{w.Code, w.Header(), w.Body.String()}
		if p.status != http.StatusInternalServerError {
			t.Errorf("%s answers %d", path, p.status)
		}
		p.isSafe(t, path)
		p.has(t, "Something went wrong", "REQ-1")
		p.lacks(t, logged)
		if !strings.Contains(log.String(), logged) || !strings.Contains(log.String(), "REQ-1") {
			t.Errorf("the log has no word of %q: %s", logged, log.String())
		}
	}
}

func TestWordsOfInternalFaultsAreNotShown(t *testing.T) {
	for _, err := range []error{errors.New("secret"), fault.New(fault.Internal, "Code", "secret"),
		fmt.Errorf("x: %w", fault.New(fault.Internal, "", "secret"))} {
		if words := sentence(err); strings.Contains(words, "secret") {
			t.Errorf("%v is shown as %q", err, words)
		}
	}
}

func TestNewWantsAllParts(t *testing.T) {
	if _, err := New(Parts{}, Options{}); err == nil {
		t.Error("pages of nothing were made")
	}
}

func TestRelative(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		after time.Duration
		want  string
	}{
		{0, "now"}, {1900 * time.Millisecond, "now"}, {42 * time.Second, "in 42 s"},
		{-90 * time.Second, "90 s ago"}, {3 * time.Minute, "in 3 min"},
		{-5 * time.Hour, "5 h ago"}, {72 * time.Hour, "in 3 d"},
	} {
		if got := relative(now, now.Add(tt.after)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.after, got, tt.want)
		}
	}
}

func TestNumbersAndTexts(t *testing.T) {
	for got, want := range map[string]string{
		plural(1, "x", "xs"): "1 x", plural(2, "x", "xs"): "2 xs",
		plural(1234, "x", "xs"): "1\u202f234 xs",
		clip("grün", 3):         "gr…", clip("grün", 9): "grün", size(999): "999 B", size(1500): "1.5 kB",
		size(2_500_000): "2.5 MB", pretty([]byte("{")): "{",
		every(nil): "all", every([]string{"*"}): "all", every([]string{"a", "b"}): "a, b",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
