package apisend

import (
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/postroom/postroom/internal/message"
)

var (
	ann  = message.Address{Name: "Ann Example", Address: "ann@example.com"}
	bob  = message.Address{Address: "bob@example.net"}
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	gif  = []byte("GIF89a\x01\x00\x01\x00\x00\xff\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x00;")
)

func steady() io.Reader { return rand.NewChaCha8([32]byte{1, 2, 3}) }

func compose(t testing.TB, d message.Draft) []byte {
	t.Helper()
	d.From, d.To, d.Date = ann, []message.Address{bob}, noon
	d.MessageID = "<id@example.com>"
	c, err := message.Compose(d, steady())
	if err != nil {
		t.Fatal(err)
	}
	return c.Raw
}

func apart(t testing.TB, raw []byte) content {
	t.Helper()
	c, err := takeApart(raw)
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return c
}

func diff(want, got content) string {
	return cmp.Diff(want, got, cmp.AllowUnexported(content{}, alternative{}, file{}, field{}),
		cmpopts.EquateEmpty())
}

// composed is the content of every composed message, with the parts that want changes.
func composed(change func(c *content)) content {
	c := content{from: ann, to: []message.Address{bob}, subject: "Hello", messageID: "<id@example.com>",
		header: []field{{"Date", "Sun, 01 Mar 2026 12:00:00 +0000"}, {"Message-ID", "<id@example.com>"}},
		text:   "Hello Bob\n", hasText: true}
	change(&c)
	return c
}

var letters = []string{
	"plain\n", ".\nFrom here\n..\n", "Grüße aus Köln = schön \t \n" + strings.Repeat("lang ", 400) + "\nEnde\n",
	"こんにちは、世界。\n", "Привет, мир\n", "مرحبا بالعالم\n", "שלום\n", "สวัสดีชาวโลก\n", "👩‍👩‍👧‍👦🇩🇪é\n",
	"a\u2028b\u00a0c\ufeffd\u200be \U0001F600\n", "\ufefftext\n", "=?utf-8?q?no_word?= =20 &amp; {{x}} %s\n",
	strings.Repeat("日本語の本文\n", 20_000), "\n\n", " \n", "\ufffd\n", "a\tb\n",
}

func TestTakeApartGivesWhatWasComposed(t *testing.T) {
	for i, s := range letters {
		t.Run(fmt.Sprint("letters ", i), func(t *testing.T) {
			subject := string([]rune(s)[:min(60, len([]rune(s)))])
			subject = strings.NewReplacer("\n", " ", "\ufeff", "").Replace(subject) + "!"
			html, name := "<p>"+s+"</p>\n", "a"+strings.Trim(subject, " !")+".txt"
			raw := compose(t, message.Draft{Subject: subject, Text: s, HTML: html,
				ReplyTo: []message.Address{{Name: subject, Address: "r@example.com"}, {Address: "s@example.com"}},
				Headers: []message.Header{{Name: "X-Note", Value: "n " + subject}},
				Attachments: []message.Attachment{{Filename: name, Content: []byte(s + "\r\n\r"),
					ContentType: "text/plain; charset=koi8-r"}}})
			got := apart(t, raw)
			if len(got.files) == 1 { // composing takes bidirectional marks and paths out of names
				name = got.files[0].name
			}
			want := composed(func(c *content) {
				c.subject, c.text, c.html, c.hasHTML = subject, s, html, true
				c.replyTo = []message.Address{{Name: strings.TrimSpace(subject), Address: "r@example.com"},
					{Address: "s@example.com"}}
				c.header = append(c.header, field{"X-Note", "n " + subject})
				c.files = []file{{name: name, kind: "text/plain; charset=koi8-r", content: []byte(s + "\r\n\r")}}
			})
			if diff := diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTakeApartOfMoreThanText(t *testing.T) {
	invitation := "BEGIN:VCALENDAR\nMETHOD:REQUEST\nSUMMARY:Tür\nEND:VCALENDAR\n"
	listHeaders := []message.Header{
		{Name: "List-Unsubscribe", Value: "<https://example.com/u/" + strings.Repeat("t", 120) +
			">, <mailto:u@example.com?subject=unsubscribe>"},
		{Name: "List-Unsubscribe-Post", Value: "List-Unsubscribe=One-Click"},
		{Name: "X-Empty", Value: ""}, {Name: "X-Note", Value: "What does =?utf-8?q?x?= mean"},
		{Name: "Auto-Submitted", Value: "auto-generated"}}
	for name, row := range map[string]struct {
		draft message.Draft
		want  func(c *content)
	}{
		"inline images": {message.Draft{Text: "Hello Bob\n", HTML: `<img src="cid:logo%40x"><p>Hi</p>`,
			Attachments: []message.Attachment{{Filename: "logo.gif", Content: gif, CID: "logo@x"},
				{Filename: "плановый отчёт.pdf", Content: []byte{0, 255, '\n'}, CID: "other@x"}}},
			func(c *content) {
				c.html, c.hasHTML = `<img src="cid:logo%40x"><p>Hi</p>`, true
				c.inline = []file{{name: "logo.gif", kind: "image/gif", cid: "logo@x", content: gif}}
				c.files = []file{{name: "плановый отчёт.pdf", kind: "application/pdf", cid: "other@x",
					content: []byte{0, 255, '\n'}}}
			}},
		"invitation": {message.Draft{Text: "Hello Bob\n", Attachments: []message.Attachment{
			{Filename: "invite.ics", ContentType: "text/calendar; method=REQUEST", Content: []byte(invitation)}}},
			func(c *content) {
				c.alternatives = []alternative{{"text/calendar; method=REQUEST", invitation}}
				c.files = []file{{name: "invite.ics", kind: "application/ics", content: []byte(invitation)}}
			}},
		"only an attachment": {message.Draft{Attachments: []message.Attachment{{Filename: "a.bin",
			Content: []byte{0, 1}}}}, func(c *content) {
			c.text, c.hasText = "", false
			c.files = []file{{name: "a.bin", kind: "application/octet-stream", content: []byte{0, 1}}}
		}},
		"a message": {message.Draft{Text: "Hello Bob\n", Attachments: []message.Attachment{{Filename: "b.eml",
			Content: []byte("Subject: inner\r\n\r\nInner\r\n")}}}, func(c *content) {
			c.files = []file{{name: "b.eml", kind: "message/rfc822",
				content: []byte("Subject: inner\r\n\r\nInner\r\n")}}
		}},
		"fields": {message.Draft{Text: "Hello Bob\n", Headers: listHeaders, InReplyTo: "<a@b.example>"},
			func(c *content) {
				c.header = append(c.header, field{"In-Reply-To", "<a@b.example>"}, field{"References", "<a@b.example>"})
				for _, h := range listHeaders {
					c.header = append(c.header, field{h.Name, h.Value})
				}
			}},
		"a sender": {message.Draft{Text: "Hello Bob\n", Sender: message.Address{Address: "x@example.com"}},
			func(c *content) { c.sender.Address = "x@example.com" }},
		"empty": {message.Draft{}, func(c *content) { c.text = "" }},
	} {
		t.Run(name, func(t *testing.T) {
			row.draft.Subject = "Hello"
			if diff := diff(composed(row.want), apart(t, compose(t, row.draft))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// raw makes a message of lines that end with LF.
func raw(lines string) []byte { return []byte(strings.ReplaceAll(lines, "\n", "\r\n")) }

const head = "From: =?iso-8859-1?Q?J=FCrgen?= =?utf-8?B?IE3D?=\n =?utf-8?B?vGxsZXI=?= <J@Example.com>\n" +
	"To: \"Doe, John\" <john@example.net>,\n\tundisclosed-recipients:;\nCc: x@b\u00fccher.example\n" +
	"Subject: =?utf-8?Q?Gr=C3=BC?=\n =?utf-8?Q?=C3=9Fe?= and\n\ta tab\nReceived: from x\nReturn-Path: <a@b>\n" +
	"DKIM-Signature: v=1\nARC-Seal: i=1\nBcc: c@d.example\nResent-Bcc: c@d.example\nSender: J@EXAMPLE.com\n" +
	"X-Two: a\nX-Two: =?utf-8?q?=E2=82=AC?=\nDisposition-Notification-To: =?utf-8?q?=C3=BC?= " +
	"<a@b.example>\nMIME-Version: 1.0\n"

// TestTakeApartOfForeignMail has what other programs write.
func TestTakeApartOfForeignMail(t *testing.T) {
	of := func(change func(c *content)) content {
		c := content{from: message.Address{Name: "Jürgen Müller", Address: "J@example.com"},
			to:      []message.Address{{Name: "Doe, John", Address: "john@example.net"}},
			cc:      []message.Address{{Address: "x@xn--bcher-kva.example"}},
			subject: "Grüße and\ta tab", hasText: true,
			header: []field{{"X-Two", "a"}, {"X-Two", "€"},
				{"Disposition-Notification-To", "=?utf-8?q?=C3=BC?= <a@b.example>"}}}
		change(&c)
		return c
	}
	for name, row := range map[string]struct {
		raw  string
		want func(c *content)
	}{
		"8bit": {"Content-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\n\nGrüße\n\n.x ",
			func(c *content) { c.text = "Grüße\n\n.x " }},
		"a charset": {"Content-Type: text/plain; charset=\"windows-1252\"\nContent-Transfer-Encoding: " +
			"quoted-printable\n\n=80 5=\n 6 \n=3D", func(c *content) { c.text = "€ 5 6\n=" }},
		"a japanese charset": {"Content-Type: text/html; charset=iso-2022-jp\nContent-Transfer-Encoding: BASE64\n\n" +
			base64.StdEncoding.EncodeToString([]byte("\x1b$B$\"\x1b(B<br>")),
			func(c *content) { c.html, c.hasHTML, c.hasText = "あ<br>", true, false }},
		"no charset": {"\nGrüße", func(c *content) { c.text = "Grüße" }},
		"names": {"Content-Type: multipart/mixed; boundary=\"a b\"\n\npreamble\n--a b\n\n--a b\n" +
			"Content-Type: application/pdf; name=\"=?iso-8859-1?Q?=FC?=.pdf =?utf-8?Q?=C3=BC=2Epdf?=\"\n\n1\n--a b\t\n" +
			"Content-Type: image/png\nContent-Disposition: ATTACHMENT; filename*=ISO-8859-1'de'%FC.png; filename=u.png\n" +
			"\n2\n--a b\nContent-Type: image/png\nContent-Disposition: attachment;\n filename*0*=windows-1252''%80;\n" +
			" filename*1=.png\nContent-Transfer-Encoding: base64\n\nAw\n ==\n--a b--\nepilogue\n",
			func(c *content) {
				c.files = []file{{name: "ü.pdf ü.pdf", kind: "application/pdf", content: []byte("1")},
					{name: "ü.png", kind: "image/png", content: []byte("2")},
					{name: "€.png", kind: "image/png", content: []byte{3}}}
			}},
		"related around alternatives": {"Content-Type: multipart/related; boundary=A; start=\"<root@x>\"\n\n--A\n" +
			"Content-Type: image/png\nContent-ID: <a@x>\n\n1\n--A\nContent-ID: <root@x>\n" +
			"Content-Type: multipart/alternative; boundary=AA\n\n--AA\n\ntext\n--AA\nContent-Type: text/html\n\n" +
			"<img src=cid:a@x><iframe src='cid:f@x'>\n--AA--\n--A\nContent-Type: text/html\nContent-ID: <f@x>\n\n" +
			"<i>frame</i>\n--A\nContent-Type: image/png\nContent-ID: <a@x>\n\n3\n--A--",
			func(c *content) {
				c.text, c.html, c.hasHTML = "text", "<img src=cid:a@x><iframe src='cid:f@x'>", true
				c.inline = []file{{kind: "image/png", cid: "a@x", content: []byte("1")},
					{kind: "text/html", cid: "f@x", content: []byte("<i>frame</i>")}}
				c.files = []file{{kind: "image/png", cid: "a@x", content: []byte("3")}}
			}},
		"texts that are files": {"Content-Type: multipart/mixed; boundary=A\n\n--A\nContent-Type: text/csv; " +
			"charset=x\nContent-Disposition: attachment; filename=a.csv\n\n\u00ff\n--A\n\ntext\n--A\n" +
			"Content-Type: text/plain; name=b.txt\nContent-Disposition: inline\n\nb\n--A\nContent-Type: text/calendar\n\n" +
			"c\n--A\nContent-Type: text/html\nContent-Disposition: attachment\n\nd\n--A--",
			func(c *content) {
				c.text = "text"
				c.files = []file{{name: "a.csv", kind: "text/csv; charset=x", content: []byte("\u00ff")},
					{name: "b.txt", kind: "text/plain", content: []byte("b")},
					{kind: "text/calendar", content: []byte("c")}, {kind: "text/html", content: []byte("d")}}
			}},
		"a file among alternatives": {"Content-Type: multipart/alternative; boundary=A\n\n--A\n\ntext\n--A\n" +
			"Content-Type: multipart/mixed; boundary=B\n\n--B\nContent-Type: text/html\n\n<p>\n--B\n" +
			"Content-Type: application/pdf\n\n1\n--B--\n--A\nContent-Type: application/zip\n" +
			"Content-Disposition: attachment\n\n2\n--A--",
			func(c *content) {
				c.text, c.html, c.hasHTML = "text", "<p>", true
				c.files = []file{{kind: "application/pdf", content: []byte("1")},
					{kind: "application/zip", content: []byte("2")}}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := diff(of(row.want), apart(t, raw(head+row.raw))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBeyondParts(t *testing.T) {
	multipart := func(kind string, parts ...string) string {
		b := "Content-Type: multipart/" + kind + "; boundary=" + kind + "\n\n"
		for _, p := range parts {
			b += "--" + kind + "\n" + p + "\n"
		}
		return b + "--" + kind + "--\n"
	}
	const text, html = "Content-Type: text/plain\n\nx", "Content-Type: text/html\n\n<img src='images/a.png'>"
	for _, row := range []struct{ raw, want string }{
		{multipart("signed", text, "Content-Type: application/pgp-signature\n\nx"),
			"a signed or encrypted message (multipart/signed)"},
		{multipart("mixed", multipart("encrypted", text)), "a signed or encrypted message (multipart/encrypted)"},
		{"Content-Type: application/pkcs7-mime; name=smime.p7m\nContent-Disposition: attachment\n\nx",
			"a signed or encrypted message (application/pkcs7-mime)"},
		{multipart("report", text, "Content-Type: message/delivery-status\n\nx"), "a multipart/report"},
		{multipart("digest", text), "a multipart/digest"},
		{multipart("alternative", text, html, "Content-Type: text/calendar; method=REQUEST\n\nx"),
			"an alternative of type text/calendar"},
		{multipart("alternative", text, "Content-Type: text/x-amp-html\n\nx", html),
			"an alternative of type text/x-amp-html"},
		{multipart("alternative", text, "Content-Type: image/png\n\nx"), "an alternative of type image/png"},
		{multipart("alternative", text, multipart("related", "Content-Type: image/png\n\nx")),
			"an alternative of type image/png"},
		{multipart("alternative", text, "Content-Type: text/calendar\nContent-Disposition: attachment\n\nx"),
			"an alternative of type text/calendar"},
		{multipart("alternative", html, text), "a text/plain after the HTML"},
		{multipart("alternative", text, text, html), "a second text/plain"},
		{multipart("mixed", text, html), "a second text"},
		{multipart("mixed", html, html), "a second text/html"},
		{multipart("related", html, multipart("mixed", text)), "a multipart/mixed next to the HTML"},
		{multipart("related", html, "Content-Type: image/png\nContent-Location: images/a.png\n\nx"),
			"an image that the HTML names by its Content-Location"},
		{"Content-Type: text/calendar; method=REQUEST\n\nx", "a message of type text/calendar"},
		{"Content-Type: text/plain; format=flowed; delsp=yes\n\nx", "a text with delsp=yes"},
		{"Content-Type: message/partial; id=x; number=1; total=2\n\nx", "a message/partial"},
		{"From: b@example.com\nSender: b@example.com\n\n", "there are two"},
		{multipart("mixed", text, "Content-Type: message/rfc822\n\nSubject: x\n\nx"), ""},
		{multipart("mixed", text, "Content-Type: application/pkcs7-mime\nContent-Disposition: attachment\n\nx"),
			""},
		{"Content-Type: text/plain; format=flowed\n\nx", ""},
	} {
		c, err := takeApart(raw("From: a@example.com\n" + row.raw))
		got := c.beyond(false)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, row.want) || row.want == "" && got != "" {
			t.Errorf("%s\nis beyond parts by %q, want %q", row.raw, got, row.want)
		}
		if taken := c.beyond(true); strings.HasPrefix(row.want, "an alternative of type text/") != (taken == "") &&
			row.want != "" && err == nil {
			t.Errorf("%s\nis beyond parts with alternatives by %q", row.raw, taken)
		}
	}
	several := apart(t, raw("From: a@example.com, b@example.com\nSender: a@example.com\n\nx"))
	if several.beyond(true) != "several authors" {
		t.Errorf("several authors are beyond parts by %q", several.beyond(true))
	}
}

func TestBrokenMailIsNotTakenApart(t *testing.T) {
	const mixed = "Content-Type: multipart/mixed; boundary=B\n\n"
	for _, row := range []struct{ raw, want string }{
		{"Content-Transfer-Encoding: base64\n\nAAA", "its base64 is broken"},
		{"Content-Transfer-Encoding: base64\n\nAA*A", "its base64 is broken"},
		{"Content-Transfer-Encoding: quoted-printable\n\na\x01b", "its quoted-printable is broken"},
		{"Content-Transfer-Encoding: uuencode\n\nx", "its transfer encoding is unknown"},
		{"Content-Type: text/plain; charset=x-klingon\n\nx", `a text has the unknown charset "x-klingon"`},
		{"Content-Type: text/plain; charset=utf-16\n\nx", `a text has the unknown charset "utf-16"`},
		{"Content-Type: text/plain; charset=utf-8\n\n\xff", "a text isn't UTF-8"},
		{"Content-Type: text/plain; charset=us-ascii\n\nü", "a text isn't ASCII"},
		{"Content-Type: text/plain; charset=shift_jis\n\n\x81", `a text isn't "shift_jis"`},
		{"Content-Type: text\n\nx", "its Content-Type can't be read"},
		{"Content-Type: text/plain\nContent-Type: text/html\n\nx", "it has 2 headers Content-Type"},
		{"Content-Disposition: attachment; filename=a b.txt\n\nx", "its Content-Disposition can't be read"},
		{"Content-Disposition: attachment; filename*=x-klingon''a\n\nx", "its Content-Disposition can't be read"},
		{"Content-Disposition: attachment; filename*=a\n\nx", "its Content-Disposition can't be read"},
		{"Content-Disposition: attachment; filename*=utf-8''a%0Db\n\nx", "its Content-Disposition can't be read"},
		{"Content-Type: multipart/mixed\n\n--B\n\nx\n--B--", "its multipart/mixed has no boundary"},
		{"Content-Transfer-Encoding: base64\n" + mixed + "--B\n\nx\n--B--", "or a transfer encoding"},
		{mixed + "x", "its multipart/mixed has no parts"},
		{mixed + "--B\n\nx", "part 1: it has no end"},
		{mixed + "--B\n\nx\n--B\nnonsense\n\nx\n--B--", "part 2: it has no end, or no valid header"},
		{mixed + "--B\n" + strings.ReplaceAll(mixed, "=B", "=C") + "--C\n\nx\n--B--",
			"part 1: part 1: it has no end"},
		{mixed + "--B\nContent-Description: \xff\n\nx\n--B--", "part 1: its content-description isn't UTF-8"},
		{"Subject: =?x-klingon?Q?a?=\n\nx", `its Subject can't be read: an encoded word is broken: `},
		{"Subject: =?utf-8?Q?=FF?=\n\nx", "its Subject can't be read: it isn't UTF-8"},
		{"Subject: =?us-ascii?Q?=FF?=\n\nx", "its Subject can't be read: an encoded word isn't ASCII"},
		{"Subject: =?utf-8?Q?a=0D=0ABcc:_b?=\n\nx", "its Subject can't be read: it has a control character"},
		{"Subject: =?utf-8?B?a?=\n\nx", "its Subject can't be read: an encoded word is broken"},
		{"Subject: \xff\n\nx", "its Subject can't be read: it isn't UTF-8"},
		{"X-A: a\x00b\n\nx", "its X-A can't be read: it has a control character"},
		{"To: =?utf-8?Q?a=0Ab?= <a@example.com>\n\nx", "its To can't be read: it has a control character"},
		{"To: =?utf-8?Q?=FF?= <a@example.com>\n\nx", "its To has a name that isn't UTF-8"},
		{"To: nobody\n\nx", "its To is not a list of addresses"},
		{"Reply-To: <a@[127.0.0.1]>\n\nx", "its Reply-To is not"},
		{"Subject: a\nSubject: b\n\nx", "its Subject there are two"},
		{"nonsense\n\nx", "its header has no end"},
		{"Subject: no body\n", "its header has no end"},
	} {
		_, err := takeApart(raw("From: a@example.com\n" + row.raw))
		if err == nil || !strings.HasPrefix(err.Error(), "can't be parsed: ") ||
			!strings.Contains(err.Error(), row.want) {
			t.Errorf("%q: error %v, want %q", row.raw, err, row.want)
		}
	}
	if c, err := takeApart(raw("To: a@example.com\n\nx")); err == nil {
		t.Errorf("without an author: %v", c)
	}
}

func TestTakeApartIsBounded(t *testing.T) {
	for name, raw := range map[string][]byte{
		"parts": raw("From: a@example.com\nContent-Type: multipart/mixed; boundary=B\n\n" +
			strings.Repeat("--B\nContent-Disposition: attachment\n\nx\n", 1000) + "--B--\n"),
		"depth": raw("From: a@example.com\n" +
			strings.Repeat("Content-Type: multipart/mixed; boundary=B\n\n--B\n", 10_000) + "\nx\n--B--\n"),
		"header": raw("From: a@example.com\n" + strings.Repeat("X: "+strings.Repeat("y", 70)+"\n", 8000) + "\nx"),
	} {
		if _, err := takeApart(raw); err == nil {
			t.Errorf("too much of %s was taken apart", name)
		}
	}
	deep := "\nx\n"
	for i := range 32 {
		c, err := takeApart(raw("From: a@example.com\n" + deep))
		if c.text != "x\n" || err != nil {
			t.Errorf("%d levels deep is %q, %v", i+1, c.text, err)
		}
		deep = fmt.Sprintf("Content-Type: multipart/mixed; boundary=B%d\n\n--B%d\n%s\n--B%d--\n", i, i, deep, i)
	}
	if _, err := takeApart(raw("From: a@example.com\n" + deep)); err == nil {
		t.Error("33 levels were taken apart")
	}
}

// TestTwoReadersAgree compares the split parts of the golden emails with what the reader for people finds.
func TestTwoReadersAgree(t *testing.T) {
	for name, raw := range golden(t) {
		t.Run(name, func(t *testing.T) {
			c, read := apart(t, raw), message.Parse(raw)
			for kind, got := range map[string]string{"text/plain": c.text, "text/html": c.html} {
				want := ""
				if p := read.Text(kind); p != nil {
					want = strings.ReplaceAll(p.Text, "\r\n", "\n")
				}
				if got != want {
					t.Errorf("%s is %q, want %q", kind, got, want)
				}
			}
			var want, got []string
			for _, p := range read.Files() {
				want = append(want, fmt.Sprint(p.Name, p.Type, p.CID, p.Size))
			}
			for _, f := range append(c.inline, c.files...) {
				got = append(got, fmt.Sprint(f.name, mediaType(f.kind), f.cid, len(f.content)))
			}
			// go-message reads it as an encoded word, which it isn't by RFC 2231
			if d := cmp.Diff(want, got); d != "" && name != "filenames.eml" {
				t.Errorf("(-want +got):\n%s", d)
			}
			for _, h := range read.Headers {
				if h.Name == "Subject" && h.Value != message.Clip(c.subject, 8<<10) {
					t.Errorf("the subject is %q, want %q", c.subject, h.Value)
				}
			}
		})
	}
}

func golden(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("../../internal/message/testdata/golden/*.eml")
	if err != nil || len(paths) < 30 {
		t.Fatalf("%d golden mails: %v", len(paths), err)
	}
	all := map[string][]byte{}
	for _, path := range paths {
		if all[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestJoinedPartsSayTheSame: splitting what a provider makes of the parts gives the parts again.
func TestJoinedPartsSayTheSame(t *testing.T) {
	for name, raw := range golden(t) {
		t.Run(name, func(t *testing.T) { checkJoined(t, raw) })
	}
}

func checkJoined(t *testing.T, raw []byte) {
	t.Helper()
	c, err := takeApart(raw)
	if err != nil || c.lost != "" {
		return
	}
	joined := join(t, c)
	again, err := takeApart(joined)
	if err != nil {
		t.Fatalf("%v\n%s\nbecame\n%s", err, raw, joined)
	}
	if diff := diff(c, again); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s\nbecame\n%s", diff, raw, joined)
	}
	for _, s := range []string{c.text, c.html, c.subject, c.from.Name} {
		if !utf8.ValidString(s) {
			t.Errorf("%q isn't UTF-8", s)
		}
	}
}

// FuzzTakeApartPart puts what it is given into the places of a message where a program reads it.
func FuzzTakeApartPart(f *testing.F) {
	f.Add("=?utf-8?q?=C3=BC?= b", "X-A", "=?utf-8?b?IA==?=", "text/html; charset=koi8-r",
		"inline; filename*=utf-8''%fc", "quoted-printable", "=C3=BC=20\r\n")
	f.Add("a =?x?", "List-Id", "=?iso-8859-1?q?=FC?= <a.b>",
		"text/plain; name=\"=?utf-8?q?a?= b\"; x*0=a; x*1=b",
		"attachment; filename=\"a\\\"b\"", "base64", "AAA=")
	f.Add("", "Sender", "\"a, b\" <c@d.example> (x)", "multipart/related; boundary=C", "", "8bit",
		"--C\r\nContent-Type: text/html\r\n\r\ncid:a\r\n--C\r\nContent-ID: <a>\r\n\r\nx\r\n--C--")
	f.Fuzz(func(t *testing.T, subject, name, value, kind, disposition, encoding, body string) {
		checkJoined(t, []byte("From: a@b.example\r\nSubject: "+subject+"\r\n"+name+": "+value+"\r\n"+
			"Content-Type: multipart/mixed; boundary=B\r\n\r\n--B\r\nContent-Type: "+kind+"\r\nContent-Disposition: "+
			disposition+"\r\nContent-Transfer-Encoding: "+encoding+"\r\n\r\n"+body+"\r\n--B--\r\n"))
	})
}

func FuzzTakeApart(f *testing.F) {
	for _, raw := range golden(f) {
		f.Add(raw)
	}
	for _, s := range letters[:len(letters)-5] {
		f.Add(compose(f, message.Draft{Subject: "x", Text: s, HTML: s}))
	}
	f.Add(raw(head +
		"Content-Type: multipart/related; boundary=A; start=r\n\n--A\nContent-ID: a\n\n1\n--A\nContent-ID: r\n" +
		"Content-Type: text/html; charset=koi8-r\n\ncid:a\n--A--"))
	f.Add(raw("From: a@b\nX: =?utf-8?b?IA==?=\nContent-Type: multipart/alternative; boundary=A\n\n--A\n" +
		"Content-Type: text/calendar; x*=iso-8859-1''%fc\nContent-Transfer-Encoding: quoted-printable\n\n=\n\n--A--"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) <= 64<<10 {
			checkJoined(t, raw)
		}
	})
}
