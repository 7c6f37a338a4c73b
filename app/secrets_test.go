package app_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestNoSecretIsReadableAnywhere gives Postroom one of every kind of secret and has it use them. Then it
// searches for them in Redis, in the log at its most verbose, in the metrics, in every page, and in every API
// answer.
func TestNoSecretIsReadableAnywhere(t *testing.T) {
	t.Parallel()
	p := &planted{t: t, secrets: map[string]string{}}
	relay := testsmtp.Start(t, testsmtp.Options{Username: "shop", Password: "none of the accounts has this one",
		Token: "nor this one"})
	server := testredis.Server(t, "--rdbcompression", "no") // otherwise DUMP compresses text, which hides it
	log, hooks := &apptest.Log{}, apptest.Receive(t)
	a := apptest.RunLogging(t, map[string]string{
		"redis.url": server.URL(), "webhooks.allowPrivate": "true", "log.level": "debug", "delivery.attempts": "1",
		"secret": p.secret("secret"), "secretPrevious": p.secret("secretPrevious"),
		"webhooks.signingSecret": p.secret("signing secret"), "token": p.secret("admin token"),
		"smtp": "smtp://shop:" + p.secret("configured password") + "@" + relay.Addr() + "?starttls=off",
		"from": "shop@example.com",
	}, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	client := api.NewClient(a.URL(), a.Token(), nil)
	p.plantWebhooks(client, hooks.URL)
	accounts := p.plantAccounts(client, relay)
	accounts = append(accounts, p.plantGateways(client, relay))
	tokens := p.plantOAuth(client, relay)
	token, err := api.CreateToken.Do(t.Context(), client, api.TokenRequest{Description: "of a program"})
	if err != nil {
		t.Fatal(err)
	}
	p.note("token of a program", token.Token)

	accounts = append(accounts, "default", "oauth")
	var ids []string
	for _, account := range accounts {
		answer, err := api.Submit.Do(t.Context(), client, api.SubmitRequest{Account: account, To: api.Addresses{
			{Address: "ann@example.net"}}, Text: "Hello"})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, answer.QueueID)
	}
	apptest.Eventually(t, "every message failed at its relay's login", func() bool {
		letters, err := api.ListDeadLetters.Do(t.Context(), client, api.DeadLetterQuery{})
		return err == nil && letters.Total == len(ids)
	})
	if tokens() == 0 {
		t.Error("no access token was asked for")
	}
	// A second attempt of each uses what was stored in the first.
	for _, id := range ids {
		if _, err := api.ReplayDeadLetter.Do(t.Context(), client, api.Corrections{}, id); err != nil {
			t.Fatal(err)
		}
	}
	apptest.Eventually(t, "every message failed again", func() bool {
		letters, err := api.ListDeadLetters.Do(t.Context(), client, api.DeadLetterQuery{})
		return err == nil && letters.Total == len(ids)
	})

	places := p.everyAnswer(a.URL(), a.Token())
	places["Redis"], places["the log"] = dump(t, server.URL()), log.String()
	p.search(places)
	for place, sign := range map[string]string{"Redis": "oauth@example.com", "the log": "message_id",
		"GET /accounts": "oauth@example.com", "GET /metrics": "postroom_",
		"GET /v1/account/oauth": "oauth@example.com", "GET /v1/gateways": "spare",
		"GET /v1/dkim": "gated.example"} {
		if !strings.Contains(places[place], sign) {
			t.Errorf("%s does not even hold %q: the search would find nothing", place, sign)
		}
	}
}

// planted records the secrets that were given to Postroom.
type planted struct {
	t       *testing.T
	mu      sync.Mutex
	secrets map[string]string
}

// secret returns a unique secret that every kind of quoting leaves unchanged.
func (p *planted) secret(name string) string { return p.note(name, "Planted"+rand.Text()+rand.Text()) }

func (p *planted) note(name, secret string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.secrets[name] = secret
	return secret
}

// key returns a DKIM private key.
func (p *planted) key(name string) string {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		p.t.Fatal(err)
	}
	p.note(name, string(key.Seed()))
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// plantWebhooks creates an endpoint and the instance's own target. The API shows the headers of the latter
// only to those who may change settings, as this test may. So the search for these excludes that answer.
func (p *planted) plantWebhooks(client *api.Client, hooks string) {
	p.t.Helper()
	e, err := api.CreateEndpoint.Do(p.t.Context(), client, api.EndpointRequest{
		URL: hooks, Headers: map[string]string{"X-Key": p.secret("header of an endpoint")}})
	if err != nil {
		p.t.Fatal(err)
	}
	p.note("secret of an endpoint", strings.TrimPrefix(e.Secret, "whsec_"))
	if _, err := api.UpdateSettings.Do(p.t.Context(), client, api.Settings{
		Webhooks: &hooks, WebhooksCustomHeaders: &[]api.CustomHeader{
			{Key: "X-Key", Value: p.secret(settingsHeader)}},
	}); err != nil {
		p.t.Fatal(err)
	}
}

const settingsHeader = "header in the settings"

// plantAccounts creates accounts whose logins the relay refuses.
func (p *planted) plantAccounts(client *api.Client, relay *testsmtp.Server) []string {
	p.t.Helper()
	for id, auth := range map[string]*api.SMTPAuth{
		"password": {User: "shop", Pass: p.secret("password")},
		"token":    {User: "shop", AccessToken: p.secret("access token")},
	} {
		p.create(client, api.Account{
			Account: id, Email: id + "@example.com", SMTP: plain(relay, auth),
			DKIM: &api.DKIM{Domain: "example.com", Selector: "s", PrivateKey: p.key("DKIM key of account " + id)},
		})
	}
	p.create(client, api.Account{
		Account: "proxy", Email: "proxy@example.com", SMTP: plain(relay, nil), Proxy: "http://user:" +
			p.secret("password of a proxy") + "@127.0.0.1:1",
	})
	return []string{"password", "token", "proxy"}
}

// plantGateways creates an account with gateways, all of which refuse its login, and a key for its sender
// domain.
func (p *planted) plantGateways(client *api.Client, relay *testsmtp.Server) string {
	p.t.Helper()
	for _, g := range []api.Gateway{
		{Gateway: "main", User: "shop", Pass: p.secret("password of a gateway")},
		{Gateway: "spare", Proxy: "socks5://user:" + p.secret("password of a gateway's proxy") + "@127.0.0.1:1",
			OAuth2: &api.OAuth2{
				TokenURL: "http://127.0.0.1:1/token", ClientID: "client",
				ClientSecret: p.secret("client secret of a gateway"),
				RefreshToken: p.secret("refresh token of a gateway"), User: "shop",
			}},
	} {
		g.Name, g.Host, g.Port, g.TLS = g.Gateway, relay.Host(), relay.Port(), &api.SMTPTLS{StartTLS: "off"}
		if _, err := api.CreateGateway.Do(p.t.Context(), client, g); err != nil {
			p.t.Fatal(err)
		}
	}
	if _, err := api.PutDomainKey.Do(p.t.Context(), client, api.NewDomainKey{DKIM: api.DKIM{
		Domain: "gated.example", Selector: "s", PrivateKey: p.key("DKIM key of a domain")}},
		"gated.example"); err != nil {
		p.t.Fatal(err)
	}
	p.create(client, api.Account{Account: "gated", Email: "shop@gated.example", Gateways: []api.Route{
		{Gateway: "main"}, {Gateway: "spare"}}})
	return "gated"
}

// plantOAuth creates an account that gets its access tokens from a server, which rotates refresh tokens.
// given returns the number of tokens issued.
func (p *planted) plantOAuth(client *api.Client, relay *testsmtp.Server) (given func() int) {
	p.t.Helper()
	var mu sync.Mutex
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		n++
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"access_token":  p.secret(fmt.Sprint("access token ", n)),
			"refresh_token": p.secret(fmt.Sprint("rotated refresh token ", n)), "expires_in": 3600,
		})
	}))
	p.t.Cleanup(server.Close)
	p.create(client, api.Account{
		Account: "oauth", Email: "oauth@example.com", SMTP: plain(relay, nil), OAuth2: &api.OAuth2{
			TokenURL: server.URL, ClientID: "client", ClientSecret: p.secret("client secret"),
			RefreshToken: p.secret("refresh token"), User: "shop",
		},
	})
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

func (p *planted) create(client *api.Client, account api.Account) {
	p.t.Helper()
	if _, err := api.CreateAccount.Do(p.t.Context(), client, account); err != nil {
		p.t.Fatalf("account %s: %v", account.Account, err)
	}
}

// plain returns the relay without TLS. On the loopback interface a login is allowed without TLS.
func plain(relay *testsmtp.Server, auth *api.SMTPAuth) *api.SMTPServer {
	return &api.SMTPServer{Host: relay.Host(), Port: relay.Port(), Auth: auth, TLS: &api.SMTPTLS{
		StartTLS: "off"}}
}

// search searches for every secret in every place.
func (p *planted) search(places map[string]string) {
	p.t.Helper()
	for name, secret := range p.secrets {
		for _, form := range forms(secret) {
			for place, text := range places {
				if name == settingsHeader && strings.HasPrefix(place, "GET /v1/settings") {
					continue
				}
				if at := strings.Index(text, form); at >= 0 {
					p.t.Errorf("%s holds the %s as %q: …%q…", place, name, form,
						text[max(0, at-100):min(len(text), at+len(form)+20)])
				}
			}
		}
	}
}

// forms returns the ways in which a secret may be encoded: plain, hex, URL, and base64 at any offset of the
// encoded text, such as "\x00user\x00password".
func forms(secret string) []string {
	all := []string{secret, hex.EncodeToString([]byte(secret)), url.QueryEscape(secret)}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			text := encoding.EncodeToString(append(make([]byte, before), secret...))
			from, to := (before*8+5)/6, (before+len(secret))*8/6 // characters that depend on the secret alone
			all = append(all, text[from:to])
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestFormsAreFound: a secret inside encoded text is found.
func TestFormsAreFound(t *testing.T) {
	t.Parallel()
	for _, user := range []string{"", "u", "us", "use"} {
		text := base64.StdEncoding.EncodeToString([]byte("\x00" + user + "\x00hunter2?>\x00more"))
		if !slices.ContainsFunc(forms("hunter2?>"), func(form string) bool {
			return strings.Contains(text, form)
		}) {
			t.Errorf("not found in %s", text)
		}
	}
}

// dump returns everything in Redis, as it would be written to disk.
func dump(t *testing.T, url string) string {
	t.Helper()
	rdb := apptest.Connect(t, url).Client()
	var all bytes.Buffer
	keys := rdb.Scan(t.Context(), 0, "*", 1000).Iterator()
	for keys.Next(t.Context()) {
		value, err := rdb.Dump(t.Context(), keys.Val()).Bytes()
		if err != nil {
			continue // it was deleted in the meantime
		}
		all.WriteString(keys.Val() + "\n")
		all.Write(append(value, '\n'))
	}
	if err := keys.Err(); err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// everyAnswer gets every resource: all paths in the API's description, and all that pages link to.
func (p *planted) everyAnswer(base, token string) map[string]string {
	t := p.t
	t.Helper()
	answers := map[string]string{}
	client := p.login(base, token)
	get := func(path string) string {
		name := "GET " + path
		if answer, known := answers[name]; known {
			return answer
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(path, "/v1/") || path == "/metrics" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		req.Header.Set("Accept", "text/html, */*")
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		answers[name] = fmt.Sprint(res.Header, string(body))
		return string(body)
	}
	for _, path := range describedPaths(t, get("/openapi.json")) {
		fill(path, get)
	}
	for _, path := range []string{"/metrics", "/admin/queues/api/queues", "/admin/queues/api/redis_info",
		"/admin/queues/api/servers", "/admin/queues/api/queues/submit/archived_tasks"} {
		get(path)
	}
	link := regexp.MustCompile(`(?:href|src)="(/[^"#]*)`)
	queue := []string{"/"}
	for i := 0; i < len(queue); i++ {
		for _, found := range link.FindAllStringSubmatch(get(queue[i]), -1) {
			path := html.UnescapeString(found[1])
			if !slices.Contains(queue, path) && !strings.HasPrefix(path, "/static/") && len(queue) < 300 {
				queue = append(queue, path)
			}
		}
	}
	return answers
}

// login returns a client with a browser's session.
func (p *planted) login(base, token string) *http.Client {
	p.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Timeout: time.Minute}
	res, err := client.PostForm(base+"/login", url.Values{"token": {token}})
	if err != nil {
		p.t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil {
		p.t.Fatal(err)
	}
	for _, cookie := range jar.Cookies(res.Request.URL) {
		p.note("session", cookie.Value)
	}
	return client
}

// describedPaths returns the paths with GET in the API's description.
func describedPaths(t *testing.T, description string) []string {
	t.Helper()
	var d struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal([]byte(description), &d); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for path, methods := range d.Paths {
		if methods["get"] != nil {
			paths = append(paths, path)
		}
	}
	if len(paths) < 15 {
		t.Fatalf("the description lists %d paths", len(paths))
	}
	slices.Sort(paths) // lists before their items
	return paths
}

// fill gets a path. Its ids are those that the path above it lists.
func fill(path string, get func(string) string) {
	before, rest, open := strings.Cut(path, "{")
	if !open {
		get(path)
		return
	}
	_, after, _ := strings.Cut(rest, "}")
	list := strings.TrimSuffix(before, "/")
	if list == "/v1/account" || list == "/v1/gateway" || list == "/v1/token" {
		list += "s"
	}
	for _, id := range idsIn(get(list)) {
		fill(before+url.PathEscape(id)+after, get)
	}
}

// idsIn returns all strings of an answer at the positions of ids.
func idsIn(answer string) []string {
	var ids []string
	for _, found := range regexp.MustCompile(
		`"(?:id|queueId|account|gateway|domain|name)": ?"([^"]+)"`).FindAllStringSubmatch(answer, -1) {
		if !slices.Contains(ids, found[1]) {
			ids = append(ids, found[1])
		}
	}
	return ids
}
