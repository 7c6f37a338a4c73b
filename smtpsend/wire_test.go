package smtpsend

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/message"
)

func TestReadReply(t *testing.T) {
	for _, row := range []struct {
		name, wire, text string
		code             int
		fails            error
	}{
		{name: "one line", wire: "250 ok\r\n", code: 250, text: "ok"},
		{name: "many lines", wire: "250-a\r\n250-b\r\n250 c\r\n", code: 250, text: "a\nb\nc"},
		{name: "bare code", wire: "550\r\n", code: 550},
		{name: "bare code at the end", wire: "250-a\r\n250\r\n", code: 250, text: "a\n"},
		{name: "LF alone", wire: "250 ok\n", code: 250, text: "ok"},
		{name: "hyphen without text", wire: "250-\r\n250 \r\n", code: 250, text: "\n"},
		{name: "code changes", wire: "250-a\r\n550 b\r\n", fails: errProtocol},
		{name: "no code", wire: "hello\r\n", fails: errProtocol},
		{name: "two digits", wire: "55 bad\r\n", fails: errProtocol},
		{name: "four digits", wire: "5500 bad\r\n", fails: errProtocol},
		{name: "code too low", wire: "150 wait\r\n", fails: errProtocol},
		{name: "code too high", wire: "650 what\r\n", fails: errProtocol},
		{name: "empty line", wire: "\r\n", fails: errProtocol},
		{name: "cut off", wire: "250 o", fails: io.EOF},
		{name: "cut off between lines", wire: "250-a\r\n", fails: io.EOF},
		{name: "long line", wire: "250 " + strings.Repeat("x", 20_000) + "\r\n", code: 250,
			text: strings.Repeat("x", 20_000)},
		{name: "endless line", wire: "250 " + strings.Repeat("x", 200_000), fails: errProtocol},
		{name: "endless lines", wire: strings.Repeat("250-x\r\n", 200), fails: errProtocol},
		{name: "fat lines", wire: strings.Repeat("250-"+strings.Repeat("x", 2000)+"\r\n", 50), fails: errProtocol},
	} {
		for _, slowly := range []bool{false, true} {
			var r io.Reader = strings.NewReader(row.wire)
			if slowly {
				r = iotest.OneByteReader(r)
			}
			got, err := readReply(bufio.NewReader(r))
			if !errors.Is(err, row.fails) || got.code != row.code || got.text != row.text {
				t.Errorf("%s (slowly %v): %d %q, %v", row.name, slowly, got.code, message.Clip(got.text, 100), err)
			}
		}
	}
}

func TestReplyTextIsSafeToShow(t *testing.T) {
	for wire, want := range map[string]string{
		"\x1b[31mred\x1b[0m\tand\x00more": "550 [31mred [0m and more",
		"caf\xe9":                         "550 café",
		"a\nb":                            "550 a b",
		"\u202egnp.exe":                   "550 gnp.exe",
	} {
		if got := (reply{code: 550, text: wire}).line(); got != want {
			t.Errorf("%q: %q, want %q", wire, got, want)
		}
	}
	if got := (reply{code: 550, text: strings.Repeat("ü", 5000)}).line(); len(got) > maxLineShown ||
		!strings.HasSuffix(got, "ü") {
		t.Errorf("%d bytes, ending in %q", len(got), got[len(got)-3:])
	}
}

// FuzzReadReply: whatever a relay sends, what we keep of it is bounded, consistent and printable.
func FuzzReadReply(f *testing.F) {
	for _, seed := range []string{"250 ok\r\n", "250-a\r\n250 b\r\n", "550\r\n",
		"550-5.1.1 a\r\n550 5.1.1 b\r\n", "220-\xff\r\n220 \x1b\r\n", "5", "\r\n", "250-a\r\n550 b\r\n",
		"550 #5.1.1 x\n", "550 5.1.1\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		r, err := readReply(bufio.NewReader(bytes.NewReader(wire)))
		if err != nil {
			return
		}
		if r.code < 200 || r.code > 599 || len(r.text) > maxReplyBytes {
			t.Fatalf("code %d, %d bytes", r.code, len(r.text))
		}
		line := r.line()
		if len(line) > maxLineShown || strings.ContainsFunc(line, unicode.IsControl) {
			t.Fatalf("line %q", line)
		}
		enhanced, words := r.enhanced()
		if enhanced != "" && int(enhanced[0]-'0') != r.code/100 {
			t.Fatalf("enhanced %q with %d", enhanced, r.code)
		}
		if r.code >= 400 {
			j := Classify(Evidence{Phase: PhaseRcpt, Code: r.code, Enhanced: enhanced, Text: words})
			if j.Verdict == "" || j.Scope == "" || j.Suppress && j.Verdict != Hard {
				t.Fatalf("%+v", j)
			}
			if e := (&Error{Verdict: j.Verdict}); r.code < 500 && e.Permanent() && j.Verdict != Auth {
				t.Fatalf("%d is given up: %+v", r.code, j)
			}
		}
		parseExtensions(r.text)
	})
}

func TestWireBody(t *testing.T) {
	for _, row := range []struct{ name, in, want string }{
		{"clean", "a\r\n\r\nb\r\n", "a\r\n\r\nb"},
		{"no line end at the end", "a\r\nb", "a\r\nb"},
		{"bare LF", "a\nb\n", "a\r\nb"},
		{"bare CR", "a\rb\r", "a\r\nb"},
		{"dot first", ".", ".."},
		{"dots", "a\r\n.\r\n..b\r\n", "a\r\n..\r\n...b"},
		{"smuggled LF dot LF", "a\n.\nMAIL", "a\r\n..\r\nMAIL"},
		{"smuggled CR dot CR", "a\r.\rMAIL", "a\r\n..\r\nMAIL"},
		{"smuggled LF dot CRLF", "a\n.\r\nMAIL", "a\r\n..\r\nMAIL"},
		{"smuggled CR dot CRLF", "a\r.\r\nMAIL", "a\r\n..\r\nMAIL"},
		{"CR CR LF", "a\r\r\nb", "a\r\n\r\nb"},
		{"line ends only", "\r\n\r\n", "\r\n"},
		{"CR at the very end", "a\r", "a"},
	} {
		got, doubled := wireBody([]byte(row.in))
		if diff := cmp.Diff(row.want, string(got)); diff != "" {
			t.Errorf("%s: %s", row.name, diff)
		}
		if want := strings.Count(row.want, ".") - strings.Count(row.in, "."); doubled != want {
			t.Errorf("%s: %d dots doubled, want %d", row.name, doubled, want)
		}
		for size := 1; size <= 3; size++ {
			if diff := cmp.Diff(row.want, string(inPieces(t, []byte(row.in), size))); diff != "" {
				t.Errorf("%s, in pieces of %d: %s", row.name, size, diff)
			}
		}
	}
	data := []byte("clean\r\ncontent\r\n")
	if body, _ := wireBody(data); &body[0] != &data[0] {
		t.Error("clean content was copied")
	}
}

// inPieces is what goes on the wire of a content too large for one block.
func inPieces(t *testing.T, data []byte, size int) []byte {
	t.Helper()
	r := wireReader{content: iotest.DataErrReader(bytes.NewReader(data)), lacks: int64(len(data)),
		blocks: &blocks{in: make([]byte, size)}}
	var wire []byte
	for {
		block, err := r.next()
		wire = append(wire, block...)
		switch {
		case err == io.EOF:
			return wire
		case err != nil:
			t.Fatal(err)
		}
	}
}

// FuzzWireBody: no content ends the message early however a server reads line ends, and a strict server reads
// the content back.
func FuzzWireBody(f *testing.F) {
	for _, seed := range []string{"a", ".", "\n.\n", "\r.\r", "\r\n.\r\n", "a\r\n.", ".\r\n", "\r", "\n", "..",
		"\r\r\n.", "a\n.\r\nb"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		body, _ := wireBody(data)
		for _, size := range []int{1, 2, 3, 7} {
			if pieces := inPieces(t, data, size); !bytes.Equal(pieces, body) {
				t.Fatalf("%q in pieces of %d, %q in one", pieces, size, body)
			}
		}
		wire := append(bytes.Clone(body), endOfData...)
		if i := bytes.Index(append([]byte("\r\n"), wire...), endOfData); i != len(wire)-len(endOfData)+2 {
			t.Fatalf("%q ends at %d of %d", wire, i, len(wire))
		}
		rest := bytes.ReplaceAll(wire, []byte("\r\n"), nil)
		if bytes.ContainsAny(rest, "\r\n") {
			t.Fatalf("bare line end in %q", wire)
		}
		var read [][]byte
		for _, line := range bytes.Split(body, []byte("\r\n")) {
			read = append(read, bytes.TrimPrefix(line, []byte(".")))
		}
		mended := bytes.ReplaceAll(bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")),
			[]byte("\r"), []byte("\n")), []byte("\n"), []byte("\r\n"))
		if want := bytes.TrimSuffix(mended, []byte("\r\n")); !bytes.Equal(bytes.Join(read, []byte("\r\n")), want) {
			t.Fatalf("%q arrives as %q", want, bytes.Join(read, []byte("\r\n")))
		}
	})
}
