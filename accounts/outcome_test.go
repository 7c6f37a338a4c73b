package accounts

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend"
)

func TestWhatAnAttemptSaysAboutTheAccount(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want met
	}{
		{"success", nil, met{state: stateConnected}},
		{"a recipient refused", &smtpsend.Error{Phase: smtpsend.PhaseRcpt, Code: 550, Verdict: smtpsend.Hard,
			Scope: smtpsend.ScopeRecipient}, met{state: stateConnected}},
		{"login refused", refused(), met{state: metTrouble, text: "smtp auth: 535 5.7.8 no", kind: "EAUTH",
			code: "EAUTH", reply: 535, cmd: "AUTH PLAIN"}},
		{"login refused at a gateway", fmt.Errorf("send: %w", gateways.Via("g", refused())),
			met{state: metTrouble, text: "send: smtp auth: 535 5.7.8 no", kind: "EAUTH", code: "EAUTH", reply: 535,
				cmd: "AUTH PLAIN"}},
		{"no connection", &smtpsend.Error{Phase: smtpsend.PhaseConnect, Verdict: smtpsend.Soft,
			Scope: smtpsend.ScopeConnection, Err: errors.New("refused")},
			met{state: stateError, text: "smtp connect: refused", code: "ESOCKET"}},
		{"consent taken back", &oauth.Error{Owner: "account:a", Permanent: true, Code: "invalid_grant"},
			met{state: metTrouble, text: "access token of account:a: invalid_grant", kind: "EOAUTH2",
				code: "EOAUTH2"}},
		{"the token server is away", &oauth.Error{Owner: "account:a", Status: 503},
			met{state: stateError, text: "access token of account:a: the token server answers 503"}},
		{"we stopped", fmt.Errorf("send: %w", context.Canceled), met{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := metOf(tt.err); got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

// refused is what a relay says to a wrong password.
func refused() *smtpsend.Error {
	return &smtpsend.Error{
		Phase: smtpsend.PhaseAuth, Command: "AUTH PLAIN", Code: 535, Enhanced: "5.7.8", Line: "535 5.7.8 no",
		Verdict: smtpsend.Auth, Scope: smtpsend.ScopeAccount,
	}
}

func TestOutcomeShowsInTheAccount(t *testing.T) {
	b := setup(t, nil)
	b.create(t, account("a"))
	show := func() string {
		t.Helper()
		info, err := b.Get(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if (info.LastErrorAt != nil) != (info.LastError != "") {
			t.Errorf("%+v", info)
		}
		if info.LastErrorAt != nil {
			return fmt.Sprintf("%s %s %s", info.State, info.LastError, info.LastErrorAt.Format(time.TimeOnly))
		}
		return info.State
	}
	steps := []struct {
		name string
		do   func()
		want string
	}{
		{"at first", func() {}, "unset"},
		{"success", func() { b.Outcome(t.Context(), "a", nil) }, "connected"},
		{"an error", func() { b.Outcome(t.Context(), "a", errors.New("refused")) }, "error refused 12:00:00"},
		{"the next error within a minute", func() {
			b.clock.Advance(59 * time.Second)
			b.Outcome(t.Context(), "a",
				errors.New("away"))
		}, "error refused 12:00:00"},
		{"after a minute", func() { b.clock.Advance(time.Second); b.Outcome(t.Context(), "a", errors.New("away")) },
			"error away 12:01:00"},
		{"success again", func() { b.Outcome(t.Context(), "a", nil) }, "connected"},
		{"another relay", func() { b.create(t, account("a")) }, "unset"},
		{"success with that", func() { b.Outcome(t.Context(), "a", nil) }, "connected"},
	}
	for _, step := range steps {
		step.do()
		if got := show(); got != step.want {
			t.Errorf("%s: %q, want %q", step.name, got, step.want)
		}
	}
}

func TestSMTPStatusIsThatOfTheLastAttempt(t *testing.T) {
	b := setup(t, nil)
	b.create(t, account("a"))
	at := b.clock.Now()
	for _, step := range []struct {
		name string
		do   func()
		want *api.SMTPStatus
	}{
		{"at first", func() {}, nil},
		{"success", func() { b.Outcome(t.Context(), "a", nil) }, &api.SMTPStatus{Created: at, Status: "ok"}},
		{"login refused", func() { b.clock.Advance(time.Second); b.Outcome(t.Context(), "a", refused()) },
			&api.SMTPStatus{Created: at.Add(time.Second), Status: "error", Description: "smtp auth: 535 5.7.8 no",
				Code: "EAUTH", ResponseCode: 535, Command: "AUTH PLAIN"}},
		{"success again", func() { b.Outcome(t.Context(), "a", nil) },
			&api.SMTPStatus{Created: at.Add(time.Second), Status: "ok"}},
		{"another relay", func() { b.create(t, account("a")) }, nil},
	} {
		step.do()
		info, err := b.Get(t.Context(), "a")
		if diff := cmp.Diff(step.want, info.SMTPStatus); diff != "" || err != nil {
			t.Errorf("%s: %s, %v", step.name, diff, err)
		}
	}
}

func TestOutcomeOfADeletedAccountLeavesNothing(t *testing.T) {
	b := setup(t, nil)
	b.create(t, account("a"))
	if err := b.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	b.Outcome(t.Context(), "a", errors.New("late"))
	if n := b.db.Client().Exists(t.Context(), b.store.StateKey("a")).Val(); n != 0 {
		t.Error("its state came back")
	}
}

// TestAccountsAreCountedByState: over several pages, the configured account among them, every five seconds.
func TestAccountsAreCountedByState(t *testing.T) {
	b := setup(t, configuredAccount())
	for i := range 1005 {
		b.create(t, account(fmt.Sprintf("a%04d", i)))
	}
	b.Outcome(t.Context(), "a0001", nil)
	b.Outcome(t.Context(), "a1003", errors.New("relay away"))
	held := account("h")
	held.AccountTrouble = "hold"
	b.create(t, held)
	b.Outcome(t.Context(), "h", &smtpsend.Error{Verdict: smtpsend.Auth, Code: 535})
	want := api.Connections{Unset: 1004, Connected: 1, Error: 1, Held: 1}
	for _, wait := range []time.Duration{0, statesFor - 1, 1} {
		b.clock.Advance(wait)
		if wait == 1 {
			want.Unset--
		}
		if got, err := b.States(t.Context()); err != nil || got != want {
			t.Errorf("after %s: %+v, %v; want %+v", wait, got, err, want)
		}
		if wait == 0 {
			if err := b.Delete(t.Context(), "a0000"); err != nil {
				t.Fatal(err)
			}
		}
	}
}
