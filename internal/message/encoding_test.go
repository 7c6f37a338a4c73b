package message

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"mime/quotedprintable"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestTextEncoding(t *testing.T) {
	for _, row := range []struct {
		name, text string
		want       transferEncoding
	}{
		{"nothing", "", sevenBit},
		{"short ASCII", "Hello\r\n\tBob\r\n", sevenBit},
		{"line of 76", strings.Repeat("x", 76) + "\r\n", sevenBit},
		{"line of 77", strings.Repeat("x", 77), quotedPrintable},
		{"long second line", "a\r\n" + strings.Repeat("x", 77) + "\r\nb", quotedPrintable},
		{"lone dot", "a\r\n.\r\nb", quotedPrintable},
		{"dot first", ".a", quotedPrintable},
		{"dot within", "a.b", sevenBit},
		{"From first", "a\r\nFrom b", quotedPrintable},
		{"From within", "a From b\r\nFromage", sevenBit},
		{"control character", "a" + strings.Repeat("x", 20) + "\x00", quotedPrintable},
		{"some umlauts", "Grüße aus dem schönen Köln, wo wir den Dom besuchen", quotedPrintable},
		{"Japanese", "こんにちは", base64Encoding},
		{"nothing but equals signs", "====", sevenBit},
	} {
		if got := textEncoding([]byte(row.text)); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

func TestQuotedPrintable(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"blank at the end", "a \r\nb\t", "a=20\r\nb=09"},
		{"equals sign", "a=b", "a=3Db"},
		{"dot and From first", ".\r\nFrom a\r\n.b\r\nFro", "=2E\r\n=46rom a\r\n=2Eb\r\nFro"},
		{"76 columns need no break", strings.Repeat("x", 76) + "\r\ny", strings.Repeat("x", 76) + "\r\ny"},
		{"77 columns do", strings.Repeat("x", 77), strings.Repeat("x", 75) + "=\r\nxx"},
		{"a dot after a soft break", strings.Repeat("x", 75) + "..", strings.Repeat("x", 75) + "=\r\n=2E."},
		{"From after a soft break", strings.Repeat("x", 75) + "From here", strings.Repeat("x", 75) +
			"=\r\n=46rom here"},
		{"a character is not torn", strings.Repeat("x", 72) + "€x", strings.Repeat("x", 72) + "=\r\n=E2=82=ACx"},
		{"bytes that are no UTF-8", "a\xff\xfe", "a=FF=FE"},
		{"bare CR", "a\rb", "a=0Db"},
	} {
		if got := string(appendQuotedPrintable(nil, []byte(row.text))); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

func TestEncodersReadBackTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := crlf([]byte(strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{
			"a", " ", "\t", "=", ".", "From ", "\n", "\r\n", "é", "日本", "👩‍👩‍👧", strings.Repeat("word ", 20), "\x00",
			"\xff",
		})).Draw(t, "words"), "")))
		qp := appendQuotedPrintable(nil, text)
		for line := range bytes.SplitSeq(qp, []byte("\r\n")) {
			if len(line) > 76 || bytes.HasPrefix(line, []byte(".")) || bytes.HasPrefix(line, []byte("From ")) ||
				bytes.HasSuffix(line, []byte(" ")) {
				t.Fatalf("line %q", line)
			}
		}
		got, err := io.ReadAll(quotedprintable.NewReader(bytes.NewReader(qp)))
		if err != nil || !bytes.Equal(got, text) {
			t.Fatalf("quoted-printable: %q became %q, %v", text, got, err)
		}
		if len(qp) > encodedSize(quotedPrintable, len(text)) && textEncoding(text) == quotedPrintable &&
			len(text) > 1000 {
			t.Fatalf("%d octets became %d, more than was expected", len(text), len(qp))
		}
		b64 := appendBase64(nil, text)
		if len(b64) > encodedSize(base64Encoding, len(text)) {
			t.Fatalf("%d octets became %d, more than was expected", len(text), len(b64))
		}
		got, err = base64.StdEncoding.DecodeString(string(b64))
		if err != nil || !bytes.Equal(got, text) {
			t.Fatalf("base64: %q became %q, %v", text, got, err)
		}
	})
}

func TestEncodedWordsReadBackTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOfN(rapid.SampledFrom([]rune("ab =?_.,é日👩\u200d\u0301🇩🏽\t")), 1, 200, -1).Draw(t, "s")
		first := rapid.IntRange(minEncodedWord, 75).Draw(t, "first")
		words := encodeWords(s, first, 75)
		var read strings.Builder
		for i, word := range words {
			if len(word) > 75 || i == 0 && len(word) > first {
				t.Fatalf("word %d has %d columns: %q", i, len(word), word)
			}
			decoded, err := new(mime.WordDecoder).Decode(word)
			if err != nil || !utf8.ValidString(decoded) {
				t.Fatalf("word %q: %q, %v", word, decoded, err)
			}
			read.WriteString(decoded)
		}
		if read.String() != s {
			t.Fatalf("%q became %q", s, read.String())
		}
	})
}

func TestEncodedWordsKeepCharactersWhole(t *testing.T) {
	family := "👩‍👩‍👧‍👦"
	for _, word := range encodeWords(strings.Repeat(family, 10), 75, 75) {
		decoded, err := new(mime.WordDecoder).Decode(word)
		if err != nil || strings.ReplaceAll(decoded, family, "") != "" {
			t.Errorf("%q is %q, %v", word, decoded, err)
		}
	}
}

func TestLineEnds(t *testing.T) {
	for _, row := range []struct{ in, want string }{
		{"", ""}, {"a", "a"}, {"a\r\n", "a\r\n"}, {"a\n", "a\r\n"}, {"a\r", "a\r\n"}, {"\n\r", "\r\n\r\n"},
		{"\r\r\n", "\r\n\r\n"}, {"\r\n\n", "\r\n\r\n"},
		{"a\rb\r\nc", "a\r\nb\r\nc"}, {"\r\n.\r\r\n", "\r\n.\r\n\r\n"},
	} {
		if got := string(crlf([]byte(row.in))); got != row.want {
			t.Errorf("%q became %q, want %q", row.in, got, row.want)
		}
		if got := HasBareLineEnd([]byte(row.in)); got != (row.in != row.want) {
			t.Errorf("%q: bare line ends %v", row.in, got)
		}
	}
}

func TestFilenames(t *testing.T) {
	for _, row := range []struct{ in, want string }{
		{"report.pdf", "report.pdf"}, {"/etc/passwd", "passwd"}, {`C:\x\y.txt`, "y.txt"}, {"..", ""}, {" a ", "a"},
		{"a\tb\u0085.txt", "ab.txt"},
		{"invoice\u202efdp.exe", "invoicefdp.exe"}, {"dir/", ""}, {".htaccess", ".htaccess"},
		{"\u2066x\u2069", "x"},
	} {
		if got := cleanFilename(row.in); got != row.want {
			t.Errorf("%q became %q, want %q", row.in, got, row.want)
		}
	}
}

// TestSurveyIsThatOfEachLine compares a survey with what each line says.
func TestSurveyIsThatOfEachLine(t *testing.T) {
	t.Parallel()
	pieces := []string{"\r\n", "\n", "\r", ".", "From ", "=", "\t", " ", "a", "ä", "\x00", "\x7f",
		strings.Repeat("x", 74)}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom(pieces)).Draw(t, "text"), "")
		plain, escapes := true, 0
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			plain = plain && len(strings.TrimSuffix(line, "\r")) <= maxColumns && !strings.HasPrefix(line, ".") &&
				!strings.HasPrefix(line, "From ")
			for _, c := range []byte(line) {
				if literal := c >= ' ' && c < 0x7f || c == '\t' || c == '\r'; c == '=' || !literal {
					escapes++
					plain = plain && literal
				}
			}
		}
		if p, e := survey([]byte(text)); p != plain || e != escapes {
			t.Fatalf("%q: %v, %d; want %v, %d", text, p, e, plain, escapes)
		}
	})
}
