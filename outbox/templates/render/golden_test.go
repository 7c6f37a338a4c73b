package render

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/message"
)

var update = flag.Bool("update", false, "write testdata/golden anew")

// goldenContents are contents of all kinds, each with what a reader has to find in the message.
var goldenContents = map[string]struct {
	content Content
	params  string
	subject string
	text    string
	html    []string
}{
	"order": {
		content: Content{
			Source: Source{
				Subject: "Your order {{params.number}} of {{currency params.total \"EUR\"}}",
				HTML:    "{{#> frame}}<p class=\"big\">Dear {{params.name}},</p>\n<table>{{#each params.items}}<tr><td>{{count}} × {{title}}</td></tr>{{/each}}</table>{{/frame}}",
			},
			Options: Options{
				InlineCSS: true,
				Partials: map[string]string{
					"frame": "<html><head><style>.big{font-size:20px} td{padding:4px}</style></head><body>{{> @partial-block}}<p>{{account.name}}</p></body></html>"},
			},
			Locale: "de",
		},
		params:  `{"number":4711,"total":1234.5,"name":"Jörg & Söhne","items":[{"count":2,"title":"<Tee>"},{"count":1,"title":"Kanne"}]}`,
		subject: "Your order 4711 of 1.234,50\u00a0€",
		text:    "Dear Jörg & Söhne,",
		html: []string{`style="font-size: 20px"`, `<td style="padding: 4px">2 × &lt;Tee&gt;</td>`,
			"<p>Shop</p>"},
	},
	"news": {
		content: Content{
			Source: Source{Format: FormatMarkdown, Subject: "News", PreviewText: "For {{params.name}}",
				HTML: "# Hello {{params.name}}\n\nRead [more]({{params.url}}).\n"},
			Options: Options{Layout: "<html><body>{{> @partial-block}}</body></html>"},
		},
		params:  `{"name":"*Ann*","url":"https://example.com/?a=1&b=2"}`,
		subject: "News",
		text:    "Hello *Ann*",
		html: []string{"<h1>Hello *Ann*</h1>", `<a href="https://example.com/?a=1&amp;b=2">more</a>`,
			"For *Ann*"},
	},
	"reminder": {
		content: Content{
			Source: Source{Subject: "{{params.what}}",
				Text: "{{params.what}} on {{formatDate params.at \"YYYY-MM-DD HH:mm\"}}, dear {{rcpt.name}} <{{rcpt.address}}>\n"},
			TZ: "America/New_York", Attachments: []message.Attachment{
				{Filename: "plan.txt", Content: []byte("the plan")}},
		},
		params:  `{"what":"Meeting\r\nBcc: all@example.com","at":"2026-07-01T12:00:00Z"}`,
		subject: "Meeting Bcc: all@example.com",
		text:    "on 2026-07-01 08:00, dear Ann <ann@example.net>",
	},
	"plain": {
		content: Content{Source: Source{Subject: "As {{it}} is", Text: "{{#if}} {{{x}}}\n"}, Plain: true},
		subject: "As {{it}} is",
		text:    "{{#if}} {{{x}}}",
	},
}

// TestGoldenMessages writes messages that people have looked at, and has Python read them.
func TestGoldenMessages(t *testing.T) {
	for name, c := range goldenContents {
		t.Run(name, func(t *testing.T) {
			c.content.From, c.content.Account = message.Address{
				Name: "Shop", Address: "shop@example.com"}, Person{Name: "Shop", Address: "shop@example.com"}
			w, err := New(c.content)
			if err != nil {
				t.Fatal(err)
			}
			s := Personalization{To: []message.Address{{Name: "Ann", Address: "ann@example.net"}},
				Params: json.RawMessage(c.params), Date: 1_772_362_800_000}
			m, _, err := w.Render(t.Context(), s, Identity{MessageID: "<" + name + "@example.com>"}, true)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", "golden", name+".eml")
			if *update {
				if err := os.WriteFile(file, m.Raw, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			golden, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(golden), string(m.Raw)); diff != "" {
				t.Errorf("(-golden +written)\n%s", diff)
			}
			read := readWithPython(t, file)
			if read.Subject != c.subject || len(read.Defects)+len(read.HeaderDefects) > 0 || len(read.To) != 1 {
				t.Errorf("Python reads %+v", read)
			}
			if text := read.part(t, "text/plain"); !strings.Contains(text, c.text) {
				t.Errorf("%q is not in the text\n%s", c.text, text)
			}
			html := read.part(t, "text/html")
			for _, want := range c.html {
				if !strings.Contains(html, want) {
					t.Errorf("%q is not in the html\n%s", want, html)
				}
			}
		})
	}
}

// pythonMail is what internal/message/testdata/read_mail.py finds in an email.
type pythonMail struct {
	Subject                string
	To                     [][]string
	Parts                  []struct{ Type, Payload string }
	Defects, HeaderDefects []string
}

// part is the first part of a type.
func (m pythonMail) part(t *testing.T, kind string) string {
	t.Helper()
	for _, p := range m.Parts {
		if p.Type == kind {
			payload, err := base64.StdEncoding.DecodeString(p.Payload)
			if err != nil {
				t.Fatal(err)
			}
			return string(payload)
		}
	}
	return ""
}

func readWithPython(t *testing.T, file string) (m pythonMail) {
	t.Helper()
	python := exec.Command("python3",
		filepath.Join("..", "..", "..", "internal", "message", "testdata", "read_mail.py"))
	python.Stdin = strings.NewReader(file + "\n")
	var stderr bytes.Buffer
	python.Stderr = &stderr
	out, err := python.Output()
	if err != nil {
		t.Fatalf("python3, which this test needs: %v\n%s", err, stderr.String())
	}
	if err := json.Unmarshal(out, &m); err != nil {
		t.Fatal(err)
	}
	return m
}
