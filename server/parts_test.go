package server

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/accounts/senders"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/digest"
	"github.com/postroom/postroom/feedback"
	"github.com/postroom/postroom/feedback/tracking"
	"github.com/postroom/postroom/feedback/unsubscribe"
	"github.com/postroom/postroom/internal/audit"
	"github.com/postroom/postroom/internal/provider"
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
	"github.com/postroom/postroom/outbox/templates"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/alerts"
	"github.com/postroom/postroom/server/erasure"
	"github.com/postroom/postroom/server/people"
	"github.com/postroom/postroom/server/provision"
	"github.com/postroom/postroom/server/settings"
	"github.com/postroom/postroom/server/why"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/apiadmin"
	"github.com/postroom/postroom/smtpsend/apisend"
	"github.com/postroom/postroom/webhooks"
)

// parts are the packages that a server answers from, on a Redis of their own. No workers run. Made up are the
// relay, the search index, and what package app implements.
type parts struct {
	Parts
	db     *redisdb.DB
	signed *signedtoken.Ring
	relay  *obligingRelay
	index  *index
	tokens map[string]string // by the name that a test has for them
	// people's session cookies, by the name of the person
	cookies map[string]string
	submit  func(api.SubmitRequest) (api.SubmitAnswer, error) // instead of the outbox; nil: the outbox
	checks  []api.Check

	mu      sync.Mutex
	fail    error // of Redis, and of what is made up
	healthy int   // commands that Redis answers before fail holds
}

const partsSecret = "0123456789abcdef0123456789abcdef"

func newParts(t testing.TB) *parts {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	p := &parts{
		db: testredis.New(t), relay: &obligingRelay{host: "relay.example:587", reply: "250 OK"}, index: &index{},
		tokens: map[string]string{}, cookies: map[string]string{}, checks: []api.Check{{Name: "redis", OK: true}},
	}
	p.Parts.Submit, p.Login, p.State = p.Submit, p.verify, p
	p.db.Client().AddHook(failing{p.failure})
	ring, err := seal.New([]byte(partsSecret))
	must(err)
	p.signed, err = signedtoken.New([]signedtoken.Key{signedtoken.KeyOf([]byte(partsSecret))})
	must(err)
	p.People, err = people.New(p.db, ring, people.Options{PasswordMemory: 64})
	must(err)
	p.Access, err = access.New(p.db, ring, access.Options{Token: adminToken, MaxFailures: 1 << 30,
		People: p.People})
	must(err)
	p.token(t, boundToken, api.TokenRequest{Account: "acme", Scopes: []api.Scope{api.ScopeAPI}})
	p.Audit, err = audit.New(p.db, ring, audit.Options{})
	must(err)
	p.Settings, err = settings.New(p.db, ring, settings.Options{})
	must(err)
	p.DomainKeys, err = dkim.NewKeys(p.db, ring, dkim.Options{})
	must(err)
	p.DNS = &provision.DNS{Resolver: nowhere{}, Keys: p.DomainKeys, BounceDomain: "bounces.example.com",
		ServiceURL: func() string { return "https://mail.example.com" }}
	p.Suppressions, err = suppression.New(p.db, suppression.Options{Ring: ring})
	must(err)
	p.Provider = suppression.NewProviders(p.Suppressions, suppression.ProvidersOptions{
		Gateway: func(ctx context.Context, id string) (api.GatewayType, apisend.Target, error) {
			relay, err := p.Gateways.Resolve(ctx, id)
			return relay.Type, relay.API, err
		}})
	p.Templates, err = templates.New(p.db, noSenders{}, templates.Options{})
	must(err)
	p.OAuth, err = oauth.New(p.db, ring, oauth.Options{})
	must(err)
	p.Gateways, err = gateways.New(p.db, ring, gateways.Options{
		ServiceURL: func() string { return "https://mail.example.com" }})
	must(err)
	apis, err := apisend.New(apisend.Options{})
	must(err)
	p.Admin = apiadmin.New(apis)
	p.Accounts, err = accounts.New(p.db, ring, p.Gateways, accounts.Options{Default: &api.Account{
		Account: accounts.DefaultID, Email: "from@example.com", SMTP: &api.SMTPServer{Host: "relay.example",
			Port: 587},
	}})
	must(err)
	p.Audience, err = audience.New(audience.Parts{DB: p.db, Suppressions: p.Suppressions,
		Account:   func(ctx context.Context, id string) error { _, err := p.Accounts.Get(ctx, id); return err },
		Campaigns: func() audience.Campaigns { return p.Campaigns }}, audience.Options{})
	must(err)
	tasks, control := queue.NewClient(p.db.Client(), queue.Options{}), queue.NewControl(p.db.Client())
	p.Outbox, err = outbox.New(outbox.Parts{DB: p.db, Queue: tasks, Control: control, Router: p.relay,
		Accounts: p.Accounts, Gateways: p.Gateways, Templates: p.Templates, Tokens: p.signed},
		outbox.Options{KeepReferences: time.Hour, ServiceURL: func() string { return "https://mail.example.com" }})
	must(err)
	p.OptIn, err = audience.NewConfirmations(audience.ConfirmationParts{Subscribers: p.Audience,
		Tokens:     p.signed,
		Submit:     p.Submit,
		ServiceURL: func() string { return p.Settings.Current().ServiceURL }},
		audience.ConfirmationOptions{PerDay: 3})
	must(err)
	limiter, err := limits.New(p.db, limits.Options{})
	must(err)
	p.Campaigns, err = newsletter.New(newsletter.Parts{DB: p.db,
		Audience: p.Audience,
		Log:      sendlog.New(p.db, 0, p.Suppressions.VersionKey()),
		Outbox:   p.Outbox, Limits: limiter, Suppressions: p.Suppressions,
		Relays: func(_ context.Context, a accounts.Sender, _ string, _ api.Lane) ([]gateways.Relay, error) {
			return a.Relays, nil
		},
		Resting: func(context.Context) (bool, error) { return false, nil }},
		newsletter.Options{ServiceURL: func() string { return "https://mail.example.com" }})
	must(err)
	p.Digests, err = digest.New(digest.Parts{DB: p.db, Suppressions: p.Suppressions, Submit: p.Submit,
		Accepted: p.Outbox.Reader.Accepted, BlockKey: p.Outbox.Intake.BlockKey,
		DeleteDeadLetter: p.Outbox.Operations.DeleteDeadLetter, Get: p.Outbox.Reader.Get,
		Mailing:     p.Outbox.Mailings.Mailing,
		Account:     func(ctx context.Context, id string) error { _, err := p.Accounts.Get(ctx, id); return err },
		HasTemplate: func(context.Context, string, string) (bool, error) { return false, nil },
		Resting:     func(context.Context) (bool, error) { return false, nil }},
		digest.Options{ServiceURL: func() string { return "https://mail.example.com" }, Hour: 8,
			Gap: 5 * time.Minute})
	must(err)
	p.Documents, err = search.New(search.Parts{DB: p.db, Queues: control, Outbox: p.Outbox.Reader,
		Store: p.index}, search.Options{Kind: "opensearch"})
	must(err)
	p.Erasures, err = erasure.New(erasure.Parts{DB: p.db, Ring: ring, Digest: p.Suppressions.Digest,
		Remaining: func(string) []string { return []string{"Backups."} },
		Account:   func(ctx context.Context, id string) error { _, err := p.Accounts.Get(ctx, id); return err }},
		erasure.Options{})
	must(err)
	p.Why, err = why.New(why.Parts{Log: p.Outbox.Reader, QueueStatus: p.Outbox.Queues.QueueStatus,
		Account: p.Accounts.Get}, why.Options{})
	must(err)
	p.Webhooks, err = webhooks.New(p.db, tasks, control, ring, webhooks.Options{AllowPrivate: true,
		Match: func(ctx context.Context, q string, ids []string) (map[string]bool, error) {
			return p.Documents.Match(ctx, q, ids)
		}})
	must(err)
	p.Overview, err = alerts.NewOverview(alerts.OverviewParts{Rates: p.Outbox.Counts.Rates,
		Messages: p.Outbox.Reader.Messages,
		List:     p.Outbox.Reader.List, QueueStatus: p.Outbox.Queues.QueueStatus, Account: p.Accounts.Get,
		Troubled: p.Accounts.Troubled, Gateways: p.Gateways.List, Endpoints: p.Webhooks.Endpoints,
		Endpoint: p.Webhooks.Endpoint, EndpointStats: p.Webhooks.Stats,
		Alerts: func(ctx context.Context) ([]api.Alert, error) { return p.State.Alerts(ctx) }},
		alerts.OverviewOptions{})
	must(err)
	s, err := newSigner()
	must(err)
	secrets, err := s.secrets()
	must(err)
	p.Feedback, err = feedback.New(feedback.Parts{DB: p.db, Outbox: p.Outbox.Facts, Suppression: p.Suppressions,
		Tokens: p.signed, Account: p.Accounts.Named},
		feedback.Options{Providers: secrets, Transport: s, Hook: func(ctx context.Context, id string) (
			provider.Name, string, error) {
			h, err := p.Gateways.Hook(ctx, id)
			return h.Provider, h.Secret, err
		}})
	must(err)
	p.Bounces = feedback.NewBounces(p.Feedback, feedback.BounceOptions{Domain: "example.com"})
	p.Senders, err = senders.New(senders.Parts{DB: p.db, Tokens: p.signed, Accounts: p.Accounts,
		Submit: p.Submit, URL: func() string { return "https://mail.example.com" }},
		senders.Options{Account: accounts.DefaultID})
	must(err)
	p.Unsubscribe, err = unsubscribe.New(unsubscribe.Parts{Tokens: p.signed, Suppressions: p.Suppressions,
		Append: p.Feedback.Append, Account: p.Accounts.Get}, unsubscribe.Options{})
	must(err)
	p.Tracking, err = tracking.New(p.signed, p.Feedback.Append, tracking.Options{})
	must(err)
	return p
}

// token makes an access token that tests call by a name.
func (p *parts) token(t testing.TB, name string, req api.TokenRequest) {
	t.Helper()
	req.Description = name
	created, err := p.Access.Create(context.Background(), req, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	p.tokens[name] = created.Token
}

// secret is the token of a name; other tokens stay as they are.
func (p *parts) secret(name string) string { return cmp.Or(p.tokens[name], name) }

// session opens a session with a token, and returns its cookie.
func (p *parts) session(t *testing.T, token string) string {
	t.Helper()
	cookie, err := p.Access.Login(t.Context(), p.secret(token), access.Client{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return cookie
}

// password is every person's.
const password = "correct horse battery"

// person makes a person who is logged in.
func (p *parts) person(t *testing.T, name string, role api.Role, accounts ...string) {
	t.Helper()
	ctx, now := t.Context(), time.Now()
	_, err := p.People.Create(ctx, api.PersonRequest{Person: name, Role: role, Accounts: accounts}, now)
	var link string
	if err == nil {
		link, _, err = p.People.NewLink(ctx, name, now)
	}
	if err == nil {
		_, err = p.People.Use(ctx, link, "", password, now)
	}
	if err == nil {
		p.cookies[name], _, err = p.Access.LoginPerson(ctx, access.Password{Name: name, Password: password},
			access.Client{}, now)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// account makes an account.
func (p *parts) account(t *testing.T, id string) {
	t.Helper()
	if _, err := p.Accounts.Create(t.Context(), api.Account{Account: id, Email: "sender@example.com",
		SMTP: &api.SMTPServer{Host: "relay.example", Port: 25}}); err != nil {
		t.Fatal(err)
	}
}

// queued makes an account, and a message of it that is due tomorrow.
func (p *parts) queued(t *testing.T, account string) string {
	t.Helper()
	return p.submitted(t, account, time.Now().Add(24*time.Hour))
}

func (p *parts) submitted(t *testing.T, account string, at time.Time) string {
	t.Helper()
	p.account(t, account)
	answer, err := p.Outbox.Intake.Submit(t.Context(), api.SubmitRequest{Account: account, Subject: "Hello",
		To: api.Addresses{{Address: "rcpt@example.net"}}, Text: "Hi", SendAt: &at})
	if err != nil {
		t.Fatal(err)
	}
	return answer.QueueID
}

// delivered makes an account, and a message of it that the relay took, or that is a dead letter.
func (p *parts) delivered(t *testing.T, account, reply string) string {
	t.Helper()
	id := p.submitted(t, account, time.Now())
	p.deliver(t, id, reply)
	return id
}

// deliver makes an attempt that the relay answers with a reply.
func (p *parts) deliver(t *testing.T, id, reply string) {
	before := p.relay.reply
	defer func() { p.relay.reply = before }()
	p.relay.reply = reply
	p.Outbox.Delivery.Deliver(t.Context(), queue.Task{ID: id + ".1"})
}

func (p *parts) sent(t *testing.T, account string) string { return p.delivered(t, account, "250 OK") }
func (p *parts) dead(t *testing.T, account string) string { return p.delivered(t, account, "550 No") }

// list makes a list of an account, unless there is one. Without double opt-in, no one has to confirm.
func (p *parts) list(t testing.TB, account, id string) {
	t.Helper()
	_, err := p.Audience.Lists.Create(t.Context(), "", api.List{ListID: id, Account: account, Name: "The " + id,
		OptIn: "single"})
	if err != nil && !fault.Is(err, fault.Conflict) {
		t.Fatal(err)
	}
}

// subscriber makes a subscriber of an account who is on lists, and returns the id.
func (p *parts) subscriber(t testing.TB, account, email string, lists ...string) string {
	t.Helper()
	req := api.SubscriberRequest{Account: account, Email: email, Upsert: true}
	for _, id := range lists {
		req.Lists = append(req.Lists, api.SubscriptionRequest{ListID: id})
	}
	made, _, err := p.Audience.Create(t.Context(), "", req)
	if err != nil {
		t.Fatal(err)
	}
	return made.ID
}

// campaign makes a campaign of the account acme in the state that an operation needs, and returns its id.
func (p *parts) campaign(t *testing.T, operation string) string {
	t.Helper()
	ctx := t.Context()
	id := strings.ToLower(rand.Text())
	p.account(t, "acme")
	p.list(t, "acme", "news")
	_, err := p.Campaigns.Create(ctx, "", api.Campaign{Campaign: id, Account: "acme", Name: "Spring",
		Lists: []string{"news"}, CampaignContent: api.CampaignContent{Subject: "Hello", Text: leaveText},
		Variants: []api.CampaignVariant{{Variant: "a", Subject: "A"}, {Variant: "b", Subject: "B"}},
		Test:     &api.CampaignTrial{Metric: "manual"}})
	steps := map[string][]string{"pauseCampaign": {"send"}, "resumeCampaign": {"send", "pause"},
		"cancelCampaign": {"send"}, "decideCampaign": {"send"},
		"resendCampaign": {"send", "cancel"}, "settleCampaign": {"send"},
		"listCampaignRecipients": {"send"}, "exportCampaignRecipients": {"send"}, "getCampaignStats": {"send"},
		"recountCampaign": {"send"}}[operation]
	for _, step := range steps {
		if err != nil {
			break
		}
		switch step {
		case "send":
			_, err = p.Campaigns.Send(ctx, "", id, api.CampaignStart{})
		case "pause":
			_, err = p.Campaigns.Pause(ctx, "", id)
		case "cancel":
			_, err = p.Campaigns.Cancel(ctx, "", id)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// reader makes a digest recipient in account acme with a waiting event.
func (p *parts) reader(t *testing.T) {
	t.Helper()
	p.account(t, "acme")
	answer, err := p.Digests.AddEvents(t.Context(), "", api.DigestEventsRequest{Account: "acme",
		DigestEvent: api.DigestEvent{Recipient: "reader-1", Email: "rcpt@example.net", Category: "comment",
			EntityType: "post", EntityID: "1", Title: "A post"}})
	if err != nil || !answer.Success {
		t.Fatal(answer, err)
	}
}

// digestRun makes a digest run of account acme in a state, and returns its id. Nothing fails here, because no
// worker runs.
func (p *parts) digestRun(t *testing.T, state string) string {
	t.Helper()
	p.reader(t)
	begun, err := p.Digests.Send(t.Context(), "", api.DigestAccount{Account: "acme"}, "reader-1")
	if err != nil {
		t.Fatal(err)
	}
	shard, err := strconv.Atoi(begun.Run[len(begun.Run)-2:])
	if err == nil && state != "" {
		pipe := p.db.Client().TxPipeline()
		pipe.HSet(t.Context(), redisdb.Key(shard, "digest-run", begun.Run), "state", state)
		pipe.ZRem(t.Context(), redisdb.Key(shard, "digest-open"), "run "+begun.Run)
		_, err = pipe.Exec(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return begun.Run
}

// leaveText is the text of an email to a list: it shows how to leave.
const leaveText = "Hi {{subscriber.email}}, leave at {{rcpt.unsubscribeUrl}}"

// endpointSecret is one that a webhook endpoint may have.
const endpointSecret = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

// endpoint makes a webhook endpoint that takes everything.
func (p *parts) endpoint(t *testing.T) string {
	t.Helper()
	hooks := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(hooks.Close)
	e, err := p.Webhooks.Create(t.Context(), api.EndpointRequest{URL: hooks.URL})
	if err != nil {
		t.Fatal(err)
	}
	return e.ID
}

// delivery makes an endpoint and a delivery to it.
func (p *parts) delivery(t *testing.T) (endpoint, id string) {
	t.Helper()
	endpoint, before := p.endpoint(t), time.Now().Add(-time.Second)
	p.queued(t, "acme")
	_, err := p.Webhooks.Replay(t.Context(), endpoint, before)
	var page api.DeliveryPage
	if err == nil {
		page, err = p.Webhooks.Deliveries(t.Context(), endpoint, 0, 1)
	}
	if err != nil || len(page.Deliveries) == 0 {
		t.Fatal(page, err)
	}
	return endpoint, page.Deliveries[0].ID
}

// isEmpty fails the test if a message is in the outbox.
func (p *parts) isEmpty(t *testing.T) {
	t.Helper()
	if page, err := p.Outbox.Reader.List(t.Context(), api.OutboxQuery{}); err != nil || page.Total > 0 {
		t.Errorf("%d messages are queued, %v", page.Total, err)
	}
}

// Submit accepts a message, unless the test replaced that.
func (p *parts) Submit(ctx context.Context, req api.SubmitRequest) (api.SubmitAnswer, error) {
	if p.submit != nil {
		return p.submit(req)
	}
	return p.Outbox.Intake.Submit(ctx, req)
}

// nowhere is a DNS that knows no name.
type nowhere struct{}

func (nowhere) LookupTXT(context.Context, string) ([]string, error) { return nil, missingName() }

func (nowhere) LookupMX(context.Context, string) ([]*net.MX, error) { return nil, missingName() }

func (nowhere) LookupNS(context.Context, string) ([]*net.NS, error) {
	return []*net.NS{{Host: "ns.example."}}, nil
}

func (nowhere) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, missingName()
}

func (nowhere) LookupAddr(context.Context, string) ([]string, error) { return nil, missingName() }

func missingName() error { return &net.DNSError{Err: "no such host", IsNotFound: true} }

// verify stands in for Parts.Login.
func (p *parts) verify(context.Context, api.VerifyRequest) (api.VerifyAnswer, error) {
	return api.VerifyAnswer{SMTP: api.VerifyResult{Success: true}}, p.failure()
}

// Checks implements State.
func (p *parts) Checks(context.Context) []api.Check { return p.checks }

// Durability implements State.
func (p *parts) Durability(context.Context) (api.Durability, error) {
	return api.Durability{Mode: "single", Version: "7.2.4", Persistent: true, Fsync: "always",
		Policy: "noeviction"}, p.failure()
}

// Alerts implements State.
func (p *parts) Alerts(context.Context) ([]api.Alert, error) {
	return []api.Alert{{Alert: "queueAge", Queue: "submit", Text: "work waits", Value: 400, Threshold: 300,
		Since: time.Unix(1700000000, 0).UTC()}}, p.failure()
}

// index is a search index that finds the same for every query.
type index struct {
	search.Store
	asked []search.Query
	found search.Found
}

func (i *index) Search(_ context.Context, s search.Query) (search.Found, error) {
	i.asked = append(i.asked, s)
	return i.found, nil
}

// obligingRelay answers each recipient with a reply.
type obligingRelay struct{ host, reply string }

// ExpectWaiting implements outbox.Router.
func (*obligingRelay) ExpectWaiting(string, int) {}

// Answers implements outbox.Router.
func (*obligingRelay) Answers(string) bool { return true }

// Instead implements outbox.Router.
func (*obligingRelay) Instead(accounts.Sender, api.Lane, string) string { return "" }

// Slots implements outbox.Router.
func (*obligingRelay) Slots(string, api.Lane) int { return 1 }

func (r *obligingRelay) Send(_ context.Context, d routing.Dispatch) routing.Sent {
	result := smtpsend.Result{Response: r.reply, Code: 250}
	for _, to := range d.Message.To {
		answered := smtpsend.RecipientResult{Address: to, Response: r.reply}
		if r.reply[0] == '5' {
			answered.Err = &smtpsend.Error{Phase: smtpsend.PhaseRcpt, Code: 550, Line: r.reply,
				Verdict: smtpsend.Hard, Scope: smtpsend.ScopeRecipient}
		}
		result.Recipients = append(result.Recipients, answered)
	}
	host, _, _ := strings.Cut(r.host, ":")
	routing.NameByReply(host, result)
	return routing.Sent{Result: result, Tries: []routing.Try{{Host: r.host, Start: time.Now(), End: time.Now(),
		Result: result}}}
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

func (p *parts) failWith(err error) { p.failAfter(0, err) }

// failAfter lets Redis answer some more commands.
func (p *parts) failAfter(commands int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.healthy, p.fail = commands, err
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

func domainKey(t *testing.T) api.NewDomainKey {
	t.Helper()
	key, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	return api.NewDomainKey{DKIM: api.DKIM{Domain: "example.com", Selector: "s1", PrivateKey: key}}
}
