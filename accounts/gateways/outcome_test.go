package gateways

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/smtpsend"
)

func refused() *smtpsend.Error {
	return &smtpsend.Error{Phase: smtpsend.PhaseAuth, Code: 535, Line: "535 5.7.8 no", Verdict: smtpsend.Auth,
		Scope: smtpsend.ScopeAccount}
}

func TestMet(t *testing.T) {
	tests := []struct {
		name              string
		err               error
		state, text, code string
	}{
		{"success", nil, stateConnected, "", ""},
		{"a recipient refused", &smtpsend.Error{Phase: smtpsend.PhaseRcpt, Code: 550,
			Scope: smtpsend.ScopeRecipient}, stateConnected, "", ""},
		{"the message refused", fmt.Errorf("send: %w", &smtpsend.Error{Phase: smtpsend.PhaseDot, Code: 554,
			Scope: smtpsend.ScopeMessage}), stateConnected, "", ""},
		{"the message refused by ourselves", &smtpsend.Error{Phase: smtpsend.PhaseCheck,
			Scope: smtpsend.ScopeMessage}, "", "", ""},
		{"login refused", refused(), stateError, "smtp auth: 535 5.7.8 no", "EAUTH"},
		{"no connection", &smtpsend.Error{Phase: smtpsend.PhaseConnect, Scope: smtpsend.ScopeConnection,
			Err: errors.New("refused")},
			stateError, "smtp connect: refused", "ESOCKET"},
		{"we stopped", fmt.Errorf("send: %w", context.Canceled), "", "", ""},
		{"something else", errors.New("two\r\nlines\x1b[31m"), stateError, "two lines [31m", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if state, text, code := Met(tt.err); state != tt.state || text != tt.text || code != tt.code {
				t.Errorf("%q %q %q, want %q %q %q", state, text, code, tt.state, tt.text, tt.code)
			}
		})
	}
	if _, text, _ := Met(errors.New(strings.Repeat("ä", 1000))); len(text) != MostErrorText ||
		strings.Contains(text, "\ufffd") {
		t.Errorf("a long text became %d bytes", len(text))
	}
}

func TestVia(t *testing.T) {
	err := refused()
	if Via("", err) != error(err) || Via("g", nil) != nil || GatewayOf(err) != "" || GatewayOf(nil) != "" {
		t.Error("something from nothing")
	}
	got := fmt.Errorf("deliver: %w", Via("g", err))
	if GatewayOf(got) != "g" || !errors.Is(got, err) || got.Error() != "deliver: smtp auth: 535 5.7.8 no" {
		t.Errorf("%q of %q", got, GatewayOf(got))
	}
}

func TestOutcomeShowsInTheGateway(t *testing.T) {
	b := setup(t)
	b.create(t, gateway("g"))
	outcome := func(took int, err error) func() { return func() { b.Outcome(t.Context(), "g", took, err) } }
	later := func(d time.Duration, do func()) func() { return func() { b.clock.Advance(d); do() } }
	flush := func() { b.flush(t.Context()) }
	steps := []struct {
		name string
		do   func()
		want string
	}{
		{"at first", func() {}, "unset 0"},
		{"a message", outcome(1, nil), "connected 1 12:00:00"},
		{"more, within a second", func() { outcome(1, nil)(); outcome(1, nil)() }, "connected 1 12:00:00"},
		{"with what comes after it", later(time.Second, outcome(1, nil)), "connected 4 12:00:01"},
		{"a recipient refused", later(time.Second,
			outcome(0, &smtpsend.Error{Code: 550, Scope: smtpsend.ScopeRecipient})), "connected 4 12:00:02"},
		{"the login refused, at once", outcome(0, refused()),
			"error 4 12:00:02 EAUTH smtp auth: 535 5.7.8 no 12:00:02"},
		{"again, within a second", outcome(0, errors.New("other")),
			"error 4 12:00:02 EAUTH smtp auth: 535 5.7.8 no 12:00:02"},
		{"written each second", later(time.Second, flush), "error 4 12:00:02  other 12:00:02"},
		{"left to rest", func() { b.Opened(t.Context(), "g", b.clock.Now().Add(time.Minute)) },
			"open 4 12:00:02  other 12:00:02"},
		{"an error that comes late", later(time.Second, outcome(0, refused())),
			"open 4 12:00:04 EAUTH smtp auth: 535 5.7.8 no 12:00:04"},
		{"after the rest", later(time.Minute, func() {}),
			"error 4 12:00:04 EAUTH smtp auth: 535 5.7.8 no 12:00:04"},
		{"success", outcome(1, nil), "connected 5 12:01:04"},
		{"another relay", func() {
			g := gateway("g")
			g.Host = "other.example.com"
			b.create(t, g)
		}, "unset 5 12:01:04"},
	}
	for _, step := range steps {
		step.do()
		if got := summary(b.get(t, "g")); got != step.want {
			t.Errorf("%s: %q, want %q", step.name, got, step.want)
		}
	}
}

func summary(g api.GatewayInfo) string {
	s := fmt.Sprint(g.State, " ", g.Deliveries)
	if g.LastUse != nil {
		s += " " + g.LastUse.Format(time.TimeOnly)
	}
	if e := g.LastError; e != nil {
		s += " " + e.ServerResponseCode + " " + e.Response + " " + e.Time.Format(time.TimeOnly)
	}
	return s
}

func TestOutcomesOfManyProcessesAddUp(t *testing.T) {
	b := setup(t)
	b.create(t, gateway("g"))
	all := []bundle{b, process(t, b.url, testkit.Ring(t, "secret"))}
	ctx, stop := context.WithCancel(t.Context())
	var running, wg sync.WaitGroup
	for _, p := range all {
		running.Go(func() {
			if err := p.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	sent := testredis.CountCommands(b.db)
	for i := range 4 {
		wg.Go(func() {
			for range 250 {
				all[i%2].Outcome(t.Context(), "g", 1, nil)
			}
		})
	}
	wg.Wait()
	if n := sent.Sent(); n > 5 {
		t.Errorf("%d commands for 500 messages of one process", n)
	}
	stop()
	running.Wait()
	if got := b.get(t, "g").Deliveries; got != 1000 {
		t.Errorf("%d deliveries, want 1000", got)
	}
}

func TestUnusedGatewaysAreForgotten(t *testing.T) {
	b := setup(t)
	b.create(t, gateway("g"))
	b.Outcome(t.Context(), "g", 1, nil)
	b.clock.Advance(forgetAfter + time.Second)
	b.flush(t.Context())
	if diff := cmp.Diff(0, len(b.uses)); diff != "" {
		t.Error(diff)
	}
}
