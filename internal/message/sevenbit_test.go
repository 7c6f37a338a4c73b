package message_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/postroom/postroom/internal/message"
)

// eightBitMails are raw emails with parts that not every relay carries. All but the signed emails come out
// for every relay.
func eightBitMails() []struct{ name, raw string } {
	const text = "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n"
	long := strings.Repeat("long ", 400)
	return []struct{ name, raw string }{
		{"text", complete + text + "\nGrüße aus Köln\n-- \nJ. Müller\n.\nFrom here\n"},
		{"no line end", complete + text + "\nGrüße"},
		{"Japanese", complete + text + "\n" + strings.Repeat("日本語の本文\n", 30)},
		{"no type, no encoding", complete + "\nGr\xfc\xdfe\n"},
		{"said to be 7bit", complete +
			"Content-Type: text/html; charset=iso-8859-1\ncontent-transfer-encoding: 7BIT\n\n<p>Gr\xfc\xdfe</p>\n"},
		{"a long line", complete + "Content-Type: text/html\n\n<p>" + long + "</p>\n"},
		{
			"nested", complete + "Content-Type: multipart/mixed; boundary=\"a b\"\nContent-Transfer-Encoding: 8bit\n\nnobody reads this\n" +
				"--a b\nContent-Type: multipart/alternative;\n boundary=a\nContent-Transfer-Encoding: 8bit\n\n--a\n" +
				text + "\nGrüße\n\n--a\nContent-Type: text/html\n\n<p>plain</p>\n--a\t\n" +
				"Content-Type: text/html; charset=utf-8\n\n<p>Grüße " + long +
				"</p>\n--a--\n\n--a b\nContent-Type: application/json\nContent-Transfer-Encoding: binary\nContent-Disposition: attachment; filename=x.json\n\n{\"ü\": 1}\n\n" +
				"--a b\nContent-Type: image/png\nContent-Transfer-Encoding: base64\n\niVBORw0KGgo=\n--a b--\nnor this\n",
		},
		{"no last boundary", complete + "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nGrüße\n--b\n" + text +
			"\nÜber\n"},
		{"a boundary that only looks like one",
			complete + "Content-Type: multipart/mixed; boundary=b\n\n--b\n\n--bb\nGrüße\n --b\n--b--\n"},
		{"a boundary that encoding would make", complete + "Content-Type: multipart/mixed; boundary=b\n\n--b\n\n" +
			strings.Repeat("ü"+strings.Repeat("x", 69)+"--b\nx\n", 3) + "\n--b--\n"},
		{"an attached mail", complete +
			"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/rfc822\nContent-Transfer-Encoding: 8bit\n\nSubject: inner\nFrom: x@example.com\n" + text + "\nGrüße\n\n--b--\n"},
		{"a digest", complete + "Content-Type: multipart/digest; boundary=b\n\n--b\n\nSubject: inner\nFrom: x@example.com\n" + text + "\nGrüße\n\n--b--\n"},
	}
}

// TestEightBitMailIsMadeForEveryRelay has Python read each mail before and after.
func TestEightBitMailIsMadeForEveryRelay(t *testing.T) {
	all := eightBitMails()
	var raws [][]byte
	for _, row := range all {
		c, _, err := message.FromRaw([]byte(row.raw), override, steady())
		if err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		if c.EightBit {
			t.Errorf("%s: EightBit", row.name)
		}
		checkCarriable(t, &message.Composed{Raw: append(c.Raw, "\r\n"...)})
		if bytes.Contains(c.Raw, []byte("8bit")) || bytes.Contains(c.Raw, []byte("binary")) {
			t.Errorf("%s: still says that it is 8bit:\n%s", row.name, c.Raw)
		}
		raws = append(raws, []byte(strings.ReplaceAll(row.raw, "\n", "\r\n")), c.Raw)
	}
	mails := readRawWithPython(t, raws)
	var inner [][]byte
	for i, row := range all {
		before, after := mails[2*i], mails[2*i+1]
		inner = append(inner, sameMail(t, row.name, before, after)...)
	}
	mails = readRawWithPython(t, inner)
	if len(mails) != 4 {
		t.Errorf("%d attached mails were found", len(mails))
	}
	for i := 0; i < len(mails); i += 2 {
		sameMail(t, "attached", mails[i], mails[i+1])
	}
}

// sameMail compares what Python read, except for the encoding, and returns the attached emails of both, in
// pairs.
func sameMail(t *testing.T, name string, before, after pythonMail) (attached [][]byte) {
	t.Helper()
	isEncoding := func(h []string) bool { return strings.EqualFold(h[0], "Content-Transfer-Encoding") }
	before.Headers, after.Headers = slices.DeleteFunc(before.Headers, isEncoding), slices.DeleteFunc(
		after.Headers, isEncoding)
	for i := range min(len(before.Parts), len(after.Parts)) {
		a, b := &before.Parts[i], &after.Parts[i]
		if strings.HasPrefix(a.Type, "message/") {
			attached = append(attached, []byte(a.payload(t)), []byte(b.payload(t)))
			b.Payload = a.Payload
		}
		// Python takes one off a part that nothing ends
		if strings.TrimSuffix(a.payload(t), "\n") == strings.TrimSuffix(b.payload(t), "\n") {
			b.Payload = a.Payload
		}
		a.Encoding, b.Encoding = "", ""
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("%s (-before +after):\n%s", name, diff)
	}
	return attached
}

func TestWhatIsSignedStaysEightBit(t *testing.T) {
	const text = "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\nGrüße\n"
	for _, row := range []struct {
		name, raw string
		stays     bool // as a whole
	}{
		{"DKIM", "DKIM-Signature: v=1; b=x\n" + complete + text, true},
		{"DomainKeys", "DomainKey-Signature: a=rsa-sha1; b=x\n" + complete + text, true},
		{"ARC", "ARC-Message-Signature: i=1; b=x\n" + complete + text, true},
		{"S/MIME or PGP around it", complete + "Content-Type: multipart/signed; boundary=b; protocol=x\n\n--b\n" +
			text + "\n--b\n\nsignature\n--b--\n", true},
		{"S/MIME", complete + "Content-Type: application/pkcs7-mime\nContent-Transfer-Encoding: binary\n\nü\n",
			true},
		{"a signed part", complete +
			"Content-Type: multipart/mixed; boundary=a\n\n--a\n\nGrüße\n--a\nContent-Type: multipart/signed; boundary=b\n\n--b\n" + text + "\n--b\n\nsignature\n--b--\n--a--\n", false},
		{"an attached mail that is signed",
			complete + "Content-Type: multipart/mixed; boundary=a\n\n--a\nContent-Type: message/rfc822\n\nDKIM-Signature: v=1; b=x\n" + text + "\n--a--\n", true},
		{"UTF-8 in the signed header of an attached mail", complete +
			"Content-Type: message/rfc822\nContent-Transfer-Encoding: 8bit\n\nARC-Seal: i=1\nSubject: Grüße\n\nx\n", true},
		{"a report", complete + "Content-Type: message/global-delivery-status\n\nü\n", true},
		{"an encoding of their own", complete + "Content-Transfer-Encoding: x-own\n\nü\n", true},
		{"broken quoted-printable", complete + "Content-Transfer-Encoding: quoted-printable\n\nü=FC\n", true},
		{"text before the parts", complete + "Content-Type: multipart/mixed; boundary=a\n\nü\n--a\n\nx\n--a--\n",
			true},
		{"parts without a boundary", complete + "Content-Type: multipart/mixed\n\nü\n", true},
		{"parts in too many levels", complete + strings.Repeat("Content-Type: message/rfc822\n\n", 30) + "ü\n",
			true},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, _, err := message.FromRaw([]byte(row.raw), override, steady())
			if err != nil {
				t.Fatal(err)
			}
			if !c.EightBit {
				t.Error("EightBit is false")
			}
			want := strings.ReplaceAll(row.raw, "\n", "\r\n")
			if row.stays && string(c.Raw) != want {
				t.Errorf("changed to\n%s", c.Raw)
			}
			if _, part, signed := strings.Cut(want, "multipart/signed"); signed &&
				!bytes.Contains(c.Raw, []byte(part)) {
				t.Errorf("the signed part was changed:\n%s", c.Raw)
			}
		})
	}
}

// FuzzSevenBit takes raw emails and compares what the standard library reads in them before and after.
func FuzzSevenBit(f *testing.F) {
	for _, row := range eightBitMails() {
		f.Add([]byte(row.raw))
	}
	f.Add([]byte(complete + "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nü\n--b\n\n--b--\nü\n--b--"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, _, err := message.FromRaw(raw, override, steady())
		if err != nil {
			return
		}
		// is left alone
		plain, _, err := message.FromRaw(append([]byte("ARC-Seal: x\n"), raw...), override, steady())
		if err != nil {
			return
		}
		before, readable := leaves(plain.Raw)
		after, still := leaves(c.Raw)
		if !readable {
			return
		}
		if !still {
			t.Fatalf("nobody can read any more:\n%q\n%q", plain.Raw, c.Raw)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("-before +after:\n%s\n%q\n%q", diff, plain.Raw, c.Raw)
		}
	})
}

// leaves reads the parts of an email that have no parts, each as its type and its decoded body. Not ok: the
// standard library can't.
func leaves(raw []byte) (list []string, ok bool) {
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return nil, false
	}
	return leavesOf("text/plain", m.Header.Get("Content-Type"), m.Header.Get("Content-Transfer-Encoding"),
		m.Body, 0)
}

func leavesOf(usual, contentType, encoding string, body io.Reader, depth int) (list []string, ok bool) {
	if contentType == "" {
		contentType = usual
	}
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || depth > 10 {
		return nil, false
	}
	if strings.HasPrefix(kind, "message/") {
		inner, err := io.ReadAll(body)
		if err != nil {
			return nil, false
		}
		return leaves(inner)
	}
	if !strings.HasPrefix(kind, "multipart/") {
		switch strings.ToLower(strings.TrimSpace(encoding)) {
		case "base64":
			body = base64.NewDecoder(base64.StdEncoding, body)
		case "quoted-printable":
			body = quotedprintable.NewReader(body)
		}
		decoded, err := io.ReadAll(body)
		return []string{kind + ": " + string(decoded)}, err == nil
	}
	usual = "text/plain"
	if kind == "multipart/digest" {
		usual = "message/rfc822"
	}
	for reader := multipart.NewReader(body, params["boundary"]); ; {
		p, err := reader.NextRawPart()
		if err == io.EOF {
			return list, true
		}
		if err != nil {
			return nil, false
		}
		inner, ok := leavesOf(usual, p.Header.Get("Content-Type"), p.Header.Get("Content-Transfer-Encoding"), p,
			depth+1)
		if !ok {
			return nil, false
		}
		list = append(list, inner...)
	}
}
