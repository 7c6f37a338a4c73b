package server

import (
	"crypto/rand"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/internal/testapi"
	"github.com/postroom/postroom/server/access"
)

// call makes the simplest request that a route takes.
func (w *world) call(t *testing.T, r route, token string, headers ...string) reply {
	t.Helper()
	return w.send(t, r, token, w.existing(t, r, token), headers...)
}

// send is call for an object that exists or not. The names are replaced in path and body.
func (w *world) send(t *testing.T, r route, token string, names []string, headers ...string) reply {
	t.Helper()
	replaced := strings.NewReplacer(names...)
	path := strings.NewReplacer(append(slices.Clone(names), "{listId}", "news", "{account}", "acme", "{queue}",
		"submit", "{queueId}", "q1", "{id}", "x1", "{deliveryId}", "d1", "{part}", "1", "{gateway}", "gw1",
		"{domain}", "example.com", "{version}", "1", "{address}", "ann@example.org", "{subscriber}",
		"reader@example.org", "{recipient}", "reader-1",
		"{category}", "comment", "{run}", "r1", "{name}", "postmark", "pprof/*", "pprof/heap")...).Replace(r.path)
	body := map[string]string{
		"submit": `{"to":{"address":"a@example.net"}}`, "submitAs": `{"to":{"address":"a@example.net"}}`,
		"patchMessage": `{}`, "putQueue": `{}`, "updateSettings": `{"queueKeep":1}`,
		"createAccount": `{"account":"a","email":"a@example.com","smtp":{"host":"h","port":25}}`,
		"updateAccount": `{}`, "verifyAccount": `{"smtp":{"host":"h","port":25}}`,
		"createToken":  `{"description":"d"}`,
		"createPerson": `{"person":"` + rand.Text() + `","role":"viewer"}`, "updatePerson": `{}`,
		"changePassword": `{"password":"` + password + `","newPassword":"` + password + `"}`,
		"enrolTOTP":      `{"password":"` + password + `"}`, "removeTOTP": `{"password":"` + password + `"}`,
		"chooseAccount": `{"account":"` + w.accountOf(t, token) + `"}`,
		"createGateway": `{"gateway":"gw1","name":"GW","host":"h","port":25}`, "updateGateway": `{}`,
		"replayDeadLetters": `{"code":"EAUTH"}`,
		"createTemplate":    `{"name":"n","content":{"text":"x"}}`, "updateTemplate": `{}`,
		"tryTemplate": `{"content":{"text":"x"}}`, "restoreTemplate": `{"version":1}`,
		"putDomainKey": marshal(t, domainKey(t)),
		"createList":   `{"name":"` + rand.Text() + `"}`, "updateList": `{}`,
		"createSegment": `{"name":"` + rand.Text() + `","rule":{"tag":"x"}}`, "updateSegment": `{}`,
		"createCampaign": `{"name":"` + rand.Text() + `"}`, "updateCampaign": `{}`,
		"testCampaign": `{"to":["a@example.com"]}`, "settleCampaign": `{"all":true}`,
		"resendCampaign": `{"to":"newcomers"}`, "decideCampaign": `{"variant":"a"}`,
		"erasePerson": `{"email":"a@example.com"}`, "exportPerson": `{"email":"a@example.com"}`,
		"createSubscriber": `{"email":"a@example.com","upsert":true}`, "updateSubscriber": `{}`,
		"subscribe":        `{"lists":[{"listId":"{listId}","state":"pending"}]}`,
		"takeDigestEvents": `{"recipient":"reader-2","category":"comment","entityType":"post","entityId":"1"}`,
		"createDigestKind": `{"category":"` + rand.Text() + `"}`, "updateDigestKind": `{}`,
		"putDigestRecipient": `{}`, "patchDigestRecipient": `{}`,
		"computeDigestTimes": `{"preference":{"mode":"daily"}}`,
		"addSuppressions":    `{"email":"a@example.com"}`, "addSender": `{"sender":"b.example"}`,
		"addToBlocklist": `{"account":"acme","recipient":"a@example.com"}`, "importSuppressions": "email\n",
		"importSubscribers": "email\n",
		"returnMail":        "Subject: a\r\n\r\nb\r\n", "createEndpoint": `{"url":"https://x.example"}`,
		"patchEndpoint":  `{}`,
		"updateEndpoint": `{"url":"https://x.example","secret":"` + endpointSecret + `"}`,
	}
	switch r.id {
	case "confirmTOTP":
		body[r.id] = `{"code":"` + w.codeOf(t, token) + `"}`
	case "replayEndpoint":
		path += "?since=2026-11-21T00:00:00Z"
	case "getSubscriber", "updateSubscriber", "deleteSubscriber", "subscribe", "leaveList", "listConsents",
		"askAgain", "getDigestKind", "updateDigestKind", "deleteDigestKind", "getDigestRecipient",
		"putDigestRecipient", "patchDigestRecipient", "deleteDigestRecipient", "listWaitingDigestEvents",
		"previewDigest", "sendDigest":
		if strings.HasPrefix(token, "any-") || token == adminToken {
			path += "?account=acme"
		}
	case "deleteDigestEvents":
		path += "?recipient=reader-1&key=k1"
	case "explainSegment":
		path += "?subscriber=reader@example.org"
	case "flushTemplates":
		path += "?force=true"
	case "importSuppressions", "importSubscribers":
		headers = append(headers, "Content-Type", "text/csv")
	case "returnMail":
		headers = append(headers, "Content-Type", "message/rfc822")
	case "checkSuppression", "removeSuppression":
		path += "?email=a@example.com"
	case "removeFromBlocklist":
		path += "?recipient=a@example.com"
	case "cancelMessages":
		path += "?state=scheduled"
	}
	switch {
	case r.path == "/track/click":
		path += "?mid=" + w.click(t) + "&url=https://shop.test/"
	case strings.HasPrefix(r.path, "/webhooks/provider"):
		body[r.id], headers = "[]", append(headers, "X-Webhook-Token", hookSecret)
	}
	return w.do(t, r.method, path, token, replaced.Replace(body[r.id]), headers...)
}

// provider makes the gateway gw1 one of a provider's API.
func (w *world) provider(t *testing.T) {
	t.Helper()
	if w.fake == nil {
		w.fake = testapi.Start(t, "postmark", testapi.Options{})
	}
	_, err := w.parts.Gateways.Create(t.Context(), api.Gateway{Gateway: "gw1", Type: api.GatewayPostmark,
		API: &api.GatewayAPI{Key: "key", Secret: testapi.DefaultSecret, URL: w.fake.URL,
			WebhookSecret: hookSecret}})
	if err != nil {
		t.Fatal(err)
	}
}

// existing makes the object of a route, and returns the replacements for the path.
func (w *world) existing(t *testing.T, r route, token string) []string {
	t.Helper()
	p, ctx := w.parts, t.Context()
	if strings.Contains(r.path, "{token}") {
		return []string{"{token}", w.click(t)}
	}
	if p.failure() != nil {
		return nil
	}
	if strings.HasSuffix(r.path, "/{name}/{gateway}") || strings.HasPrefix(r.path, "/v1/gateway/{gateway}/") {
		w.provider(t)
	}
	bound := ""
	if p.tokens[token]+p.cookies[token] != "" && !strings.HasPrefix(token, "any-") {
		bound = "acme"
	}
	var id string
	var err error
	switch r.id {
	case "getToken", "getTokenUsage", "rotateToken", "deleteToken":
		var created api.TokenCreated
		created, err = p.Access.Create(ctx, api.TokenRequest{Description: "d"}, time.Now())
		id = created.ID
	case "getDomainKey", "deleteDomainKey":
		_, err = p.DomainKeys.Put(ctx, domainKey(t))
	case "getTemplate", "updateTemplate", "deleteTemplate", "listTemplateVersions", "getTemplateVersion",
		"restoreTemplate", "previewTemplate":
		var created api.TemplateCreated
		created, err = p.Templates.Create(ctx, bound, api.TemplateRequest{
			Name: "n", TemplateDefinition: api.TemplateDefinition{Content: api.TemplateContent{Text: "x"}}})
		id = created.ID
	case "getGateway", "updateGateway", "deleteGateway":
		_, err = p.Gateways.Create(ctx, api.Gateway{Gateway: "gw1", Name: "GW", Host: "h", Port: 25})
	case "importProviderList", "providerImport":
		_, err = p.Gateways.Create(ctx, api.Gateway{Gateway: "listed", Name: "L", Type: api.GatewayPostmark,
			API: &api.GatewayAPI{Key: "key"}})
		if err == nil {
			_, err = p.Provider.Start(ctx, "listed", api.ProviderImportStart{})
		}
		if err != nil {
			t.Fatal(err)
		}
		return []string{"{gateway}", "listed"}
	case "subscriberImport", "stopSubscriberImport":
		p.account(t, "acme")
		id = "x" + strings.ToLower(rand.Text())
		_, err = p.Audience.Imports.Run(ctx, bound, strings.NewReader("a@example.com\n"),
			api.SubscriberImportOptions{ID: id})
	case "suppressionImport":
		id = strings.ToLower(rand.Text())
		_, err = p.Suppressions.Import(ctx, bound, strings.NewReader("a@example.com\n"),
			api.SuppressionImportOptions{ID: id})
	case "getBlocklist", "removeFromBlocklist":
		_, err = p.Suppressions.Block(ctx, bound, "news", api.BlocklistRequest{Account: "acme",
			Recipient: "a@example.com"})
	case "askAgain":
		p.account(t, "acme")
		p.list(t, "acme", "news")
		p.subscriber(t, "acme", "asked@example.org", "news")
		return []string{"{listId}", "news", "{subscriber}", "asked@example.org"}
	case "getErasure":
		return p.erasure(t)
	case "getListForm":
		p.account(t, "acme")
		p.list(t, "acme", "news")
		_, err = p.Audience.Lists.Update(ctx, "", "news", api.ListPatch{Public: new(true)})
		if err == nil {
			_, err = p.Settings.Update(ctx, api.Settings{ServiceURL: new("https://mail.example.com")})
		}
		if err != nil {
			t.Fatal(err)
		}
		return []string{"{listId}", "news"}
	case "getList", "updateList", "deleteList":
		p.account(t, "acme")
		p.list(t, "acme", "news")
		return []string{"{listId}", "news"}
	case "getSubscriber", "updateSubscriber", "deleteSubscriber", "subscribe", "leaveList", "listConsents":
		p.account(t, "acme")
		p.list(t, "acme", "news")
		p.subscriber(t, "acme", "reader@example.org", "news")
		return []string{"{listId}", "news", "{subscriber}", "reader@example.org"}
	case "getSegment", "updateSegment", "deleteSegment", "countSegment", "segmentCount", "explainSegment":
		p.account(t, "acme")
		p.list(t, "acme", "news")
		p.subscriber(t, "acme", "reader@example.org", "news")
		_, err = p.Audience.Segments.Create(ctx, "", api.Segment{Segment: "beta", Account: "acme", Name: "Beta",
			Rule: []byte(`{"tag":"x"}`)})
		if fault.CodeOf(err) == "SegmentExists" {
			err = nil
		}
		if err == nil && r.id == "segmentCount" {
			_, err = p.Audience.Segments.StartCount(ctx, "", "beta")
		}
		if err != nil {
			t.Fatal(err)
		}
		return []string{"{segment}", "beta"}
	case "getCampaign", "updateCampaign", "deleteCampaign", "copyCampaign", "sendCampaign", "pauseCampaign",
		"resumeCampaign", "cancelCampaign", "previewCampaign", "checkCampaign", "testCampaign",
		"listCampaignRecipients", "exportCampaignRecipients", "settleCampaign", "resendCampaign", "decideCampaign",
		"getCampaignStats", "watchCampaignStats", "recountCampaign":
		return []string{"{campaign}", p.campaign(t, r.id)}
	case "getDigestKind", "updateDigestKind", "deleteDigestKind":
		p.account(t, "acme")
		_, err = p.Digests.Kinds.Create(ctx, "", api.DigestKind{Account: "acme", Category: "comment"})
		if err != nil && !fault.Is(err, fault.Conflict) {
			t.Fatal(err)
		}
		return []string{"{category}", "comment"}
	case "putDigestRecipient": // it makes one in other accounts
		p.account(t, "acme")
		return []string{"{recipient}", "reader-3"}
	case "getDigestRecipient", "patchDigestRecipient", "deleteDigestRecipient",
		"listWaitingDigestEvents", "previewDigest", "sendDigest":
		p.reader(t)
		return []string{"{recipient}", "reader-1"}
	case "getDigestRun":
		return []string{"{run}", p.digestRun(t, "")}
	case "retryDigestRun":
		return []string{"{run}", p.digestRun(t, api.DigestFailed)}
	case "deleteAccount":
		p.account(t, "doomed")
		return []string{"{account}", "doomed"}
	}
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case strings.Contains(r.path, "{deliveryId}"):
		endpoint, delivery := p.delivery(t)
		return []string{"{id}", endpoint, "{deliveryId}", delivery}
	case strings.HasPrefix(r.path, "/v1/webhook-endpoints/"), strings.HasPrefix(r.path, "/v1/webhookRoutes/w"):
		id = p.endpoint(t)
		if r.id == "getEndpointReplay" {
			if err := p.Webhooks.StartReplay(ctx, id, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
	case strings.HasPrefix(r.path, "/v1/dead-letters/{"):
		return []string{"{queueId}", p.dead(t, "acme")}
	case strings.Contains(r.path, "{queueId}"):
		return []string{"{queueId}", p.queued(t, "acme")}
	case strings.Contains(r.path, "{account}"):
		p.account(t, "acme")
	}
	if strings.Contains(r.path, "{person}") {
		name := strings.ToLower(rand.Text())
		if _, err := p.People.Create(ctx, api.PersonRequest{Person: name, Role: api.RoleViewer},
			time.Now()); err != nil {
			t.Fatal(err)
		}
		return []string{"{person}", name}
	}
	if r.id == "mailSender" {
		return []string{"{account}", "acme", "{sender}", "ann@b.example"}
	}
	if strings.Contains(r.path, "{sender}") {
		if _, err := p.Accounts.AddSender(ctx, "acme", "b.example", true); err != nil {
			t.Fatal(err)
		}
		return []string{"{account}", "acme", "{sender}", "b.example"}
	}
	if id == "" {
		return nil
	}
	return []string{"{id}", id}
}

// codeOf returns a code of the app that a person is setting up.
func (w *world) codeOf(t *testing.T, person string) string {
	t.Helper()
	s, err := w.parts.People.Enrolling(t.Context(), person)
	if err != nil || s.Secret == "" {
		return "000000"
	}
	code, err := totp.GenerateCode(s.Secret, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// accountOf returns the first account that a person is bound to, or one that no one has.
func (w *world) accountOf(t *testing.T, person string) string {
	t.Helper()
	if p, err := w.parts.People.Get(t.Context(), person); err == nil && len(p.Accounts) > 0 {
		return p.Accounts[0]
	}
	return "nobody"
}

// click is the token of a link.
func (w *world) click(t *testing.T) string {
	t.Helper()
	token, err := w.parts.signed.Sign(signedtoken.Click, signedtoken.Token{Account: "acme",
		MessageID: mailID, URL: "https://shop.test/"})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// welcome returns the status of a route for callers that it admits.
func welcome(r route) int {
	switch { // without the token of an email
	case r.path == "/unsubscribe" && r.method == http.MethodPost, r.path == "/preferences" &&
		r.method == http.MethodPost, r.path == "/sender" && r.method == http.MethodPost,
		r.path == "/subscribers": // without a list
		return http.StatusBadRequest
	case r.path == "/unsubscribe", r.path == "/preferences", r.path == "/sender",
		r.path == "/subscribers/confirm", r.path == "/archive/{listId}/{campaign}": // not sent
		return http.StatusNotFound
	}
	if r.path == "/c/{token}" || r.path == "/track/click" {
		return http.StatusFound
	}
	if r.id == "importProviderList" {
		return http.StatusAccepted
	}
	return http.StatusOK
}

// TestWhoMayDoWhat calls every route of the table with every kind of token, and expects the status that the
// table implies.
func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	w := setup(t)
	// hundreds of answers that other tests hold against the document
	w.http.Transport = w.http.Transport.(*checked).inner
	w.parts.account(t, "acme")
	grants := map[string]access.Grant{adminToken: {Scopes: []api.Scope{api.ScopeAdmin}},
		boundToken: {Scopes: []api.Scope{api.ScopeAPI}, Account: "acme"}}
	for _, scope := range []api.Scope{"api", "send", "outbox", "lists", "campaigns", "digests", "metrics",
		"admin", "*"} {
		for name, account := range map[string]string{"any-": "", "acme-": "acme"} {
			name += string(scope)
			grants[name] = access.Grant{Scopes: []api.Scope{scope}, Account: account}
			// others can't be bound
			if account == "" || slices.Contains([]api.Scope{"api", "send", "outbox", "lists", "campaigns",
				"digests"}, scope) {
				w.parts.token(t, name, api.TokenRequest{Scopes: []api.Scope{scope}, Account: account})
			}
		}
	}
	for _, g := range w.routes() {
		for _, r := range g.routes {
			kept := w.existing(t, r, "") // a refused call leaves it as it is
			for token, grant := range grants {
				want := welcome(r)
				need := r.right.scope
				if r.right.bound != "" && grant.Account != "" {
					need = r.right.bound
				}
				allowed := grant.Allows(need) || r.right.or != "" && grant.Allows(r.right.or)
				if !r.right.public && (!allowed || r.right.whole && grant.Account != "" ||
					r.right.self && need == "") {
					want = http.StatusForbidden
				}
				if err := r.admits(&grant); !r.right.public && (err == nil) != (want != http.StatusForbidden) {
					t.Errorf("%s %s admits %+v: %v", r.method, r.path, grant, err)
				}
				if token != adminToken && w.parts.tokens[token] == "" {
					continue
				}
				place := kept
				if want != http.StatusForbidden {
					place = w.existing(t, r, token)
				}
				if got := w.send(t, r, token, place); got.status != want {
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
	want := []string{"/webhooks/provider", "/webhooks/provider/{name}", "/webhooks/provider/{name}",
		"/webhooks/provider/{name}/{gateway}", "/webhooks/provider/{name}/{gateway}", "/unsubscribe",
		"/unsubscribe", "/preferences", "/preferences", "/sender", "/sender", "/subscribers", "/subscribers",
		"/subscribers/confirm", "/subscribers/confirm", "/archive/{listId}",
		"/archive/{listId}/atom.xml", "/archive/{listId}/{campaign}", "/o/{token}", "/c/{token}", "/track/open",
		"/track/click", "/health", "/ready", "/openapi.json", "/openapi.yaml", "/openapi-3.0.json"}
	if !slices.Equal(public, want) {
		t.Errorf("public routes are %v; adding one is a decision, and this list is where it is taken", public)
	}
}

// TestBoundTokenSeesItsOwnAccountOnly covers each way to reach for another's mail.
func TestBoundTokenSeesItsOwnAccountOnly(t *testing.T) {
	t.Parallel()
	w := setup(t)
	p := w.parts
	ids := strings.NewReplacer("/mine", "/"+p.queued(t, "acme"), "/failed", "/"+p.dead(t, "acme"), "/theirs",
		"/"+p.queued(t, "other"))
	theirs := ids.Replace("/theirs")[1:]
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
		{"cancel all", "DELETE", "/v1/outbox?state=scheduled", "", 200, ""},
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
		{"replay its dead letter", "POST", "/v1/dead-letters/failed/replay", `{"account":"acme"}`, 200, ""},
		{"replay one as another", "POST", "/v1/dead-letters/failed/replay", `{"account":"other"}`, 403,
			"Unauthorized account"},
		{"replay another's", "POST", "/v1/dead-letters/theirs/replay", "", 404,
			"Requested queue entry was not found"},
		{"replay all of another's", "POST", "/v1/dead-letters/replay", `{"account":"other"}`, 403,
			"Unauthorized account"},
		{"replay all as another", "POST", "/v1/dead-letters/replay",
			`{"code":"EAUTH","corrections":{"account":"other"}}`, 403, "Unauthorized account"},
		{"replay all", "POST", "/v1/dead-letters/replay", `{"code":"EAUTH"}`, 200, ""},
		{"send by another way", "POST", "/v1/submit", `{"to":{"address":"a@b.com"},"proxy":"http://proxy.test"}`,
			403,
			"proxy and localAddress require a token that may change accounts"},
		{"its counters", "GET", "/v1/stats", "", 200, `"accounts":1,"redis":"single","queues":{}`},
		{"no alerts, which name others", "GET", "/v1/stats", "", 200, `"alerts":[]`},
		{"another's counters", "GET", "/v1/stats?account=other", "", 403, "Unauthorized account"},
		{"its account", "GET", "/v1/account/acme", "", 200, ""},
		{"another's account", "GET", "/v1/account/other", "", 403, "Unauthorized account"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got := w.do(t, tc.method, ids.Replace(tc.path), boundToken, tc.body)
			if got.status != tc.status || !strings.Contains(got.body, tc.want) || strings.Contains(got.body, theirs) {
				t.Errorf("got %d %s", got.status, got.body)
			}
		})
	}
	page, err := p.Outbox.Reader.Messages(t.Context(), api.LogQuery{Account: "other"})
	if err != nil || page.Total != 1 || page.Messages[0].QueueID != theirs ||
		page.Messages[0].Status != api.StatusQueued {
		t.Errorf("the mail of another: %+v, %v", page, err)
	}
	if page, err := p.Outbox.Reader.Messages(t.Context(), api.LogQuery{}); err != nil || page.Total != 5 {
		t.Errorf("%d messages, want those that were there and the two submitted: %+v, %v", page.Total, page, err)
	}
}

func TestTokenInQuery(t *testing.T) {
	t.Parallel()
	w := setup(t)
	if got := w.do(t, "GET", "/v1/outbox?access_token="+adminToken, "", ""); got.status != 200 {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if got := w.do(t, "HEAD", "/v1/outbox?access_token="+adminToken, "", ""); got.status != 200 {
		t.Errorf("HEAD: %d %s", got.status, got.body)
	}
	for _, change := range [][3]string{{"POST", "/v1/submit", `{"to":{"address":"a@example.net"}}`},
		{"PUT", "/v1/settings/queue/submit", `{"paused":true}`}, {"DELETE", "/v1/outbox/none", ""}} {
		path := change[1] + "?access_token=" + adminToken
		got := w.do(t, change[0], path, "", change[2])
		if got.status != 401 || !strings.Contains(got.body, "TokenInQuery") {
			t.Errorf("%s %s with a token in the address: %d %s", change[0], change[1], got.status, got.body)
		}
		if got := w.do(t, change[0], path, adminToken, change[2]); got.status == 401 {
			t.Errorf("%s %s with the header, too: %d %s", change[0], change[1], got.status, got.body)
		}
	}
	if got := w.do(t, "GET", "/v1/outbox", "", "", "Authorization", "bearer "+adminToken); got.status != 200 {
		t.Errorf("the scheme is not case-sensitive (RFC 9110 section 11.1), yet: %d %s", got.status, got.body)
	}
}

// TestSessions: the cookie of the login page is good for the API, but changes nothing for other sites.
func TestSessions(t *testing.T) {
	t.Parallel()
	w := setup(t)
	admin, bound := w.parts.session(t, adminToken), w.parts.session(t, boundToken)
	cases := []struct {
		name   string
		method string
		path   string
		cookie string
		header [2]string
		want   int
	}{
		{"read", "GET", "/v1/outbox", admin, [2]string{}, 200},
		{"ended session", "GET", "/v1/outbox", "session-of-nobody", [2]string{}, 401},
		{"change from our page", "POST", "/v1/submit", admin,
			[2]string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"change from another site", "POST", "/v1/submit", admin,
			[2]string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"change from another origin", "POST", "/v1/submit", admin,
			[2]string{"Origin", "https://evil.example"}, 403},
		{"bound to an account", "GET", "/v1/outbox", bound, [2]string{}, 200},
		{"bound to an account, the whole instance", "GET", "/v1/settings", bound, [2]string{},
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
