package accounts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/smtpsend"
)

func TestStateOf(t *testing.T) {
	tests := []struct {
		name        string
		err         error
		state, text string
	}{
		{"success", nil, stateConnected, ""},
		{"a recipient refused", &smtpsend.Error{Phase: smtpsend.PhaseRcpt, Code: 550, Scope: smtpsend.ScopeRecipient}, stateConnected, ""},
		{"the message refused", fmt.Errorf("send: %w", &smtpsend.Error{Phase: smtpsend.PhaseDot, Code: 554, Scope: smtpsend.ScopeMessage}), stateConnected, ""},
		{"the message refused by ourselves", &smtpsend.Error{Phase: smtpsend.PhaseCheck, Scope: smtpsend.ScopeMessage}, "", ""},
		{"login refused", &smtpsend.Error{Phase: smtpsend.PhaseAuth, Code: 535, Line: "535 no", Scope: smtpsend.ScopeAccount}, stateError, "smtp auth: 535 no"},
		{"no connection", &smtpsend.Error{Phase: smtpsend.PhaseConnect, Scope: smtpsend.ScopeConnection, Err: errors.New("refused")}, stateError, "smtp connect: refused"},
		{"we stopped", fmt.Errorf("send: %w", context.Canceled), "", ""},
		{"something else", errors.New("two\r\nlines\x1b[31m"), stateError, "two  lines [31m"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if state, text := stateOf(tt.err); state != tt.state || text != tt.text {
				t.Errorf("%q %q, want %q %q", state, text, tt.state, tt.text)
			}
		})
	}
	if _, text := stateOf(errors.New(strings.Repeat("ä", 1000))); len(text) > maxErrorText || strings.Contains(text, "\ufffd") {
		t.Errorf("a long text became %d bytes", len(text))
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
		{"the next error within a minute", func() { b.clock.advance(59 * time.Second); b.Outcome(t.Context(), "a", errors.New("away")) }, "error refused 12:00:00"},
		{"after a minute", func() { b.clock.advance(time.Second); b.Outcome(t.Context(), "a", errors.New("away")) }, "error away 12:01:00"},
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
	if n := b.db.Client().Exists(t.Context(), stateKey("a")).Val(); n != 0 {
		t.Error("its state came back")
	}
}
