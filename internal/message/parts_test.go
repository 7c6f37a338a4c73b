package message

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	for _, tt := range []struct {
		name, raw string
		want      Parsed
	}{
		{"plain", "Subject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=\r\nX-Long: a\r\n b\r\n\r\nHello", Parsed{
			Headers: []HeaderField{{"Subject", "Grüße", "Subject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?="},
				{"X-Long", "a b", "X-Long: a\r\n b"}},
			Parts: []Part{{Number: 1, Type: "text/plain", Size: 5, Text: "Hello"}},
		}},
		{"another charset", "Content-Type: text/plain; charset=windows-1252\r\n\r\n\x80 5", Parsed{
			Headers: []HeaderField{{"Content-Type", "text/plain; charset=windows-1252",
				"Content-Type: text/plain; charset=windows-1252"}},
			Parts: []Part{{Number: 1, Type: "text/plain", Size: 5, Text: "€ 5"}},
		}},
		{"html and a file", "Content-Type: multipart/mixed; boundary=B\n\n--B\nContent-Type: TEXT/html\n" +
			"Content-Transfer-Encoding: base64\n\nPGI+\n--B\nContent-Type: text/html; name=a.html\n" +
			"Content-Disposition: attachment\n\n<i>\n--B\nContent-Type: image/png\nContent-ID: <x@y>\n\nPNG\n--B--\n",
			Parsed{
				Headers: []HeaderField{{"Content-Type", "multipart/mixed; boundary=B",
					"Content-Type: multipart/mixed; boundary=B"}},
				Parts: []Part{{Number: 1, Type: "text/html", Size: 3, Text: "<b>"},
					{Number: 2, Type: "text/html", Name: "a.html", File: true, Size: 3},
					{Number: 3, Type: "image/png", CID: "x@y", File: true, Size: 3}},
			}},
		{"no header at all", "nonsense",
			Parsed{Parts: []Part{{Number: 1, Type: "text/plain", Size: 8, Text: "nonsense"}}}},
		{"bytes of no charset", "A: b\r\n\r\n\xff\xfe", Parsed{Headers: []HeaderField{{"A", "b", "A: b"}},
			Parts: []Part{{Number: 1, Type: "text/plain", Size: 2, Text: "\uFFFD"}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Size = len(tt.raw)
			if diff := cmp.Diff(tt.want, Parse([]byte(tt.raw))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadIsBounded(t *testing.T) {
	long := Parse([]byte("A: b\r\n\r\nx" + strings.Repeat("ü", MostPartText)))
	if p := long.Parts[0]; !p.Cut || len(p.Text) > MostPartText || !strings.HasSuffix(p.Text, "ü") ||
		p.Size != 2*MostPartText+1 {
		t.Errorf("a long text is %d bytes of %d, cut %t", len(p.Text), p.Size, p.Cut)
	}
	many := Parse([]byte("Content-Type: multipart/mixed; boundary=B\r\n\r\n" +
		strings.Repeat("--B\r\n\r\nx\r\n", 10*MostParts)))
	if len(many.Parts) != MostParts || !many.Partial {
		t.Errorf("%d parts, partial %t", len(many.Parts), many.Partial)
	}
	deep := Parse([]byte(strings.Repeat("Content-Type: multipart/mixed; boundary=B\r\n\r\n--B\r\n", 1000)))
	if len(deep.Parts) > MostParts || !deep.Partial {
		t.Errorf("%d parts, partial %t", len(deep.Parts), deep.Partial)
	}
	wide := Parse([]byte(strings.Repeat("X: "+strings.Repeat("y", 70)+"\r\n", 10*mostFields) + "\r\n"))
	if len(wide.Headers) != mostFields {
		t.Errorf("%d fields", len(wide.Headers))
	}
}

const related = "Content-Type: multipart/related; boundary=B\n\n--B\nContent-Type: text/html\n\n" +
	`<img src="cid:logo%40x"><p style="background:url(cid:logo@x)"> cid:logo@x <img src=cid:unknown>` +
	"\n--B\nContent-Type: image/png\nContent-ID: <logo@x>\nContent-Transfer-Encoding: base64\n\nAQID\n" +
	"--B\nContent-Type: image/svg+xml\nContent-ID: <unknown>\n\n<svg/>\n--B--\n"

func TestFrameHasTheImagesOfTheMail(t *testing.T) {
	want := `<img src="data:image/png;base64,AQID"><p style="background:url(data:image/png;base64,AQID)"> ` +
		`cid:logo@x <img src=cid:unknown>`
	if diff := cmp.Diff(want, Frame([]byte(related))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Frame([]byte("A: b\r\n\r\ntext")); got != "" {
		t.Errorf("a mail without html: %q", got)
	}
	big := strings.Replace(related, "AQID", strings.Repeat("AAAA", imagesMost), 1)
	if got := Frame([]byte(big)); strings.Contains(got, "data:") {
		t.Error("an image beyond the bound is shown")
	}
}

func TestOpen(t *testing.T) {
	p, ok := OpenPart([]byte(related), 2)
	if !ok || string(p.Content) != "\x01\x02\x03" || p.Type != "image/png" || p.Size != 3 {
		t.Errorf("%v, %v", p, ok)
	}
	for _, n := range []int{-1, 0, 4, 1 << 30} {
		if _, ok := OpenPart([]byte(related), n); ok {
			t.Errorf("part %d exists", n)
		}
	}
}

func TestDispositionIsSafe(t *testing.T) {
	for name, want := range map[string]string{
		"":                "attachment; filename=part-7",
		"a b.pdf":         `attachment; filename="a b.pdf"`,
		"x\r\nSet-Cookie": "attachment; filename*=utf-8''x%0D%0ASet-Cookie",
		"Grüße.txt":       "attachment; filename*=utf-8''Gr%C3%BC%C3%9Fe.txt",
		`a"b\c`:           `attachment; filename="a\"b\\c"`,
	} {
		if got := (Part{Number: 7, Name: name}).Disposition(); got != want {
			t.Errorf("%q: %s", name, got)
		}
	}
}

func TestLoadsRemote(t *testing.T) {
	for page, want := range map[string]bool{
		`<img src="https://a.example/x.png">`: true, `<td background='//a.example/x'>`: true,
		`<p style="background: url( http://a.example/x)">`: true, `<a href="https://a.example">`: false,
		`<img src="data:image/png;base64,AQID">`: false, `<img src="cid:x">`: false,
	} {
		if LoadsRemote(page) != want {
			t.Errorf("%s: %t", page, !want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("Subject: =?utf-8?B?eA==?=\r\nContent-Type: multipart/mixed; boundary=B\r\n\r\n--B\r\n" +
		"Content-Transfer-Encoding: base64\r\n\r\neA==\r\n--B--"))
	f.Add([]byte("Content-Type: text/plain; charset=shift_jis\n\n\x83\x65"))
	f.Add([]byte(related))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m := Parse(raw)
		if len(m.Parts) > MostParts || len(m.Headers) > mostFields {
			t.Fatalf("%d parts, %d fields", len(m.Parts), len(m.Headers))
		}
		for _, p := range m.Parts {
			if len(p.Text) > MostPartText {
				t.Fatalf("a text of %d bytes", len(p.Text))
			}
			if one, ok := OpenPart(raw, p.Number); !ok || one.Size != p.Size {
				t.Fatalf("part %d has %d bytes, and then %d", p.Number, p.Size, one.Size)
			}
		}
		_ = Frame(raw)
	})
}
