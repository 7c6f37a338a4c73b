package server

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/feedback/unsubscribe"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/message/signedtoken"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/redisdb/seal"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/settings"
	"github.com/postroom/postroom/suppression"
	"github.com/postroom/postroom/templates"
)

// parts is everything the server asks, in one.
type parts struct {
	mu       sync.Mutex
	calls    []string            // what was asked, in order
	submits  []api.SubmitRequest // that were no dry runs
	queries  []api.OutboxQuery
	looked   []api.LogQuery
	sought   []api.DocumentQuery
	replays  []api.Corrections // also those of bulk replays
	counted  []api.CounterQuery
	messages map[string]api.OutboxMessage
	grants   map[string]*access.Grant
	paused   map[string]bool
	fail     error // what every part answers from now on
	submit   func(api.SubmitRequest) (api.SubmitAnswer, error)
	checks   []api.Check
	healthy  int // commands that Redis answers before fail holds

	db           *redisdb.DB
	ring         *seal.Ring
	access       *access.Access
	settings     *settings.Settings
	keys         *dkim.Keys
	suppressions *suppression.Store
	templates    *templates.Templates
	gateways     *gateways.Store
	oauth        *oauth.Tokens
	unsubscribe  *unsubscribe.Service
}

func newParts(t testing.TB) *parts {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	p := &parts{
		db: testredis.New(t),
		grants: map[string]*access.Grant{
			adminToken: {TokenID: "a", Scopes: []api.Scope{api.ScopeAdmin}},
			boundToken: {TokenID: "b", Scopes: []api.Scope{api.ScopeAPI}, Account: "acme"},
		},
		messages: map[string]api.OutboxMessage{},
		paused:   map[string]bool{},
		checks:   []api.Check{{Name: "redis", OK: true}},
	}
	p.db.Client().AddHook(failing{p.failure})
	var err error
	p.ring, err = seal.New([]byte("0123456789abcdef0123456789abcdef"))
	must(err)
	p.access, err = access.New(p.db, access.Options{Token: adminToken})
	must(err)
	p.settings, err = settings.New(p.db, p.ring, settings.Options{})
	must(err)
	p.keys, err = dkim.NewKeys(p.db, p.ring, dkim.Options{})
	must(err)
	p.suppressions, err = suppression.New(p.db, suppression.Options{})
	must(err)
	p.templates, err = templates.New(p.db, noSenders{}, templates.Options{})
	must(err)
	p.gateways, err = gateways.New(p.db, p.ring, gateways.Options{})
	must(err)
	p.oauth, err = oauth.New(p.db, p.ring, oauth.Options{})
	must(err)
	signed, err := signedtoken.New([]signedtoken.Key{
		signedtoken.KeyOf([]byte("0123456789abcdef0123456789abcdef"))}, signedtoken.Options{})
	must(err)
	p.unsubscribe, err = unsubscribe.New(unsubscribe.Parts{Tokens: signed, Suppressions: p.suppressions,
		Append: (&recipients{}).Append, Account: (&recipients{}).Get}, unsubscribe.Options{})
	must(err)
	return p
}

func (p *parts) parts() Parts {
	return Parts{
		Intake: p, Outbox: p, Queues: p, Accounts: fakeAccounts{p}, Gateways: p.gateways, OAuth: p.oauth,
		DomainKeys: p.keys, Templates: p.templates,
		Documents: fakeDocuments{p}, Verifier: p, Access: fakeAccess{p}, Tokens: p.access, Settings: p.settings,
		Webhooks:     fakeWebhooks{p},
		Suppressions: p.suppressions, Feedback: &fakeFeedback{parts: p}, Returns: fakeReturns{p},
		Unsubscribe: p.unsubscribe,
		Tracking:    fakeTracking{p}, State: p,
	}
}

// failing makes a Redis fail.
type failing struct{ failure func() error }

// DialHook implements redis.Hook.
func (f failing) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (f failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := f.failure(); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (f failing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if err := f.failure(); err != nil {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
			return err
		}
		return next(ctx, cmds)
	}
}

func (p *parts) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.healthy > 0 {
		p.healthy--
		return nil
	}
	return p.fail
}

func (p *parts) asked(call string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, call)
	return p.fail
}

func (p *parts) failWith(err error) { p.failAfter(0, err) }

// failAfter lets Redis answer some more commands.
func (p *parts) failAfter(commands int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.healthy, p.fail = commands, err
}

// Submit refuses what the real outbox refuses, as far as these tests need.
func (p *parts) Submit(_ context.Context, req api.SubmitRequest) (api.SubmitAnswer, error) {
	if err := p.asked("Submit"); err != nil {
		return api.SubmitAnswer{}, err
	}
	if p.submit != nil {
		return p.submit(req)
	}
	var faults []fault.Field
	if len(req.To)+len(req.CC)+len(req.BCC) == 0 {
		faults = append(faults, fault.Field{Key: "to", Message: "must name at least one recipient"})
	}
	for _, to := range req.To {
		if !strings.Contains(to.Address, "@") {
			faults = append(faults, fault.Field{Key: "to[0].address", Message: "must be a valid email"})
		}
	}
	if err := fault.InvalidFields(faults); err != nil {
		return api.SubmitAnswer{}, err
	}
	if req.DryRun {
		return api.SubmitAnswer{Response: "Dry run", MessageID: "<1@example.com>",
			Preview: []byte("From: a\r\n\r\n")}, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.submits = append(p.submits, req)
	now := time.Date(2026, 11, 21, 6, 47, 35, 596_000_000, time.UTC)
	answer := api.SubmitAnswer{Response: "Queued for delivery", MessageID: "<1@example.com>", SendAt: &now,
		QueueID: "q1"}
	if req.IdempotencyKey != "" {
		answer.Idempotency = &api.IdempotencyStatus{Key: req.IdempotencyKey, Status: "MISS"}
	}
	return answer, nil
}

func (p *parts) List(_ context.Context, q api.OutboxQuery) (api.OutboxPage, error) {
	p.mu.Lock()
	p.queries = append(p.queries, q)
	p.mu.Unlock()
	if err := p.asked("List"); err != nil {
		return api.OutboxPage{}, err
	}
	page := api.OutboxPage{Total: len(p.messages), Page: q.Page, Pages: 1}
	for _, m := range p.messages {
		page.Messages = append(page.Messages, m)
	}
	return page, nil
}

func (p *parts) Get(_ context.Context, id string) (api.OutboxMessage, error) {
	if err := p.asked("Get " + id); err != nil {
		return api.OutboxMessage{}, err
	}
	m, ok := p.messages[id]
	if !ok {
		return m, notFound()
	}
	return m, nil
}

func (p *parts) Content(_ context.Context, id string) ([]byte, error) {
	return []byte("From: a@example.com\r\n\r\nHello\r\n"), p.asked("Content " + id)
}

func (p *parts) AccountOf(_ context.Context, id string) (string, error) {
	return p.messages[id].Account, p.asked("AccountOf " + id)
}

func (p *parts) Cancel(_ context.Context, id, reason string) (api.DeleteAnswer, error) {
	_, ok := p.messages[id]
	return api.DeleteAnswer{Deleted: ok}, p.asked("Cancel " + id + " " + reason)
}

func (p *parts) CancelAll(_ context.Context, q api.OutboxQuery, reason string) (api.BulkDeleteAnswer, error) {
	p.mu.Lock()
	p.queries = append(p.queries, q)
	p.mu.Unlock()
	return api.BulkDeleteAnswer{Deleted: 3}, p.asked("CancelAll " + reason)
}

func (p *parts) DeadLetters(_ context.Context, q api.OutboxQuery) (api.DeadLetterPage, error) {
	p.mu.Lock()
	p.queries = append(p.queries, q)
	p.mu.Unlock()
	return api.DeadLetterPage{}, p.asked("DeadLetters")
}

func (p *parts) DeadLetter(ctx context.Context, id string) (api.DeadLetter, error) {
	m, err := p.Get(ctx, id)
	return api.DeadLetter{OutboxMessage: m, Content: []byte("From: a@example.com\r\n\r\nHello\r\n")}, err
}

func (p *parts) Replay(ctx context.Context, id string, c api.Corrections) (api.OutboxMessage, error) {
	p.mu.Lock()
	p.replays = append(p.replays, c)
	p.mu.Unlock()
	return p.Get(ctx, id)
}

func (p *parts) Messages(_ context.Context, q api.LogQuery) (api.LogPage, error) {
	p.mu.Lock()
	p.looked = append(p.looked, q)
	p.mu.Unlock()
	page := api.LogPage{Total: len(p.messages), Page: q.Page, Pages: 1}
	for _, m := range p.messages {
		page.Messages = append(page.Messages, loggedMessage(m.QueueID, m.Account))
	}
	return page, p.asked("Messages")
}

func (p *parts) Message(ctx context.Context, id string) (api.LoggedMessage, error) {
	m, err := p.Get(ctx, id)
	if err != nil {
		return api.LoggedMessage{}, err
	}
	return loggedMessage(id, m.Account), nil
}

func (p *parts) Rates(_ context.Context, q api.RatesQuery) (api.Rates, error) {
	return api.Rates{Messages: 3, Sent: 2, Opened: len(q.Tag)}, nil
}

func (p *parts) MessageEvents(ctx context.Context, id string) (api.MessageEvents, error) {
	if _, err := p.Get(ctx, id); err != nil {
		return api.MessageEvents{}, err
	}
	return messageEvents(id), nil
}

func (p *parts) ReplayAll(_ context.Context, req api.ReplayRequest) (api.ReplayAnswer, error) {
	if req.Corrections != nil {
		p.mu.Lock()
		p.replays = append(p.replays, *req.Corrections)
		p.mu.Unlock()
	}
	return api.ReplayAnswer{Replayed: 2}, p.asked("ReplayAll " + req.Account)
}

func (p *parts) DeleteDeadLetter(ctx context.Context, id string) (api.DeleteAnswer, error) {
	return p.Cancel(ctx, id, "api")
}

func (p *parts) Retry(ctx context.Context, id string) (api.OutboxMessage, error) {
	return p.Get(ctx, id)
}

func (p *parts) Patch(ctx context.Context, id string, _ api.OutboxPatch) (api.OutboxMessage, error) {
	return p.Get(ctx, id)
}

func (p *parts) QueueStatus(_ context.Context, name string) (api.QueueStatus, error) {
	return api.QueueStatus{Queue: name, Jobs: api.Jobs{Active: 1, Delayed: 1}, Paused: p.paused[name]}, p.asked(
		"QueueStatus " + name)
}

func (p *parts) SetPaused(_ context.Context, name string, paused bool) error {
	p.paused[name] = paused
	return p.asked("SetPaused " + name)
}

func (p *parts) Counters(_ context.Context, q api.CounterQuery) (api.Counters, error) {
	p.mu.Lock()
	p.counted = append(p.counted, q)
	p.mu.Unlock()
	return api.Counters{Pending: 2}, p.asked("Counters")
}

func (p *parts) Verify(context.Context, api.VerifyRequest) (api.VerifyAnswer, error) {
	return api.VerifyAnswer{SMTP: api.VerifyResult{Success: true}}, p.asked("Verify")
}

func (p *parts) Checks(context.Context) []api.Check { return p.checks }

func (p *parts) Durability(context.Context) (api.Durability, error) {
	return api.Durability{Mode: "single", Persistent: true, Fsync: "always", Policy: "noeviction"}, p.asked(
		"Durability")
}

func (p *parts) Alerts(context.Context) ([]api.Alert, error) {
	return []api.Alert{{Alert: "queueAge", Queue: "submit", Text: "work waits", Value: 400, Threshold: 300,
		Since: time.Unix(1700000000, 0).UTC()}}, p.asked("Alerts")
}

type fakeAccounts struct{ *parts }

func (p fakeAccounts) Create(_ context.Context, a api.Account) (api.AccountCreated, error) {
	return api.AccountCreated{Account: a.Account, State: "new"}, p.asked("Accounts.Create")
}

func (p fakeAccounts) Get(_ context.Context, id string) (api.AccountInfo, error) {
	return accountInfo(id), p.asked("Accounts.Get " + id)
}

func accountInfo(id string) api.AccountInfo {
	info := api.AccountInfo{State: "unset", Created: time.Unix(1, 0).UTC(), Updated: time.Unix(2, 0).UTC()}
	info.Account.Account, info.Name, info.Email = id, "Sender One", "sender@example.com"
	info.SMTP = &api.SMTPServer{Host: "127.0.0.1", Port: 2590, Auth: &api.SMTPAuth{User: "u", Pass: "******"}}
	return info
}

func (p fakeAccounts) List(context.Context, int, int) (api.AccountPage, error) {
	return api.AccountPage{}, p.asked("Accounts.List")
}

func (p fakeAccounts) Update(_ context.Context, id string, _ api.AccountPatch) (api.AccountInfo, error) {
	return accountInfo(id), p.asked("Accounts.Update " + id)
}

func (p fakeAccounts) Delete(_ context.Context, id string) error {
	if id == "gone" {
		return fault.New(fault.NotFound, "AccountNotFound", "Account record was not found for requested ID")
	}
	return p.asked("Accounts.Delete " + id)
}

func (p fakeAccounts) Count(context.Context) (int, error) { return 4, p.asked("Accounts.Count") }
func (p fakeAccounts) Configured(id string) bool          { return id == "default" }

func (p fakeAccounts) UsingGateway(_ context.Context, id string) ([]string, error) {
	if id == "busy" {
		return []string{"acme", "zeta"}, nil
	}
	return nil, p.asked("Accounts.UsingGateway " + id)
}

func (p fakeAccounts) GatewayEdited(_ context.Context, id string) error {
	return p.asked("Accounts.GatewayEdited " + id)
}

type fakeAccess struct{ *parts }

func (p fakeAccess) Authenticate(_ context.Context, token string, _ netip.Addr, _ time.Time) (*access.Grant,
	error) {
	if token == "" {
		return nil, fault.New(fault.Unauthorized, "", "Missing authentication")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	g, ok := p.grants[token]
	if !ok {
		return nil, fault.New(fault.Unauthorized, "", "Bad token")
	}
	return g, nil
}

func (p fakeAccess) Session(ctx context.Context, cookie string, remote netip.Addr, now time.Time) (
	*access.Grant, error) {
	return p.Authenticate(ctx, strings.TrimPrefix(cookie, "session-of-"), remote, now)
}

type fakeWebhooks struct{ *parts }

func (p fakeWebhooks) Create(_ context.Context, r api.EndpointRequest) (api.Endpoint, error) {
	return endpoint("e1", r), p.asked("Webhooks.Create")
}

func endpoint(id string, r api.EndpointRequest) api.Endpoint {
	return api.Endpoint{ID: id, URL: r.URL, Events: []string{"*"}, Accounts: []string{}, Secret: "whsec_x",
		Enabled: true}
}

func (p fakeWebhooks) Endpoint(_ context.Context, id string) (api.Endpoint, error) {
	return endpoint(id, api.EndpointRequest{URL: "https://x.example"}), p.asked("Webhooks.Endpoint")
}

func (p fakeWebhooks) Endpoints(context.Context, int, int) (api.EndpointPage, error) {
	return api.EndpointPage{}, p.asked("Webhooks.Endpoints")
}

func (p fakeWebhooks) Update(_ context.Context, id string, r api.EndpointRequest) (api.Endpoint, error) {
	return endpoint(id, r), p.asked("Webhooks.Update")
}

func (p fakeWebhooks) Delete(context.Context, string) (bool, error) {
	return true, p.asked("Webhooks.Delete")
}

func (p fakeWebhooks) Test(context.Context, string) (api.EndpointTested, error) {
	return api.EndpointTested{Success: true, StatusCode: 200}, p.asked("Webhooks.Test")
}

func (p fakeWebhooks) Deliveries(context.Context, string, int, int) (api.DeliveryPage, error) {
	return api.DeliveryPage{}, p.asked("Webhooks.Deliveries")
}

func (p fakeWebhooks) FindDeliveries(_ context.Context, endpoint, q string, page, size int) (api.DeliveryPage,
	error) {
	return api.DeliveryPage{Total: 1, Pages: 1, Page: page, Partial: true, Deliveries: []api.Delivery{
		{ID: q, Endpoint: endpoint, Status: "pending"}}}, p.asked("Webhooks.FindDeliveries")
}

func (p fakeWebhooks) Delivery(_ context.Context, endpoint, id string) (api.Delivery, error) {
	return api.Delivery{ID: id, Endpoint: endpoint, Status: "pending", Body: []byte(`{"event":"messageSent"}`)},
		p.asked("Webhooks.Delivery")
}

func (p fakeWebhooks) Redeliver(context.Context, string, string) (api.Redelivered, error) {
	return api.Redelivered{ID: "d2"}, p.asked("Webhooks.Redeliver")
}

func (p fakeWebhooks) Replay(context.Context, string, time.Time) (api.Replayed, error) {
	return api.Replayed{Replayed: 7}, p.asked("Webhooks.Replay")
}

func queued(id, account string) api.OutboxMessage {
	at := time.Date(2026, 11, 21, 6, 47, 35, 867_000_000, time.UTC)
	code := 451
	return api.OutboxMessage{
		QueueID: id, Account: account, Source: "api", MessageID: "<" + id + "@example.com>",
		Envelope: api.Envelope{From: "sender@example.com", To: []string{"rcpt@example.net"}}, Subject: "Hello",
		Created: at, Scheduled: at,
		NextAttempt: api.TimeOrFalse{Time: &at}, AttemptsMade: 1, Attempts: 3, State: api.Delayed,
		Lane: api.Transactional,
		Progress: api.Progress{Status: "error", Error: &api.DeliveryFault{Message: "451 later", Code: "EENVELOPE",
			StatusCode: &code}},
		Recipients: []api.RecipientStatus{{Address: "rcpt@example.net", Status: "queued", Attempts: 1}},
	}
}

// loggedMessage is one that was sent by its second attempt.
func loggedMessage(id, account string) api.LoggedMessage {
	at := time.Date(2026, 11, 21, 6, 47, 35, 867_000_000, time.UTC)
	end := at.Add(3 * time.Second)
	return api.LoggedMessage{
		QueueID: id, Account: account, Source: "smtp", MessageID: "<" + id + "@example.com>",
		Envelope: api.Envelope{From: "sender@example.com", To: []string{"rcpt@example.net"}}, Subject: "Hello",
		Status: api.StatusSent, Created: at,
		Scheduled: at, Ended: &end, AttemptsMade: 2, Attempts: 10, Response: "250 2.0.0 OK", Lane: api.Bulk,
		Size: 4711,
		Recipients: []api.RecipientStatus{{Address: "rcpt@example.net", Status: "sent", Response: "250 2.0.0 OK",
			Attempts: 2}},
		Log: []api.Attempt{{Number: 1, Start: at, End: &at, Host: "relay.example:25", Code: 451,
			Line: "451 later", Error: "EENVELOPE"}, {Number: 2, Start: end, End: &end, Code: 250}},
	}
}

func messageEvents(id string) api.MessageEvents {
	m := loggedMessage(id, "")
	return api.MessageEvents{QueueID: id, Events: []api.MessageEvent{
		{EventID: id, Event: "messageQueued", Date: m.Created, Recipients: m.Envelope.To},
		{EventID: "e2", Event: "messageDeliveryError", Date: m.Created, Recipients: m.Envelope.To,
			Attempt: &m.Log[0]},
		{EventID: "e3", Event: "messageSent", Date: *m.Ended, Recipients: m.Envelope.To, Attempt: &m.Log[1],
			Response: m.Response},
	}}
}

// newKey makes a DKIM key, one for all tests.
var newKey = sync.OnceValues(func() (string, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), err
})

func domainKey(t *testing.T) api.DKIM {
	t.Helper()
	key, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	return api.DKIM{Domain: "example.com", Selector: "s1", PrivateKey: key}
}
