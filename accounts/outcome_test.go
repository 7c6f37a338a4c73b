package accounts

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/oauth"
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
		{"login refused", refused(), met{state: metTrouble, text: "smtp auth: 535 5.7.8 no", kind: "EAUTH"}},
		{"login refused at a gateway", fmt.Errorf("send: %w", gateways.Via("g", refused())),
			met{state: metTrouble, text: "send: smtp auth: 535 5.7.8 no", kind: "EAUTH"}},
		{"no connection", &smtpsend.Error{Phase: smtpsend.PhaseConnect, Verdict: smtpsend.Soft,
			Scope: smtpsend.ScopeConnection, Err: errors.New("refused")},
			met{state: stateError, text: "smtp connect: refused"}},
		{"consent taken back", &oauth.Error{Owner: "account:a", Permanent: true, Code: "invalid_grant"},
			met{state: metTrouble, text: "access token of account:a: invalid_grant", kind: "EOAUTH2"}},
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
