package app_test

import (
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/audit"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend/mxsend"
)

// TestRedisKeysAreDocumented compares docs/redis-keys.md with the keys that Postroom writes. It does
// everything that creates keys, while Redis reports each key that is touched.
func TestRedisKeysAreDocumented(t *testing.T) {
	t.Parallel()
	listed := readKeys(t)
	server := testredis.Server(t, "--notify-keyspace-events", "KEA")
	db := apptest.Connect(t, server.URL())
	touched := watchKeys(t, db.Client(), listed)
	relay, hooks := testsmtp.Start(t, testsmtp.Options{}), apptest.Receive(t)
	settings := apptest.FeedbackSettings(t)
	maps.Copy(settings, map[string]string{
		"redis.url": server.URL(), "redis.partitions": "2", "smtp": relay.URL(), "from": "shop@example.com",
		"webhooks.allowPrivate": "true", "senders.mailAccount": "default",
		"serviceUrl":   "https://mail.example.com",
		"alerts.every": "1s", "digest.keep": "5", "outbox.keepContent": "1h",
	})
	a := apptest.Run(t, settings)
	client := api.NewClient(a.URL(), a.Token(), nil)
	broken := exerciseWebhooks(t, client, hooks)
	exerciseAccess(t, a, client, relay)
	exerciseOutbox(t, client, hooks)
	exerciseDelivery(t, client)
	exerciseSuppressions(t, client, db)
	exercisePolicies(t, db)
	exerciseAudience(t, client)
	exerciseCampaigns(t, a.URL(), client, relay)
	exerciseDigests(t, client)
	exerciseFeedback(t, a, client)
	apptest.SubmitTo(t, client, api.SubmitRequest{}, apptest.Gone)
	apptest.Finds(t, client, "to:"+apptest.Gone, 1)
	apptest.Erased(t, client, "")
	exerciseSenders(t, client)
	exerciseRest(t, client, broken)
	trimAudit(t, db)
	if _, err := api.RebuildDocuments.Do(t.Context(), client); err != nil {
		t.Fatal(err)
	}

	defer func() { // eventually ends the test without saying which
		for _, pattern := range touched.neverSeen() {
			t.Errorf("docs/redis-keys.md lists %s, which nothing wrote", pattern)
		}
	}()
	apptest.Eventually(t, "every listed key of Postroom was written",
		func() bool { return len(touched.neverSeen()) == 0 })
	for _, key := range touched.unlisted() {
		t.Errorf("docs/redis-keys.md does not list %s", key)
	}
	checkKeys(t, db.Client(), listed)
}

// exercisePolicies keeps the MTA-STS policy of a domain, as direct delivery does, and finds it again.
func exercisePolicies(t *testing.T, db *redisdb.DB) {
	t.Helper()
	kept := gateways.NewPolicies(db)
	want := mxsend.Policy{ID: "1", Mode: mxsend.Enforce, MX: []string{"mx.example.net"},
		Expires: time.Now().Add(time.Hour).UTC()}
	if err := kept.Put(t.Context(), "example.net", want); err != nil {
		t.Fatal(err)
	}
	got, ok, err := kept.Get(t.Context(), "example.net")
	if diff := cmp.Diff(want, got); err != nil || !ok || diff != "" {
		t.Errorf("%v, %v (-want +got):\n%s", ok, err, diff)
	}
	if _, ok, err := kept.Get(t.Context(), "example.org"); ok || err != nil {
		t.Errorf("a policy that nobody kept: %v, %v", ok, err)
	}
}

// exerciseSenders asks the owner of an address by mail.
func exerciseSenders(t *testing.T, client *api.Client) {
	t.Helper()
	_, err := api.CreateAccount.Do(t.Context(), client, api.Account{Account: "asks", Email: "asks@x.test",
		SMTP: &api.SMTPServer{Host: "127.0.0.1", Port: 9}})
	if err == nil {
		_, err = api.MailSender.Do(t.Context(), client, "asks", "ann@example.org")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// trimAudit trims the audit log.
func trimAudit(t *testing.T, db *redisdb.DB) {
	t.Helper()
	log, err := audit.New(db, testkit.Ring(t, "secret"), audit.Options{Max: 1})
	if err == nil {
		err = log.Trim(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// documented is a row of the page: a key pattern and its description.
type documented struct {
	pattern string
	match   *regexp.Regexp
	literal int // characters outside placeholders: the matching row with most of them applies
	kind    string
	expires string
	cluster bool // it is only written in a Cluster
}

func readKeys(t *testing.T) []documented {
	t.Helper()
	page, err := os.ReadFile("../docs/redis-keys.md")
	if err != nil {
		t.Fatal(err)
	}
	placeholder := regexp.MustCompile(`<[a-z]+>|\{p\}`)
	var rows []documented
	for _, row := range regexp.MustCompile(
		"(?m)^\\| `((?:postroom|asynq):[^`]+)` \\| ([a-z]+) \\| ([^|]+) \\| (only in a Cluster: )?").FindAllStringSubmatch(
		string(page), -1) {
		var expression strings.Builder
		last := 0
		for _, at := range placeholder.FindAllStringIndex(row[1], -1) {
			expression.WriteString(regexp.QuoteMeta(row[1][last:at[0]]))
			if row[1][at[0]:at[1]] == "{p}" {
				expression.WriteString(`\{[0-9]+\}`)
			} else {
				expression.WriteString(`.+`)
			}
			last = at[1]
		}
		expression.WriteString(regexp.QuoteMeta(row[1][last:]))
		rows = append(rows, documented{
			pattern: row[1], match: regexp.MustCompile("^" + expression.String() + "$"),
			literal: len(placeholder.ReplaceAllString(row[1], "")),
			kind:    row[2], expires: row[3], cluster: row[4] != "",
		})
	}
	if len(rows) < 50 {
		t.Fatalf("docs/redis-keys.md has %d rows: its tables can't be read any more", len(rows))
	}
	return rows
}

// find returns the row that a key belongs to.
func find(rows []documented, key string) *documented {
	var best *documented
	for i := range rows {
		if rows[i].match.MatchString(key) && (best == nil || rows[i].literal > best.literal) {
			best = &rows[i]
		}
	}
	return best
}

// touches are the keys that Redis reports, each with the row of the page that it belongs to.
type touches struct {
	listed []documented

	mu   sync.Mutex
	keys map[string]*documented // nil means no row
}

func watchKeys(t *testing.T, rdb redis.UniversalClient, listed []documented) *touches {
	t.Helper()
	sub := rdb.PSubscribe(t.Context(), "__keyspace@*__:*")
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := &touches{listed: listed, keys: map[string]*documented{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for m := range sub.Channel(redis.WithChannelSize(10_000)) {
			_, key, _ := strings.Cut(m.Channel, ":")
			w.touch(key)
		}
	}()
	t.Cleanup(func() {
		if err := sub.Close(); err != nil {
			t.Errorf("close subscription: %v", err)
		}
		<-done
	})
	return w
}

func (w *touches) touch(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.keys[key]; !known {
		w.keys[key] = find(w.listed, key)
	}
}

// neverSeen returns the patterns of Postroom's own keys that no key matches.
func (w *touches) neverSeen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := map[*documented]bool{}
	for _, row := range w.keys {
		seen[row] = true
	}
	var missing []string
	for i := range w.listed {
		row := &w.listed[i]
		if strings.HasPrefix(row.pattern, "postroom:") && !row.cluster && !seen[row] {
			missing = append(missing, row.pattern)
		}
	}
	return missing
}

// unlisted returns the keys that no row matches, sorted.
func (w *touches) unlisted() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var keys []string
	for key, row := range w.keys {
		if row == nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// exerciseWebhooks creates a working endpoint with a rate limit, and one that answers that it is gone.
func exerciseWebhooks(t *testing.T, client *api.Client, hooks *apptest.Receiver) (broken string) {
	t.Helper()
	if _, err := api.CreateEndpoint.Do(t.Context(), client, api.EndpointRequest{URL: hooks.URL,
		RateLimit: 10_000}); err != nil {
		t.Fatal(err)
	}
	gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusGone)
	}))
	t.Cleanup(gone.Close)
	if _, err := api.CreateEndpoint.Do(t.Context(), client, api.EndpointRequest{URL: gone.URL}); err != nil {
		t.Fatal(err)
	}
	fails := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(fails.Close)
	made, err := api.CreateEndpoint.Do(t.Context(), client, api.EndpointRequest{URL: fails.URL})
	if err != nil {
		t.Fatal(err)
	}
	return made.ID
}

// exerciseRest waits until an endpoint that fails rests, and ends that. Its events are replayed in the
// background.
func exerciseRest(t *testing.T, client *api.Client, broken string) {
	t.Helper()
	apptest.Eventually(t, "the endpoint rests", func() bool {
		e, err := api.GetEndpoint.Do(t.Context(), client, broken)
		if err != nil {
			t.Fatal(err)
		}
		return e.Resting != nil
	})
	if _, err := api.WakeEndpoint.Do(t.Context(), client, broken); err != nil {
		t.Fatal(err)
	}
	if _, err := api.ReplayEndpoint.Do(t.Context(), client, api.EndpointReplay{
		Since: time.Now().Add(-time.Hour), Background: true}, broken); err != nil {
		t.Fatal(err)
	}
}

// exerciseAccess creates an account, a template, settings, tokens of all sorts and a session.
func exerciseAccess(t *testing.T, a *app.App, client *api.Client, relay *testsmtp.Server) {
	t.Helper()
	ctx := t.Context()
	if _, err := api.CreateAccount.Do(ctx, client, api.Account{
		Account: "shop", Email: "shop@example.com", SMTP: &api.SMTPServer{Host: relay.Host(), Port: relay.Port()},
		Limits: &api.Limits{PerMinute: 100},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.CreateTemplate.Do(ctx, client, api.TemplateRequest{
		Name: "Order", TemplateDefinition: api.TemplateDefinition{
			Content: api.TemplateContent{Text: "Hello"}}}); err != nil {
		t.Fatal(err)
	}
	attempts := 5
	if _, err := api.UpdateSettings.Do(ctx, client, api.Settings{DeliveryAttempts: &attempts}); err != nil {
		t.Fatal(err)
	}
	limit := &api.Restrictions{RateLimit: &api.RateLimit{MaxRequests: 10, TimeWindow: 60}}
	token, err := api.CreateToken.Do(ctx, client, api.TokenRequest{Description: "test", Account: "shop",
		Restrictions: limit})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.ListOutbox.Do(ctx, api.NewClient(a.URL(), token.Token, nil),
		api.OutboxQuery{}); err != nil {
		t.Fatal(err)
	}
	soon := time.Now().Add(time.Hour)
	brief, err := api.CreateToken.Do(ctx, client, api.TokenRequest{Description: "brief", Expires: &soon})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.DeleteToken.Do(ctx, client, brief.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := api.GetStats.Do(ctx, api.NewClient(a.URL(), "wrong", nil), api.CounterQuery{}); err == nil {
		t.Error("a wrong token was let in")
	}
	exercisePeople(t, a, client)
}

// exercisePeople has a person set a password and a second factor, and binds another one to an issuer's user.
func exercisePeople(t *testing.T, a *app.App, client *api.Client) {
	t.Helper()
	made, err := api.CreatePerson.Do(t.Context(), client, api.PersonRequest{Person: "ann",
		Role: api.RoleOperator})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.CreatePerson.Do(t.Context(), client, api.PersonRequest{Person: "ada", Role: api.RoleViewer,
		Identity: &api.Identity{Issuer: "https://idp.example", Subject: "1"}}); err != nil {
		t.Fatal(err)
	}
	link, err := url.Parse(made.Link)
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	const password = "correct horse battery"
	for _, step := range []struct {
		path   string
		form   url.Values
		status int
	}{
		{"/login", url.Values{"token": {a.Token()}}, http.StatusOK},
		{"/login", url.Values{"name": {"ann"}, "password": {"wrong"}}, http.StatusUnauthorized},
		{"/link", url.Values{"t": {link.Query().Get("t")}, "newPassword": {password}, "newPassword2": {password}},
			http.StatusOK},
		{"/login", url.Values{"name": {"ann"}, "password": {password}}, http.StatusOK},
		{"/me/totp", url.Values{"password": {"wrong"}}, http.StatusOK},
	} {
		answer, err := browser.PostForm(a.URL()+step.path, step.form)
		if err != nil || answer.StatusCode != step.status {
			t.Fatal(step, answer, err)
		}
		if err := answer.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// exerciseOutbox sends messages through every state and replays their events.
func exerciseOutbox(t *testing.T, client *api.Client, hooks *apptest.Receiver) {
	t.Helper()
	ctx := t.Context()
	later := time.Now().Add(time.Hour)
	for _, req := range []api.SubmitRequest{
		{To: api.Addresses{{Address: "ann@example.net"}}, IdempotencyKey: "one"},
		{To: api.Addresses{{Address: "rcpt-550@example.net"}}},
		{To: api.Addresses{{Address: "rcpt-451@example.net"}}},
		{To: api.Addresses{{Address: "later@example.net"}}, SendAt: &later},
		{To: api.Addresses{{Address: "ben@example.net"}}, Account: "shop", Lane: api.Bulk},
		{To: api.Addresses{{Address: "cat@example.net"}}, Attachments: []api.Attachment{
			{Filename: "x.bin", Content: noise(1 << 20)}}},
	} {
		req.Text = "Hello"
		if _, err := api.Submit.Do(ctx, client, req); err != nil {
			t.Fatal(err)
		}
	}
	merged, err := api.Submit.Do(ctx, client, api.SubmitRequest{Text: "Hello {{params.name}}",
		IdempotencyKey: "merge", MailMerge: []api.MailMergeEntry{{To: api.Address{Address: "cleo@example.net"}}}})
	if err != nil || !merged.MailMerge[0].Success {
		t.Fatal(merged, err)
	}
	for _, kind := range []event.Type{event.MessageSent, event.MessageFailed, event.MessageDeliveryError} {
		hooks.Wait(t, kind)
	}
	apptest.Eventually(t, "the message of the account was sent", func() bool {
		page, err := api.ListOutbox.Do(ctx, client, api.OutboxQuery{Account: "shop"})
		return err == nil && page.Total == 0
	})
	// more than the window of an account: the rest is its backlog
	flood := api.SubmitRequest{Lane: api.Bulk, Subject: "flood", Text: "x",
		MailMerge: make([]api.MailMergeEntry, 100)}
	for i := range flood.MailMerge {
		flood.MailMerge[i].To.Address = fmt.Sprintf("p%d@example.net", i)
	}
	if _, err := api.Submit.Do(ctx, client, flood); err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "the backlog was sent", func() bool {
		page, err := api.ListOutbox.Do(ctx, client, api.OutboxQuery{Lane: api.Bulk})
		return err == nil && page.Total == 0
	})
	for _, paused := range []bool{true, false, true} {
		if _, err := api.PutQueue.Do(ctx, client, api.QueuePatch{Paused: &paused}, "bulk"); err != nil {
			t.Fatal(err)
		}
	}
	page, err := api.ListEndpoints.Do(ctx, client, api.PageQuery{PageSize: 10})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Endpoints {
		if e.URL == hooks.URL {
			if _, err := api.ReplayEndpoint.Do(ctx, client, api.EndpointReplay{Since: time.Now().Add(-time.Hour)},
				e.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// exerciseDelivery creates a gateway with limits that asks for a pause, a signing key, a token that is
// requested, and an account with errors.
func exerciseDelivery(t *testing.T, client *api.Client) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	busy := testsmtp.Start(t, testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
		switch {
		case c.Verb == "MAIL" && c.Arg == "routed@example.com":
			return testsmtp.Action{Reply: "421 4.7.0 Too many messages, slow down"}
		case c.Verb == "RCPT":
			return testsmtp.Action{Reply: "450 4.7.1 Rate limit exceeded for recipient domain"}
		}
		return testsmtp.Action{}
	}})
	_, err := api.CreateGateway.Do(ctx, client, api.Gateway{
		Gateway: "gw", Name: "GW", Host: busy.Host(), Port: busy.Port(), Limits: &api.Limits{PerMinute: 100,
			Connections: 1},
	})
	must(err)
	_, err = api.CreateGateway.Do(ctx, client, api.Gateway{
		Gateway: "slow", Name: "Slow", Host: busy.Host(), Port: busy.Port(),
		LimitsPerDomain: map[string]api.DomainLimits{"*": {PerMinute: 100, Connections: 1}},
	})
	must(err)
	_, err = api.CreateAccount.Do(ctx, client, api.Account{Account: "domains", Email: "domains@example.com",
		Gateways: []api.Route{{Gateway: "slow"}}})
	must(err)
	_, err = api.CreateAccount.Do(ctx, client, api.Account{Account: "routed", Email: "routed@example.com",
		Gateways: []api.Route{{Gateway: "gw"}}})
	must(err)
	_, err = api.PutDomainKey.Do(ctx, client, api.NewDomainKey{DKIM: api.DKIM{
		Domain: "example.com", Selector: "s1", PrivateKey: apptest.DKIMKey(t)}}, "example.com")
	must(err)
	guarded := testsmtp.Start(t, testsmtp.Options{Security: testsmtp.STARTTLS, Username: "me", Token: "other"})
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token":"wrong","token_type":"Bearer","expires_in":3600}`))
	}))
	t.Cleanup(tokens.Close)
	trust := false
	_, err = api.CreateAccount.Do(ctx, client, api.Account{
		Account: "troubled", Email: "troubled@example.com", AccountTrouble: "hold",
		SMTP: &api.SMTPServer{Host: guarded.Host(), Port: guarded.Port(), TLS: &api.SMTPTLS{
			RejectUnauthorized: &trust}},
		OAuth2: &api.OAuth2{TokenURL: tokens.URL, ClientID: "id", RefreshToken: "r", User: "me"},
	})
	must(err)
	for _, account := range []string{"routed", "domains", "troubled"} {
		_, err := api.Submit.Do(ctx, client, api.SubmitRequest{Account: account, To: api.Addresses{
			{Address: "ann@example.net"}}, Text: "Hello"})
		must(err)
	}
	apptest.Eventually(t, "the account in trouble is held", func() bool {
		info, err := api.GetAccount.Do(ctx, client, "troubled")
		return err == nil && info.State == "held"
	})
}

// checkKeys compares the type and expiry of existing keys with the page.
func checkKeys(t *testing.T, rdb redis.UniversalClient, rows []documented) {
	t.Helper()
	ctx := t.Context()
	for scan := rdb.Scan(ctx, 0, "*", 1000).Iterator(); scan.Next(ctx); {
		key := scan.Val()
		row := find(rows, key)
		if row == nil {
			continue // already reported
		}
		kind, err := rdb.Type(ctx, key).Result()
		if err != nil {
			t.Fatal(err)
		}
		left, err := rdb.PTTL(ctx, key).Result()
		if err != nil {
			t.Fatal(err)
		}
		if kind == "none" || left == -2 {
			continue // it was deleted in the meantime
		}
		if kind != row.kind {
			t.Errorf("%s is a %s; docs/redis-keys.md says %s", key, kind, row.kind)
		}
		stays, either := row.expires == "no", strings.Contains(row.expires, "never")
		if !either && left < 0 != stays {
			t.Errorf("%s has %s left to live; docs/redis-keys.md says it expires: %s", key, left, row.expires)
		}
	}
}

// noise returns incompressible bytes.
func noise(size int) []byte {
	b := make([]byte, size)
	_, _ = rand.Read(b) // it never fails
	return b
}
