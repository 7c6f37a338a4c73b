package feedback

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/feedback/bounce"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/smtpsend"
)

// bodies are webhooks that report a permanent refusal, as far as the provider is concerned. %[1]d is the
// reply code, %[2]q its enhanced code, %[3]q its text with codes, %[4]q without.
var bodies = map[string]struct {
	name provider.Name
	body string
}{
	"sendgrid": {provider.SendGrid, `[{"event": "bounce", "type": "bounce", "email": "ann@receiver.example",
		"sg_message_id": "s1.filter", "timestamp": 1700000000, "status": %[2]q, "reason": %[3]q}]`},
	"mailgun": {provider.Mailgun, `{"signature": {}, "event-data": {"event": "failed", "severity": "permanent",
		"reason": "bounce", "id": "m1", "timestamp": 1700000000, "recipient": "ann@receiver.example",
		"delivery-status": {"code": %[1]d, "message": %[4]q, "description": ""}}}`},
	"mailgun, codes in the words": {provider.Mailgun, `{"signature": {}, "event-data": {"event": "failed",
		"severity": "permanent", "reason": "generic", "id": "m1", "timestamp": 1700000000,
		"recipient": "ann@receiver.example", "delivery-status": {"code": %[1]d, "message": %[3]q}}}`},
	"brevo": {provider.Brevo, `{"event": "hard_bounce", "email": "ann@receiver.example", "message-id": "<b1@x.example>",
		"ts_epoch": 1700000000000, "reason": %[3]q}`},
	"ses": {provider.SES, `{"Type": "Notification", "MessageId": "n1", "Message": %[5]q}`},
	"postmark": {provider.Postmark, `{"RecordType": "Bounce", "Type": "HardBounce", "ID": 1, "MessageID": "p1",
		"Email": "ann@receiver.example", "Details": %[6]q}`},
	"generic": {provider.Generic, `{"type": "bounced", "bounce": "hard", "recipient": "ann@receiver.example",
		"smtpCode": %[1]d, "enhanced": %[2]q, "diagnostic": %[4]q}`},
}

// told is the fact that a provider's body makes of a reply.
func told(t *testing.T, name provider.Name, body string, code int, enhanced, words string) entry {
	t.Helper()
	line := strings.Join(strings.Fields(fmt.Sprintf("%d %s %s", code, enhanced, words)), " ")
	ses, err := json.Marshal(map[string]any{"eventType": "Bounce", "mail": map[string]any{"messageId": "s1"},
		"bounce": map[string]any{"bounceType": "Permanent", "bounceSubType": "General", "bouncedRecipients": []any{
			map[string]string{"emailAddress": "ann@receiver.example", "status": enhanced,
				"diagnosticCode": "smtp; " + line}}}})
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(body+"%[7]s", code, enhanced, line, words, ses, "smtp;"+line, "")
	batch, err := provider.Read(name, provider.Request{Body: []byte(text)})
	if err != nil || len(batch.Events) != 1 {
		t.Fatalf("%s: %+v, %v", text, batch, err)
	}
	e, _ := providerEntry(batch.Events[0], "", startOfTime)
	return e
}

// returned is the fact that a bounce makes of a reply.
func returned(t *testing.T, code int, enhanced, words string) entry {
	t.Helper()
	report, err := bounce.Read(strings.NewReader(fmt.Sprintf("From: MAILER-DAEMON@relay.example\n"+
		"Content-Type: multipart/report; report-type=delivery-status; boundary=b\n\n--b\n\nSorry.\n\n--b\n"+
		"Content-Type: message/delivery-status\n\nReporting-MTA: dns; relay.example\n\n"+
		"Final-Recipient: rfc822; ann@receiver.example\nAction: failed\nStatus: %s\n"+
		"Diagnostic-Code: smtp; %d %s %s (in reply to RCPT TO command)\n\n--b--\n", enhanced, code, enhanced,
		words)), bounce.Options{})
	if err != nil || len(report.Recipients) != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	var e entry
	e.fate(statement{to: "ann@receiver.example", said: report.Recipients[0]})
	return e
}

// TestOneJudge: the same refusal has the same effect, whether our relay says it, a provider reports it, or it
// comes back by mail.
func TestOneJudge(t *testing.T) {
	for _, row := range []struct {
		name     string
		code     int
		enhanced string
		words    string
		effect   effect
	}{
		{"no such user", 550, "5.1.1", "The email account that you tried to reach does not exist.", effectHard},
		{"no such user, said by words", 550, "5.0.0", "User unknown", effectHard},
		{"full mailbox", 552, "5.2.2", "The email account that you tried to reach is over quota.", effectSoft},
		{"full mailbox, said by words", 550, "5.0.0", "Mailbox is full / Blocks limit exceeded", effectSoft},
		{"full for now", 452, "4.2.2", "The recipient's inbox is out of storage space", effectSoft},
		{"block", 550, "5.7.1", "Service unavailable; Client host [192.0.2.4] blocked using zen.spamhaus.org", ""},
		{"block that calls it an address", 550, "5.1.1", "Your IP address 192.0.2.4 is blacklisted", ""},
		{"HELO name", 550, "5.7.1", "<localhost>: Helo command rejected: Host not found", ""},
		{"HELO name, without a better code", 504, "5.5.2", "<mail>: Helo command rejected: need fully-qualified hostname",
			""},
		{"spam", 554, "5.7.1", "Message rejected as spam", ""},
		{"spam, without a better code", 550, "5.0.0", "This message was classified as SPAM and may not be delivered", ""},
		{"sender domain", 550, "5.1.8", "Sender address rejected: Domain not found", ""},
		{"DMARC", 550, "5.7.26", "Unauthenticated email from app.example is not accepted due to domain's DMARC policy.",
			""},
		{"too fast", 550, "5.7.1", "Daily user sending limit exceeded.", ""},
		{"too big", 552, "5.3.4", "Message size exceeds fixed maximum message size", ""},
	} {
		want := struct {
			effect effect
			bounce string
		}{row.effect, "soft"}
		if row.effect == effectHard {
			want.bounce = "hard"
		}
		j := smtpsend.Classify(smtpsend.Evidence{Phase: smtpsend.PhaseRcpt, Code: row.code, Enhanced: row.enhanced,
			Text: row.words, Recipients: 1})
		var e entry
		if e.bounced(j.Verdict, j.Suppress); e.Effect != want.effect || e.Details.BounceType != want.bounce {
			t.Errorf("%s over SMTP: %q, %s; want %+v", row.name, e.Effect, e.Details.BounceType, want)
		}
		e = returned(t, row.code, row.enhanced, row.words)
		if e.Effect != want.effect || e.Details.BounceType != want.bounce {
			t.Errorf("%s by mail: %q, %s; want %+v", row.name, e.Effect, e.Details.BounceType, want)
		}
		for source, b := range bodies {
			e := told(t, b.name, b.body, row.code, row.enhanced, row.words)
			if e.Type != event.MessageBounce || e.Effect != want.effect || e.Details.BounceType != want.bounce {
				t.Errorf("%s by %s: %s %q, %s; want %+v", row.name, source, e.Type, e.Effect, e.Details.BounceType, want)
			}
		}
	}
}

// TestSamplesOfRulesByProvider: each reply that smtpsend has a rule for suppresses an address by webhook and
// by mail if it does so over SMTP, and only then.
func TestSamplesOfRulesByProvider(t *testing.T) {
	file, err := os.ReadFile("../smtpsend/rules.tsv")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, line := range strings.Split(string(file), "\n") {
		columns := strings.Split(line, "\t")
		if strings.HasPrefix(line, "#") || len(columns) != 4 || columns[1] == "4" {
			continue
		}
		rows++
		words := columns[3]
		j := smtpsend.Classify(smtpsend.Evidence{Phase: smtpsend.PhaseRcpt, Code: 550, Text: words, Recipients: 1})
		if e := returned(t, 550, "5.0.0", words); e.Effect == effectHard != j.Suppress {
			t.Errorf("%s: %q by mail, suppressed %v over SMTP", words, e.Effect, j.Suppress)
		}
		for source, b := range bodies {
			if e := told(t, b.name, b.body, 550, "", words); e.Effect == effectHard != j.Suppress {
				t.Errorf("%s: %q by %s, suppressed %v over SMTP", words, e.Effect, source, j.Suppress)
			}
		}
	}
	if rows < 50 {
		t.Errorf("%d rows", rows)
	}
}

// TestProviderAlone: without a reply, or with words that mean nothing, the provider's classification counts.
func TestProviderAlone(t *testing.T) {
	for _, row := range []struct {
		told   provider.Event
		effect effect
	}{
		{provider.Event{Bounce: provider.Hard}, effectHard},
		{provider.Event{Bounce: provider.Soft}, effectSoft},
		{provider.Event{Bounce: provider.Hard, Diagnostic: "Permanent: General"}, effectHard},
		{provider.Event{Bounce: provider.Hard, Diagnostic: "Mailbox is full"}, effectSoft},
		{provider.Event{Bounce: provider.Hard, Diagnostic: "smtp; 452 4.2.2 Mailbox is full"}, effectSoft},
		// the reply is clear, but the provider knows more of it
		{provider.Event{Bounce: provider.Soft, SMTPCode: 550, Diagnostic: "550 5.1.1 User unknown"}, effectSoft},
		{provider.Event{Bounce: provider.Hard, Reason: provider.ReasonBlocked, Diagnostic: "User unknown"}, ""},
	} {
		row.told.Provider, row.told.Kind, row.told.Key = provider.Generic, provider.Bounced, "k"
		if e, _ := providerEntry(row.told, "", startOfTime); e.Effect != row.effect {
			t.Errorf("%+v: %q, want %q", row.told, e.Effect, row.effect)
		}
	}
}
