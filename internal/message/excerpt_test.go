package message_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/message"
)

func TestExcerpt(t *testing.T) {
	file := message.Attachment{Filename: "notes.txt", ContentType: "text/plain", Content: []byte("of the file")}
	both := compose(t, message.Draft{From: ann, To: []message.Address{bob}, Date: noon,
		Text: "Hello Bob, Grüße\n", HTML: "<p>other</p>", Attachments: []message.Attachment{file}}).Raw
	plain := compose(t, message.Draft{From: ann, To: []message.Address{bob}, Date: noon,
		Text: "Hello Bob\nand more\n", Attachments: []message.Attachment{file}}).Raw
	for name, c := range map[string]struct{ raw, want string }{
		"text and html": {string(both), "Hello Bob, Grüße"},
		"html alone": {"Content-Type: text/html\r\n\r\n<h1>Hi</h1><script>x</script><p>Bob</p>",
			"Hi\n\nBob"},
		"no type":            {"Subject: x\r\n\r\nplain", "plain"},
		"latin-1":            {"Content-Type: text/plain; charset=iso-8859-1\r\n\r\nGr\xfc\xdfe", "Grüße"},
		"an unknown charset": {"Content-Type: text/plain; charset=x-martian\r\n\r\nGr\xfc", "Gr\uFFFD"},
		"base64": {"Content-Type: text/plain\r\nContent-Transfer-Encoding: base64\r\n\r\nSGVsbG8=\r\n",
			"Hello"},
		"a file first":        {"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Disposition: attachment\r\n\r\nfile\r\n--b\r\nContent-Type: text/plain\r\n\r\ntext\r\n--b--\r\n", "text"},
		"an image":            {"Content-Type: image/png\r\n\r\nxxx", ""},
		"cut off":             {string(plain[:bytes.Index(plain, []byte("and more"))]), "Hello Bob"},
		"no end of multipart": {"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>so far", "so far"},
		"nothing":             {"", ""},
		"no message":          {"\x00\x01\x02", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := message.Excerpt(strings.NewReader(c.raw), 100); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	if got := message.Excerpt(strings.NewReader("\r\n"+strings.Repeat("ä", 100)), 25); got != strings.Repeat("ä",
		12) {
		t.Errorf("an excerpt of 25 bytes is %q", got)
	}
}

func FuzzExcerpt(f *testing.F) {
	f.Add([]byte("Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>so far"), 10)
	f.Add([]byte("Content-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nGr=FC"), 3)
	f.Fuzz(func(t *testing.T, raw []byte, most int) {
		if most < 0 || most > 1<<16 {
			return
		}
		if got := message.Excerpt(bytes.NewReader(raw), most); len(got) > most || !utf8.ValidString(got) {
			t.Errorf("%d bytes of %d, %q", len(got), most, got)
		}
	})
}

func BenchmarkExcerpt(b *testing.B) {
	raw := compose(b, message.Draft{From: ann, To: []message.Address{bob}, Date: noon,
		Text: strings.Repeat("Hello Bob. ", 100), HTML: strings.Repeat("<p>other</p>", 100)}).Raw
	for b.Loop() {
		message.Excerpt(bytes.NewReader(raw), 4096)
	}
}
