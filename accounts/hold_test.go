package accounts

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/smtpsend"
)

// untrusted is what we say to a wrong certificate.
func untrusted() *smtpsend.Error {
	return &smtpsend.Error{Phase: smtpsend.PhaseTLS, Verdict: smtpsend.Auth, Scope: smtpsend.ScopeAccount,
		Err: errors.New("x509: expired")}
}

// unreachable is a relay that can't be reached.
func unreachable() error {
	return &smtpsend.Error{Phase: smtpsend.PhaseConnect, Verdict: smtpsend.Soft, Scope: smtpsend.ScopeConnection,
		Err: errors.New("refused")}
}

// events reads the stream.
func (b bundle) events(t *testing.T) []event.Event {
	t.Helper()
	rows, err := b.db.Client().XRange(t.Context(), eventsKey(), "-", "+").Result()
	if err != nil {
		t.Fatal(err)
	}
	events := make([]event.Event, len(rows))
	for i, row := range rows {
		line, _ := row.Values["e"].(string)
		if events[i], err = event.Parse([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	return events
}

func holdingAccount(id string) api.Account {
	a := account(id)
	a.AccountTrouble = "hold"
	return a
}

func (b bundle) resolve(t *testing.T, id string) Sender {
	t.Helper()
	s, err := b.Resolve(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (b bundle) trial(t *testing.T, id string) bool {
	t.Helper()
	may, err := b.Trial(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return may
}

func (b bundle) show(t *testing.T, id string) api.AccountInfo {
	t.Helper()
	info, err := b.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestOneTroubleMakesOneEvent(t *testing.T) {
	b := setup(t, nil)
	b.create(t, account("a"))
	steps := []struct {
		name string
		do   func()
		want int
	}{
		{"login refused", func() { b.Outcome(t.Context(), "a", gateways.Via("g", refused())) }, 1},
		{"again", func() { b.Outcome(t.Context(), "a", refused()) }, 1},
		{"an hour later", func() { b.clock.Advance(time.Hour); b.Outcome(t.Context(), "a", refused()) }, 1},
		{"something passing", func() { b.Outcome(t.Context(), "a", unreachable()) }, 1},
		{"after that, still refused", func() { b.Outcome(t.Context(), "a", refused()) }, 1},
		{"the certificate, too", func() { b.Outcome(t.Context(), "a", untrusted()) }, 2},
		{"and the login again", func() { b.Outcome(t.Context(), "a", refused()) }, 2},
		{"over an older login mail gets through", func() { b.Outcome(t.Context(), "a", nil) }, 2},
		{"but new logins are refused", func() { b.Outcome(t.Context(), "a", refused()) }, 2},
		{"mail gets through", func() { b.clock.Advance(settling); b.Outcome(t.Context(), "a", nil) }, 2},
		{"refused later", func() { b.Outcome(t.Context(), "a", refused()) }, 3},
		{"edited, to no avail", func() { b.create(t, account("a")); b.Outcome(t.Context(), "a", refused()) }, 4},
	}
	for _, step := range steps {
		step.do()
		if got := len(b.events(t)); got != step.want {
			t.Errorf("%s: %d events, want %d", step.name, got, step.want)
		}
	}
	code := 535
	data := event.Trouble{
		Failure: event.Failure{
			Error: "smtp auth: 535 5.7.8 no", ErrorCode: "EAUTH", SMTPResponse: "535 5.7.8 no",
			SMTPResponseCode: &code, SMTPCommand: "AUTH PLAIN",
		},
		Gateway: "g", Since: testkit.ClockStart,
	}
	first := b.events(t)[0]
	want, err := event.New(first.ID, event.AccountError, "a", testkit.ClockStart, data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, first); diff != "" || len(first.ID) != 26 {
		t.Error(diff)
	}
	if info := b.show(t, "a"); info.State != "error" || info.LastError != "smtp auth: 535 5.7.8 no" {
		t.Errorf("%+v", info)
	}
	if s := b.resolve(t, "a"); s.Hold || s.Held != nil || !b.trial(t, "a") {
		t.Errorf("its mail waits: %+v", s.Held)
	}
}

func TestManyProcessesMakeOneEvent(t *testing.T) {
	b := setup(t, nil)
	b.create(t, holdingAccount("a"))
	all := []bundle{b, process(t, b.url, "secret", nil), process(t, b.url, "secret", nil)}
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() { all[i%3].Outcome(t.Context(), "a", refused()) })
	}
	wg.Wait()
	if got := len(b.events(t)); got != 1 {
		t.Errorf("%d events", got)
	}
	for _, p := range all {
		p.clock.Advance(time.Minute)
	}
	var tried atomic.Int64
	for i := range 30 {
		wg.Go(func() {
			may, err := all[i%3].Trial(t.Context(), "a")
			if err != nil {
				t.Error(err)
			}
			if may {
				tried.Add(1)
			}
		})
	}
	wg.Wait()
	if tried.Load() != 1 {
		t.Errorf("%d messages are tried, want 1", tried.Load())
	}
}

func TestHeldAccountIsCheckedMoreAndMoreSeldom(t *testing.T) {
	b := setup(t, nil)
	b.create(t, holdingAccount("a"))
	if !b.trial(t, "a") {
		t.Error("an account that isn't held is not tried")
	}
	b.Outcome(t.Context(), "a", refused())
	since := b.clock.Now()
	var waits []time.Duration
	for range 6 {
		s := b.resolve(t, "a")
		if s.Held == nil || !s.Hold || s.Held.Code != "EAUTH" || s.Held.Reason != "smtp auth: 535 5.7.8 no" ||
			!s.Held.Since.Equal(since) {
			t.Fatalf("%+v", s.Held)
		}
		waits = append(waits, s.Held.Next.Sub(b.clock.Now()))
		b.clock.Advance(waits[len(waits)-1] - time.Millisecond)
		if b.trial(t, "a") {
			t.Fatalf("tried too early, after %v", waits)
		}
		b.clock.Advance(time.Millisecond)
		if !b.trial(t, "a") || b.trial(t, "a") {
			t.Fatalf("not tried once, after %v", waits)
		}
		b.Outcome(t.Context(), "a", refused())
	}
	want := []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour,
		time.Hour}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Error(diff)
	}
	if got := b.events(t); len(got) != 1 {
		t.Errorf("%d events", len(got))
	}
	if info := b.show(t, "a"); info.State != "held" || info.LastError == "" {
		t.Errorf("%+v", info)
	}
	b.Outcome(t.Context(), "a", unreachable())
	if info := b.show(t, "a"); info.State != "held" || info.LastError != "smtp auth: 535 5.7.8 no" {
		t.Errorf("after a relay that was away: %+v", info)
	}
	b.clock.Advance(settling)
	b.Outcome(t.Context(), "a", nil)
	if s := b.resolve(t, "a"); s.Held != nil || !b.trial(t, "a") || b.show(t, "a").State != "connected" {
		t.Errorf("after a success: %+v", s.Held)
	}
	b.Outcome(t.Context(), "a", refused())
	if got := len(b.events(t)); got != 2 {
		t.Errorf("%d events", got)
	}
}

// TestMailOverOldLoginsEndsNoHold: when a password was changed, connections that logged in before keep
// working for a while.
func TestMailOverOldLoginsEndsNoHold(t *testing.T) {
	b := setup(t, nil)
	b.create(t, holdingAccount("a"))
	b.Outcome(t.Context(), "a", refused())
	b.Outcome(t.Context(), "a", nil)
	if b.resolve(t, "a").Held == nil {
		t.Error("an older login ended the hold")
	}
	b.clock.Advance(time.Minute)
	if !b.trial(t, "a") {
		t.Fatal("not tried")
	}
	b.Outcome(t.Context(), "a", nil)
	if b.resolve(t, "a").Held != nil {
		t.Error("the check did not end the hold")
	}
}

func TestEditMakesTheNextCheckDueAtOnce(t *testing.T) {
	b := setup(t, nil)
	b.create(t, holdingAccount("a"))
	other := process(t, b.url, "secret", nil)
	b.Outcome(t.Context(), "a", refused())
	other.clock.Advance(2 * time.Second)
	if other.trial(t, "a") {
		t.Fatal("tried before the check is due")
	}
	if _, err := b.Update(t.Context(), "a", api.AccountPatch{SMTP: new(account("a").SMTP)}); err != nil {
		t.Fatal(err)
	}
	if s := b.resolve(t, "a"); s.Held == nil || !s.Held.Next.IsZero() || b.show(t, "a").State != "held" {
		t.Errorf("%+v", s.Held)
	}
	other.clock.Advance(time.Second)
	if !other.trial(t, "a") || other.trial(t, "a") {
		t.Fatal("not tried once, at once, by another process")
	}
	other.Outcome(t.Context(), "a", refused())
	if got := len(b.events(t)); got != 2 {
		t.Errorf("%d events, want one before and one after the edit", got)
	}
	if s := other.resolve(t, "a"); !s.Held.Next.Equal(other.clock.Now().Add(time.Minute)) {
		t.Errorf("next check %v", s.Held.Next)
	}
	if _, err := b.Update(t.Context(), "a", api.AccountPatch{AccountTrouble: new("fail")}); err != nil {
		t.Fatal(err)
	}
	if s := b.resolve(t, "a"); s.Hold || s.Held != nil || b.show(t, "a").State != "error" {
		t.Errorf("an account that should fail is held: %+v", s.Held)
	}
	b.Outcome(t.Context(), "a", nil)
	if info := b.show(t, "a"); info.State != "connected" {
		t.Errorf("%+v", info)
	}
}

func TestEditOfAGatewayMakesTheNextCheckDueAtOnce(t *testing.T) {
	b := setup(t, nil)
	b.gateway(t, api.Gateway{Gateway: "g"})
	b.gateway(t, api.Gateway{Gateway: "elsewhere"})
	held := throughGateways("a", "g")
	held.AccountTrouble = "hold"
	b.create(t, held)
	b.create(t, throughGateways("fine", "g"))
	other := process(t, b.url, "secret", nil)
	b.Outcome(t.Context(), "a", refused())
	for _, gateway := range []string{"elsewhere", "unknown"} {
		if err := b.GatewayEdited(t.Context(), gateway); err != nil {
			t.Fatal(err)
		}
	}
	other.clock.Advance(2 * time.Second)
	if other.trial(t, "a") {
		t.Fatal("tried before the check is due, after the edit of a gateway that is not the account's")
	}
	if err := b.GatewayEdited(t.Context(), "g"); err != nil {
		t.Fatal(err)
	}
	if s := b.resolve(t, "a"); s.Held == nil || !s.Held.Next.IsZero() {
		t.Errorf("%+v", s.Held)
	}
	if s := b.resolve(t, "fine"); s.Held != nil || b.show(t, "fine").State != "unset" {
		t.Errorf("an account without trouble: %+v", s.Held)
	}
	other.clock.Advance(time.Second)
	if !other.trial(t, "a") || other.trial(t, "a") {
		t.Fatal("not tried once, at once, by another process")
	}
	other.Outcome(t.Context(), "a", refused())
	if got := len(b.events(t)); got != 2 {
		t.Errorf("%d events, want one before and one after the edit", got)
	}
}

func TestConfiguredAccountIsCheckedAtOnceWhenTheConfigurationChanged(t *testing.T) {
	configured := configuredAccount()
	configured.AccountTrouble = "hold"
	b := setup(t, configured)
	b.Outcome(t.Context(), DefaultID, refused())
	if same := process(t, b.url, "secret", configured); same.trial(t, DefaultID) {
		t.Error("tried early though nothing was changed")
	}
	changed := *configured
	changed.SMTP = &api.SMTPServer{Host: "relay.example.com", Port: 587, Auth: &api.SMTPAuth{
		User: "u", Pass: "another"}}
	restarted := process(t, b.url, "secret", &changed)
	if !restarted.trial(t, DefaultID) || restarted.trial(t, DefaultID) {
		t.Error("not tried once, at once")
	}
	restarted.Outcome(t.Context(), DefaultID, nil)
	if s := restarted.resolve(t, ""); s.Held != nil {
		t.Errorf("%+v", s.Held)
	}
}

func TestWaitOrFailIsTheInstancesChoiceWhereTheAccountHasNone(t *testing.T) {
	for name, tt := range map[string]struct {
		instance bool
		account  string
		want     bool
	}{
		"nobody says":             {false, "", false},
		"the instance":            {true, "", true},
		"the account":             {false, "hold", true},
		"the account, against it": {true, "fail", false},
	} {
		t.Run(name, func(t *testing.T) {
			a := account("a")
			a.AccountTrouble = tt.account
			if e, err := newEntry(a, tt.instance); err != nil || e.sender.Hold != tt.want {
				t.Errorf("%t, %v", e.sender.Hold, err)
			}
		})
	}
}

func TestTroubleOfADeletedAccountMakesNoEvent(t *testing.T) {
	b := setup(t, nil)
	b.create(t, holdingAccount("a"))
	other := process(t, b.url, "secret", nil)
	other.resolve(t, "a")
	if err := b.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	other.Outcome(t.Context(), "a", refused())
	if got := b.events(t); len(got) != 0 {
		t.Errorf("%d events", len(got))
	}
	if keys := b.db.Client().Keys(t.Context(), "*:account:a*").Val(); len(keys) != 0 {
		t.Errorf("left behind: %v", keys)
	}
}

func TestHeldAccountsCostNothingUntilACheckIsDue(t *testing.T) {
	b := setup(t, nil)
	b.create(t, holdingAccount("a"))
	b.Outcome(t.Context(), "a", refused())
	if b.trial(t, "a") {
		t.Fatal("tried")
	}
	n := countCommands(b, func() {
		for range 100 {
			b.trial(t, "a")
		}
	})
	if n != 0 {
		t.Errorf("%d commands for 100 held messages", n)
	}
}

func TestTypesHaveTheEvent(t *testing.T) {
	if !slices.Contains(event.Types(), event.AccountError) {
		t.Error("nobody can ask for accountError")
	}
}
