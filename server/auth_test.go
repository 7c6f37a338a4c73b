package server

import (
	"cmp"
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/server/access"
)

// call makes the simplest request that a route takes.
func (w *world) call(t *testing.T, r route, token string, headers ...string) reply {
	t.Helper()
	id := w.existing(t, r, token)
	path := strings.NewReplacer("{listId}", "news", "{account}", "acme", "{queueId}", "q1", "{queue}", "submit",
		"{id}", id, "{deliveryId}", "d1", "{gateway}", "gw1", "{domain}", "example.com", "{version}", "1", "*",
		"docs.js").Replace(r.path)
	body := map[string]string{
		"submit": `{"to":{"address":"a@example.net"}}`, "submitAs": `{"to":{"address":"a@example.net"}}`,
		"patchMessage": `{}`, "putQueue": `{}`, "updateSettings": `{"queueKeep":1}`,
		"createAccount": `{"account":"a","email":"a@example.com"}`,
		"updateAccount": `{}`, "verifyAccount": `{"smtp":{"host":"h","port":25}}`,
		"createToken":   `{"description":"d"}`,
		"createGateway": `{"gateway":"gw1","name":"GW","host":"h","port":25}`, "updateGateway": `{}`,
		"replayDeadLetters": `{"code":"EAUTH"}`,
		"createTemplate":    `{"name":"n","content":{"text":"x"}}`, "updateTemplate": `{}`,
		"tryTemplate": `{"content":{"text":"x"}}`, "restoreTemplate": `{"version":1}`,
		"putDomainKey":    marshal(t, domainKey(t)),
		"addSuppressions": `{"email":"a@example.com"}`, "addToBlocklist": `{"recipient":"a@example.com"}`,
		"returnMail":     "Subject: a\r\n\r\nb\r\n",
		"createEndpoint": `{"url":"https://x.example"}`, "updateEndpoint": `{"url":"https://x.example"}`,
	}[r.id]
	switch r.id {
	case "replayEndpoint":
		path += "?since=2026-11-21T00:00:00Z"
	case "flushTemplates":
		path += "?force=true"
	case "returnMail":
		headers = append(headers, "Content-Type", "message/rfc822")
	case "checkSuppression", "removeSuppression":
		path += "?email=a@example.com"
	case "removeFromBlocklist":
		path += "?recipient=a@example.com"
	case "cancelMessages":
		path += "?state=delayed"
	}
	if r.path == "/track/click" {
		path += "?mid=t&url=https://shop.test/"
	}
	return w.do(t, r.method, path, token, body, headers...)
}

// existing makes what a route of a real part is about, and returns its id.
func (w *world) existing(t *testing.T, r route, token string) string {
	t.Helper()
	p, ctx := w.parts, t.Context()
	bound := ""
	if g := p.grants[token]; g != nil {
		bound = g.Account
	}
	id, err := "x1", error(nil)
	switch r.id {
	case "getToken", "deleteToken":
		var created api.TokenCreated
		created, err = p.access.Create(ctx, api.TokenRequest{Description: "d"}, time.Now())
		id = cmp.Or(created.ID, id)
	case "getDomainKey", "deleteDomainKey":
		_, err = p.keys.Put(ctx, domainKey(t))
	case "getTemplate", "updateTemplate", "deleteTemplate", "listTemplateVersions", "getTemplateVersion",
		"restoreTemplate", "previewTemplate":
		var created api.TemplateCreated
		created, err = p.templates.Create(ctx, bound, api.TemplateRequest{
			Name: "n", TemplateDefinition: api.TemplateDefinition{Content: api.TemplateContent{Text: "x"}}})
		id = cmp.Or(created.ID, id)
	case "getGateway", "updateGateway", "deleteGateway":
		_, err = p.gateways.Create(ctx, api.Gateway{Gateway: "gw1", Name: "GW", Host: "h", Port: 25})
	case "suppressionImport":
		id = strings.ToLower(rand.Text())
		_, err = p.suppressions.Import(ctx, bound, strings.NewReader("a@example.com\n"),
			api.SuppressionImportOptions{ID: id})
	case "getBlocklist", "removeFromBlocklist":
		_, err = p.suppressions.Block(ctx, "news", api.BlocklistRequest{Recipient: "a@example.com"})
	}
	if err != nil && p.fail == nil {
		t.Fatal(err)
	}
	return id
}

// welcome is what a route answers those whom it lets in.
func welcome(r route) int {
	switch { // who has no link of a mail is told so
	case r.path == "/unsubscribe" && r.method == http.MethodPost, r.path == "/preferences" &&
		r.method == http.MethodPost:
		return http.StatusBadRequest
	case r.path == "/unsubscribe", r.path == "/preferences":
		return http.StatusNotFound
	}
	if r.path == "/c/{token}" || r.path == "/track/click" {
		return http.StatusFound
	}
	return http.StatusOK
}

// TestWhoMayDoWhat calls every route of the table with every kind of token, and expects what the table says.
func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	w := setup(t)
	// hundreds of answers that other tests hold against the document
	w.http.Transport = w.http.Transport.(*checked).inner
	w.parts.messages["q1"] = queued("q1", "acme")
	for _, scope := range []api.Scope{"api", "send", "outbox", "metrics", "admin", "*"} {
		w.parts.grants["any-"+string(scope)] = &access.Grant{Scopes: []api.Scope{scope}}
		w.parts.grants["acme-"+string(scope)] = &access.Grant{Scopes: []api.Scope{scope}, Account: "acme"}
	}
	for _, g := range w.routes() {
		for _, r := range g.routes {
			for token, grant := range w.parts.grants {
				want := welcome(r)
				need := r.right.scope
				if r.right.bound != "" && grant.Account != "" {
					need = r.right.bound
				}
				if !r.right.public && (!grant.Allows(need) || r.right.whole && grant.Account != "") {
					want = http.StatusForbidden
				}
				if got := w.call(t, r, token); got.status != want {
					t.Errorf("%s %s as %s: %d, want %d: %s", r.method, r.path, token, got.status, want, got.body)
				}
			}
			for _, token := range []string{"", "stolen"} {
				got := w.call(t, r, token)
				switch {
				case r.right.public && got.status != welcome(r):
					t.Errorf("%s %s is public, yet answers %d", r.method, r.path, got.status)
				case !r.right.public && (got.status != http.StatusUnauthorized ||
					!strings.HasPrefix(got.header.Get("WWW-Authenticate"), "Bearer")):
					t.Errorf("%s %s without a good token: %d %q", r.method, r.path, got.status,
						got.header.Get("WWW-Authenticate"))
				}
			}
		}
	}
}

func TestPublicRoutes(t *testing.T) {
	t.Parallel()
	var public []string
	for _, g := range setup(t).routes() {
		for _, r := range g.routes {
			if r.right.public {
				public = append(public, r.path)
			}
		}
	}
	want := []string{"/webhooks/provider", "/webhooks/provider/{name}", "/unsubscribe", "/unsubscribe",
		"/preferences", "/preferences", "/o/{token}", "/c/{token}", "/track/open", "/track/click", "/health",
		"/ready", "/openapi.json", "/openapi.yaml", "/docs", "/docs/*"}
	if !slices.Equal(public, want) {
		t.Errorf("public routes are %v; adding one is a decision, and this list is where it is taken", public)
	}
}

// TestBoundTokenSeesItsOwnAccountOnly covers each way to reach for another's mail.
func TestBoundTokenSeesItsOwnAccountOnly(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.parts.messages["mine"] = queued("mine", "acme")
	w.parts.messages["theirs"] = queued("theirs", "other")
	const to = `"to":{"address":"a@example.net"}`
	cases := []struct {
		name, method, path, body string
		status                   int
		want                     string
	}{
		{"submit as itself", "POST", "/v1/submit", `{` + to + `}`, 200, ""},
		{"submit as itself by path", "POST", "/v1/account/acme/submit", `{` + to + `}`, 200, ""},
		{"submit as another", "POST", "/v1/submit", `{` + to + `,"account":"other"}`, 403, "Unauthorized account"},
		{"submit as another by path", "POST", "/v1/account/other/submit", `{` + to + `}`, 403,
			"Unauthorized account"},
		{"submit by another's path as itself", "POST", "/v1/account/other/submit", `{` + to + `,"account":"acme"}`,
			403, "Unauthorized account"},
		{"faulty submit as another", "POST", "/v1/account/other/submit", `{"x":1}`, 400, ""},
		{"its message", "GET", "/v1/outbox/mine", "", 200, ""},
		{"another's message", "GET", "/v1/outbox/theirs", "", 404, "Requested queue entry was not found"},
		{"another's content", "GET", "/v1/outbox/theirs/content", "", 404, "Requested queue entry was not found"},
		{"retry another's", "POST", "/v1/outbox/theirs/retry", "", 404, "Requested queue entry was not found"},
		{"patch another's", "PATCH", "/v1/outbox/theirs", `{}`, 404, "Requested queue entry was not found"},
		{"cancel another's", "DELETE", "/v1/outbox/theirs", "", 200, `{"deleted":false}`},
		{"cancel its own", "DELETE", "/v1/outbox/mine", "", 200, `{"deleted":true}`},
		{"list another's", "GET", "/v1/outbox?account=other", "", 403, "Unauthorized account"},
		{"cancel all of another's", "DELETE", "/v1/outbox?account=other", "", 403, "Unauthorized account"},
		{"list", "GET", "/v1/outbox", "", 200, ""},
		{"cancel all", "DELETE", "/v1/outbox?state=delayed", "", 200, ""},
		{"its log", "GET", "/v1/messages", "", 200, ""},
		{"another's log", "GET", "/v1/messages?account=other", "", 403, "Unauthorized account"},
		{"its message in the log", "GET", "/v1/messages/mine", "", 200, ""},
		{"another's message in the log", "GET", "/v1/messages/theirs", "", 404,
			"There is no such message in the email log"},
		{"its events", "GET", "/v1/messages/mine/events", "", 200, ""},
		{"another's events", "GET", "/v1/messages/theirs/events", "", 404,
			"There is no such message in the email log"},
		{"no one's message in the log", "GET", "/v1/messages/none", "", 404,
			"There is no such message in the email log"},
		{"replay its dead letter", "POST", "/v1/dead-letters/mine/replay", `{"account":"acme"}`, 200, ""},
		{"replay it as another", "POST", "/v1/dead-letters/mine/replay", `{"account":"other"}`, 403,
			"Unauthorized account"},
		{"replay another's", "POST", "/v1/dead-letters/theirs/replay", "", 404,
			"Requested queue entry was not found"},
		{"replay all of another's", "POST", "/v1/dead-letters/replay", `{"account":"other"}`, 403,
			"Unauthorized account"},
		{"replay all as another", "POST", "/v1/dead-letters/replay",
			`{"code":"EAUTH","corrections":{"account":"other"}}`, 403, "Unauthorized account"},
		{"replay all", "POST", "/v1/dead-letters/replay", `{"code":"EAUTH"}`, 200, ""},
		{"its counters", "GET", "/v1/stats", "", 200, `"accounts":1,"redis":"single","queues":{}`},
		{"no alerts, which name others", "GET", "/v1/stats", "", 200, `"alerts":[]`},
		{"another's counters", "GET", "/v1/stats?account=other", "", 403, "Unauthorized account"},
		{"its account", "GET", "/v1/account/acme", "", 200, ""},
		{"another's account", "GET", "/v1/account/other", "", 403, "Unauthorized account"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got := w.do(t, tc.method, tc.path, boundToken, tc.body)
			if got.status != tc.status || !strings.Contains(got.body, tc.want) {
				t.Errorf("got %d %s", got.status, got.body)
			}
		})
	}
	for _, q := range w.parts.queries {
		if q.Account != "acme" {
			t.Errorf("the outbox was asked for the mail of %q", q.Account)
		}
	}
	for _, q := range w.parts.looked {
		if q.Account != "acme" {
			t.Errorf("the log was asked for the mail of %q", q.Account)
		}
	}
	for _, q := range w.parts.counted {
		if q.Account != "acme" {
			t.Errorf("the mail of %q was counted", q.Account)
		}
	}
	for _, c := range w.parts.replays {
		if c.Account != "" && c.Account != "acme" {
			t.Errorf("mail was moved to %q", c.Account)
		}
	}
	for _, s := range w.parts.submits {
		if s.Account != "acme" {
			t.Errorf("mail was sent as %q", s.Account)
		}
	}
	for _, call := range w.parts.calls {
		if strings.HasSuffix(call, "theirs") && !strings.HasPrefix(call, "AccountOf") ||
			strings.HasSuffix(call, "theirs api") {
			t.Errorf("the outbox was asked to %s", call)
		}
		if strings.HasPrefix(call, "ReplayAll") && call != "ReplayAll acme" ||
			strings.HasPrefix(call, "QueueStatus") || call == "Accounts.Count" {
			t.Errorf("a bound token had the server %s", call)
		}
	}
}

func TestTokenInQuery(t *testing.T) {
	t.Parallel()
	w := setup(t)
	if got := w.do(t, "GET", "/v1/outbox?access_token="+adminToken, "", ""); got.status != 200 {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if got := w.do(t, "GET", "/v1/outbox", "", "", "Authorization", "bearer "+adminToken); got.status != 200 {
		t.Errorf("the scheme is not case-sensitive (RFC 9110 section 11.1), yet: %d %s", got.status, got.body)
	}
}

// TestSessions: the cookie of the login page reads the API and changes nothing, not even from our own pages.
func TestSessions(t *testing.T) {
	t.Parallel()
	w := setup(t)
	cases := []struct {
		name   string
		method string
		path   string
		cookie string
		header [2]string
		want   int
	}{
		{"read", "GET", "/v1/outbox", "session-of-" + adminToken, [2]string{}, 200},
		{"ended session", "GET", "/v1/outbox", "session-of-nobody", [2]string{}, 401},
		{"change from our page", "POST", "/v1/submit", "session-of-" + adminToken,
			[2]string{"Sec-Fetch-Site", "same-origin"}, 401},
		{"change from another site", "POST", "/v1/submit", "session-of-" + adminToken,
			[2]string{"Sec-Fetch-Site", "cross-site"}, 401},
		{"change from another origin", "POST", "/v1/submit", "session-of-" + adminToken,
			[2]string{"Origin", "https://evil.example"}, 401},
		{"bound to an account", "GET", "/v1/outbox", "session-of-" + boundToken, [2]string{}, 200},
		{"bound to an account, the whole instance", "GET", "/v1/settings", "session-of-" + boundToken, [2]string{},
			403},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			headers, body := []string{"Cookie", "postroom_session=" + tc.cookie}, ""
			if tc.header[0] != "" {
				headers = append(headers, tc.header[0], tc.header[1])
			}
			if tc.method == "POST" {
				body = `{"to":{"address":"a@example.net"}}`
			}
			if got := w.do(t, tc.method, tc.path, "", body, headers...); got.status != tc.want {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
}
