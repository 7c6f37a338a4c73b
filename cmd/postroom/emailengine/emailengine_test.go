package emailengine

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testredis"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

const secret = "seal-of-ee"

// recorded fills a Redis by the commands of a file, and returns its source.
func recorded(t *testing.T, file string, o Options) (Source, *redis.Client) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var commands [][]any
	if err := json.Unmarshal(text, &commands); err != nil {
		t.Fatal(err)
	}
	o.From = testredis.URL(t)
	options, err := redis.ParseURL(o.From)
	if err != nil {
		t.Fatal(err)
	}
	db := redis.NewClient(options)
	t.Cleanup(func() { _ = db.Close() })
	pipe := db.Pipeline()
	for _, args := range commands {
		for i := range args {
			if encoded, ok := strings.CutPrefix(args[i].(string), "base64:"); ok {
				if args[i], err = base64.StdEncoding.DecodeString(encoded); err != nil {
					t.Fatal(err)
				}
			}
		}
		pipe.Do(t.Context(), args...)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	return open(t, o), db
}

func open(t *testing.T, o Options) Source {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func read(t *testing.T, s Source) *Found {
	t.Helper()
	f, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

var unverified = false

// wantAccounts are the accounts of the recorded EmailEngine that can be taken.
func wantAccounts() []Part[api.Account] {
	relay := func(host string, port int, user, pass string) *api.SMTPServer {
		return &api.SMTPServer{Host: host, Port: port, Auth: &api.SMTPAuth{User: user, Pass: pass}}
	}
	news := relay("smtp.example.net", 465, "news@example.com", "n3ws")
	news.Secure, news.TLS = true, &api.SMTPTLS{RejectUnauthorized: &unverified, MinVersion: "TLSv1.3"}
	token := relay("smtp.example.com", 587, "token@example.com", "")
	token.Auth.AccessToken = "ya29.abc"
	return []Part[api.Account]{
		{Value: api.Account{Account: "lan", Name: "Lan", Email: "lan@example.com", SMTP: &api.SMTPServer{
			Host: "mail.example.com", Port: 25}}, Lacks: []string{"tls.servername: Postroom has no such option"}},
		{Value: api.Account{Account: "mailbox", Name: "Office", Email: "office@example.com", SMTP: relay(
			"smtp.example.com", 587, "office", "0ffice")}},
		{Value: api.Account{Account: "news", Name: "Newsletter", Email: "news@example.com", SMTP: news,
			Proxy: "socks5://user:pw@proxy.example.com:1080"}},
		{Value: api.Account{Account: "shop", Name: "Shop", Email: "shop@example.com", SMTP: relay("127.0.0.1", 2525,
			"shop", "pa$$word ü"), SMTPEhloName: "shop.example.com", Locale: "de",
			TZ: "Europe/Zurich"}, Lacks: []string{
			"webhooks: an address has no user and no password in Postroom; set another one",
			"webhooksCustomHeaders: accounts have none in Postroom; make a webhook endpoint for it"}},
		{Value: api.Account{Account: "tokens", Name: "Token", Email: "token@example.com", SMTP: token}},
	}
}

// wantUnfit are the ids that can't be taken, and words of the reason.
var wantUnfit = map[string]string{
	"account asks": "useAuthServer", "account gmail": "OAuth2 app", "account o365": "OAuth2 app",
	"account kunde 7/büro": "ids have only", "account reader": "no relay",
}

func checkUnfit(t *testing.T, unfit []Unfit, want map[string]string) {
	t.Helper()
	if len(unfit) != len(want) {
		t.Errorf("%d can't be taken, not %d: %v", len(unfit), len(want), unfit)
	}
	for _, u := range unfit {
		if why, ok := want[u.Kind+" "+u.ID]; !ok || !strings.Contains(u.Why, why) {
			t.Errorf("%s %s can't be taken: %s; want %q", u.Kind, u.ID, u.Why, why)
		}
	}
}

// TestRedis reads the same data sealed, and in clear under a prefix.
func TestRedis(t *testing.T) {
	for _, tc := range []struct {
		file string
		Options
	}{{"sealed.json", Options{Secret: secret}}, {"plain.json", Options{Prefix: "moved"}},
		{"plain.json", Options{Prefix: "moved:", Secret: "given, and nothing is sealed"}}} {
		t.Run(tc.file, func(t *testing.T) {
			s, _ := recorded(t, tc.file, tc.Options)
			f := read(t, s)
			if diff := cmp.Diff(wantAccounts(), f.Accounts); diff != "" {
				t.Errorf("accounts (-want +got):\n%s", diff)
			}
			gateways := []Part[api.Gateway]{
				{Value: api.Gateway{Gateway: "backup", Name: "Backup", Host: "127.0.0.1", Port: 2525}},
				{Value: api.Gateway{Gateway: "ses", Name: "Amazon", Host: "email-smtp.eu-west-1.amazonaws.com", Port: 587,
					User: "AKIA", Pass: "ses-pass"}},
				{Value: api.Gateway{Gateway: "tls", Name: "TLS", Host: "smtp.example.org", Port: 465, Secure: true,
					User: "u", Pass: "p"}},
			}
			if diff := cmp.Diff(gateways, f.Gateways); diff != "" {
				t.Errorf("gateways (-want +got):\n%s", diff)
			}
			checkUnfit(t, f.Unfit, wantUnfit)
			checkTemplates(t, f.Templates)
			checkLists(t, s, f.Lists)
			checkSettings(t, f.Settings, 0)
		})
	}
}

func checkTemplates(t *testing.T, list []api.TemplateRequest) {
	t.Helper()
	got := map[string]api.TemplateRequest{}
	for _, one := range list {
		if one.ID == "" {
			t.Errorf("template %s has no id", one.Name)
		}
		one.ID = ""
		got[one.Name] = one
	}
	shop, reader := "shop", "reader"
	of := func(account *string, name, description, format string, c api.TemplateContent) api.TemplateRequest {
		return api.TemplateRequest{Account: account, Name: name, Description: description,
			TemplateDefinition: api.TemplateDefinition{Format: format, Content: c}}
	}
	want := map[string]api.TemplateRequest{
		"Welcome": of(nil, "Welcome", "After signing up", "html", api.TemplateContent{
			Subject: "Hello {{params.name}}", HTML: "<p>Welcome, {{params.name}} — ✓</p>", Text: "Welcome, {{params.name}}",
			PreviewText: "Glad you are here"}),
		"Order": of(&shop, "Order", "", "markdown", api.TemplateContent{Subject: "Order {{params.id}}",
			HTML: "**Order** {{params.id}}"}),
		"Odd": of(nil, "Odd", "", "html", api.TemplateContent{Subject: "x",
			HTML: `{{#if params.a}}{{unknownHelper params.a "b"}}{{/if}}`}),
		"Orphan": of(&reader, "Orphan", "", "html", api.TemplateContent{Subject: "x", HTML: "x"}),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("templates (-want +got):\n%s", diff)
	}
}

func checkLists(t *testing.T, s Source, lists []api.Blocklist) {
	t.Helper()
	wantLists := []api.Blocklist{{ListID: "news", Count: 2}, {ListID: "offers", Count: 2}}
	if diff := cmp.Diff(wantLists, lists); diff != "" {
		t.Errorf("blocklists (-want +got):\n%s", diff)
	}
	got := map[string]string{}
	for b, err := range s.Blocked(t.Context(), "news") {
		if err != nil {
			t.Fatal(err)
		}
		if b.Created.Year() < 2026 {
			t.Errorf("%s was created at %v", b.Recipient, b.Created)
		}
		got[strings.ToLower(b.Recipient)] = b.Reason
	}
	want := map[string]string{"ann@example.com": "unsubscribe", "ben@example.com": "block"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
}

// checkSettings holds settings to those recorded; lacks is the number of those that are not shown.
func checkSettings(t *testing.T, p Part[api.Settings], lacks int) {
	t.Helper()
	address, on, attempts, keep := "https://app.example.com/hook", true, 5, 7
	want := api.Settings{Webhooks: &address, WebhooksEnabled: &on, DeliveryAttempts: &attempts, QueueKeep: &keep,
		WebhookEvents: &[]string{"messageSent", "messageFailed", "messageNew"}}
	if lacks == 0 {
		want.WebhooksCustomHeaders = &[]api.CustomHeader{{Key: "Authorization", Value: "Bearer abc"}}
	}
	if diff := cmp.Diff(want, p.Value); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if len(p.Lacks) != lacks {
		t.Errorf("the settings lack %q", p.Lacks)
	}
}

// mails returns all messages by their subjects, and the errors of single ones.
func mails(t *testing.T, s Source) (map[string]Message, []Unfit) {
	t.Helper()
	all, unfit := map[string]Message{}, []Unfit{}
	for m, err := range s.Mail(t.Context()) {
		if u, ok := errors.AsType[*Unfit](err); ok {
			unfit = append(unfit, *u)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(string(m.Submit.Raw), "\r\n\r\n")
		_, id, _ := strings.Cut(head, "Message-ID: <")
		id, _, _ = strings.Cut(id, "@")
		all[id] = m
	}
	return all, unfit
}

func TestQueuedMail(t *testing.T) {
	s, db := recorded(t, "sealed.json", Options{Secret: secret})
	if q, err := s.Queue(t.Context()); err != nil || q != (Queue{Paused: true, Queued: 6}) {
		t.Errorf("the queue is %+v, %v", q, err)
	}
	got, unfit := mails(t, s)
	if len(got) != 6 || len(unfit) > 0 {
		t.Fatalf("%d messages, and %v", len(got), unfit)
	}
	at := time.Date(2032, 6, 1, 8, 0, 0, 0, time.UTC)
	for id, want := range map[string]api.SubmitRequest{
		"now": {Account: "shop", DeliveryAttempts: 2, Envelope: &api.Envelope{From: "shop@example.com",
			To: []string{"now@example.com", "hidden@example.com"}}}, // three of five attempts were made
		"second": {Account: "shop", DeliveryAttempts: 5, Envelope: &api.Envelope{From: "shop@example.com",
			To: []string{"second@example.com", "hidden@example.com"}}},
		"later": {Account: "shop", DeliveryAttempts: 3, SendAt: &at, Envelope: &api.Envelope{
			From: "shop@example.com", To: []string{"later@example.com"}}},
		"gw": {Account: "shop", DeliveryAttempts: 5, SendAt: &at, Gateway: "backup", DSN: &api.DSN{ID: "d1",
			Return: "headers", Notify: []string{"failure"}, Recipient: "shop@example.com"},
			Envelope: &api.Envelope{From: "shop@example.com", To: []string{"gw@example.com"}}},
		"office": {Account: "mailbox", DeliveryAttempts: 5, SendAt: &at, Envelope: &api.Envelope{
			From: "bounce@example.com", To: []string{"one@example.com", "two@example.com"}}},
	} {
		m := got[id]
		if m.Submit.IdempotencyKey != "emailengine:"+m.ID || len(m.ID) != 19 {
			t.Errorf("%s: id %q, key %q", id, m.ID, m.Submit.IdempotencyKey)
		}
		want.IdempotencyKey, want.Raw, want.TrackOpens, want.TrackClicks = m.Submit.IdempotencyKey, m.Submit.Raw,
			&unverified, &unverified
		if diff := cmp.Diff(want, m.Submit); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}

	// Resumed, and one of them is under way.
	db.HDel(t.Context(), "bull:submit:meta", "paused")
	db.LMove(t.Context(), "bull:submit:wait", "bull:submit:active", "LEFT", "LEFT")
	if q, err := s.Queue(t.Context()); err != nil || q != (Queue{Queued: 6}) {
		t.Errorf("resumed, the queue is %+v, %v", q, err)
	}
	got, unfit = mails(t, s)
	if len(got) != 5 || len(unfit) != 1 || !strings.Contains(unfit[0].Why, "is sending") {
		t.Errorf("%d messages, and %v", len(got), unfit)
	}
	// BullMQ before version 6 renames the list of a paused queue.
	db.Rename(t.Context(), "bull:submit:wait", "bull:submit:paused")
	if got, _ = mails(t, s); len(got) != 5 {
		t.Errorf("with an old BullMQ, %d messages", len(got))
	}
}

// recordedAPI answers as the recorded EmailEngine did; settings one by one.
func recordedAPI(t *testing.T) *httptest.Server {
	t.Helper()
	text, err := os.ReadFile("testdata/api.json")
	if err != nil {
		t.Fatal(err)
	}
	var answers map[string]json.RawMessage
	if err := json.Unmarshal(text, &answers); err != nil {
		t.Fatal(err)
	}
	byQuery := map[string]json.RawMessage{}
	settings := map[string]json.RawMessage{}
	for at, answer := range answers {
		u, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		if u.Path == "/v1/settings" {
			_ = json.Unmarshal(answer, &settings)
		}
		byQuery[u.Path+"?"+u.Query().Encode()] = answer
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := byQuery[r.URL.Path+"?"+r.URL.Query().Encode()]
		if r.URL.Path == "/v1/settings" {
			for name := range r.URL.Query() {
				var value json.RawMessage
				value, known = settings[name]
				answer, _ = json.Marshal(map[string]json.RawMessage{name: value})
			}
		}
		switch {
		case r.Header.Get("Authorization") != "Bearer ee-token":
			w.WriteHeader(http.StatusUnauthorized)
			answer = json.RawMessage(`{"statusCode":401,"message":"Bad token"}`)
		case !known:
			w.WriteHeader(http.StatusBadRequest)
			answer = json.RawMessage(`{"statusCode":400,"message":"Invalid input"}`)
		}
		_, _ = w.Write(answer)
	}))
	t.Cleanup(server.Close)
	return server
}

// TestAPI reads the same data over the API: without what it masks, which is named.
func TestAPI(t *testing.T) {
	s := open(t, Options{From: recordedAPI(t).URL + "/", Token: "ee-token"})
	f := read(t, s)
	want := wantAccounts()
	for i := range want {
		a := &want[i]
		if auth := a.Value.SMTP.Auth; auth != nil {
			a.Value.SMTP.Auth = nil
			a.Lacks = append([]string{"its password, which EmailEngine's API does not show: postroom account update " +
				a.Value.Account + " --user " + auth.User + " --pass -"}, a.Lacks...)
		}
		if a.Value.Proxy != "" {
			a.Value.Proxy = ""
			a.Lacks = append(a.Lacks, "proxy: EmailEngine's API does not show the password in it; set it yourself")
		}
	}
	if diff := cmp.Diff(want, f.Accounts); diff != "" {
		t.Errorf("accounts (-want +got):\n%s", diff)
	}
	ses := Part[api.Gateway]{Value: api.Gateway{Gateway: "ses", Name: "Amazon",
		Host: "email-smtp.eu-west-1.amazonaws.com", Port: 587}, Lacks: []string{
		"its password, which EmailEngine's API does not show: postroom gateway update ses --user AKIA --pass -"}}
	if len(f.Gateways) != 3 {
		t.Fatalf("gateways: %+v", f.Gateways)
	}
	if diff := cmp.Diff(ses, f.Gateways[1]); diff != "" {
		t.Errorf("gateway (-want +got):\n%s", diff)
	}
	checkUnfit(t, f.Unfit, wantUnfit)
	checkTemplates(t, f.Templates)
	checkLists(t, s, f.Lists)
	checkSettings(t, f.Settings, 1)
	if q, err := s.Queue(t.Context()); err != nil || q != (Queue{Paused: true, Queued: 6}) {
		t.Errorf("the queue is %+v, %v", q, err)
	}
	if got, unfit := mails(t, s); len(got) > 0 || len(unfit) != 1 || unfit[0].ID != "all 6" {
		t.Errorf("%d messages, and %v", len(got), unfit)
	}
}

func TestAPIFaults(t *testing.T) {
	server := recordedAPI(t)
	for _, tc := range []struct{ name, from, token, want string }{
		{"no token", server.URL, "", "it answers 401: Bad token; give an access token"},
		{"no EmailEngine", "http://127.0.0.1:1", "ee-token", "connection refused"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := open(t, Options{From: tc.from, Token: tc.token}).Read(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
	for _, from := range []string{"", "ftp://example.com", "http://", "redis://:p\x7fw", "redis://localhost/x"} {
		if _, err := Open(Options{From: from}); err == nil || strings.Contains(err.Error(), "p\x7fw") {
			t.Errorf("%q: error %v", from, err)
		}
	}
}

// TestAPIPages: a list of several pages is read to its end, in order.
func TestAPIPages(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := r.URL.Query().Get("page")
		_, _ = w.Write([]byte(`{"pages":3,"addresses":[{"recipient":"a` + page + `@example.com"},{"recipient":"b` +
			page + `@example.com"}]}`))
	}))
	t.Cleanup(server.Close)
	var got []string
	for b, err := range open(t, Options{From: server.URL}).Blocked(t.Context(), "news") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, b.Recipient[:2])
	}
	if want := "a0 b0 a1 b1 a2 b2"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
