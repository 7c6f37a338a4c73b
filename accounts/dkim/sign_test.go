package dkim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	reference "github.com/emersion/go-msgauth/dkim"

	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/testkit"
)

var signedAt = testkit.ClockStart

func signature(t testing.TB, kind string) Signature {
	return Signature{Domain: "example.com", Selector: "s1", Key: parsed(t, kind), Time: signedAt}
}

// composed is an email with all that Postroom writes.
func composed(t testing.TB, change func(d *message.Draft)) []byte {
	t.Helper()
	d := message.Draft{
		From: message.Address{Name: "Jürgen Müller", Address: "ann@example.com"}, To: []message.Address{
			{Address: "bob@example.net"}},
		Date: signedAt, Subject: "Grüße aus dem Süden, und " + strings.Repeat("noch mehr davon ", 10),
		Text: "Guten Tag\n",
	}
	change(&d)
	c, err := message.Compose(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.Raw
}

func mails(t testing.TB) map[string][]byte {
	list := map[string][]byte{
		"UTF-8 in the header": composed(t, func(*message.Draft) {}),
		"a newsletter": composed(t, func(d *message.Draft) {
			d.HTML = "<p>News</p>"
			d.Headers = []message.Header{
				{Name: "List-Id", Value: "News <news.example.com>"},
				{Name: "List-Unsubscribe", Value: "<https://example.com/u?t=" + strings.Repeat("x", 200) +
					">, <mailto:u@example.com>"},
				{Name: "List-Unsubscribe-Post", Value: "List-Unsubscribe=One-Click"},
				{Name: "Feedback-ID", Value: "1:2:3:shop"},
			}
		}),
		"attachments": composed(t, func(d *message.Draft) {
			d.Attachments = []message.Attachment{
				{Filename: "отчёт.pdf", Content: bytes.Repeat([]byte("0123456789\x00"), 9000)}, {Filename: "a.txt",
					Content: []byte("  a\t b \r\n\r\n")}}
		}),
		"an answer": composed(t, func(d *message.Draft) {
			d.InReplyTo, d.References, d.ReplyTo = "<1@x.example>", []string{"<0@x.example>"}, []message.Address{
				{Address: "r@example.com"}}
		}),
	}
	for name, text := range map[string]string{
		"blank lines at the end":           "one\n\ntwo\n\n\n \n\t\n",
		"blanks everywhere":                "  one  two\t\tthree \t\n \n\nfour \n",
		"no line end":                      "one",
		"a blank at the end":               "one\n two ",
		"only blank lines":                 "\n\n \n",
		"no body":                          "",
		"dots, and From at a line's start": ".\n..\nFrom here\n",
		"8-bit":                            "Grüße\n",
	} {
		list[name] = wire("From: ann@example.com\nTO:bob@example.net\nsubject:   folded\n\t subject \n  again  \nX-Other: x\n\n" + text)
	}
	list["no blank line after the header"] = wire("From: ann@example.com\nTo: bob@example.net\n")
	list["signed before"] = append(
		wire("DKIM-Signature: v=1; a=rsa-sha256; d=example.com; s=old; h=From; bh=AAAA; b=AAAA\n"),
		list["an answer"]...)
	list["many of one name"] = wire(strings.Repeat("List-Help: <https://example.com>\n", 30) +
		"From: ann@example.com\n\nx\n")
	return list
}

// TestOthersVerifyOurSignatures asks two verifiers that others wrote.
func TestOthersVerifyOurSignatures(t *testing.T) {
	var asked []question
	for name, mail := range mails(t) {
		for _, kind := range []string{RSA, Ed25519} {
			s := signature(t, kind)
			out, err := Sign(mail, s)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if !bytes.HasSuffix(out, mail) {
				t.Errorf("%s: the message itself was changed", name)
			}
			for line := range strings.SplitSeq(string(out[:len(out)-len(mail)]), "\r\n") {
				if len(line) > 78 {
					t.Errorf("%s: a line of %d octets in the signature: %s", name, len(line), line)
				}
			}
			asked = append(asked, question{name: name + ", " + kind, mail: out, key: s.Key, holds: true})
		}
	}
	ask(t, asked)
}

// TestWhatBreaksASignature holds what was promised: relays may fold, unfold and trace, no one may change or
// add what people see.
func TestWhatBreaksASignature(t *testing.T) {
	const mail = "From: Ann <ann@example.com>\nTo: bob@example.net\nSubject: An offer\nDate: Sun, 1 Mar 2026 12:00:00 +0000\nMessage-ID: <1@example.com>\n" +
		"MIME-Version: 1.0\nContent-Type: text/plain\nList-Unsubscribe: <https://example.com/u>\nX-Other: x\n\nBuy one.\n"
	out, err := Sign(wire(mail), signature(t, RSA))
	if err != nil {
		t.Fatal(err)
	}
	var asked []question
	for _, row := range []struct {
		name, old, new string
		holds          bool
	}{
		{"nothing", "", "", true},
		{"traced", "DKIM-Signature", "Received: from x by y; Sun, 1 Mar 2026 12:00:01 +0000\r\nDKIM-Signature",
			true},
		{"folded", "Subject: An offer", "Subject:\r\n\tAn  offer ", true},
		{"an unsigned field", "X-Other: x", "X-Other: y", true},
		{"blank lines at the end", "Buy one.\r\n", "Buy one. \r\n\r\n\r\n", true},
		{"the body", "Buy one.", "Buy two.", false},
		{"more body", "Buy one.\r\n", "Buy one.\r\nAnd two.\r\n", false},
		{"the subject", "An offer", "An offer!", false},
		{"a second subject", "Subject:", "Subject: Win\r\nSubject:", false},
		{"a second author", "From:", "From: eve@example.com\r\nFrom:", false},
		{"a Cc where there was none", "To:", "Cc: eve@example.org\r\nTo:", false},
		{"a Reply-To where there was none", "To:", "Reply-To: eve@example.org\r\nTo:", false},
		{"another type", "text/plain", "text/html", false},
		{"another address to unsubscribe", "https://example.com/u", "https://example.org/u", false},
		{"one-click where there was none", "X-Other",
			"List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\nX-Other", false},
	} {
		changed := bytes.Replace(out, []byte(row.old), []byte(row.new), 1)
		if row.old != "" && bytes.Equal(changed, out) {
			t.Fatalf("%s: nothing was changed", row.name)
		}
		asked = append(asked, question{name: row.name, mail: changed, key: parsed(t, RSA), holds: row.holds})
	}
	ask(t, asked)
}

// question is what a verifier is asked about an email, whose first signature is ours.
type question struct {
	name  string
	mail  []byte
	key   *Key
	holds bool
}

// ask asks dkimpy and go-msgauth.
func ask(t *testing.T, all []question) {
	t.Helper()
	name := RecordName("s1", "example.com")
	dir := t.TempDir()
	var input bytes.Buffer
	for i, q := range all {
		text := record(t, q.key)
		if !bytes.HasSuffix(q.mail, []byte("\r\n")) { // SMTP ends the last line, if no one else does
			q.mail = append(q.mail, "\r\n"...)
		}
		found, err := reference.VerifyWithOptions(bytes.NewReader(q.mail), &reference.VerifyOptions{
			LookupTXT: func(string) ([]string, error) { return []string{text}, nil }})
		if bytes.Contains(q.mail, []byte("\r\n\r\n")) { // go-msgauth reads no header without a blank line after it
			if err != nil || len(found) == 0 || (found[0].Err == nil) != q.holds {
				t.Errorf("%s: go-msgauth says %v %+v, want it to hold: %v", q.name, err, found, q.holds)
			}
		}
		file := filepath.Join(dir, fmt.Sprintf("%d.eml", i))
		if err := os.WriteFile(file, q.mail, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := json.NewEncoder(&input).Encode(map[string]any{"file": file, "records": map[string]string{
			name: text}}); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(python(t), filepath.Join("testdata", "verify_dkim.py"))
	cmd.Stdin = &input
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("dkimpy: %v\n%s", err, stderr.String())
	}
	answers := json.NewDecoder(bytes.NewReader(out))
	for _, q := range all {
		var results []string
		if err := answers.Decode(&results); err != nil {
			t.Fatal(err)
		}
		if len(results) == 0 || (results[0] == "") != q.holds {
			t.Errorf("%s: dkimpy says %q, want it to hold: %v\n%s", q.name, results, q.holds, q.mail)
		}
	}
}

// python finds the Python that has dkimpy: Debian's, which need not be the first one.
func python(t *testing.T) string {
	t.Helper()
	var last []byte
	for _, program := range []string{"python3", "/usr/bin/python3"} {
		out, err := exec.Command(program, "-c", "import dkim, nacl").CombinedOutput()
		if err == nil {
			return program
		}
		last = append(out, err.Error()...)
	}
	t.Fatalf("this test needs Python with dkimpy and PyNaCl (Debian: python3-dkim, python3-nacl): %s", last)
	return ""
}

func TestSignatureByExample(t *testing.T) {
	out, err := Sign(wire("From: ann@example.com\nTo: bob@example.net\nSubject: Hi\nSender: s@example.com\n\nHello\n"), signature(t, Ed25519))
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(out), "\r\n\tb=")
	want := strings.Join([]string{
		"DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed; d=example.com;",
		" s=s1; t=1772366400;",
	}, "")
	if unfolded := strings.ReplaceAll(head, "\r\n\t", " "); !strings.HasPrefix(unfolded, want) {
		t.Errorf("%s", unfolded)
	}
	_, list, _ := strings.Cut(strings.ReplaceAll(head, "\r\n\t", ""), "h=")
	list, _, _ = strings.Cut(list, ";")
	if want := "From:From:To:To:Cc:Subject:Subject:Date:Message-ID:Reply-To:In-Reply-To:References:MIME-Version:Content-Type:Content-Transfer-Encoding:" +
		"List-Id:List-Unsubscribe:List-Unsubscribe-Post:List-Help:List-Subscribe:List-Post:List-Owner:List-Archive:Sender"; list != want {
		t.Errorf("h=%s", list)
	}
}

func TestSignRefuses(t *testing.T) {
	for _, row := range []struct{ name, mail, fault string }{
		{"LF", "From: a@example.com\n\nx\n", "line end"},
		{"LF in the body", "From: a@example.com\r\n\r\nx\ny\r\n", "line end"},
		{"CR", "From: a@example.com\r\n\r\nx\ry\r\n", "line end"},
		{"CR at the end", "From: a@example.com\r\n\r\nx\r", "line end"},
		{"nothing", "", "no From"},
		{"no From", "To: a@example.com\r\n\r\nx\r\n", "no From"},
		{"no field", "From: a@example.com\r\nhello\r\n\r\n", "isn't a field"},
		{"blank before the colon", "From : a@example.com\r\n\r\n", "isn't a field"},
		{"folded at the start", " x\r\nFrom: a@example.com\r\n\r\n", "begins with a blank"},
		{"cut off", "From: a@exam", "no end"},
	} {
		if _, err := Sign([]byte(row.mail), signature(t, Ed25519)); err == nil ||
			!strings.Contains(err.Error(), row.fault) {
			t.Errorf("%s: %v, want %q", row.name, err, row.fault)
		}
	}
}

// FuzzSign signs what it is given; go-msgauth must agree with every signature.
func FuzzSign(f *testing.F) {
	for _, mail := range mails(f) {
		f.Add(mail)
	}
	s := signature(f, Ed25519)
	text := record(f, s.Key)
	f.Fuzz(func(t *testing.T, mail []byte) {
		out, err := Sign(mail, s)
		if err != nil || !bytes.Contains(mail, []byte("\r\n\r\n")) || bytes.HasPrefix(mail, []byte("\r\n")) {
			return
		}
		found, err := reference.VerifyWithOptions(bytes.NewReader(out), &reference.VerifyOptions{
			LookupTXT: func(string) ([]string, error) { return []string{text}, nil }, MaxVerifications: 1,
		})
		if len(found) == 0 || found[0].Err != nil {
			t.Errorf("%v %+v\n%q", err, found, out)
		}
	})
}

func BenchmarkSign(b *testing.B) {
	small := composed(b, func(*message.Draft) {})
	large := composed(b, func(d *message.Draft) {
		d.Attachments = []message.Attachment{
			{Filename: "a.bin", Content: bytes.Repeat([]byte("0123456789abcdef"), 1<<16)}}
	})
	for _, kind := range []string{RSA, Ed25519} {
		for name, mail := range map[string][]byte{"small": small, "megabyte": large} {
			b.Run(kind+"/"+name, func(b *testing.B) {
				s := signature(b, kind)
				b.SetBytes(int64(len(mail)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Sign(mail, s); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
