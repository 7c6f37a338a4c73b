package ui

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/digest"
	"github.com/postroom/postroom/internal/audit"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/newsletter"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/newsletter/sendlog"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/search"
	"github.com/postroom/postroom/outbox/suppression"
	mailtemplates "github.com/postroom/postroom/outbox/templates"
	"github.com/postroom/postroom/outbox/templates/render"
	"github.com/postroom/postroom/server"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/alerts"
	"github.com/postroom/postroom/server/erasure"
	"github.com/postroom/postroom/server/peers"
	"github.com/postroom/postroom/server/people"
	"github.com/postroom/postroom/server/provision"
	"github.com/postroom/postroom/server/settings"
	"github.com/postroom/postroom/server/why"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/apiadmin"
	"github.com/postroom/postroom/smtpsend/apisend"
	"github.com/postroom/postroom/webhooks"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

// adminToken may do everything.
const adminToken = "an admin token that is long enough to be one"

// world is the pages on a real server, above real stores on a Redis of their own. Only the relay is made up.
type world struct {
	*httptest.Server
	t         *testing.T
	db        *redisdb.DB
	outbox    *outbox.Outbox
	access    *access.Access
	people    *people.People
	audit     *audit.Log
	settings  *settings.Settings
	accounts  *accounts.Accounts
	webhooks  *webhooks.Webhooks
	relay     *relay
	gateways  *gateways.Store
	stored    *mailtemplates.Templates
	index     *index
	barred    *suppression.Store
	audience  *audience.Subscribers
	campaigns *newsletter.Campaigns
	digests   *digest.Digests
	refusal   error // of mail of digests; nil: the outbox takes it
	erasures  *erasure.Erasures
	why       *why.Why
	alerts    []api.Alert
	overview  *alerts.Overview
	ui        *UI
	asked     []string         // for senders: account and address
	login     api.VerifyResult // of each relay that is tried
	tried     []api.VerifyRequest
	dns       *provision.DNS
	zone      zone
}

func setup(t *testing.T) *world { return setupOn(t, testredis.New(t)) }

func setupOn(t *testing.T, db *redisdb.DB) *world {
	t.Helper()
	w := &world{t: t, db: db, index: &index{}, relay: &relay{replies: map[string]string{}}}
	c := db.Client()
	tasks, control := queue.NewClient(c, queue.Options{}), queue.NewControl(c)
	ring, err := seal.New([]byte("0123456789abcdef0123456789abcdef"))
	w.must(err)
	public := func() string { return "https://mail.example.com" }
	w.gateways, err = gateways.New(db, ring, gateways.Options{ServiceURL: public})
	w.must(err)
	w.accounts, err = accounts.New(db, ring, w.gateways, accounts.Options{Default: &api.Account{
		Email: "shop@example.com", Name: "Shop", SMTP: &api.SMTPServer{Host: "relay.test", Port: 25},
	}})
	w.must(err)
	w.people, err = people.New(db, ring, people.Options{PasswordMemory: 64})
	w.must(err)
	w.access, err = access.New(db, ring, access.Options{Token: adminToken, People: w.people})
	w.must(err)
	signed, err := signedtoken.New([]signedtoken.Key{signedtoken.KeyOf([]byte(
		"0123456789abcdef0123456789abcdef"))})
	w.must(err)
	w.stored, err = mailtemplates.New(db, shop{}, mailtemplates.Options{})
	w.must(err)
	w.outbox, err = outbox.New(outbox.Parts{DB: db, Queue: tasks, Control: control, Router: w.relay,
		Accounts: w.accounts, Gateways: w.gateways, Tokens: signed,
		Templates: w.stored}, outbox.Options{ServiceURL: public})
	w.must(err)
	found, err := search.New(search.Parts{DB: db, Queues: control, Outbox: w.outbox.Reader, Store: w.index},
		search.Options{Kind: "opensearch"})
	w.must(err)
	w.webhooks, err = webhooks.New(db, tasks, control, ring, webhooks.Options{Implicit: settingsEndpoint,
		AllowPrivate: true, Secret: "0123456789abcdef0123456789abcdef",
		Match: func(ctx context.Context, q string, ids []string) (map[string]bool, error) {
			return w.ui.Documents.Match(ctx, q, ids)
		}})
	w.must(err)
	w.barred, err = suppression.New(db, suppression.Options{Ring: ring})
	w.must(err)
	w.erasures, err = erasure.New(erasure.Parts{DB: db, Ring: ring, Digest: w.barred.Digest,
		Remaining: func(string) []string { return []string{"Backups."} },
		Account:   func(context.Context, string) error { return nil }}, erasure.Options{})
	w.must(err)
	w.why, err = why.New(why.Parts{Log: w.outbox.Reader, QueueStatus: w.outbox.Queues.QueueStatus,
		Account: w.accounts.Get, Sources: []why.Source{
			{Name: "suppressions", Read: func(ctx context.Context, of outbox.Whom, into *why.Known) error {
				found, err := w.barred.Lookup(ctx, of.Account, of.Address())
				into.Suppressions = found.Suppressions
				return err
			}}}}, why.Options{})
	w.must(err)
	w.overview, err = alerts.NewOverview(alerts.OverviewParts{Rates: w.outbox.Counts.Rates,
		Messages: w.outbox.Reader.Messages,
		List:     w.outbox.Reader.List, QueueStatus: w.outbox.Queues.QueueStatus, Account: w.accounts.Get,
		Troubled: w.accounts.Troubled, Gateways: w.gateways.List, Endpoints: w.webhooks.Endpoints,
		Endpoint: w.webhooks.Endpoint, EndpointStats: w.webhooks.Stats,
		Alerts: func(context.Context) ([]api.Alert, error) { return w.alerts, nil }}, alerts.OverviewOptions{})
	w.must(err)
	w.audience, err = audience.New(audience.Parts{DB: db, Suppressions: w.barred,
		Account:   func(ctx context.Context, id string) error { _, err := w.accounts.Get(ctx, id); return err },
		Campaigns: func() audience.Campaigns { return w.campaigns }}, audience.Options{})
	w.must(err)
	w.audit, err = audit.New(db, ring, audit.Options{})
	w.must(err)
	board, err := queue.NewDashboard(c, queue.DashboardOptions{Path: DashboardPath,
		SetPaused: w.outbox.Queues.SetPaused})
	w.must(err)
	viewer, err := queue.NewDashboard(c, queue.DashboardOptions{Path: DashboardPath, ReadOnly: true})
	w.must(err)
	w.settings, err = settings.New(db, ring, settings.Options{DeliveryAttempts: 7})
	w.must(err)
	limiter, err := limits.New(db, limits.Options{})
	w.must(err)
	w.campaigns, err = newsletter.New(newsletter.Parts{DB: db,
		Audience: w.audience,
		Log:      sendlog.New(db, 0, w.barred.VersionKey()),
		Outbox:   w.outbox, Limits: limiter, Suppressions: w.barred,
		Relays: func(_ context.Context, a accounts.Sender, _ string, _ api.Lane) ([]gateways.Relay, error) {
			return a.Relays, nil
		},
		Resting: func(context.Context) (bool, error) { return false, nil }},
		newsletter.Options{Workers: 1, ServiceURL: public})
	w.must(err)
	w.digests, err = digest.New(digest.Parts{DB: db, Suppressions: w.barred,
		Submit: func(ctx context.Context, req api.SubmitRequest) (api.SubmitAnswer, error) {
			if w.refusal != nil {
				return api.SubmitAnswer{}, w.refusal
			}
			return w.outbox.Intake.Submit(ctx, req)
		},
		Accepted: w.outbox.Reader.Accepted, BlockKey: w.outbox.Intake.BlockKey,
		DeleteDeadLetter: w.outbox.Operations.DeleteDeadLetter, Get: w.outbox.Reader.Get,
		Mailing:     w.outbox.Mailings.Mailing,
		Account:     func(ctx context.Context, id string) error { _, err := w.accounts.Get(ctx, id); return err },
		HasTemplate: func(context.Context, string, string) (bool, error) { return false, nil },
		Resting:     func(context.Context) (bool, error) { return false, nil }},
		digest.Options{Workers: 1, Hour: 8, Attempts: 1, Drop: true, ServiceURL: public})
	w.must(err)
	keys, err := dkim.NewKeys(db, ring, dkim.Options{})
	w.must(err)
	w.dns = &provision.DNS{Resolver: &w.zone, Keys: keys, ServiceURL: public}
	tokens, err := oauth.New(db, ring, oauth.Options{})
	w.must(err)
	apis, err := apisend.New(apisend.Options{})
	w.must(err)
	u, err := New(Parts{
		Parts: server.Parts{
			Provider: suppression.NewProviders(w.barred, suppression.ProvidersOptions{
				Gateway: func(ctx context.Context, id string) (api.GatewayType, apisend.Target, error) {
					relay, err := w.gateways.Resolve(ctx, id)
					return relay.Type, relay.API, err
				}}),
			Admin:  apiadmin.New(apis),
			Outbox: w.outbox, Webhooks: w.webhooks, Suppressions: w.barred, Audience: w.audience, Accounts: w.accounts,
			Campaigns: w.campaigns, Digests: w.digests, Erasures: w.erasures, Why: w.why, Overview: w.overview,
			Gateways: w.gateways, Templates: w.stored, Documents: found, Access: w.access, State: instance{db},
			Settings: w.settings, Audit: w.audit, People: w.people, OAuth: tokens, DNS: w.dns, Login: w.tryLogin,
			OptIn: &audience.Confirmations{ConfirmationParts: audience.ConfirmationParts{Subscribers: w.audience,
				ServiceURL: public}}},
		Dashboard: board, Viewer: viewer,
		AskAgain: func(_ context.Context, _ string, of api.SubscriberAccount, id, list string) (
			api.ConfirmationSent, error) {
			w.asked = append(w.asked, of.Account+" "+id+" "+list)
			return api.ConfirmationSent{Sent: list != "confirmed"}, nil
		},
		AskSender: func(_ context.Context, account, address string) (api.SenderInfo, error) {
			w.asked = append(w.asked, account+" "+address)
			return api.SenderInfo{Sender: address, Mail: &api.SenderMail{}}, nil
		},
		OpenAPI: func() ([]byte, error) { return []byte(`{"openapi":"3.1.0"}`), nil },
		Look:    func(context.Context, api.AuditObject) (any, error) { return nil, nil },
	}, Options{Version: "1.2.3"})
	w.must(err)
	w.ui = u
	e := echo.New()
	e.GET("/v1/outbox", func(c echo.Context) error { return c.String(http.StatusOK, "the API") })
	u.Mount(e)
	w.Server = httptest.NewServer(e)
	t.Cleanup(w.Close)
	return w
}

// behind is the same pages on a server that trusts proxies.
func (w *world) behind(trusted []netip.Prefix) *world {
	w.t.Helper()
	other := *w
	other.Server = httptest.NewServer(peers.New(trusted, nil).Handler(w.Config.Handler))
	w.t.Cleanup(other.Close)
	return &other
}

// deliveries has an endpoint be told of so many messages.
func (w *world) deliveries(endpoint string, n int) {
	w.t.Helper()
	pipe := w.db.Client().Pipeline()
	for i := range n {
		e, err := event.New(fmt.Sprint("E", i), event.MessageQueued, "shop", time.Now(),
			event.Message{QueueID: fmt.Sprint("Q", i)})
		w.must(err)
		line, err := e.Line()
		w.must(err)
		pipe.XAdd(w.t.Context(), &redis.XAddArgs{Stream: redisdb.Key(0, "events"), Values: []any{"e", line}})
	}
	_, err := pipe.Exec(w.t.Context())
	w.must(err)
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- w.webhooks.Run(ctx) }()
	for made := 0; made < n; time.Sleep(5 * time.Millisecond) {
		page, err := w.webhooks.Deliveries(ctx, endpoint, 0, 1)
		w.must(err)
		made = page.Total
	}
	cancel()
	w.must(<-done)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// submit hands a message in.
func (w *world) submit(req api.SubmitRequest) string {
	w.t.Helper()
	if req.To == nil {
		req.To = api.Addresses{{Address: "ada@example.net"}}
	}
	answer, err := w.outbox.Intake.Submit(w.t.Context(), req)
	w.must(err)
	w.tick() // the next one is younger
	return answer.QueueID
}

// tick waits until the clock of lists, which counts milliseconds, has moved on.
func (w *world) tick() {
	for now := w.outbox.Queues.Now().UnixMilli(); w.outbox.Queues.Now().UnixMilli() <= now; {
		runtime.Gosched()
	}
}

// later submits a message that is due tomorrow.
func (w *world) later(req api.SubmitRequest) string {
	at := time.Now().Add(24 * time.Hour)
	req.SendAt = &at
	return w.submit(req)
}

// deliver makes one attempt of a message.
func (w *world) deliver(id string) {
	w.outbox.Delivery.Deliver(w.t.Context(), queue.Task{Queue: queue.Submit, Type: outbox.TaskDeliver,
		ID: id + ".0"})
}

// state is a message's state; empty: it is gone.
func (w *world) state(id string) api.State {
	w.t.Helper()
	page, err := w.outbox.Reader.List(w.t.Context(), api.OutboxQuery{PageSize: 1000})
	w.must(err)
	for _, m := range page.Messages {
		if m.QueueID == id {
			return m.State
		}
	}
	return ""
}

// browser is somebody at the pages. It follows no redirect by itself.
type browser struct {
	*world
	client *http.Client
	header http.Header
}

// browser opens one that is logged in to nothing.
func (w *world) browser() *browser {
	jar, err := cookiejar.New(nil)
	w.must(err)
	transport := &http.Transport{}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &browser{w, &http.Client{
		Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}, http.Header{}}
}

// operator is a browser that is logged in.
func (w *world) operator() *browser {
	w.t.Helper()
	b := w.browser()
	if p := b.post("/login", url.Values{"token": {adminToken}}); p.status != http.StatusSeeOther {
		w.t.Fatalf("login answered %d: %s", p.status, p.body)
	}
	return b
}

// program is somebody with a bearer token and no cookies.
func (w *world) program(token string) *browser {
	b := w.browser()
	b.header.Set("Authorization", "Bearer "+token)
	return b
}

// page is an answer.
type page struct {
	status int
	header http.Header
	body   string
}

// text is the page without its markup's escapes.
func (p page) text() string { return html.UnescapeString(p.body) }

// to is where the answer leads.
func (p page) to() string { return p.header.Get("Location") }

func (b *browser) get(path string) page { return b.do(http.MethodGet, path, nil) }

func (b *browser) post(path string, form url.Values) page {
	return b.do(http.MethodPost, path, strings.NewReader(form.Encode()))
}

func (b *browser) do(method, path string, body io.Reader) page {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.URL+path, body)
	b.must(err)
	if body != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, values := range b.header {
		req.Header[name] = values
	}
	res, err := b.client.Do(req)
	b.must(err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	b.must(err)
	return page{res.StatusCode, res.Header, string(raw)}
}

// submitForm posts a form and gives the page it leads to.
func (b *browser) submitForm(path string, form url.Values) page {
	b.t.Helper()
	p := b.post(path, form)
	if p.status != http.StatusSeeOther {
		b.t.Fatalf("POST %s answered %d: %s", path, p.status, p.body)
	}
	return b.get(p.to())
}

// has fails the test unless a page says all of this.
func (p page) has(t *testing.T, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(p.text(), word) {
			t.Errorf("the page (%d) does not say %q:\n%s", p.status, word, p.body)
		}
	}
}

// lacks fails the test if a page says any of this.
func (p page) lacks(t *testing.T, words ...string) {
	t.Helper()
	for _, word := range words {
		if strings.Contains(p.text(), word) {
			t.Errorf("the page (%d) says %q:\n%s", p.status, word, p.body)
		}
	}
}

// relay answers each recipient as told, or with 250.
type relay struct{ replies map[string]string }

// ExpectWaiting implements outbox.Router.
func (*relay) ExpectWaiting(string, int) {}

// Answers implements outbox.Router.
func (*relay) Answers(string) bool { return true }

// Instead implements outbox.Router.
func (*relay) Instead(accounts.Sender, api.Lane, string) string { return "" }

// Slots implements outbox.Router.
func (*relay) Slots(string, api.Lane) int { return 1 }

func (r *relay) Send(ctx context.Context, d routing.Dispatch) routing.Sent {
	now := time.Now()
	result, err := r.transact(ctx, d.Message)
	return routing.Sent{Result: result, Err: err, Tries: []routing.Try{
		{Host: "relay.example:25", Start: now, End: now, Result: result, Err: err}}}
}

func (r *relay) transact(ctx context.Context, m smtpsend.Message) (smtpsend.Result, error) {
	if err := m.BeforeDot(ctx, m.To); err != nil {
		return smtpsend.Result{}, err
	}
	var out smtpsend.Result
	for _, to := range m.To {
		reply := r.replies[to]
		switch {
		case reply == "dies":
			err := &smtpsend.Error{Phase: smtpsend.PhaseDot, Verdict: smtpsend.Soft, InDoubt: true,
				Err: errors.New("EOF")}
			return smtpsend.Result{Recipients: []smtpsend.RecipientResult{{Address: to, Err: err}}}, err
		case reply == "":
			out.Response = "250 2.0.0 OK: queued <as> 42"
			out.Recipients = append(out.Recipients, smtpsend.RecipientResult{Address: to, Response: out.Response})
		default:
			code, _ := strconv.Atoi(reply[:3])
			err := &smtpsend.Error{Phase: smtpsend.PhaseRcpt, Code: code, Line: reply, Verdict: smtpsend.Soft,
				Scope: smtpsend.ScopeRecipient}
			switch {
			case code == 535:
				err.Verdict, err.Scope, err.Phase = smtpsend.Auth, smtpsend.ScopeAccount, smtpsend.PhaseAuth
			case code >= 500:
				err.Verdict = smtpsend.Hard
			}
			out.Recipients = append(out.Recipients, smtpsend.RecipientResult{Address: to, Err: err, Response: reply})
			out.Dialogue = append(out.Dialogue,
				smtpsend.DialogueLine{From: smtpsend.FromNote, Text: "connected"},
				smtpsend.DialogueLine{At: 7 * time.Millisecond, From: smtpsend.FromClient, Text: "RCPT TO:<" + to + ">"},
				smtpsend.DialogueLine{At: 1203 * time.Millisecond, From: smtpsend.FromServer, Text: reply})
		}
	}
	return out, nil
}

// zone is a DNS with these text records by name, and an MX for each name that has one.
type zone map[string][]string

// LookupTXT implements maildns.Resolver.
func (z *zone) LookupTXT(_ context.Context, name string) ([]string, error) { return z.find(name) }

// LookupMX implements maildns.MailResolver.
func (z *zone) LookupMX(_ context.Context, name string) ([]*net.MX, error) {
	if _, err := z.find(name); err != nil {
		return nil, err
	}
	return []*net.MX{{Host: "mx.example.com.", Pref: 10}}, nil
}

// LookupNetIP implements maildns.HostResolver: no host has an address.
func (z *zone) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, noName()
}

// LookupAddr implements maildns.HostResolver: no address has a name.
func (z *zone) LookupAddr(context.Context, string) ([]string, error) { return nil, noName() }

func noName() error { return &net.DNSError{Err: "no such host", IsNotFound: true} }

// LookupNS implements maildns.Resolver.
func (z *zone) LookupNS(context.Context, string) ([]*net.NS, error) {
	if *z == nil {
		return nil, errors.New("no network")
	}
	return nil, nil
}

func (z *zone) find(name string) ([]string, error) {
	all, ok := (*z)[strings.TrimSuffix(name, ".")]
	if !ok {
		return nil, noName()
	}
	return slices.Clone(all), nil
}

// tryLogin stands in for the login to a relay.
func (w *world) tryLogin(_ context.Context, req api.VerifyRequest) (api.VerifyAnswer, error) {
	w.tried = append(w.tried, req)
	return api.VerifyAnswer{SMTP: w.login}, nil
}

// gateway makes a gateway.
func (w *world) gateway(id string) {
	w.t.Helper()
	_, err := w.gateways.Create(w.t.Context(), api.Gateway{Gateway: id, Name: id, Host: "relay.test", Port: 25})
	w.must(err)
}

// shop is who would send what is previewed.
type shop struct{}

func (shop) Sender(context.Context, string) (render.Person, error) {
	return render.Person{Name: "Shop", Address: "shop@example.com"}, nil
}

func (shop) ServiceURL() string { return "" }

// settingsEndpoint is an endpoint of the settings.
func settingsEndpoint(context.Context, string) ([]webhooks.Target, error) {
	return []webhooks.Target{{ID: webhooks.SettingsID, URL: "https://settings.example/hook", Events: []string{
		"*"}}}, nil
}

// instance tells how Redis is, as app does.
type instance struct{ db *redisdb.DB }

func (s instance) Checks(ctx context.Context) []api.Check {
	if _, err := s.db.Ping(ctx); err != nil {
		return []api.Check{{Name: "redis", Message: "Redis does not answer"}}
	}
	return []api.Check{{Name: "redis", OK: true, Message: "answers"}}
}

func (s instance) Durability(ctx context.Context) (api.Durability, error) {
	d, err := s.db.Durability(ctx)
	if err != nil {
		return api.Durability{}, fault.Wrap(err, fault.Unavailable, "", "Redis does not answer")
	}
	return api.Durability{Mode: string(d.Mode), Policy: d.Policy, Fsync: d.Fsync, Summary: d.String(),
		Warnings: []string{
			"a warning of durability"}}, nil
}

func (s instance) Alerts(context.Context) ([]api.Alert, error) {
	return []api.Alert{{Alert: "queueAge", Queue: "submit", Text: "work waits for a <worker>",
		Since: time.Unix(1700000000, 0)}}, nil
}
