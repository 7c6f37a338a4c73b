package mxsend_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/mxsend"
)

// replies answers a verb of the dialogue.
func replies(verb, reply string) testsmtp.Options {
	return testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
		if c.Verb == verb {
			return testsmtp.Action{Reply: reply, Close: strings.HasPrefix(reply, "421")}
		}
		return testsmtp.Action{}
	}}
}

// TestHostsInOrder: RFC 5321 section 5.1. The first host is dead, the second one defers, the third one
// takes the message, and the fourth one is never asked.
func TestHostsInOrder(t *testing.T) {
	w := newWorld(t)
	w.zone.Add(t, "example.test. 60 MX 40 last.example.test.", "example.test. 60 MX 30 takes.example.test.",
		"example.test. 60 MX 10 dead.example.test.", "example.test. 60 MX 20 defers.example.test.")
	w.named(t, "dead.example.test", "127.0.0.2")
	defers := w.server(t, "defers.example.test", "127.0.0.3", replies("MAIL", "451 4.3.0 Try again"))
	takes := w.server(t, "takes.example.test", "127.0.0.4", testsmtp.Options{})
	last := w.server(t, "last.example.test", "127.0.0.5", testsmtp.Options{})
	r, err := w.send(t, "b@example.test", "c@EXAMPLE.test")
	if err != nil {
		t.Fatal(err)
	}
	if defers.Connections() != 1 || takes.Count() != 1 || last.Connections() != 0 {
		t.Errorf("%d, %d, %d connections", defers.Connections(), takes.Connections(), last.Connections())
	}
	if got := takes.Messages()[0].To; !slices.Equal(got, []string{"b@example.test", "c@EXAMPLE.test"}) {
		t.Errorf("recipients %q", got)
	}
	if !strings.HasPrefix(r.RemoteAddress, "127.0.0.4:") || r.Code != 250 || r.Recipients[0].Response == "" {
		t.Errorf("%+v", r)
	}
}

// TestWhatEndsAnAttempt: a second host of the same domain is asked or not.
func TestWhatEndsAnAttempt(t *testing.T) {
	for _, row := range []struct {
		name, verb, reply string
		next              bool
		verdict           smtpsend.Verdict // if the second host isn't asked
	}{
		{"5xx to a recipient", "RCPT", "550 5.1.1 User unknown", false, smtpsend.Hard},
		{"5xx to the sender", "MAIL", "550 5.7.1 Not wanted", false, smtpsend.Policy},
		{"5xx to the message", "DOT", "554 5.7.1 Spam", false, smtpsend.Policy},
		{"5xx that wants a login", "MAIL", "530 5.7.0 Authentication required", false, smtpsend.Policy},
		{"slow down", "RCPT",
			"450 4.2.1 The user you are trying to contact is receiving mail at a rate that is too high",
			false, smtpsend.Throttle},
		{"5xx greeting", "CONNECT", "554 5.3.2 Not in service", true, ""},
		{"4xx greeting", "CONNECT", "421 4.3.2 Shutting down", true, ""},
		{"5xx to EHLO", "EHLO", "550 5.0.0 No", true, ""},
		{"4xx to a recipient", "RCPT", "451 4.3.0 Later", true, ""},
		{"4xx to the message", "DOT", "451 4.3.0 Later", true, ""},
		{"greylisting", "RCPT", "450 4.2.0 Greylisted", true, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.zone.Add(t, "example.test. 60 MX 10 a.example.test.", "example.test. 60 MX 20 b.example.test.")
			w.server(t, "a.example.test", "127.0.0.2", replies(row.verb, row.reply))
			second := w.server(t, "b.example.test", "127.0.0.3", testsmtp.Options{})
			_, err := w.send(t, "b@example.test")
			switch {
			case row.next && (err != nil || second.Count() != 1):
				t.Errorf("second host: %d messages, %v", second.Count(), err)
			case !row.next && (err == nil || err.Verdict != row.verdict || second.Connections() != 0):
				t.Errorf("second host: %d connections, %v", second.Connections(), err)
			}
		})
	}
}

// TestRecipientsByThemselves: each recipient has the answer of the last host that had one for it.
func TestRecipientsByThemselves(t *testing.T) {
	w := newWorld(t)
	w.zone.Add(t, "example.test. 60 MX 10 a.example.test.", "example.test. 60 MX 20 b.example.test.")
	first := w.server(t, "a.example.test", "127.0.0.2", testsmtp.Options{})
	second := w.server(t, "b.example.test", "127.0.0.3",
		testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
			if strings.HasPrefix(c.Arg, "rcpt-451+never") {
				return testsmtp.Action{Reply: "450 4.2.2 Mailbox full"}
			}
			return testsmtp.Action{}
		}})
	var told [][]string
	m := mail("taken@example.test", "rcpt-550@example.test", "rcpt-451@example.test",
		"rcpt-451+never@example.test")
	m.Answered = func(_ context.Context, done []smtpsend.RecipientResult) error {
		var lines []string
		for _, r := range done {
			lines = append(lines, fmt.Sprint(r.Address, " ", r.Err == nil))
		}
		told = append(told, lines)
		return nil
	}
	r, err := w.message(t, m)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range r.Recipients {
		if one.Err == nil {
			got = append(got, "delivered")
		} else {
			got = append(got, fmt.Sprint(one.Err.Code, " ", one.Err.Verdict))
		}
	}
	if diff := cmp.Diff([]string{"delivered", "550 hard", "delivered", "450 soft"}, got); diff != "" {
		t.Error(diff)
	}
	if first.Messages()[0].To[0] != "taken@example.test" ||
		second.Messages()[0].To[0] != "rcpt-451@example.test" {
		t.Error("another recipient got it")
	}
	want := [][]string{{"taken@example.test true", "rcpt-550@example.test false"}} // before the last transaction
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("Answered: %s", diff)
	}
}

// TestDoubtStays: a message that one host may have taken is offered to no other.
func TestDoubtStays(t *testing.T) {
	w := newWorld(t)
	w.zone.Add(t, "example.test. 60 MX 10 a.example.test.", "example.test. 60 MX 20 b.example.test.")
	w.server(t, "a.example.test", "127.0.0.2", testsmtp.Options{})
	second := w.server(t, "b.example.test", "127.0.0.3", testsmtp.Options{})
	_, err := w.send(t, "dot-close@example.test")
	if err == nil || !err.InDoubt || second.Connections() != 0 {
		t.Errorf("%v, second host: %d connections", err, second.Connections())
	}
}

// TestNothingWithoutTheMark: if the caller can't record that a message is about to be delivered, no host of
// any domain gets it.
func TestNothingWithoutTheMark(t *testing.T) {
	w := newWorld(t)
	w.zone.Add(t, "one.test. 60 MX 10 a.one.test.", "one.test. 60 MX 20 b.one.test.",
		"two.test. 60 MX 10 a.two.test.")
	servers := []*testsmtp.Server{w.server(t, "a.one.test", "127.0.0.2", testsmtp.Options{}),
		w.server(t, "b.one.test", "127.0.0.3", testsmtp.Options{}),
		w.server(t, "a.two.test", "127.0.0.4", testsmtp.Options{})}
	lost := errors.New("the lease is lost")
	m := mail("b@one.test", "c@two.test")
	m.BeforeDot = func(context.Context, []string) error { return lost }
	r, err := w.message(t, m)
	if err == nil || !errors.Is(err, smtpsend.ErrAborted) || !errors.Is(err, lost) || err.InDoubt ||
		err.Permanent() {
		t.Fatal(err)
	}
	if e := r.Recipients[1].Err; !errors.Is(e, lost) || e.InDoubt {
		t.Errorf("%v", e)
	}
	if servers[0].Count()+servers[1].Connections()+servers[2].Connections() != 0 {
		t.Error("another host was asked")
	}

	m = mail("b@one.test", "rcpt-451@one.test")
	m.BeforeDot = func(context.Context, []string) error { return lost }
	if r, _ = w.message(t, m); r.Recipients[1].Err.Code != 451 || servers[1].Connections() != 0 {
		t.Errorf("a reply that came before: %v", r.Recipients[1].Err)
	}

	m = mail("b@one.test", "c@two.test")
	m.Answered = func(context.Context, []smtpsend.RecipientResult) error { return lost }
	r, err = w.message(t, m)
	if err != nil || r.Recipients[0].Err != nil || !errors.Is(r.Recipients[1].Err, lost) ||
		servers[2].Connections() != 0 {
		t.Errorf("Answered failed: %v, %v", err, r.Recipients[1].Err)
	}

	failures := 0
	m.Answered = func(context.Context, []smtpsend.RecipientResult) error {
		if failures++; failures == 1 {
			return lost
		}
		return nil
	}
	m.To = nil
	for i := range 101 { // two transactions
		m.To = append(m.To, fmt.Sprintf("b%d@one.test", i))
	}
	r, err = w.message(t, m)
	if err != nil || r.Recipients[99].Err != nil || !errors.Is(r.Recipients[100].Err, lost) ||
		servers[1].Connections() != 0 {
		t.Errorf("Answered failed between two transactions: %v, %v", err, r.Recipients[100].Err)
	}
}

// TestWhatTheDNSSays: domains that get no connection, or another one than their MX records say.
func TestWhatTheDNSSays(t *testing.T) {
	w := newWorld(t)
	server := w.server(t, "mx.example.test", "127.0.0.2", testsmtp.Options{Record: true})
	w.zone.Add(t,
		"null.test. 60 MX 0 .", "null.test. 60 A 127.0.0.2",
		"implicit.test. 60 A 127.0.0.2",
		"alias.test. 60 CNAME other.test.", "other.test. 60 MX 10 mx.example.test.",
		"mxalias.test. 60 MX 10 smtp.mxalias.test.", "smtp.mxalias.test. 60 CNAME mx.example.test.",
		"lost.test. 60 MX 10 nowhere.lost.test.", "lost.test. 60 A 127.0.0.2",
		"bare.test. 60 TXT hello",
		"loop.test. 60 CNAME loop2.test.", "loop2.test. 60 CNAME loop.test.",
		"half.test. 60 MX 10 broken.half.test.", "half.test. 60 MX 20 mx.example.test.",
		`weird.test. 60 MX 10 a\032b.example.test.`, "weird.test. 60 A 127.0.0.2",
		"notnull.test. 60 MX 0 .", "notnull.test. 60 MX 10 mx.example.test.")
	for i := range 17 {
		w.zone.Add(t, fmt.Sprintf("c%d.chain.test. 60 CNAME c%d.chain.test.", i, i+1))
	}
	w.zone.Add(t, "c17.chain.test. 60 MX 10 mx.example.test.")
	w.zone.Fail("fails.test", dns.RcodeServerFailure)
	w.zone.Fail("broken.half.test", dns.RcodeServerFailure)
	w.zone.Add(t, "allfail.test. 60 MX 10 broken.half.test.")
	for _, row := range []struct {
		domain   string
		code     int
		enhanced string
		verdict  smtpsend.Verdict // empty: delivered
		suppress bool
		wait     time.Duration
	}{
		{domain: "null.test", code: 556, enhanced: "5.1.10", verdict: smtpsend.Hard, suppress: true},
		// RFC 7505 section 4
		{domain: "implicit.test"},
		{domain: "alias.test"},
		{domain: "mxalias.test"},
		{domain: "half.test"},
		{domain: "notnull.test"},
		{domain: "c1.chain.test"}, // 16 aliases
		{domain: "[127.0.0.2]"},
		{domain: "c0.chain.test", verdict: smtpsend.Soft}, // 17
		{domain: "loop.test", verdict: smtpsend.Soft},
		{domain: "fails.test", verdict: smtpsend.Soft},
		{domain: "allfail.test", verdict: smtpsend.Soft},
		{domain: "missing.invalid", verdict: smtpsend.Soft, wait: time.Hour},
		{domain: "lost.test", verdict: smtpsend.Soft, wait: time.Hour}, // never its own address: it has an MX
		{domain: "bare.test", verdict: smtpsend.Soft, wait: time.Hour},
		{domain: "weird.test", verdict: smtpsend.Soft, wait: time.Hour},
		{domain: "not..valid", code: 553, enhanced: "5.1.3", verdict: smtpsend.Policy},
	} {
		before := server.Count()
		_, err := w.send(t, "b@"+row.domain)
		if row.verdict == "" {
			if err != nil || server.Count() != before+1 {
				t.Errorf("%s: %v", row.domain, err)
			}
			continue
		}
		if err == nil || err.Phase != smtpsend.PhaseDNS || err.Code != row.code || err.Enhanced != row.enhanced ||
			err.Verdict != row.verdict || err.Suppress != row.suppress || err.RetryAfter != row.wait ||
			server.Count() != before {
			t.Errorf("%s: %+v", row.domain, err)
		}
	}
}

// TestSecondLook: a domain is given up only if it is missing an hour later too, and not because of an hour
// in between.
func TestSecondLook(t *testing.T) {
	w := newWorld(t)
	want := func(what string, verdict smtpsend.Verdict, wait time.Duration) {
		t.Helper()
		_, err := w.send(t, "b@gone.test")
		if err == nil || err.Verdict != verdict || err.RetryAfter != wait || err.Suppress {
			t.Errorf("%s: %+v", what, err)
		}
		if verdict == smtpsend.Hard && (err.Code != 550 || err.Enhanced != "5.1.2" || err.Elsewhere()) {
			t.Errorf("%s: %+v", what, err)
		}
	}
	want("first look", smtpsend.Soft, time.Hour)
	w.clock.Advance(40 * time.Minute)
	want("too early", smtpsend.Soft, 20*time.Minute)
	w.clock.Advance(21 * time.Minute)
	want("second look, where nothing exists", smtpsend.Soft, 0)
	w.zone.Add(t, "com. 60 NS ns.com.")
	w.clock.Advance(6 * time.Minute)
	want("second look", smtpsend.Hard, 0)
	w.server(t, "gone.test", "127.0.0.2", testsmtp.Options{})
	w.clock.Advance(10 * time.Minute)
	if _, err := w.send(t, "b@gone.test"); err != nil {
		t.Errorf("it is back: %v", err)
	}
	w.zone.Clear("gone.test", dns.TypeA)
	w.clock.Advance(10 * time.Minute)
	want("gone again", smtpsend.Soft, time.Hour)
}

// TestLoop: this machine, known by its source addresses or the names it greets with, isn't a host to send
// to.
func TestLoop(t *testing.T) {
	w := newWorld(t)
	w.to.Addresses = mxsend.EncodeSources([]mxsend.Source{{Address: addr("127.0.0.9"),
		Name: "out.example.test"}})
	w.zone.Add(t, "only.test. 60 MX 10 out.example.test.", "out.example.test. 60 A 127.0.0.9",
		"behind.test. 60 MX 10 out.example.test.", "behind.test. 60 MX 10 peer.example.test.",
		"behind.test. 60 MX 20 better.example.test.",
		"before.test. 60 MX 5 better.example.test.", "before.test. 60 MX 10 out.example.test.",
		"alias.test. 60 MX 10 in.alias.test.", "in.alias.test. 60 CNAME out.example.test.")
	peer := w.server(t, "peer.example.test", "127.0.0.2", testsmtp.Options{})
	better := w.server(t, "better.example.test", "127.0.0.3", testsmtp.Options{})
	for _, domain := range []string{"only.test", "behind.test", "alias.test"} {
		_, err := w.send(t, "b@"+domain)
		if err == nil || err.Enhanced != "5.4.6" || !err.Permanent() { // RFC 3463 section 3.5
			t.Errorf("%s: %v", domain, err)
		}
	}
	if _, err := w.send(t, "b@before.test"); err != nil || better.Count() != 1 || peer.Connections() != 0 {
		t.Errorf("a better host: %v, %d", err, better.Count())
	}
}

// TestPrivateHostsAreRefused: an MX record may not lead into this network.
func TestPrivateHostsAreRefused(t *testing.T) {
	w := newWorld(t, func(_ *mxsend.Options,
		inner *smtpsend.Options) {
		inner.Guard = dialing.New(dialing.Options{})
	})
	w.zone.Add(t, "example.test. 60 MX 10 mx.example.test.")
	server := w.server(t, "mx.example.test", "127.0.0.1", testsmtp.Options{})
	_, err := w.send(t, "b@example.test")
	if err == nil || !errors.Is(err, dialing.ErrRefused) || !err.Permanent() || server.Connections() != 0 {
		t.Errorf("%v, %d connections", err, server.Connections())
	}
}

// TestBothFamilies: two addresses of a host are tried, IPv6 first. A source address is one of the same
// family.
func TestBothFamilies(t *testing.T) {
	w := newWorld(t)
	w.zone.Add(t, "six.test. 60 MX 10 mx.six.test.", "both.test. 60 MX 10 mx.both.test.",
		"mx.both.test. 60 A 127.0.0.2",
		"mx.both.test. 60 A 127.0.0.3", "mx.both.test. 60 AAAA ::1")
	six := w.server(t, "mx.six.test", "::1", testsmtp.Options{})
	if _, err := w.send(t, "b@six.test"); err == nil || err.Permanent() {
		t.Errorf("no source address with a name: %v", err)
	}
	w.to.Addresses = mxsend.EncodeSources([]mxsend.Source{{Address: addr("127.0.0.9"), Name: "four.test"},
		{Address: addr("::1"), Name: "out.test"}})
	if _, err := w.send(t, "b@six.test"); err == nil || err.Permanent() || six.Connections() != 0 {
		t.Errorf("a source address without PTR: %v", err)
	}
	reverse, _ := dns.ReverseAddr("::1")
	w.zone.Add(t, reverse+" 60 PTR out.test.")
	w.clock.Advance(10 * time.Minute)
	r, err := w.send(t, "b@six.test")
	if err != nil || !strings.HasPrefix(r.RemoteAddress, "[::1]:") {
		t.Errorf("%v, %s", err, r.RemoteAddress)
	}
	if r, err = w.send(t, "b@both.test"); err != nil || !strings.HasPrefix(r.RemoteAddress, "[::1]:") {
		t.Errorf("IPv6 first: %v, %s", err, r.RemoteAddress)
	}
	six.Close()
	four := testsmtp.Start(t, testsmtp.Options{Addr: net.JoinHostPort("127.0.0.2", strconv.Itoa(w.port))})
	if _, err = w.send(t, "c@both.test"); err != nil || four.Count() != 1 {
		t.Errorf("then IPv4: %v", err)
	}
	four.Close()
	_ = testsmtp.Start(t, testsmtp.Options{Addr: net.JoinHostPort("127.0.0.3", strconv.Itoa(w.port))})
	r, err = w.send(t, "c@both.test")
	if err == nil || err.Phase != smtpsend.PhaseConnect || err.Scope != smtpsend.ScopeDestination ||
		err.Permanent() {
		t.Errorf("a third address isn't tried: %v", err)
	}
	if len(r.Dialogue) < 2 || !strings.HasPrefix(r.Dialogue[0].Text, "mx.both.test [::1] (opportunistic): ") ||
		!strings.HasPrefix(r.Dialogue[1].Text, "mx.both.test [127.0.0.2] (opportunistic): ") {
		t.Errorf("%+v", r.Dialogue)
	}
}

// TestFiveHosts: no more are tried in one attempt.
func TestFiveHosts(t *testing.T) {
	w := newWorld(t)
	for i := 1; i <= 6; i++ {
		w.zone.Add(t, fmt.Sprintf("example.test. 60 MX %d mx%d.example.test.", i, i))
		w.named(t, fmt.Sprintf("mx%d.example.test", i), fmt.Sprintf("127.0.0.%d", i+1))
	}
	sixth := testsmtp.Start(t, testsmtp.Options{Addr: net.JoinHostPort("127.0.0.7", strconv.Itoa(w.port))})
	if _, err := w.send(t, "b@example.test"); err == nil || err.Permanent() || sixth.Connections() != 0 {
		t.Errorf("%v", err)
	}
	if got := strings.Count(w.log.String(), "host tried"); got != 5 {
		t.Errorf("%d hosts tried", got)
	}
}

// TestGreylisting: the wait is what the server names, else five minutes.
func TestGreylisting(t *testing.T) {
	w := newWorld(t)
	for _, row := range []struct {
		reply string
		wait  time.Duration
	}{
		{"450 4.2.0 Come again", 5 * time.Minute},
		{"451 4.7.1 Greylisting in action, please come back in 00:02:00", 2 * time.Minute},
		{"451 4.7.1 Please try again later", 5 * time.Minute},
		{"450 4.7.0 You are greylisted for 300 seconds", 5 * time.Minute},
		{"451 4.3.0 Local error", 0},
	} {
		for _, verb := range []string{"RCPT", "DOT"} {
			name := strings.ToLower(fmt.Sprintf("%s%d.test", verb, len(w.log.String())))
			server := w.server(t, name, "127.0.0.2", replies(verb, row.reply))
			_, err := w.send(t, "b@"+name)
			if err == nil || err.Verdict != smtpsend.Soft || err.RetryAfter != row.wait {
				t.Errorf("%s %s: %+v", verb, row.reply, err)
			}
			server.Close()
		}
	}
}

// TestManyDomainsOfOneHost: they share transactions.
func TestManyDomainsOfOneHost(t *testing.T) {
	w := newWorld(t)
	server := w.server(t, "mx.hoster.test", "127.0.0.2", testsmtp.Options{})
	var to []string
	for i := range 1000 {
		w.zone.Add(t, fmt.Sprintf("d%d.test. 60 MX 10 mx.hoster.test.", i))
		to = append(to, fmt.Sprintf("b@d%d.test", i))
	}
	if _, err := w.send(t, to...); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range server.Messages() {
		got = append(got, m.To...)
	}
	if !slices.Equal(got, to) || server.Count() != 10 || server.Connections() != 1 {
		t.Errorf("%d recipients, %d transactions, %d connections", len(got), server.Count(), server.Connections())
	}
	if n := w.zone.Count("mx.hoster.test A"); n > 40 {
		t.Errorf("the host was looked up %d times", n)
	}
}

// TestOneDomainATransaction: Google answers 450 4.3.0 to several.
func TestOneDomainATransaction(t *testing.T) {
	w := newWorld(t)
	server := w.server(t, "aspmx.l.google.com", "127.0.0.2", testsmtp.Options{})
	w.zone.Add(t, "one.test. 60 MX 1 aspmx.l.google.com.", "two.test. 60 MX 1 aspmx.l.google.com.")
	if _, err := w.send(t, "a@one.test", "b@two.test", "c@one.test"); err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, m := range server.Messages() {
		got = append(got, m.To)
	}
	if diff := cmp.Diff([][]string{{"a@one.test", "c@one.test"}, {"b@two.test"}}, got); diff != "" {
		t.Error(diff)
	}
}

// TestOneDeadDomain fails alone.
func TestOneDeadDomain(t *testing.T) {
	w := newWorld(t)
	w.zone.Add(t, "dead.test. 60 MX 10 mx.dead.test.", "mx.dead.test. 60 A 127.0.0.2", "null.test. 60 MX 0 .")
	w.server(t, "alive.test", "127.0.0.3", testsmtp.Options{})
	r, err := w.send(t, "a@dead.test", "b@alive.test", "c@null.test", "d@nowhere.invalid")
	if err != nil || r.Recipients[1].Err != nil {
		t.Fatal(err)
	}
	for i, code := range map[int]int{0: 0, 2: 556, 3: 0} {
		if e := r.Recipients[i].Err; e == nil || e.Code != code {
			t.Errorf("%s: %v", r.Recipients[i].Address, e)
		}
	}
}

// TestTheContextEnds: what was not tried is not about the destination.
func TestTheContextEnds(t *testing.T) {
	w := newWorld(t)
	w.server(t, "slow.test", "127.0.0.2", testsmtp.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	r, err := w.Send(ctx, w.to, mail("rcpt-hang@slow.test"))
	e, _ := errors.AsType[*smtpsend.Error](err)
	if e == nil || e.Verdict != smtpsend.Soft || e.Scope != smtpsend.ScopeConnection || len(r.Recipients) != 1 {
		t.Errorf("%v", err)
	}
}

// TestVerify connects from each source address, and says what fails.
func TestVerify(t *testing.T) {
	w := newWorld(t, func(o *mxsend.Options, _ *smtpsend.Options) { o.Probe = "probe.test" })
	server := w.server(t, "probe.test", "127.0.0.2", testsmtp.Options{})
	if err := w.Verify(t.Context(), w.to); err != nil || server.Connections() != 1 {
		t.Errorf("%v", err)
	}
	w.to.Addresses = mxsend.EncodeSources([]mxsend.Source{{Address: addr("127.0.0.8"), Name: "a.test"},
		{Address: addr("127.0.0.9"), Name: "b.test"}})
	if err := w.Verify(t.Context(), w.to); err != nil || server.Connections() != 3 {
		t.Errorf("%v, %d connections", err, server.Connections())
	}
	w.to.Addresses = mxsend.EncodeSources([]mxsend.Source{{Address: addr("192.0.2.1"), Name: "a.test"}})
	if err := w.Verify(t.Context(), w.to); err == nil {
		t.Error("an address that this machine doesn't have")
	}
	_, err := w.Send(t.Context(), w.to, mail("b@probe.test"))
	e, _ := errors.AsType[*smtpsend.Error](err)
	if e == nil || e.Scope != smtpsend.ScopeAccount || e.Permanent() {
		t.Errorf("it is the gateway's: %v", err)
	}
	w.to.TLS = "maybe"
	if err := w.Verify(t.Context(), w.to); err == nil {
		t.Error("an unknown mode of TLS")
	}
	if r, err := w.Send(t.Context(), w.to, mail("b@probe.test")); err == nil || len(r.Recipients) != 1 {
		t.Error("an unknown mode of TLS")
	}
}

func TestGroup(t *testing.T) {
	w := newWorld(t)
	w.zone.Add(t,
		"gmail.test. 60 MX 5 gmail-smtp-in.l.google.com.", "gmail.test. 60 MX 10 alt1.gmail-smtp-in.l.google.com.",
		"workspace.test. 60 MX 1 aspmx.l.google.com.", "workspace.test. 60 MX 10 aspmx2.googlemail.com.",
		"m365.test. 60 MX 0 m365-test.mail.protection.outlook.com.",
		"m365dane.test. 60 MX 0 m365dane-test.x-v1.mx.microsoft.",
		"hotmail.test. 60 MX 0 hotmail-com.olc.protection.outlook.com.",
		"own.test. 60 MX 10 mx1.mail.own.test.", "own.test. 60 MX 20 mx2.mail.own.test.",
		"single.test. 60 MX 10 mx1.hoster.test.",
		"mixed.test. 60 MX 10 mx.one.com.", "mixed.test. 60 MX 20 mx.other.com.",
		"suffix.test. 60 MX 10 mx.one.co.uk.", "suffix.test. 60 MX 20 mx.other.co.uk.",
		"many.test. 60 MX 1 mx.a.com.", "many.test. 60 MX 1 mx.b.com.", "many.test. 60 MX 1 mx.c.com.",
		"many.test. 60 MX 1 mx.d.com.",
		"implicit.test. 60 A 127.0.0.2", "null.test. 60 MX 0 .")
	for domain, want := range map[string]string{
		"gmail.test": "google.com", "workspace.test": "google.com", "m365.test": "protection.outlook.com",
		"m365dane.test": "protection.outlook.com", "hotmail.test": "olc.protection.outlook.com",
		"own.test": "mail.own.test", "OWN.test.": "mail.own.test", "single.test": "mx1.hoster.test",
		"mixed.test": "mx.one.com,mx.other.com", "suffix.test": "mx.one.co.uk,mx.other.co.uk",
		"many.test": "mx.a.com,mx.b.com,mx.c.com", "implicit.test": "implicit.test", "null.test": "null.test",
		"missing.invalid": "missing.invalid",
		"[127.0.0.2]":     "[127.0.0.2]",
	} {
		if got, err := w.Group(t.Context(), domain); got != want || err != nil {
			t.Errorf("%s: %s, %v", domain, got, err)
		}
	}
	w.zone.Fail("fails.test", dns.RcodeServerFailure)
	if got, err := w.Group(t.Context(), "fails.test"); got != "fails.test" || err == nil {
		t.Errorf("%s, %v", got, err)
	}
}

// TestDeadServersRestAlone: after five failures in a row a domain's servers are not tried for a while, and
// another domain's are. After the pause one message tries them.
func TestDeadServersRestAlone(t *testing.T) {
	w := newWorld(t)
	w.zone.Add(t, "dead.test. 60 MX 10 mx.dead.test.")
	w.named(t, "mx.dead.test", "127.0.0.2")
	alive := w.server(t, "alive.test", "127.0.0.3", testsmtp.Options{})
	for i := range 5 {
		if _, err := w.send(t, "b@dead.test"); err == nil || err.Permanent() || err.RetryAfter != 0 {
			t.Fatalf("try %d: %+v", i, err)
		}
	}
	back := w.server(t, "mx.dead.test", "127.0.0.2", testsmtp.Options{})
	w.clock.Advance(10 * time.Second)
	r, err := w.send(t, "b@dead.test", "b@alive.test")
	rests := r.Recipients[0].Err
	if err != nil || rests == nil || rests.RetryAfter != 20*time.Second || rests.Permanent() ||
		back.Connections() != 0 || alive.Count() != 1 {
		t.Errorf("%v: %+v, %d connections, %d delivered", err, rests, back.Connections(), alive.Count())
	}
	w.clock.Advance(20 * time.Second)
	for range 2 {
		if _, err := w.send(t, "b@dead.test"); err != nil {
			t.Errorf("after the rest: %v", err)
		}
	}
	if back.Count() != 2 || !strings.Contains(w.log.String(), "servers of a domain rest") {
		t.Errorf("%d delivered", back.Count())
	}
}

// TestDeadHostsDontHoldUpOthers: after two minutes no third host is tried.
func TestDeadHostsDontHoldUpOthers(t *testing.T) {
	w := newWorld(t)
	for i := 1; i <= 3; i++ {
		w.zone.Add(t, fmt.Sprintf("example.test. 60 MX %d mx%d.example.test.", i, i))
	}
	slow := replies("MAIL", "451 4.3.0 Try again")
	respond := slow.Respond
	slow.Respond = func(c testsmtp.Command) testsmtp.Action {
		if c.Verb == "MAIL" {
			w.clock.Advance(70 * time.Second)
		}
		return respond(c)
	}
	w.server(t, "mx1.example.test", "127.0.0.2", slow)
	w.server(t, "mx2.example.test", "127.0.0.3", slow)
	third := w.server(t, "mx3.example.test", "127.0.0.4", testsmtp.Options{})
	if _, err := w.send(t, "b@example.test"); err == nil || err.Code != 451 || third.Connections() != 0 {
		t.Errorf("%v, %d connections", err, third.Connections())
	}
}

// TestAFullConnection: a host that wants a new connection gets one, and no other host is asked.
func TestAFullConnection(t *testing.T) {
	w := newWorld(t)
	w.zone.Add(t, "example.test. 60 MX 10 a.example.test.", "example.test. 60 MX 20 b.example.test.")
	first := w.server(t, "a.example.test", "127.0.0.2",
		testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
			if c.Verb == "RCPT" && c.Messages > 0 {
				return testsmtp.Action{Reply: "421 4.7.0 Too many messages in this connection", Close: true}
			}
			return testsmtp.Action{}
		}})
	second := w.server(t, "b.example.test", "127.0.0.3", testsmtp.Options{})
	for range 2 {
		if _, err := w.send(t, "b@example.test"); err != nil {
			t.Error(err)
		}
	}
	if first.Count() != 2 || first.Connections() != 2 || second.Connections() != 0 {
		t.Errorf("%d messages over %d connections", first.Count(), first.Connections())
	}
}

// TestAnsweredHasAllResults, including other domains' and earlier transactions'.
func TestAnsweredHasAllResults(t *testing.T) {
	w := newWorld(t)
	w.server(t, "one.test", "127.0.0.2", testsmtp.Options{})
	w.server(t, "two.test", "127.0.0.3", testsmtp.Options{})
	m := mail("first@one.test")
	for i := range 201 {
		m.To = append(m.To, fmt.Sprintf("b%d@two.test", i))
	}
	var told []int
	m.Answered = func(_ context.Context, done []smtpsend.RecipientResult) error {
		told = append(told, len(done))
		return nil
	}
	if _, err := w.message(t, m); err != nil || !slices.Equal(told, []int{1, 101, 201}) {
		t.Errorf("%v, %v", told, err)
	}
}
