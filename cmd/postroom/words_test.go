package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
)

var noon = time.Date(2030, 12, 24, 12, 0, 0, 0, time.UTC)

func TestWhen(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		parse      func(string, time.Time) (time.Time, error)
		want       time.Time // zero: refused
	}{
		{"a distance", "10m", parseWhen, noon.Add(10 * time.Minute)},
		{"a distance in words", "in 1h30m", parseWhen, noon.Add(90 * time.Minute)},
		{"a distance with a sign", "+5s", parseWhen, noon.Add(5 * time.Second)},
		{"a time with its zone", "2030-12-25T08:00:00+01:00", parseWhen, time.Date(2030, 12, 25, 7, 0, 0, 0,
			time.UTC)},
		{"a date, in this machine's zone", "2030-12-25", parseWhen, time.Date(2030, 12, 25, 0, 0, 0, 0,
			time.Local)},
		{"the past by a distance", "-5m", parseWhen, time.Time{}},
		{"a word", "tomorrow", parseWhen, time.Time{}},
		{"since a distance", "2h", parseSince, noon.Add(-2 * time.Hour)},
		{"since a distance in words", "2h ago", parseSince, noon.Add(-2 * time.Hour)},
		{"days ahead", "in 3d", parseWhen, noon.Add(72 * time.Hour)},
		{"weeks and days ahead", "1w1d", parseWhen, noon.Add(8 * 24 * time.Hour)},
		{"since days", "7d", parseSince, noon.Add(-7 * 24 * time.Hour)},
		{"since weeks, in words", "2w ago", parseSince, noon.Add(-14 * 24 * time.Hour)},
		{"since a word", "yesterday", parseSince, time.Time{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.parse(tc.text, noon)
			if !got.Equal(tc.want) || (err != nil) != tc.want.IsZero() {
				t.Errorf("got %v, %v; want %v", got, err, tc.want)
			}
		})
	}
}

func TestMoment(t *testing.T) {
	for _, tc := range []struct {
		off  time.Duration
		want string
	}{
		{0, "now"}, {9 * time.Second, "in 9s"}, {-90 * time.Second, "1m30s ago"}, {2 * time.Hour, "in 2h"},
		{-125 * time.Minute, "2h05m ago"},
		{72 * time.Hour, noon.Add(72 * time.Hour).Local().Format("2006-01-02 15:04")},
	} {
		if got := moment(noon.Add(tc.off), noon); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.off, got, tc.want)
		}
	}
}

// TestStrangersTextStaysOnItsLine: a subject that reaches a terminal must not move its cursor, colour it, or
// turn text around.
func TestStrangersTextStaysOnItsLine(t *testing.T) {
	evil := "Hello\x1b[2J\x1b]0;owned\x07\r\nid  sent\u009b31m\u202eevil"
	g := messageGrid([]api.OutboxMessage{
		{QueueID: "1", Subject: evil, Envelope: api.Envelope{To: []string{"a@example.com\x1b[31m"}}}}, noon)
	grids := map[string]grid{
		"outbox": g,
		"log": logGrid([]api.LoggedMessage{{QueueID: "1", Account: evil, Subject: evil, Response: evil,
			Envelope: api.Envelope{To: []string{evil}}}}, noon),
		"suppressions": suppressionGrid([]api.Suppression{
			{Email: evil, Response: evil, Source: evil, SuppressionScope: api.SuppressionScope{List: evil}}}, noon),
		"templates": templatesGrid([]api.TemplateRow{
			{TemplateHead: api.TemplateHead{ID: "1", Name: evil, Account: &evil}, Locales: []string{evil}}}, noon),
		"events": eventGrid([]api.MessageEvent{{Event: evil, Recipients: []string{evil}, Response: evil,
			Attempt: &api.Attempt{Gateway: evil, Host: evil}}}),
	}
	for of, g := range grids {
		var plain bytes.Buffer
		(&console{out: &plain}).show(g)
		for name, text := range map[string]string{"plain": plain.String(), "drawn": g.draw(200)} {
			text = strings.NewReplacer("\x1b[1m", "", "\x1b[m", "", "\x1b[90m", "").Replace(text) // our own
			if strings.ContainsAny(text, "\x1b\x07\r\u009b\u202e") {
				t.Errorf("%s, %s: %q", of, name, text)
			}
		}
		if lines := strings.Count(plain.String(), "\n"); lines != 2 {
			t.Errorf("%s: a heading and a row are two lines, got %d:\n%s", of, lines, plain.String())
		}
	}
}

// TestQueuesThatOverlapSaySo: submit counts the mail of both lanes, that of bulk too.
func TestQueuesThatOverlapSaySo(t *testing.T) {
	var plain bytes.Buffer
	(&console{out: &plain}).show(queueGrid([]api.QueueStatus{
		{Queue: "submit", Jobs: api.Jobs{Waiting: 9}}, {Queue: "bulk", Jobs: api.Jobs{Waiting: 3}, Paused: true},
		{Queue: "notify"}, {Queue: "documents"},
	}))
	var got []string
	for line := range strings.Lines(plain.String()) {
		name, rest, _ := strings.Cut(line, "  ")
		runs, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		got = append(got, name+": "+runs)
	}
	want := []string{"QUEUE: RUNS", "submit (both lanes): yes", "bulk (part of submit): paused", "notify: yes",
		"documents: yes"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestLastWord(t *testing.T) {
	refused := &api.DeliveryFault{Message: "451 busy"}
	for _, tc := range []struct {
		name string
		m    api.LoggedMessage
		want string
	}{
		{"nothing to say", api.LoggedMessage{Status: api.StatusQueued}, "-"},
		{"sent, at last", api.LoggedMessage{Status: api.StatusSent, Error: refused, Response: "250 OK"}, "250 OK"},
		{"sent in part", api.LoggedMessage{Status: api.StatusDead, Error: refused, Response: "250 OK"}, "451 busy"},
		{"a dead letter that was deleted", api.LoggedMessage{Status: api.StatusFailed, Error: refused,
			Reason: "operator"}, "451 busy"},
		{"cancelled", api.LoggedMessage{Status: api.StatusCancelled, Error: refused, Reason: "operator"},
			"operator"},
		{"it may have arrived twice", api.LoggedMessage{Status: api.StatusSent, Response: "250 OK", InDoubt: 1},
			"in doubt: 250 OK"},
	} {
		if got := lastWord(tc.m); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestWhatHappened(t *testing.T) {
	attempt := &api.Attempt{Number: 2, Gateway: "main", Host: "mx.example.com:25", Error: "EENVELOPE",
		Line: "451 busy"}
	for _, tc := range []struct {
		e    api.MessageEvent
		want string
	}{
		{api.MessageEvent{Event: "messageQueued"}, ""},
		{api.MessageEvent{Event: "messageCancelled", Reason: "operator"}, "operator"},
		{api.MessageEvent{Event: "messageDeliveryError", Attempt: attempt},
			"attempt 2, main, mx.example.com:25: EENVELOPE 451 busy"},
		{api.MessageEvent{Event: "messageSent", Attempt: attempt, Response: "250 OK"},
			"attempt 2, main, mx.example.com:25: 250 OK"},
		{api.MessageEvent{Event: "messageSent", Attempt: &api.Attempt{Number: 1}}, "attempt 1"},
	} {
		if got := happened(tc.e); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.e.Event, got, tc.want)
		}
	}
}

// TestTableFitsTheTerminal: what is cut to fit is never the id, which the next command is given, nor the
// state.
func TestTableFitsTheTerminal(t *testing.T) {
	const id, address = "01M7YVP1FVRV07ANMBGSMR0100", "somebody.with.a.long.name@example.com"
	long, some, soon := strings.Repeat("日本語 ", 20), strings.Repeat("long ", 50), noon.Add(125*time.Minute)
	for _, tc := range []struct {
		name  string
		g     grid
		state string
	}{
		{"outbox", messageGrid([]api.OutboxMessage{{
			QueueID: id, State: api.Delayed, Subject: long, Envelope: api.Envelope{To: []string{address, "b@c.d"}},
			Attempts: 10, AttemptsMade: 10, NextAttempt: api.TimeOrFalse{Time: &soon},
			Progress: api.Progress{Error: &api.DeliveryFault{Message: some}},
		}}, noon), "delayed"},
		{"log", logGrid([]api.LoggedMessage{{
			QueueID: id, Status: api.StatusCancelled, Account: "a-rather-long-account", Subject: long,
			Response: some, Envelope: api.Envelope{To: []string{address}}, Created: noon.Add(-20 * time.Hour),
		}}, noon), "cancelled"},
		{"suppressions", suppressionGrid([]api.Suppression{{
			Email: address, Response: some, Source: "a list of another program", Reason: "hard_bounce",
			SuppressionScope: api.SuppressionScope{Account: "shop", List: "a-list-with-a-name"},
		}}, noon), ""},
		{"queues", queueGrid([]api.QueueStatus{{Queue: "submit", Jobs: api.Jobs{Waiting: 123456, Failed: 1234567,
			Completed: 12345678}}, {Queue: "bulk", Paused: true}}), "paused"},
	} {
		first := tc.g.rows[0][0]
		for _, width := range []int{80, 100, 120, 400} {
			text := tc.g.draw(width)
			for line := range strings.Lines(text) {
				if got := lipgloss.Width(strings.TrimRight(line, "\n")); got > width {
					t.Errorf("%s: a line of %d cells in a terminal of %d: %s", tc.name, got, width, line)
				}
			}
			if !strings.Contains(text, first) || !strings.Contains(text, tc.state) {
				t.Errorf("%s: %s or %q is cut in a terminal of %d:\n%s", tc.name, first, tc.state, width, text)
			}
		}
		t.Logf("%s\n%s", tc.name, tc.g.draw(80))
	}
}

// TestNarrowTablesGoBelowEachOther: where not even the ids fit beside each other, nothing is lost but the
// table.
func TestNarrowTablesGoBelowEachOther(t *testing.T) {
	g := newGrid("id", "state", "subject", "why", "next", "to")
	g.add("01M7YVP1FVRV07ANMBGSMR0100", "delayed", "Hello, you all", "451 busy", "in 1h", "ann@example.com")
	got := strings.NewReplacer("\x1b[1m", "", "\x1b[m", "").Replace(g.draw(40))
	want := "id       01M7YVP1FVRV07ANMBGSMR0100\nstate    delayed\nsubject  Hello, you all\nwhy      451 busy\n" +
		"next     in 1h\nto       ann@example.com"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestProgress(t *testing.T) {
	next := noon.Add(10 * time.Second)
	for _, tc := range []struct {
		name string
		m    api.OutboxMessage
		want string
	}{
		{"waiting", api.OutboxMessage{State: api.Waiting}, "waiting"},
		{"under way", api.OutboxMessage{State: api.Active, AttemptsMade: 1, Attempts: 10},
			"attempt 2 of 10 under way"},
		{"paused", api.OutboxMessage{State: api.Paused}, "queue is paused"},
		{"scheduled", api.OutboxMessage{State: api.Scheduled, NextAttempt: api.TimeOrFalse{Time: &next}},
			"waiting for its time; next attempt at "},
		{"deferred", api.OutboxMessage{State: api.Delayed, AttemptsMade: 1, Attempts: 10, Progress: api.Progress{
			Error: &api.DeliveryFault{Message: "451 busy"}}, NextAttempt: api.TimeOrFalse{Time: &next}},
			"attempt 1 of 10 failed: 451 busy; next attempt at "},
	} {
		if got := progress(tc.m, noon); !strings.Contains(got, tc.want) {
			t.Errorf("%s: got %q, want %q in it", tc.name, got, tc.want)
		}
	}
}

func TestWhy(t *testing.T) {
	refused := api.Progress{Error: &api.DeliveryFault{Message: "451 busy"}}
	for _, tc := range []struct {
		name string
		m    api.OutboxMessage
		want string
	}{
		{"nothing to say", api.OutboxMessage{}, "-"},
		{"an attempt failed", api.OutboxMessage{Progress: refused}, "451 busy"},
		{"it waits since", api.OutboxMessage{Progress: refused, Reason: "account shop: 30 a minute"},
			"account shop: 30 a minute"},
		{"it may have arrived", api.OutboxMessage{Progress: refused, InDoubt: 1}, "in doubt: 451 busy"},
		{"its worker died after the dot", api.OutboxMessage{InDoubt: 1}, "in doubt"},
	} {
		if got := why(tc.m); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestAttempts(t *testing.T) {
	for _, tc := range []struct {
		a              api.Attempt
		asked, outcome string
	}{
		{api.Attempt{Host: "mx.example.com:25", Line: "250 OK"}, "mx.example.com:25", "250 OK"},
		{api.Attempt{Gateway: "main", Host: "mx.example.com:25", Error: "ESOCKET", Line: "refused"},
			"main, mx.example.com:25", "ESOCKET refused"},
		{api.Attempt{Gateway: "main", Error: "EINTERNAL", Line: "the worker died", InDoubt: true}, "main",
			"in doubt: EINTERNAL the worker died"},
		{api.Attempt{Error: "EAUTH", Line: "535 no", Held: true}, "",
			"not counted, the account was refused: EAUTH 535 no"},
	} {
		if got := asked(tc.a); got != tc.asked {
			t.Errorf("asked: got %q, want %q", got, tc.asked)
		}
		if got := outcome(tc.a); got != tc.outcome {
			t.Errorf("outcome: got %q, want %q", got, tc.outcome)
		}
	}
}

func TestWay(t *testing.T) {
	for want, a := range map[string]api.Account{
		"-":     {},
		"gmail": {SMTP: &api.SMTPServer{Preset: "gmail"}},
		"smtps://u@h.example:465": {SMTP: &api.SMTPServer{Host: "h.example", Port: 465, Secure: true,
			Auth: &api.SMTPAuth{User: "u", Pass: "p"}}},
		"gateways a, bulk:b=3": {
			Gateways: []api.Route{{Gateway: "a"}, {Gateway: "b", Weight: 3, Lane: api.Bulk}}},
		"gateways a=3, b": {Gateways: []api.Route{{Gateway: "a", Weight: 3}, {Gateway: "b"}}},
		"smtp://h.example, then gateways a": {SMTP: &api.SMTPServer{Host: "h.example", Preset: "ses"},
			Gateways: []api.Route{{Gateway: "a"}}},
	} {
		if got := way(a); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestPatchNamesWhatChanged: what an update does not name must not be written back, since somebody else may
// have changed it meanwhile.
func TestPatchNamesWhatChanged(t *testing.T) {
	a := api.Account{
		Account: "shop", Email: "a@example.com", SMTP: &api.SMTPServer{Host: "h", Port: 25, Auth: &api.SMTPAuth{
			User: "u", Pass: "******"}},
		Limits: &api.Limits{PerSecond: 1}, Gateways: []api.Route{{Gateway: "a"}},
		DKIM: &api.DKIM{Domain: "d", Selector: "s", PrivateKey: "******"},
	}
	five, con := 5.0, &console{}
	for _, tc := range []struct {
		name  string
		flags accountFlags
		want  api.AccountPatch
	}{
		{"nothing", accountFlags{}, api.AccountPatch{}},
		{"what is so already", accountFlags{Gateway: []string{"a"}}, api.AccountPatch{}},
		{"a limit", accountFlags{relayFlags: relayFlags{PerMinute: &five}}, api.AccountPatch{
			Limits: new(&api.Limits{PerSecond: 1, PerMinute: 5})}},
		{"a user", accountFlags{relayFlags: relayFlags{User: "v"}}, api.AccountPatch{
			SMTP: new(&api.SMTPServer{Host: "h", Port: 25, Auth: &api.SMTPAuth{User: "v", Pass: "******"}})}},
		{"tokens instead of a password",
			accountFlags{relayFlags: relayFlags{OAuth2: oauthFlags{User: "v", ClientID: "c"}}}, api.AccountPatch{
				SMTP: new(&api.SMTPServer{Host: "h", Port: 25}), OAuth2: new(&api.OAuth2{User: "v", ClientID: "c"}),
			}},
		{"a selector", accountFlags{DKIMSelector: "t"}, api.AccountPatch{
			DKIM: new(&api.DKIM{Domain: "d", Selector: "t", PrivateKey: "******"})}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			to, err := tc.flags.over(a, "", con)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, api.PatchOf[api.AccountPatch](a, to)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if a.SMTP.Auth.User != "u" || a.Limits.PerMinute != 0 {
		t.Error("what was read was changed in place")
	}
}

func TestClock(t *testing.T) {
	for off, want := range map[time.Duration]string{0: ok, -1900 * time.Millisecond: ok, 2 * time.Second: warn,
		-29 * time.Second: warn, time.Hour: fail} {
		if got := judgeClock(off); got.Status != want {
			t.Errorf("%s off: %s, want %s", off, got.Status, want)
		}
	}
}
