package smtpsend_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
)

func TestAnswered(t *testing.T) {
	server := testsmtp.Start(t, testsmtp.Options{MaxRecipients: 2})
	sender := newSender(t, smtpsend.Options{})
	for _, row := range []struct {
		name    string
		fails   int // the call that says no; 0 if none
		reports [][]string
		result  []string
	}{
		{"said yes to", 0, [][]string{
			{"a@example.org +", "rcpt-550@example.org -"},
			{"a@example.org +", "rcpt-550@example.org -", "b@example.org +", "c@example.org +"},
		}, []string{"a@example.org +", "rcpt-550@example.org -", "b@example.org +", "c@example.org +",
			"d@example.org +"}},
		{"said no to", 1, [][]string{
			{"a@example.org +", "rcpt-550@example.org -"},
		}, []string{"a@example.org +", "rcpt-550@example.org -", "b@example.org -", "c@example.org -",
			"d@example.org -"}},
	} {
		relay := relayTo(server)
		relay.RecipientsPerTransaction = 2
		m := mail("a@example.org", "rcpt-550@example.org", "b@example.org", "c@example.org", "d@example.org")
		var reports [][]string
		m.Answered = func(_ context.Context, done []smtpsend.RecipientResult) error {
			reports = append(reports, signs(done))
			if len(reports) == row.fails {
				return errors.New("the journal is away")
			}
			return nil
		}
		result, err := sender.Send(t.Context(), relay, m)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(row.reports, reports); diff != "" {
			t.Errorf("%s: reports %s", row.name, diff)
		}
		if diff := cmp.Diff(row.result, signs(result.Recipients)); diff != "" {
			t.Errorf("%s: %s", row.name, diff)
		}
		last := result.Recipients[4].Err
		if row.fails > 0 && (last == nil || last.Permanent() || last.InDoubt || last.Elsewhere()) {
			t.Errorf("%s: those left: %+v", row.name, last)
		}
	}
}

// signs writes who was delivered to (+) and who was not (-).
func signs(results []smtpsend.RecipientResult) []string {
	out := make([]string, len(results))
	for i, r := range results {
		out[i] = r.Address + " +"
		if r.Err != nil {
			out[i] = r.Address + " -"
		}
	}
	return out
}

func TestRequireTLS(t *testing.T) {
	offer := []string{"REQUIRETLS"}
	for _, row := range []struct {
		name   string
		server testsmtp.Options
		relay  smtpsend.Relay
		trust  bool
		ok     bool
	}{
		{"offered, verified", testsmtp.Options{Security: testsmtp.STARTTLS, Extensions: offer},
			smtpsend.Relay{TLS: smtpsend.TLSRequired}, true, true},
		{"offered, TLS only liked, and yet verified", testsmtp.Options{Security: testsmtp.STARTTLS,
			Extensions: offer}, smtpsend.Relay{}, true, true},
		{"offered, TLS only liked, certificate unknown", testsmtp.Options{Security: testsmtp.STARTTLS,
			Extensions: offer}, smtpsend.Relay{}, false, false},
		{"offered, certificate not looked at", testsmtp.Options{Security: testsmtp.STARTTLS, Extensions: offer},
			smtpsend.Relay{TLS: smtpsend.TLSRequired, InsecureSkipVerify: true}, true, false},
		{"offered in clear", testsmtp.Options{Extensions: offer}, smtpsend.Relay{}, true, false},
		{"not offered", testsmtp.Options{Security: testsmtp.STARTTLS}, smtpsend.Relay{TLS: smtpsend.TLSRequired},
			true, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			row.server.Record = true
			server := testsmtp.Start(t, row.server)
			row.relay.Host, row.relay.Port = server.Host(), server.Port()
			if row.trust {
				row.relay.CA = server.CA()
			}
			sender := newSender(t, smtpsend.Options{Timeout: 15 * time.Second})
			m := mail("b@example.org")
			m.RequireTLS = true
			_, err := sender.Send(t.Context(), row.relay, m)
			if row.ok {
				if err != nil {
					t.Fatal(err)
				}
				if got := server.Commands()[3]; got != "MAIL FROM:<a@example.com> REQUIRETLS" {
					t.Error(got)
				}
				return
			}
			if e := failure(t, err); e.Verdict != smtpsend.Policy || e.Scope != smtpsend.ScopeMessage ||
				e.Elsewhere() || server.Count() != 0 {
				t.Errorf("%s %s: %v", e.Verdict, e.Scope, e)
			}
			m.RequireTLS = false
			if _, err := sender.Send(t.Context(), row.relay, m); err != nil {
				t.Errorf("other messages suffer: %v", err)
			}
		})
	}
}

func TestOriginalRecipient(t *testing.T) {
	server := testsmtp.Start(t, testsmtp.Options{Extensions: []string{"DSN"}, Record: true, NoPipelining: true})
	sender := newSender(t, smtpsend.Options{})
	m := mail("a+b=c@example.org", `"x\y"@example.org`, "bü+c@bücher.example", "d@bücher.example")
	m.DSN.Envelope = "id"
	if _, err := sender.Send(t.Context(), relayTo(server), m); err != nil {
		t.Fatal(err)
	}
	m = mail("e@example.org")
	if _, err := sender.Send(t.Context(), relayTo(server), m); err != nil {
		t.Fatal(err)
	}
	m = mail("f@example.org")
	m.DSN.Original = "old+f@example.org"
	if _, err := sender.Send(t.Context(), relayTo(server), m); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range server.Commands() {
		if c[:4] == "RCPT" {
			got = append(got, c)
		}
	}
	if diff := cmp.Diff([]string{
		"RCPT TO:<a+b=c@example.org> ORCPT=rfc822;a+2Bb+3Dc@example.org",
		`RCPT TO:<"x\y"@example.org> ORCPT=rfc822;"x\y"@example.org`,
		`RCPT TO:<bü+c@xn--bcher-kva.example> ORCPT=utf-8;bü\x{2B}c@xn--bcher-kva.example`,
		"RCPT TO:<d@xn--bcher-kva.example> ORCPT=rfc822;d@xn--bcher-kva.example",
		"RCPT TO:<e@example.org>",
		"RCPT TO:<f@example.org> ORCPT=rfc822;old+2Bf@example.org",
	}, got); diff != "" {
		t.Error(diff)
	}
}
