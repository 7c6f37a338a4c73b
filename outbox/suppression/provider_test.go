package suppression_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/internal/testapi"
	"github.com/postroom/postroom/outbox/suppression"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/apiadmin"
	"github.com/postroom/postroom/smtpsend/apisend"
)

// lister is a provider's list that a test writes: pages of addresses, by their cursors "", "1", "2" and so
// on.
type lister struct {
	mu    sync.Mutex
	pages [][]apiadmin.Suppressed
	asked []string
	fail  func(cursor string) error // nil: nothing fails
	kind  api.GatewayType
	busy  bool
}

func (l *lister) gateway(_ context.Context, id string) (api.GatewayType, apisend.Target, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case id == "unknown":
		return "", apisend.Target{}, fault.New(fault.NotFound, "GatewayNotFound", "there is no such gateway")
	case l.busy:
		return l.kind, apisend.Target{}, suppression.ErrBusy
	}
	return l.kind, apisend.Target{Type: l.kind, ID: id}, nil
}

func (l *lister) list(ctx context.Context, _ apisend.Target, cursor string) (apiadmin.SuppressionPage,
	error) {
	l.mu.Lock()
	l.asked = append(l.asked, cursor)
	fail, pages := l.fail, l.pages
	l.mu.Unlock()
	if fail != nil {
		if err := fail(cursor); err != nil {
			return apiadmin.SuppressionPage{}, err
		}
	}
	n := 0
	_, _ = fmt.Sscan(cursor, &n)
	page := apiadmin.SuppressionPage{Entries: pages[n]}
	if n+1 < len(pages) {
		page.Next = fmt.Sprint(n + 1)
	}
	return page, ctx.Err()
}

func (l *lister) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// suppressed is an entry of a provider's list.
func suppressed(address string, why provider.Reason) apiadmin.Suppressed {
	return apiadmin.Suppressed{Address: address, Reason: why, Since: start.Add(-time.Hour)}
}

func (b *bench) providers(l *lister) *suppression.Providers {
	return suppression.NewProviders(b.Store, suppression.ProvidersOptions{Gateway: l.gateway, List: l.list,
		Every: 10 * time.Millisecond})
}

// runs runs imports until the test ends, or stop is called.
func runs(t *testing.T, p *suppression.Providers) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return stop
}

// until waits until the import is as ok wants it.
func until(t *testing.T, p *suppression.Providers, gateway string,
	ok func(api.ProviderImport) bool) api.ProviderImport {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		got, err := p.Progress(t.Context(), gateway)
		if err == nil && ok(got) {
			return got
		}
		if time.Now().After(end) {
			t.Fatalf("never: %+v, %v", got, err)
		}
	}
}

func ended(i api.ProviderImport) bool { return i.State != "running" }

func begin(t *testing.T, p *suppression.Providers, gateway, account string) {
	t.Helper()
	got, err := p.Start(t.Context(), gateway, api.ProviderImportStart{Account: account})
	if err != nil || got.State != "running" {
		t.Fatalf("%+v, %v", got, err)
	}
}

func TestImportOfAProvidersList(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := &lister{kind: api.GatewayPostmark, pages: [][]apiadmin.Suppressed{
		{suppressed("Dead@example.net", provider.ReasonBounced),
			suppressed("angry@example.net", provider.ReasonSpam)},
		{suppressed("left@example.net", provider.ReasonUnsubscribed),
			suppressed("no address", provider.ReasonBounced)},
		{suppressed("by.hand@example.net", provider.ReasonOther)},
	}}
	b.add(t, 1, suppression.Entry{Address: "dead@example.net", Reason: suppression.HardBounce, Source: "smtp",
		MessageID: "01JD"})
	p := b.providers(l)
	begin(t, p, "main", "")
	runs(t, p)
	got := until(t, p, "main", ended)
	if got.State != "done" || got.Read != 5 || got.Added != 3 || got.Updated != 1 || got.Failed != 1 ||
		got.Left != 0 || got.Ended == nil {
		t.Errorf("%+v", got)
	}
	for address, want := range map[string]string{"dead@example.net": "hard_bounce smtp 01JD",
		"angry@example.net": "spam_report provider:main ", "left@example.net": "unsubscribe provider:main ",
		"by.hand@example.net": "manual provider:main "} {
		all, err := b.List(t.Context(), suppression.Filter{Address: address}, "", 10)
		if err != nil || len(all.Entries) != 1 {
			t.Fatal(all, err)
		}
		e := all.Entries[0]
		if text := fmt.Sprint(e.Reason, " ", e.Source, " ", e.MessageID); text != want || e.Account != "" {
			t.Errorf("%s: %q, want %q", address, text, want)
		}
		if e.Source != "smtp" && !e.Created.Equal(start.Add(-time.Hour)) {
			t.Errorf("%s is there since %s", address, e.Created)
		}
	}
	l.set(func() { l.pages = l.pages[1:] }) // two addresses left the list
	begin(t, p, "main", "shop")
	got = until(t, p, "main", ended)
	if got.Left != 2 || got.Account != "shop" || got.Added != 2 {
		t.Errorf("%+v", got)
	}
	if b.check(t, suppression.Question{}, "angry@example.net") != suppression.SpamReport {
		t.Error("an address that left the list is mailed again")
	}
}

// Another process continues at the page where the first one was.
func TestImportOfAProvidersListAfterARestart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := &lister{kind: api.GatewaySES}
	for i := range 5 {
		l.pages = append(l.pages, []apiadmin.Suppressed{suppressed(fmt.Sprintf("a%d@example.net", i),
			provider.ReasonBounced)})
	}
	reached, block := make(chan struct{}), make(chan struct{})
	l.fail = func(cursor string) error {
		if cursor == "3" {
			close(reached)
			<-block
			return errors.New("the process died here")
		}
		return nil
	}
	first := b.providers(l)
	begin(t, first, "main", "")
	ctx, kill := context.WithCancel(t.Context())
	dead := make(chan error)
	go func() { dead <- first.Run(ctx) }()
	<-reached
	l.set(func() { l.fail = nil })
	kill()
	close(block)
	if err := <-dead; err != nil {
		t.Fatal(err)
	}
	second := b.providers(l)
	runs(t, second)
	got := until(t, second, "main", ended)
	if got.State != "done" || got.Read != 5 || got.Added != 5 {
		t.Errorf("%+v", got)
	}
	l.set(func() {
		if asked := strings.Join(l.asked, ","); asked != ",1,2,3,3,4" {
			t.Errorf("asked for %s", asked)
		}
	})
}

// A wait that the provider asks for is waited; other failures are tried again, a wrong key is not.
func TestImportOfAProvidersListThatFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := &lister{kind: api.GatewayBrevo, pages: [][]apiadmin.Suppressed{{suppressed("a@example.net",
		provider.ReasonBounced)}}}
	answer := func(err error) { l.set(func() { l.fail = func(string) error { return err } }) }
	p := b.providers(l)
	answer(&smtpsend.Error{Verdict: smtpsend.Throttle, RetryAfter: time.Hour, Status: 429})
	begin(t, p, "main", "")
	runs(t, p)
	until(t, p, "main", func(i api.ProviderImport) bool { return i.State == "running" && i.Error != "" })
	answer(nil)
	b.Advance(59 * time.Minute)
	if got, err := p.Progress(t.Context(), "main"); err != nil || ended(got) {
		t.Errorf("%+v, %v", got, err)
	}
	b.Advance(time.Minute)
	if got := until(t, p, "main", ended); got.State != "done" || got.Error != "" {
		t.Errorf("%+v", got)
	}
	answer(&smtpsend.Error{Verdict: smtpsend.Auth, Status: 401, Line: "401"})
	begin(t, p, "main", "")
	if got := until(t, p, "main", ended); got.State != "failed" ||
		!strings.Contains(got.Error, "postroom gateway verify main") {
		t.Errorf("%+v", got)
	}
	l.set(func() { l.fail, l.busy = nil, true })
	begin(t, p, "main", "")
	until(t, p, "main", func(i api.ProviderImport) bool { return strings.Contains(i.Error, "paused") })
	l.set(func() { l.busy = false })
	b.Advance(time.Minute)
	if got := until(t, p, "main", ended); got.State != "done" {
		t.Errorf("%+v", got)
	}
}

func TestImportOfAProvidersListIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := &lister{kind: api.GatewayMailjet}
	p := b.providers(l)
	_, err := p.Start(t.Context(), "main", api.ProviderImportStart{})
	if fault.CodeOf(err) != "NoSuppressionList" ||
		!strings.Contains(err.Error(), "postroom suppressions import") {
		t.Error(err)
	}
	if _, err := p.Start(t.Context(), "unknown", api.ProviderImportStart{}); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
	l.kind = api.GatewaySES
	if _, err := p.Start(t.Context(), "main", api.ProviderImportStart{Account: "a b"}); !fault.Is(err,
		fault.Invalid) {
		t.Error(err)
	}
	if _, err := p.Progress(t.Context(), "main"); !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
}

// Two gateways of one provider are imported side by side, through the real client.
func TestImportsOfTwoGateways(t *testing.T) {
	t.Parallel()
	b := setup(t)
	targets := map[string]apisend.Target{}
	for _, id := range []string{"one", "two"} {
		fake := testapi.Start(t, "sendgrid", testapi.Options{PageSize: 2, Inactive: map[string]string{
			id + ".a@example.net": "", id + ".b@example.net": "", id + ".c@example.net": "spam_reports"}})
		targets[id] = apisend.Target{Type: api.GatewaySendGrid, ID: id, URL: fake.URL, Key: "key"}
	}
	sender, err := apisend.New(apisend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sender.Close)
	client := apiadmin.New(sender)
	client.Wait = func(context.Context, time.Duration) error { return nil }
	p := suppression.NewProviders(b.Store, suppression.ProvidersOptions{List: client.Suppressions,
		Gateway: func(_ context.Context, id string) (api.GatewayType, apisend.Target, error) {
			return api.GatewaySendGrid, targets[id], nil
		}})
	begin(t, p, "one", "")
	begin(t, p, "two", "")
	runs(t, p)
	for id := range targets {
		if got := until(t, p, id, ended); got.State != "done" || got.Added != 3 {
			t.Errorf("%s: %+v", id, got)
		}
		if b.check(t, suppression.Question{}, id+".c@example.net") != suppression.SpamReport {
			t.Errorf("%s was not imported", id)
		}
	}
}
