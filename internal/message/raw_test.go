package message_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
)

// override is the least that FromRaw needs.
var override = message.Override{Date: noon}

// mailText writes an email with the line ends of the wire.
func mailText(lines ...string) []byte { return []byte(strings.Join(lines, "\r\n")) }

func TestFromRawLeavesASignedMailAlone(t *testing.T) {
	raw := mailText(
		"DKIM-Signature: v=1; a=rsa-sha256; c=simple/simple;", "\th=From:To : Subject;  b=abc",
		"From:   Ann   Example<ann@example.com>", "To: bob@example.net,", "  (c) carl@example.net",
		"subject: =?iso-8859-1?Q?Gr=FC=DFe?= ",
		"Date:Sun, 1 Mar 2026 12:00:00 +0100", "Message-Id: <1@example.com> (made here)", "MIME-Version: 1.0 (x)",
		"X-Odd :", "",
		" body ", "", ".", "From here", "last line without end")
	raw = bytes.Replace(raw, []byte("X-Odd :\r\n"), nil, 1)
	before := bytes.Clone(raw)
	c, control, err := message.FromRaw(raw, override, steady())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(c.Raw)); diff != "" {
		t.Errorf("changed (-given +result):\n%s", diff)
	}
	if !bytes.Equal(before, raw) {
		t.Error("the caller's bytes were written to")
	}
	c.Raw = nil
	want := &message.Composed{
		MessageID: "<1@example.com>", Subject: "Grüße", From: ann,
		Envelope: message.Envelope{From: "ann@example.com", To: []string{"bob@example.net", "carl@example.net"}},
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(message.Control{}, control); diff != "" {
		t.Errorf("control out of nowhere:\n%s", diff)
	}
}

func TestFromRawCompletesAndCleans(t *testing.T) {
	for _, row := range []struct {
		name, raw string
		override  func(o *message.Override)
		want      string // with \n for CRLF
		to        string // envelope: from > to, to
	}{
		{
			"Date, Message-ID and MIME-Version are added",
			"From: ann@example.com\nTo: bob@example.net\n\nx", nil,
			"From: ann@example.com\nTo: bob@example.net\nDate: Sun, 01 Mar 2026 12:00:00 +0100\nMessage-ID: <hniaoyywcqj75ir27mz5nazhtkvaumn2@example.com>\nMIME-Version: 1.0\n\nx",
			"ann@example.com > bob@example.net",
		},
		{
			"Bcc goes into the envelope only, every one of it",
			"Bcc: c@example.net\n" + complete +
				"bcc: d@example.net,\n e@example.net\nResent-Bcc: f@example.net\nX: y\n\nx", nil,
			complete + "X: y\n\nx", "ann@example.com > bob@example.net, c@example.net, d@example.net, e@example.net",
		},
		{
			"what an earlier delivery added is removed, but for Received and what is in an attached mail",
			"return-PATH:\n <bounce@example.com>\nDelivered-To: a@example.net\nX-Original-To: a@example.net\n" +
				"Envelope-To: a@example.net\nAuthentication-Results: mx.example.net; spf=pass\nStatus: RO\n" +
				"X-Status: A\nX-UID: 7\nX-Mozilla-Status: 0001\nX-Mozilla-Status2: 00000000\nContent-Length: 7\n" +
				"Received: by mx.example.net\n" + complete +
				"Content-Type: message/rfc822\n\nReturn-Path: <bounce@example.com>\n\nx", nil,
			"Received: by mx.example.net\n" + complete +
				"Content-Type: message/rfc822\n\nReturn-Path: <bounce@example.com>\n\nx",
			"ann@example.com > bob@example.net",
		},
		{"Date and Message-ID that can't be read are replaced",
			"From: ann@example.com\nTo: bob@example.net\nDate: today\nMessage-ID: abc\nMIME-Version: 1.0\n\nx", nil,
			"From: ann@example.com\nTo: bob@example.net\nMIME-Version: 1.0\nDate: Sun, 01 Mar 2026 12:00:00 +0100\n" +
				"Message-ID: <hniaoyywcqj75ir27mz5nazhtkvaumn2@example.com>\n\nx", "ann@example.com > bob@example.net"},
		{"text in UTF-8 without a charset is labelled", complete + "\nGrüße\n", nil,
			complete + "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\nR3LDvMOfZQ0K",
			"ann@example.com > bob@example.net"},
		{"HTML in UTF-8 keeps its parameters", complete + "Content-Type: text/html; x=y;\n\nGrüße\n", nil,
			complete + "Content-Type: text/html; x=y; charset=utf-8\nContent-Transfer-Encoding: base64\n\nR3LDvMOfZQ0K",
			"ann@example.com > bob@example.net"},
		{"a charset that was given stays", complete + "Content-Type: text/plain; CharSet=latin1\n\nGrüße\n", nil,
			complete + "Content-Type: text/plain; CharSet=latin1\nContent-Transfer-Encoding: base64\n\nR3LDvMOfZQ0K",
			"ann@example.com > bob@example.net"},
		{"text in another charset gets no label", complete + "\nGr\xfc\xdfe\n", nil,
			complete + "Content-Transfer-Encoding: base64\n\nR3L832UNCg==", "ann@example.com > bob@example.net"},
		{"a part without a header is labelled",
			complete + "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nGrüße\n--b--\n", nil,
			complete + "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain; charset=utf-8\n" +
				"Content-Transfer-Encoding: base64\n\nR3LDvMOfZQ==\n--b--\n", "ann@example.com > bob@example.net"},
		{"equal fields of MIME, and those of an attached mail, stay", "MIME-Version: 1.0\n" + complete +
			"Content-Type: message/rfc822\n\nContent-Type: a/b\nContent-Type: c/d\n\nx", nil, "MIME-Version: 1.0\n" + complete +
			"Content-Type: message/rfc822\n\nContent-Type: a/b\nContent-Type: c/d\n\nx",
			"ann@example.com > bob@example.net"},
		{"nobody twice", complete + "Cc: BOB <bob@EXAMPLE.net>, bob@example.net\n\n", nil,
			complete + "Cc: BOB <bob@EXAMPLE.net>, bob@example.net\n\n", "ann@example.com > bob@example.net"},
		{"a line of an mbox file", "From ann Sun Mar  1 12:00:00 2026\n" + complete + "\nx", nil, complete + "\nx",
			"ann@example.com > bob@example.net"},
		{"no body and no end", strings.TrimSuffix(complete, "\n"), nil, complete + "\n",
			"ann@example.com > bob@example.net"},
		{"bare CR and LF", "X-A: 1\rX-B: 2\r\n" + complete + "\r\rone\rtwo\n\rthree\r\n.\r.\n", nil,
			"X-A: 1\nX-B: 2\n" + complete + "\n\none\ntwo\n\nthree\n.\n.\n", "ann@example.com > bob@example.net"},
		{
			"overrides take the place of what they replace",
			"Cc: old@example.net\nCC: older@example.net\n" + complete +
				"Subject: old\nsubject: older\nReply-To: old@example.net\nX-One: 1\nx-one: 2\nX-Two: 3\nBcc: old@example.net\n\nx",
			func(o *message.Override) {
				o.From, o.Sender = message.Address{Name: "Neu", Address: "neu@bücher.example"}, bob
				o.To, o.Cc, o.Bcc = []message.Address{{Address: "t@example.net"}}, []message.Address{
					{Address: "c@example.net"}}, []message.Address{{Address: "b@example.net"}}
				o.ReplyTo, o.Subject, o.MessageID, o.InReplyTo = []message.Address{
					bob}, "Grüße", "new@example.com", "<i@x>"
				o.Headers = []message.Header{{Name: "X-One", Value: "new"}, {Name: "X-One", Value: "newer"},
					{Name: "X-Three", Value: "3"}}
			},
			"Cc: c@example.net\nFrom: Neu <neu@xn--bcher-kva.example>\nTo: t@example.net\nDate: Sun, 1 Mar 2026 00:00:00 +0000\nMessage-ID: <new@example.com>\nMIME-Version: 1.0\n" +
				"Subject: =?utf-8?B?R3LDvMOfZQ==?=\nReply-To: bob@example.net\nX-Two: 3\nSender: bob@example.net\nIn-Reply-To: <i@x>\nReferences: <i@x>\nX-One: new\nX-One: newer\nX-Three: 3\n\nx",
			"neu@xn--bcher-kva.example > t@example.net, c@example.net, b@example.net",
		},
		{
			"headers that are fields of their own", complete + "\nx",
			func(o *message.Override) {
				o.Headers = []message.Header{{Name: "subject", Value: "S"}, {Name: "message-id", Value: "n@x"},
					{Name: "date", Value: "Mon, 2 Mar 2026 00:00:00 +0000"}, {Name: "reply-to", Value: "R <r@x.example>"}}
			},
			"From: Ann Example <ann@example.com>\nTo: bob@example.net\nDate: Mon, 02 Mar 2026 00:00:00 +0000\nMessage-ID: <n@x>\nMIME-Version: 1.0\nReply-To: R <r@x.example>\nSubject: S\n\nx",
			"ann@example.com > bob@example.net",
		},
		{"a default author", "To: bob@example.net\nDate: 1 Mar 2026 00:00 +0000\nMessage-ID: <1@x>\nMIME-Version: 1.0\n\n",
			func(o *message.Override) { o.DefaultFrom = ann },
			"To: bob@example.net\nDate: 1 Mar 2026 00:00 +0000\nMessage-ID: <1@x>\nMIME-Version: 1.0\nFrom: Ann Example <ann@example.com>\n\n", "ann@example.com > bob@example.net"},
		{"the default author gives way", complete + "\n", func(o *message.Override) { o.DefaultFrom = bob },
			complete + "\n", "ann@example.com > bob@example.net"},
		{"several authors are sent for by one", strings.Replace(complete, "Ann Example <ann@example.com>",
			"a@example.com, b@example.com", 1) + "Sender: S <s@example.com>\n\n", nil,
			strings.Replace(complete, "Ann Example <ann@example.com>", "a@example.com, b@example.com", 1) +
				"Sender: S <s@example.com>\n\n", "s@example.com > bob@example.net"},
		{"an envelope makes the recipients in the header decoration", strings.Replace(complete, "bob@example.net",
			"everybody, my friends", 1) + "\n", func(o *message.Override) {
			o.Envelope = &message.Envelope{To: []string{"x@Example.net"}}
		}, strings.Replace(complete, "bob@example.net", "everybody, my friends", 1) + "\n", " > x@example.net"},
		{"an envelope with only a return path", complete + "\n", func(o *message.Override) {
			o.Envelope = &message.Envelope{From: "r@example.com"}
		}, complete + "\n", "r@example.com > bob@example.net"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := override
			if row.override != nil {
				row.override(&o)
			}
			c, _, err := message.FromRaw([]byte(row.raw), o, steady())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.ReplaceAll(row.want, "\n", "\r\n"), string(c.Raw)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got := c.Envelope.From + " > " + strings.Join(c.Envelope.To, ", "); got != row.to {
				t.Errorf("envelope is %q, want %q", got, row.to)
			}
		})
	}
}

// TestNamesWithoutADomainGetTheAccounts: cron writes "From: root (Cron Daemon)".
func TestNamesWithoutADomainGetTheAccounts(t *testing.T) {
	rest := strings.SplitAfterN(complete, "\n", 2)[1] + "\nx"
	for _, row := range [][2]string{
		{"From: root (Cron Daemon)", `From: Cron Daemon <root@example.com>`},
		{"From: root (a <b>)", `From: "a <b>" <root@example.com>`},
		{"From: www-data", "From: www-data@example.com"},
		{"From: <nagios>", "From: nagios@example.com"},
		{"From: \"Cron, the daemon\" <root>\nSender: cron\nReply-To: admin, Help <help>, a@example.net",
			"From: \"Cron, the daemon\" <root@example.com>\nSender: cron@example.com\n" +
				"Reply-To: admin@example.com, Help <help@example.com>, a@example.net"},
		{"From: =?utf-8?Q?B=C3=BCro?= <root>", "From: =?utf-8?B?QsO8cm8=?= <root@example.com>"},
		{"From: \"cron.\" (x)", "From: x <\"cron.\"@example.com>"},
		{"From: root,\n daemon\nSender: root", "From: root@example.com, daemon@example.com\nSender: root@example.com"},
		{"From:   Ann <a@example.net>", "From:   Ann <a@example.net>"},
	} {
		o := override
		o.DefaultFrom = message.Address{Name: "Shop", Address: "shop@example.com"}
		c, _, err := message.FromRaw([]byte(row[0]+"\n"+rest), o, steady())
		if err != nil {
			t.Errorf("%s: %v", row[0], err)
			continue
		}
		if got := strings.ReplaceAll(string(c.Raw), "\r\n", "\n"); got != row[1]+"\n"+rest {
			t.Errorf("%s\n became %s", row[0], got)
		}
	}
	for _, from := range []string{"Cron Daemon", "=?utf-8?Q?Cron?=", "root@", "(root)", "böb"} {
		o := override
		o.DefaultFrom = message.Address{Address: "shop@example.com"}
		if c, _, err := message.FromRaw([]byte("From: "+from+"\n"+rest), o, steady()); err == nil {
			t.Errorf("From: %s was taken as %s", from, c.From.Address)
		}
	}
}

// complete is a header that lacks nothing.
const complete = "From: Ann Example <ann@example.com>\nTo: bob@example.net\nDate: Sun, 1 Mar 2026 00:00:00 +0000\nMessage-ID: <1@example.com>\nMIME-Version: 1.0\n"

func TestFromRawFaults(t *testing.T) {
	for _, row := range []struct {
		name, raw string
		change    func(o *message.Override)
		want      []string
	}{
		{"nothing", "", nil, []string{"raw: is empty"}},
		{"only line ends", "\r\n\r\n", nil, []string{"raw: is empty"}},
		{"NUL in the body", complete + "\na\x00b", nil, []string{"raw: contains a NUL byte"}},
		{"no header", "\nbody", nil, []string{"from: is required, because the message has no author",
			"to: at least one recipient is required"}},
		{"text instead of a header", "Hello Bob,\nhow are you?", nil,
			[]string{"raw: line 1 of the header is not a header field"}},
		{"blank before the colon", "Bcc : x@example.com\n" + complete, nil,
			[]string{"raw: line 1 of the header is not a header field"}},
		{"text in the header", complete + "not a field\n\n", nil,
			[]string{"raw: line 6 of the header is not a header field"}},
		{"UTF-8 in a name", "Ünter: x\n" + complete, nil,
			[]string{"raw: line 1 of the header is not a header field"}},
		{"begins folded", " x\n" + complete, nil, []string{"raw: starts with a space instead of a header"}},
		{"endless header", complete + "X: " + strings.Repeat("x\n y", 200_000), nil,
			[]string{"raw: has a header of more than 512 KiB"}},
		{"two subjects", complete + "Subject: a\nsubject: b\n\n", nil,
			[]string{"raw: has 2 headers Subject, but may have one"}},
		{"two authors in two headers", complete + "From: b@example.com\n\n", nil,
			[]string{"raw: has 2 headers From, but may have one"}},
		{"two types", complete + "Content-Type: text/plain\nContent-type: text/html\n\n", nil,
			[]string{"raw: has 2 headers Content-Type in one part, but may have one"}},
		{"two encodings of a part", complete + "Content-Type: multipart/mixed; boundary=b\n\n--b\n" +
			"Content-Transfer-Encoding: 7bit\nContent-Transfer-Encoding: base64\n\nx\n--b--\n", nil,
			[]string{"raw: has 2 headers Content-Transfer-Encoding in one part, but may have one"}},
		{"several authors, nobody sends", strings.Replace(complete, "From: ", "From: b@example.com, ", 1) + "\n",
			nil, []string{"raw: has 2 authors, so it requires a Sender with one address (RFC 5322 section 3.6.2)"}},
		{"nobody to send to", "From: ann@example.com\nTo: undisclosed-recipients:;\n\n", nil,
			[]string{"to: at least one recipient is required"}},
		{
			"addresses nobody can send to", "From: ann@[192.0.2.1]\nTo: <b@x..y>\nCc: Doe, J <\nBcc: b@c\n\n", nil,
			[]string{`raw: its From: "ann@[192.0.2.1]" is not a valid email address: the domain can't be an IP address`, "raw: its To is not a list of addresses: double dot in atom", "raw: its Cc is not a list of addresses: missing '@' or angle-addr"},
		},
		{
			"bad overrides, all at once", complete + "\n",
			func(o *message.Override) {
				o.From, o.Sender, o.To = message.Address{Address: "x"}, message.Address{Address: "y"}, []message.Address{
					bob, {Address: "z"}}
				o.Subject, o.MessageID = "a\nb", "x y"
				o.Headers = []message.Header{{Name: "X-Foo", Value: "a\r\nBcc: evil@example.com"},
					{Name: "Content-Type", Value: "text/html"}, {Name: "To", Value: "x"}}
				o.Envelope = &message.Envelope{To: []string{"w"}}
			},
			[]string{
				"headers.Content-Type: can't be set, because Postroom writes it from text, html and attachments, or from raw",
				"headers.To: can't be set as a header. Use the field to",
				"from.address: is not a valid email address: it has no @",
				"sender.address: is not a valid email address: it has no @",
				"to[1].address: is not a valid email address: it has no @",
				"envelope.to[0]: is not a valid email address: it has no @",
				"subject: must not contain a line break",
				"messageId: is not a valid message id: only printable ASCII without blanks and <> may be in it",
				"headers.X-Foo: must not contain a line break",
			},
		},
		{
			"bad control headers", complete +
				"X-EE-Send-At: soon\nX-EE-Delivery-Attempts: 101\nX-Postroom-Tracking-Enabled: perhaps\nX-EE-Idempotency-Key: " + strings.Repeat("k", 1025) + "\n\n", nil,
			[]string{
				"raw: its X-EE-Send-At must be a time such as 2026-01-31T09:00:00Z",
				"raw: its X-EE-Delivery-Attempts must be a whole number from 1 to 100",
				"raw: its X-Postroom-Tracking-Enabled must be true or false",
				"raw: its X-EE-Idempotency-Key must not be longer than 1024 octets",
			},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := override
			if row.change != nil {
				row.change(&o)
			}
			_, _, err := message.FromRaw([]byte(row.raw), o, steady())
			if diff := cmp.Diff(row.want, faultsOf(t, err)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestFromRawFaultsThatAreNotTheMessages(t *testing.T) {
	if _, _, err := message.FromRaw([]byte(complete+"\n"), message.Override{}, steady()); err == nil ||
		fault.Is(err, fault.Invalid) {
		t.Errorf("no date: %v", err)
	}
	if _, _, err := message.FromRaw([]byte("From: a@x.example\nTo: b@x.example\n\n"), override,
		io.LimitReader(steady(), 3)); err == nil || fault.Is(err, fault.Invalid) {
		t.Errorf("randomness that gives out: %v", err)
	}
}

func TestControlHeaders(t *testing.T) {
	yes, no := true, false
	at := time.Date(2026, 5, 1, 8, 30, 0, 0, time.UTC)
	for _, row := range []struct {
		name, header string
		want         message.Control
	}{
		{"all of EmailEngine's", "X-EE-Send-At: 2026-05-01T08:30:00.000Z\nx-ee-delivery-attempts: 3\nX-EE-Gateway: eu\nX-EE-Tracking-Enabled: yes\nX-EE-Idempotency-Key: \"k 1\"\n", message.Control{SendAt: at, DeliveryAttempts: 3, Gateway: "eu", TrackingEnabled: &yes, IdempotencyKey: "k 1"}},
		{"all of ours", "X-Postroom-Send-At: 2026-05-01T10:30+02:00\nX-Postroom-Delivery-Attempts: 100\nX-Postroom-Gateway: us\nX-Postroom-Tracking-Enabled: 0\nX-Postroom-Idempotency-Key:\n k\nX-Postroom-Lane: Bulk\nX-Postroom-Priority: high\n", message.Control{SendAt: at, DeliveryAttempts: 100, Gateway: "us", TrackingEnabled: &no, IdempotencyKey: "k", Lane: "bulk", Priority: "high"}},
		{"ours count, wherever they are", "X-EE-Gateway: ee\nX-Postroom-Gateway: ours\nX-EE-Gateway: again\n",
			message.Control{Gateway: "ours"}},
		{"milliseconds", "X-EE-Send-At: 1777624200000\n", message.Control{SendAt: at}},
		{"no zone is UTC", "X-EE-Send-At: 2026-05-01T08:30\n", message.Control{SendAt: at}},
		{"empty says nothing", "X-EE-Send-At:\nX-EE-Delivery-Attempts: \nX-EE-Tracking-Enabled:\n",
			message.Control{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, got, err := message.FromRaw([]byte(row.header+complete+row.header+"\nx"), override, steady())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(row.want, got,
				cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if want := strings.ReplaceAll(complete+"\nx", "\n", "\r\n"); string(c.Raw) != want {
				t.Errorf("the headers were not taken out:\n%s", c.Raw)
			}
		})
	}
}

func TestFromRawSaysWhatTheRelayMustOffer(t *testing.T) {
	type needs struct{ SMTPUTF8, EightBit bool }
	for _, row := range []struct {
		name, raw string
		want      needs
	}{
		{"nothing", complete + "\nplain", needs{}},
		{"8-bit body", complete + "\nGrüße", needs{}},
		{"8-bit body, signed", "DKIM-Signature: v=1; b=x\n" + complete + "\nGrüße", needs{EightBit: true}},
		{"UTF-8 in a header", "X: ü\n" + complete + "\n", needs{}},
		{"UTF-8 in a header, signed", "X: ü\nARC-Seal: i=1; b=x\n" + complete + "\n", needs{SMTPUTF8: true}},
		{"latin1 in a header, signed", "X: \xfc\nARC-Seal: i=1; b=x\n" + complete + "\n", needs{}},
		{"UTF-8 in an address", complete + "Cc: 用户@example.net\n\n", needs{SMTPUTF8: true}},
		{"UTF-8 in an address of the header only", strings.Replace(complete, "bob@",
			"Cc: x <用户@example.net>\nX-To: bob@", 1) + "\n", needs{SMTPUTF8: true}},
		{"UTF-8 in a name and a domain", strings.Replace(complete, "bob@example.net", "Jürgen <bob@bücher.example>",
			1) + "\n", needs{}},
		{"UTF-8 in Bcc", complete + "Bcc: 用户@example.net\n\n", needs{SMTPUTF8: true}},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := override
			if strings.Contains(row.raw, "X-To") {
				o.Envelope = &message.Envelope{To: []string{"bob@example.net"}}
			}
			c, _, err := message.FromRaw([]byte(row.raw), o, steady())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(row.want, needs{c.SMTPUTF8, c.EightBit}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestFromRawOfComposedMailsChangesNothing(t *testing.T) {
	for _, s := range samples() {
		if s.name == "only-bcc" {
			continue // has no recipient any more
		}
		composed := compose(t, s.draft)
		c, _, err := message.FromRaw(composed.Raw, override, steady())
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
			continue
		}
		if diff := cmp.Diff(composed, c); diff != "" {
			t.Errorf("%s (-composed +taken):\n%s", s.name, diff)
		}
	}
}
