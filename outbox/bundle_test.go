package outbox

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox/suppression"
	"github.com/postroom/postroom/outbox/templates"
	"github.com/postroom/postroom/outbox/templates/render"
	"github.com/postroom/postroom/smtpsend"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

// storyBegin is when every simulated clock starts.
var storyBegin = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// bundle is an outbox on its own Redis, with a scripted relay.
type bundle struct {
	*Outbox
	clock  *testkit.Clock
	sender *scriptedSender
	people *scriptedAccounts
}

// testSecret is the secret of the instance.
var testSecret = []byte("0123456789abcdef0123456789abcdef")

func setup(t testing.TB, o Options) *bundle {
	t.Helper()
	return setupOn(t, testredis.New(t), o)
}

func setupOn(t testing.TB, db *redisdb.DB, o Options) *bundle {
	t.Helper()
	clock := testkit.ClockAt(storyBegin)
	o.Now = clock.Now
	if o.Window == 0 {
		o.Window = 1 << 20 // most tests want a task for each message; backlog_window_test.go is about the others
	}
	sender, people := &scriptedSender{clock: clock, replies: map[string]string{}}, &scriptedAccounts{
		clock: clock}
	c := db.Client()
	ring, err := seal.New(testSecret)
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(Parts{
		DB: db, Queue: queue.NewClient(c, queue.Options{}), Control: queue.NewControl(c), Router: sender,
		Accounts: people, Gateways: scriptedGateways{}, Templates: scriptedTemplates{},
		Ring: ring,
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	return &bundle{Outbox: b, clock: clock, sender: sender, people: people}
}

// spread is a Redis with three partitions.
func spread(t testing.TB) *redisdb.DB {
	t.Helper()
	return testredis.Open(t, redisdb.Options{Partitions: 3})
}

// setupSifted is an outbox with suppressions.
func setupSifted(t *testing.T, o Options) *bundle {
	t.Helper()
	return setupSiftedOn(t, spread(t), o, suppression.Options{})
}

func setupSiftedOn(t *testing.T, db *redisdb.DB, o Options, so suppression.Options) *bundle {
	t.Helper()
	b := setupOn(t, db, o)
	b.sifts(t, so)
	return b
}

// sifts gives the outbox suppressions.
func (b *bundle) sifts(t *testing.T, so suppression.Options) {
	t.Helper()
	so.Now = b.clock.Now
	var err error
	if b.store.Suppressions, err = suppression.New(b.store.DB, so); err != nil {
		t.Fatal(err)
	}
}

func (b *bundle) suppress(t *testing.T, entries ...suppression.Entry) {
	t.Helper()
	if _, err := b.store.Suppressions.Add(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
}

// sentTo makes the relay note the recipients.
func (b *bundle) sentTo() *[]string {
	var to []string
	b.sender.got = func(m smtpsend.Message) { to = append(to, m.To...) }
	return &to
}

// recordOf is the record of a live message.
func (b *bundle) recordOf(t *testing.T, id string) map[string]string {
	t.Helper()
	p, err := b.store.place(id)
	if err != nil {
		t.Fatal(err)
	}
	return b.store.DB.Client().HGetAll(t.Context(), b.store.keys.message(p, id)).Val()
}

// scriptedAccounts has every account except "gone". With hold, a refused login holds
// the account.
type scriptedAccounts struct {
	clock *testkit.Clock
	hold  bool
	quota map[string]accounts.Quota

	mu   sync.Mutex // guards held: deliveries and submits run side by side
	held *accounts.Held
}

func (a *scriptedAccounts) Resolve(_ context.Context, id string) (accounts.Sender, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if id == "gone" {
		return accounts.Sender{}, fault.New(fault.NotFound, "AccountNotFound", "no such account")
	}
	relays := []gateways.Relay{{SMTP: smtpsend.Relay{Connections: 1 << 20}}} // one for either lane
	if id == "" {
		id = "default"
	}
	if id == "tracked" {
		yes := true
		return accounts.Sender{ID: id, Relays: relays, Email: "app@example.com", Opens: &yes}, nil
	}
	if id == "german" {
		return accounts.Sender{ID: id, Relays: relays, Email: "laden@x.test", Locale: "de",
			TZ: "Europe/Berlin"}, nil
	}
	return accounts.Sender{ID: id, Relays: relays, Name: "Postroom", Email: "app@example.com", Hold: a.hold,
		Held: a.held, Quota: a.quota[id], KeyRequired: id == "careful"}, nil
}

// scriptedGateways has one gateway, "gw".
type scriptedGateways struct{}

// Resolve implements Gateways.
func (scriptedGateways) Resolve(context.Context, string) (gateways.Relay, error) {
	return gateways.Relay{Gateway: "gw"}, nil
}

// Exists implements Gateways.
func (scriptedGateways) Exists(_ context.Context, id string) (bool, error) { return id == "gw", nil }

// CheckPath implements Gateways.
func (scriptedGateways) CheckPath(p gateways.Path) fault.Fields { return p.Check() }

func (a *scriptedAccounts) Outcome(_ context.Context, _ string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var se *smtpsend.Error
	switch {
	case err == nil:
		a.held = nil
	case a.hold && a.held == nil && errors.As(err, &se) && se.Verdict == smtpsend.Auth:
		a.held = &accounts.Held{Reason: se.Error(), Next: a.clock.Now().Add(time.Minute)}
	}
}

func (a *scriptedAccounts) Trial(context.Context, string) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held == nil {
		return true, nil
	}
	if a.clock.Now().Before(a.held.Next) {
		return false, nil
	}
	a.held = &accounts.Held{Reason: a.held.Reason, Next: a.held.Next.Add(5 * time.Minute)}
	return true, nil
}

// Quota implements Accounts.
func (a *scriptedAccounts) Quota(_ context.Context, id string) (accounts.Quota, error) {
	return a.quota[id], nil
}

// Exceeded implements Accounts.
func (a *scriptedAccounts) Exceeded(_ context.Context, e accounts.Excess) error { return e.Fault() }

// sweep runs all steps of a sweeper once.
func (s *sweeper) sweep(ctx context.Context) error {
	if err := s.mend(ctx); err != nil {
		return err
	}
	return s.compare(ctx)
}

// sweep runs all background steps once.
func (o *Outbox) sweep(ctx context.Context) error {
	if err := newSweeper(o.Delivery).sweep(ctx); err != nil {
		return err
	}
	return (&retention{d: o.Operations}).check(ctx)
}

// scriptedTemplates has the templates "welcome" and "invoice"; the latter must be given a total.
type scriptedTemplates struct{}

func (scriptedTemplates) Count(context.Context, string) (int, error) { return 2, nil }

func (scriptedTemplates) Template(_ context.Context, _, id, _ string) (templates.Template, error) {
	switch id {
	case "welcome":
		return templates.Template{ID: id, Version: 1, Source: render.Source{Subject: "Welcome {{params.name}}",
			HTML: "<p>Hello {{params.name}}</p>"}}, nil
	case "invoice":
		return templates.Template{ID: id, Version: 7, Source: render.Source{Subject: "Invoice",
			Text: "Total: {{default params.total 0}}"}}, nil
	case "strict":
		return templates.Template{ID: id, Version: 2, Source: render.Source{
			Subject: "Hi", Text: "Dear {{params.name}}"}, Strict: true}, nil
	}
	return templates.Template{}, fault.New(fault.NotFound, "TemplateNotFound",
		"Requested template was not found [%s]", id)
}
