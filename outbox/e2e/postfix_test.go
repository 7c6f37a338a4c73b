package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testsmtp"
)

// readMail parses an email with Python's email package, and prints its parts and defects.
const readMail = `
import email, email.policy, hashlib, json, sys
m = email.message_from_binary_file(open(sys.argv[1], 'rb'), policy=email.policy.default)
parts = []
for p in m.walk():
    if p.is_multipart(): continue
    body = p.get_content()
    if isinstance(body, str): body = body.replace('\r\n', '\n').rstrip('\n').encode()
    parts.append({'type': p.get_content_type(), 'name': p.get_filename() or '', 'sha256': hashlib.sha256(body).hexdigest()})
defects = [str(d) for p in m.walk() for d in p.defects]
print(json.dumps({'subject': m['Subject'], 'to': m['To'], 'from': m['From'], 'defects': defects, 'parts': parts}))
`

type readPart struct{ Type, Name, SHA256 string }

// TestPostfixTakesWhatWeSend sends an email with attachments and names in many scripts through a real
// Postfix. Python parses the result.
func TestPostfixTakesWhatWeSend(t *testing.T) {
	t.Parallel()
	postfix := testsmtp.StartPostfix(t, testsmtp.PostfixOptions{})
	a := apptest.Run(t, map[string]string{
		"smtp": fmt.Sprintf("smtp://127.0.0.1:%d", postfix.Port),
		"from": "Büro für Öffentlichkeit <app@example.com>",
	})
	binary := bytes.Repeat([]byte{0, 1, 2, 0xff, '\r', '\n', '.', '\r'}, 5000)
	text := "Grüße,\n.\n..leading dots\nFrom here on\n" + strings.Repeat("a long line of text ", 80)
	html := "<p>Grüße <b>aus</b> Köln</p>"
	_, err := api.Submit.Do(t.Context(), api.NewClient(a.URL(), a.Token(), nil), api.SubmitRequest{
		To: api.Addresses{{Name: "Jörg Müller, Vertrieb", Address: "joerg@example.net"},
			{Address: "info@bücher.example"}},
		Subject: "Rechnung für März – 請求書 🎉", Text: text, HTML: html,
		Attachments: []api.Attachment{
			{Filename: "Übersicht 2026 – 概要.pdf", Content: binary, ContentType: "application/pdf"},
			{Filename: "leer.txt", Content: []byte{}, ContentType: "text/plain"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	files := postfix.Wait(t, 2)
	for _, file := range files {
		out, err := exec.CommandContext(t.Context(), "python3", "-c", readMail, file).Output()
		if err != nil {
			t.Fatalf("python3 could not read the mail (is python3 installed? `make test` installs it): %v", err)
		}
		var got struct {
			Subject, To, From string
			Defects           []string
			Parts             []readPart
		}
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Defects) != 0 {
			t.Errorf("defects: %v", got.Defects)
		}
		if got.Subject != "Rechnung für März – 請求書 🎉" || !strings.Contains(got.To, "Jörg Müller, Vertrieb") ||
			!strings.HasPrefix(got.From, "Büro für") {
			t.Errorf("headers came out as %q, %q, %q", got.Subject, got.To, got.From)
		}
		want := []readPart{
			{"text/plain", "", sum(strings.TrimRight(text, "\n"))}, {"text/html", "", sum(html)},
			{"application/pdf", "Übersicht 2026 – 概要.pdf", sum(string(binary))}, {"text/plain", "leer.txt", sum("")},
		}
		if diff := cmp.Diff(want, got.Parts); diff != "" {
			raw, _ := os.ReadFile(file) //nolint:gosec // for the message below only
			t.Errorf("parts (-sent +received):\n%s\n%.2000s", diff, raw)
		}
	}
}

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}
