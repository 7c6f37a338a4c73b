package message_test

import (
	"bytes"
	"mime"
	"net/mail"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/message"
)

func FuzzNormalizeAddress(f *testing.F) {
	for _, seed := range []string{"bob@example.net", `"a..b"@x.example`, "用户@例え.テスト", "a@b@c", "x@[::1]",
		"x@xn--bcher-kva.example", "<a@b>", "a@b\r\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		normal, err := message.NormalizeAddress(s)
		if err != nil {
			return
		}
		if strings.ContainsAny(normal, " <>\r\n\t\x00\x7f,;:()[]\\") || !utf8.ValidString(normal) ||
			len(normal) > 254 || strings.Count(normal, "@") != 1 {
			t.Errorf("%q became %q", s, normal)
		}
		if again, err := message.NormalizeAddress(normal); err != nil || again != normal {
			t.Errorf("%q became %q, and that %q, %v", s, normal, again, err)
		}
		list, err := message.ParseAddressList(normal)
		if err != nil || len(list) != 1 {
			t.Fatalf("as a header: %q gives %v, %v", normal, list, err)
		}
		if again, err := message.NormalizeAddress(list[0].Address); err != nil || again != normal {
			t.Errorf("through a header %q became %q, %v", normal, again, err)
		}
	})
}

func FuzzParseAddressList(f *testing.F) {
	for _, seed := range []string{`"Doe, J" <j@x.example>, b@x.example (c)`, "a@b <a@b>, Team [A] <c@x.example>",
		"g: a@x, b@y;", "=?utf-8?q?x?= <a@b>", "\"\\", "(((", "<<>>",
		`"a..b"@x.example, "q u"@x.example`, "Jürgen <j@bücher.example>, 用户@x.example",
		"=?utf-8?b?DQpCY2M6IHg=?= <a@b.example>", "a@b.example\r\n ,\tc@d.example"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		list, err := message.ParseAddressList(s)
		if err != nil {
			if list != nil || !strings.HasPrefix(err.Error(), "is not a list of addresses: ") {
				t.Errorf("%v, %v", list, err)
			}
			return
		}
		if len(list) == 0 {
			return
		}
		c, err := message.Compose(message.Draft{From: ann, To: list, Date: noon, Text: "x"}, steady())
		if err != nil {
			// such as an address mail can't be sent to; never a panic, never a message with half of them
			faultsOf(t, err)
			return
		}
		checkCarriable(t, c)
		m, err := mail.ReadMessage(bytes.NewReader(c.Raw))
		if err != nil {
			t.Fatal(err)
		}
		again, err := message.ParseAddressList(m.Header.Get("To"))
		if err != nil || len(again) != len(list) {
			t.Fatalf("%q became %q, which reads as %q, %v", list, m.Header.Get("To"), again, err)
		}
		for i, a := range list {
			normal, err := message.NormalizeAddress(a.Address)
			if err != nil || again[i].Address != normal || again[i].Name != strings.TrimSpace(a.Name) {
				t.Errorf("%q became %q, which reads as %q, %v", a, m.Header.Get("To"), again[i], err)
			}
		}
	})
}

// FuzzComposeRoundTrip composes what it is given and reads it back with the parsers of the standard library.
func FuzzComposeRoundTrip(f *testing.F) {
	f.Add("Bob", "Hello", "text\n", "<p>html</p>", "preview", "file.txt", []byte("content"), "text/plain",
		"X-Foo", "bar")
	f.Add("Jürgen, \"x\"", strings.Repeat("日本", 50), ".\nFrom x\r\r\n",
		"<body><img src=data:image/gif;base64,R0lG>", "p", "отчёт?.pdf", []byte{
			0, 255}, "message/rfc822", "List-Id", "ü <x>")
	f.Add("=?utf-8?q?x?=", "  a  b\t", "\x00", "<a href='http://x'>", "", "../=?x", []byte("\r\n.\r\n"),
		"text/calendar; method=X", "Subject", "a b")
	f.Fuzz(func(t *testing.T, name, subject, text, html, preview, filename string, content []byte, kind,
		headerName, headerValue string) {
		c, err := message.Compose(message.Draft{
			From: ann, To: []message.Address{{Name: name, Address: "bob@example.net"}}, Date: noon, Subject: subject,
			Text: text, HTML: html, PreviewText: preview,
			Attachments: []message.Attachment{{Filename: filename, Content: content, ContentType: kind}},
			Headers:     []message.Header{{Name: headerName, Value: headerValue}},
		}, steady())
		if err != nil {
			faultsOf(t, err)
			return
		}
		checkCarriable(t, c)
		m, err := mail.ReadMessage(bytes.NewReader(c.Raw))
		if err != nil {
			t.Fatal(err)
		}
		if got := decodedHeader(t, m.Header.Get("Subject")); got != c.Subject {
			t.Errorf("subject %q was read as %q from %q", c.Subject, got, m.Header.Get("Subject"))
		}
		to, err := message.ParseAddressList(m.Header.Get("To"))
		if err != nil || len(to) != 1 || to[0].Address != "bob@example.net" ||
			to[0].Name != strings.TrimSpace(name) {
			t.Errorf("recipient %q was read as %q, %v from %q", name, to, err, m.Header.Get("To"))
		}
		parts := readParts(t, m.Header.Get("Content-Type"), m.Body)
		if len(parts) == 0 {
			return // the attachment alone
		}
		last := parts[len(parts)-1]
		if encoding := last.header.Get("Content-Transfer-Encoding"); encoding == "base64" &&
			!bytes.Equal(last.body, content) {
			t.Errorf("attachment %q was read as %q", content, last.body)
		}
		if first := parts[0]; text != "" && utf8.ValidString(text) &&
			lineEnds(string(first.body)) != lineEnds(text) {
			t.Errorf("text %q was read as %q", text, first.body)
		}
		if again, _, err := message.FromRaw(c.Raw, override, steady()); err != nil ||
			!bytes.Equal(again.Raw, c.Raw) {
			t.Errorf("as a raw message it changed: %v\n%s", err, c.Raw)
		}
	})
}

// FuzzFromRaw checks that nothing gets through that a relay could read as two messages, and no Bcc.
func FuzzFromRaw(f *testing.F) {
	for _, s := range samples() {
		f.Add(compose(f, s.draft).Raw)
	}
	f.Add([]byte("From a\nFrom: a@b\rTo: c@d\n\tx: y\nBcc: e@f\n\n\r.\r\n"))
	f.Add([]byte("X-EE-Send-At: 1\nFrom: a@b\nBCC : x@y\n\n"))
	f.Add([]byte("From: a@b\nTo: c@d\nDate: Sun, 01 MAY 0000 00:00:00 +0000ò\n\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, _, err := message.FromRaw(raw, override, steady())
		if err != nil {
			faultsOf(t, err)
			return
		}
		if i := bytes.IndexAny(bytes.ReplaceAll(c.Raw, []byte("\r\n"), nil), "\r\n\x00"); i >= 0 {
			t.Error("a bare CR, LF or NUL got through")
		}
		head := strings.ToLower("\r\n" + header(c.Raw))
		for _, name := range []string{"\r\nbcc", "\r\nresent-bcc", "\r\nx-ee-send-at", "\r\nx-postroom-gateway"} {
			if strings.Contains(head, name+":") || strings.Contains(head, name+" ") {
				t.Errorf("%q got through:\n%s", name, c.Raw)
			}
		}
		for _, name := range []string{"\r\nfrom:", "\r\ndate:", "\r\nmessage-id:", "\r\nmime-version:"} {
			if !strings.Contains(head, name) {
				t.Errorf("no %q:\n%s", name, c.Raw)
			}
		}
		if len(c.Envelope.To) == 0 {
			t.Error("no recipients")
		}
		again, _, err := message.FromRaw(c.Raw, message.Override{Date: noon, Envelope: &c.Envelope}, steady())
		if err != nil {
			t.Fatalf("what came out does not go in: %v\n%s", err, c.Raw)
		}
		if !bytes.Equal(again.Raw, c.Raw) {
			t.Errorf("the second time it changed:\n%q\n%q", c.Raw, again.Raw)
		}
	})
}

func decodedHeader(t *testing.T, value string) string {
	t.Helper()
	decoded, err := new(mime.WordDecoder).DecodeHeader(value)
	if err != nil {
		t.Fatalf("decode %q: %v", value, err)
	}
	return decoded
}
