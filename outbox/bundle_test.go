package outbox

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/mailtemplate"
	"github.com/postroom/postroom/queue"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/smtpsend"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

// storyBegin is when every simulated clock starts.
var storyBegin = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// fakeClock moves only when told to.
type fakeClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *fakeClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// bundle is an outbox on a Redis of its own, with a relay that does as it is told.
type bundle struct {
	*Outbox
	clock  *fakeClock
	sender *scriptedSender
	people *scriptedAccounts
}

func setup(t testing.TB, o Options) *bundle {
	t.Helper()
	return setupOn(t, testredis.New(t), o)
}

func setupOn(t testing.TB, db *redisdb.DB, o Options) *bundle {
	t.Helper()
	clock := &fakeClock{at: storyBegin}
	o.Now = clock.now
	sender, people := &scriptedSender{clock: clock, replies: map[string]string{}}, &scriptedAccounts{clock: clock}
	c := db.Client()
	b, err := New(Parts{
		DB: db, Queue: queue.NewClient(c, queue.Options{}), Control: queue.NewControl(c), Sender: sender, Accounts: people, Templates: scriptedTemplates{},
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	return &bundle{Outbox: b, clock: clock, sender: sender, people: people}
}

// scriptedAccounts knows every account but "gone", and one gateway, "gw". With hold, a login refused holds the account.
type scriptedAccounts struct {
	clock *fakeClock
	hold  bool
	held  *Held
}

func (a *scriptedAccounts) Account(_ context.Context, id string) (Account, error) {
	if id == "gone" {
		return Account{}, fault.New(fault.NotFound, "AccountNotFound", "no such account")
	}
	if id == "" {
		id = "default"
	}
	if id == "tracked" {
		yes := true
		return Account{ID: id, Email: "app@example.com", TrackOpens: &yes}, nil
	}
	if id == "german" {
		return Account{ID: id, Email: "laden@x.test", Locale: "de", TZ: "Europe/Berlin"}, nil
	}
	return Account{ID: id, Name: "Postroom", Email: "app@example.com", Hold: a.hold, Held: a.held}, nil
}

func (a *scriptedAccounts) Gateway(_ context.Context, id string) error {
	if id == "gw" {
		return nil
	}
	return fault.New(fault.NotFound, "GatewayNotFound", "no such gateway")
}

func (a *scriptedAccounts) Outcome(_ context.Context, _ string, err error) {
	var se *smtpsend.Error
	switch {
	case err == nil:
		a.held = nil
	case a.hold && a.held == nil && errors.As(err, &se) && se.Verdict == smtpsend.Auth:
		a.held = &Held{Reason: se.Line, Next: a.clock.now().Add(time.Minute)}
	}
}

func (a *scriptedAccounts) Trial(context.Context, string) (bool, error) {
	if a.held == nil {
		return true, nil
	}
	if a.clock.now().Before(a.held.Next) {
		return false, nil
	}
	a.held = &Held{Reason: a.held.Reason, Next: a.held.Next.Add(5 * time.Minute)}
	return true, nil
}

// sweep makes one round of everything that a sweeper does.
func (s *sweeper) sweep(ctx context.Context) error {
	if err := s.mend(ctx); err != nil {
		return err
	}
	return s.compare(ctx)
}

// scriptedTemplates has the templates "welcome" and "invoice"; the latter must be given a total.
type scriptedTemplates struct{}

func (scriptedTemplates) Template(_ context.Context, _, id, _ string) (Template, error) {
	switch id {
	case "welcome":
		return Template{ID: id, Version: 1, Source: mailtemplate.Source{Subject: "Welcome {{params.name}}", HTML: "<p>Hello {{params.name}}</p>"}}, nil
	case "invoice":
		return Template{ID: id, Version: 7, Source: mailtemplate.Source{Subject: "Invoice", Text: "Total: {{default params.total 0}}"}}, nil
	case "strict":
		return Template{ID: id, Version: 2, Source: mailtemplate.Source{Subject: "Hi", Text: "Dear {{params.name}}"}, Strict: true}, nil
	}
	return Template{}, fault.New(fault.NotFound, "TemplateNotFound", "Requested template was not found [%s]", id)
}
