package smtpsend_test

import (
	"errors"
	"testing"
	"time"

	"github.com/postroom/postroom/smtpsend"
)

func TestElsewhere(t *testing.T) {
	for _, row := range []struct {
		name string
		err  smtpsend.Error
		want bool
	}{
		{"name not found", smtpsend.Error{Phase: smtpsend.PhaseDNS, Verdict: smtpsend.Soft,
			Scope: smtpsend.ScopeAccount}, true},
		{"not reached", smtpsend.Error{Phase: smtpsend.PhaseConnect, Verdict: smtpsend.Soft,
			Scope: smtpsend.ScopeAccount}, true},
		{"certificate", smtpsend.Error{Phase: smtpsend.PhaseTLS, Verdict: smtpsend.Auth,
			Scope: smtpsend.ScopeAccount}, true},
		{"TLS that only the message wants", smtpsend.Error{Phase: smtpsend.PhaseSTARTTLS, Verdict: smtpsend.Policy,
			Scope: smtpsend.ScopeMessage}, false},
		{"listed", smtpsend.Error{Phase: smtpsend.PhaseGreeting, Verdict: smtpsend.Block,
			Scope: smtpsend.ScopeDestination}, true},
		{"our name", smtpsend.Error{Phase: smtpsend.PhaseEHLO, Verdict: smtpsend.Auth,
			Scope: smtpsend.ScopeAccount}, true},
		{"login", smtpsend.Error{Phase: smtpsend.PhaseAuth, Verdict: smtpsend.Auth, Scope: smtpsend.ScopeAccount},
			true},
		{"too many logins", smtpsend.Error{Phase: smtpsend.PhaseAuth, Verdict: smtpsend.Throttle,
			Scope: smtpsend.ScopeAccount}, true},
		{"settings", smtpsend.Error{Phase: smtpsend.PhaseCheck, Verdict: smtpsend.Auth,
			Scope: smtpsend.ScopeAccount}, true},
		{"quota at MAIL", smtpsend.Error{Phase: smtpsend.PhaseMail, Verdict: smtpsend.Throttle,
			Scope: smtpsend.ScopeAccount}, true},
		{"shutting down at MAIL", smtpsend.Error{Phase: smtpsend.PhaseMail, Verdict: smtpsend.Soft,
			Scope: smtpsend.ScopeConnection}, true},
		{"login wanted at MAIL", smtpsend.Error{Phase: smtpsend.PhaseMail, Verdict: smtpsend.Auth,
			Scope: smtpsend.ScopeAccount}, true},
		{"sender refused", smtpsend.Error{Phase: smtpsend.PhaseMail, Verdict: smtpsend.Policy,
			Scope: smtpsend.ScopeMessage}, false},
		{"message refused for now at MAIL", smtpsend.Error{Phase: smtpsend.PhaseMail, Verdict: smtpsend.Soft,
			Scope: smtpsend.ScopeMessage}, false},
		{"invalid address", smtpsend.Error{Phase: smtpsend.PhaseCheck, Verdict: smtpsend.Policy,
			Scope: smtpsend.ScopeMessage}, false},
		{"quota at RCPT", smtpsend.Error{Phase: smtpsend.PhaseRcpt, Verdict: smtpsend.Throttle,
			Scope: smtpsend.ScopeAccount}, false},
		{"connection lost at RCPT", smtpsend.Error{Phase: smtpsend.PhaseRcpt, Verdict: smtpsend.Soft,
			Scope: smtpsend.ScopeConnection}, false},
		{"connection lost at the dot", smtpsend.Error{Phase: smtpsend.PhaseDot, Verdict: smtpsend.Soft,
			Scope: smtpsend.ScopeConnection, InDoubt: true}, false},
	} {
		if got := row.err.Elsewhere(); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

func TestTokenError(t *testing.T) {
	cause := errors.New("invalid_grant")
	for permanent, verdict := range map[bool]smtpsend.Verdict{true: smtpsend.Auth, false: smtpsend.Soft} {
		e := smtpsend.TokenError(cause, permanent, time.Minute)
		if e.Verdict != verdict || e.Name() != "EOAUTH2" || !e.Elsewhere() || e.RetryAfter != time.Minute ||
			!errors.Is(e, cause) {
			t.Errorf("permanent %v: %+v", permanent, e)
		}
	}
}
