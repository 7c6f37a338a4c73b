package bounce

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/smtpsend"
)

func read(t *testing.T, mail string, o Options) Report {
	t.Helper()
	r, err := Read(strings.NewReader(mail), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func sample(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "corpus", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDeliveryStatusNotification(t *testing.T) {
	got := read(t, sample(t, "dsn-postfix.eml"), Options{EnvelopeTo: "Bounces+ABC@sender.example"})
	want := Report{
		Kind: Bounced, Form: "dsn", ReportingMTA: "relay.sender.example", ReturnPath: "Bounces+ABC@sender.example",
		Original: Original{MessageID: "m1.4711@sender.example", EnvelopeID: "env-4711",
			To: []string{"ann@receiver.example"}},
		Recipients: []Recipient{{
			Address: "ann@receiver.example", Original: "ann@receiver.example", Action: ActionFailed, Status: "5.1.1",
			Code:       550,
			Diagnostic: "550 5.1.1 <ann@receiver.example>: Recipient address rejected: User unknown",
			RemoteMTA:  "mx.receiver.example",
			Verdict:    smtpsend.Hard, Scope: smtpsend.ScopeRecipient, Suppress: true,
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFeedbackReport(t *testing.T) {
	got := read(t, sample(t, "arf-abuse.eml"), Options{})
	want := Report{
		Kind: Complained, Form: "arf", ReportingMTA: "mx.receiver.example",
		ReturnPath: "bounces+sometoken@sender.example",
		Original: Original{MessageID: "m1.4711@sender.example", EnvelopeID: "env-4711",
			To: []string{"somebody@receiver.example"}},
		Recipients: []Recipient{{Address: "ann@receiver.example"}},
		Feedback: &Feedback{
			Type: "abuse", UserAgent: "SomeGenerator/1.0", SourceIP: "192.0.2.10",
			MailFrom:    "bounces+sometoken@sender.example",
			ArrivalDate: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC), ReportedFor: []string{"sender.example"},
		},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
		t.Error(diff)
	}
}

// TestDelayedIsNotFailed: a relay that still tries must neither end a message nor suppress anybody.
func TestDelayedIsNotFailed(t *testing.T) {
	for _, name := range []string{"dsn-delayed.eml", "exim-delayed.eml"} {
		r := read(t, sample(t, name), Options{})
		if r.Kind != Delayed || len(r.Recipients) != 1 || r.Recipients[0].Action != ActionDelayed ||
			r.Recipients[0].Suppress || r.Recipients[0].Verdict != smtpsend.Soft {
			t.Errorf("%s: %+v", name, r)
		}
	}
	hard := strings.Replace(sample(t, "dsn-postfix.eml"), "Action: failed", "Action: delayed", 1)
	if r := read(t, hard, Options{}); r.Kind != Delayed || r.Recipients[0].Suppress {
		t.Errorf("delayed by a 550: %+v", r)
	}
}

// TestAccountIsNotBlamed: the login between two servers of others says nothing about our account, whose queue
// would be held.
func TestAccountIsNotBlamed(t *testing.T) {
	mail := strings.Replace(sample(t, "dsn-relay-denied.eml"),
		"554 5.7.1 <ann@receiver.example>: Relay access denied", "530 5.7.0 Authentication required", 1)
	if r := read(t, mail, Options{}); r.Recipients[0].Verdict != smtpsend.Policy {
		t.Errorf("%+v", r.Recipients)
	}
}

func TestKindsOfAutomaticMail(t *testing.T) {
	for name, want := range map[string]Kind{
		"vacation.eml": AutoReply, "vacation-subject.eml": AutoReply, "not-bounces/challenge.eml": Challenge,
		"not-bounces/ticket.eml":                    AutoReply,
		"not-bounces/vacation-mentions-failure.eml": AutoReply, "not-bounces/letter.eml": None,
		"not-bounces/forwarded-bounce.eml": None,
		"not-bounces/read-receipt.eml":     None, "not-bounces/empty.eml": None,
	} {
		if r := read(t, sample(t, name), Options{}); r.Kind != want {
			t.Errorf("%s: %s, want %s", name, r.Kind, want)
		}
	}
}

// TestLineEnds: gateways and mailboxes rewrite them.
func TestLineEnds(t *testing.T) {
	lf := strings.ReplaceAll(sample(t, "dsn-postfix.eml"), "\r\n", "\n")
	want := read(t, lf, Options{})
	for name, mail := range map[string]string{
		"CRLF": strings.ReplaceAll(lf, "\n", "\r\n"), "CR": strings.ReplaceAll(lf, "\n", "\r"),
		"mbox": "From MAILER-DAEMON Mon Mar  2 09:00:00 2026\n" + lf,
	} {
		if diff := cmp.Diff(want, read(t, mail, Options{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestLimits(t *testing.T) {
	var many strings.Builder
	many.WriteString("From: MAILER-DAEMON@x.example\nContent-Type: multipart/report; boundary=b\n\n--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; x\n\n")
	for i := range 1000 {
		fmt.Fprintf(&many, "Final-Recipient: rfc822; r%d@receiver.example\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 %s\n\n", i, strings.Repeat("no such user ", 8))
	}
	if r := read(t, many.String(), Options{}); len(r.Recipients) != 100 || !r.Truncated {
		t.Errorf("a thousand recipients: %d, truncated %v", len(r.Recipients), r.Truncated)
	}
	if r := read(t, many.String(), Options{MaxRecipients: 7}); len(r.Recipients) != 7 || !r.Truncated {
		t.Errorf("MaxRecipients 7: %d, truncated %v", len(r.Recipients), r.Truncated)
	}
	if r := read(t, many.String(), Options{MaxBytes: 2000}); len(r.Recipients) == 0 || len(r.Recipients) > 11 ||
		!r.Truncated {
		t.Errorf("MaxBytes 2000: %d recipients, truncated %v", len(r.Recipients), r.Truncated)
	}
	long := "Diagnostic-Code: smtp; 550 5.1.1 " + strings.Repeat("x", 1<<16)
	mail := strings.Replace(sample(t, "dsn-two-recipients.eml"), "Diagnostic-Code: smtp; 552 5.2.2 Mailbox full",
		long, 1)
	if r := read(t, mail, Options{}); len(r.Recipients) != 2 || len(r.Recipients[0].Diagnostic) > maxDiagnostic {
		t.Errorf("a long field: %+v", r)
	}
}

// TestHostileMailsEnd reads large emails made to be slow. The bound is far above what any of them takes, and
// far below quadratic.
func TestHostileMailsEnd(t *testing.T) {
	const size = 1 << 18
	fill := func(head, unit string) string { return head + strings.Repeat(unit, (size-len(head))/len(unit)) }
	daemon := "Return-Path: <>\nFrom: MAILER-DAEMON@x.example\nSubject: Returned mail\n"
	nested := ""
	for i := range 200 {
		nested += fmt.Sprintf("Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n", i, i)
	}
	for name, mail := range map[string]string{
		"one line":           fill(daemon+"\n", "a"),
		"addresses":          fill(daemon+"\n", "<a@b.example>: 550 no such user\n"),
		"addresses in a row": fill(daemon+"\n", "a@b.example,"),
		"at signs":           fill(daemon+"\n", "a@"),
		"dots":               fill(daemon+"\n", "a@a."),
		"header":             fill(daemon, "X: y\n"),
		"folded header":      fill(daemon+"X: y\n", " y\n"),
		"failed recipients":  fill(daemon, "X-Failed-Recipients: a@b.example\n"),
		"to":                 fill(daemon+"To: ", "a@b.example, "),
		"parts":              fill(daemon+"Content-Type: multipart/mixed; boundary=b\n\n", "--b\n\nx\n"),
		"nested parts":       nested,
		"fields": fill(daemon+"Content-Type: message/delivery-status\n\n",
			"Final-Recipient: rfc822; a@b.example\n\n"),
		"returned headers": fill(daemon+"\n", "Received: x\n\n"),
		"html":             fill(daemon+"Content-Type: text/html\n\n", "<table><tr><td>"),
		"encoded words":    fill(daemon+"Subject: ", "=?utf-8?q?x?= "),
		"digits":           fill(daemon+"\n", "550 5.1.1 "),
		"replies":          fill(daemon+"\n", "550 x\n"),
		"base64":           fill(daemon+"Content-Transfer-Encoding: base64\n\n", "NTUwIDUuMS4x\n"),
		"json":             fill(daemon+"\n{\"notificationType\":", "["),
	} {
		t.Run(name, func(t *testing.T) {
			begun := testkit.CPUUsed(t)
			read(t, mail, Options{})
			took := testkit.CPUUsed(t) - begun
			t.Log(took)
			if took > 20*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

func TestReaderFails(t *testing.T) {
	cause := errors.New("connection lost")
	if _, err := Read(iotest.ErrReader(cause), Options{}); !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
	if r, err := Read(io.LimitReader(strings.NewReader(""), 0), Options{}); err != nil || r.Kind != None {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestSamples holds each line of the tables to its own sample.
func TestSamples(t *testing.T) {
	for _, f := range forms() {
		first, ok := findForm(f.means, f.where, strings.ToLower(f.sample))
		if !ok || first.name != f.name && f.where != "body" || !f.pattern.MatchString(strings.ToLower(f.sample)) {
			t.Errorf("forms.tsv: %s %s %s does not match its sample %q", f.name, f.means, f.where, f.sample)
		}
	}
	for _, w := range wordings() {
		if first, ok := findWording(w.sample); !ok || first.pattern != w.pattern {
			t.Errorf("wording.tsv: %q is not decided by its own rule, but by %v", w.sample, first.pattern)
		}
	}
}

func ExampleRead() {
	mail := `Return-Path: <>
From: MAILER-DAEMON@mx.example
Subject: failure notice

Hi. This is the qmail-send program at mx.example.
I'm afraid I wasn't able to deliver your message to the following addresses.

<ann@example.org>:
Remote host said: 550 5.1.1 unknown user
`
	r, err := Read(strings.NewReader(mail), Options{})
	if err != nil {
		panic(err)
	}
	for _, rcpt := range r.Recipients {
		fmt.Println(r.Kind, rcpt.Address, rcpt.Status, rcpt.Verdict, rcpt.Suppress)
	}
	// Output: bounced ann@example.org 5.1.1 hard true
}

// TestRecipientNamedAgain: a notice that named a recipient, then another, then the first again made Read
// panic.
func TestRecipientNamedAgain(t *testing.T) {
	mail := "From: MAILER-DAEMON@mx.example\nTo: bob@sender.example\nSubject: Undelivered Mail Returned to Sender\n\n" +
		"Your message could not be delivered.\n\n<ann@receiver.example>: 550 5.1.1 User unknown\n<eve@receiver.example>: 552 5.2.2 Mailbox full\n<ann@receiver.example>\n    said no\n"
	r := read(t, mail, Options{})
	if len(r.Recipients) != 2 || r.Recipients[0].Status != "5.1.1" || r.Recipients[1].Status != "5.2.2" {
		t.Errorf("%+v", r.Recipients)
	}
}
