package message_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/message"
)

// headerRow is a field as a sender wrote it and the value that a reader sees.
type headerRow struct{ name, field, want string }

// eightBitFields are fields with octets above 127, which RFC 5322 does not permit.
var eightBitFields = []headerRow{
	{"text", "Subject: Größe", "Größe"},
	{"text in latin1", "Subject: Gr\xf6\xdfe", "Größe"},
	{"text with both", "X-Both: Gr\xf6\xdfe und Größe", "Größe und Größe"},
	{"text in windows-1252", "Subject: 5 \x80 \x96 \x84ok\x93", "5 € – „ok“"},
	{"an octet without a character", "X-Odd: a\x81b", "a\u0081b"},
	{"long text", "Subject: " + strings.Repeat("Größe ", 60) + "end", strings.Repeat("Größe ", 60) + "end"},
	{"text without a blank", "Subject: " + strings.Repeat("日本語", 80), strings.Repeat("日本語", 80)},
	{"blanks in text", "Subject: Größe  und\tMaß  da", "Größe  und\tMaß  da"},
	{"folded text", "Subject: Größe\r\n und\r\n\tMaß", "Größe und\tMaß"},
	{"encoded words beside it", "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?= aus Köln =?utf-8?b?w7w=?= x",
		"Grüße aus Köln ü x"},
	{"encoded word after it", "Subject: Köln =?iso-8859-1?q?gr=FC=DFt?=", "Köln grüßt"},
	{"what looks like an encoded word", "Subject: =?Köln?= x", "=?Köln?= x"},
	{"own field", "X-Büro-No: nö", "nö"},
	{"description", "Content-Description: Größe, Maß", "Größe, Maß"},
	{"name", "Reply-To: Büro App <app@example.com>", "Büro App <app@example.com>"},
	{"name in latin1", "Reply-To: B\xfcro <app@example.com>", "Büro <app@example.com>"},
	{"name in quotes", `Reply-To: "Müller, \"Jo\" Jürgen" <j@example.com>`,
		`"Müller, \"Jo\" Jürgen" <j@example.com>`},
	{"name partly in quotes", `Reply-To: "Doe, J." Jürgen <j@example.com>`, `"Doe, J. Jürgen" <j@example.com>`},
	{"name stuck to the address", "Reply-To: Jürgen<j@example.com>", "Jürgen <j@example.com>"},
	{"name with an encoded word", "Reply-To: Jürgen =?utf-8?q?M=C3=BCller?= <j@example.com>",
		"Jürgen  Müller <j@example.com>"}, // Python puts a blank between encoded words of a phrase
	{"several", "Cc: Jürgen <j@example.com>, \"A, B\" <a@example.com>,Zoë <z@example.com>",
		`Jürgen <j@example.com>, "A, B" <a@example.com>, Zoë <z@example.com>`},
	{"domain", "Cc: jo@bücher.example, Zoë <z@Bücher.example>",
		"jo@xn--bcher-kva.example, Zoë <z@xn--bcher-kva.example>"},
	{"comment", "Cc: a@example.com (Büro (Köln)), b@example.com", "a@example.com, b@example.com"},
	{"group", "Cc: Empfänger: a@example.com, Zoë <z@example.com>;",
		"Empfänger: a@example.com, Zoë <z@example.com>;"},
	{"resent", "Resent-From: Büro <app@bücher.example>", "Büro <app@xn--bcher-kva.example>"},
	{"receipt", "Disposition-Notification-To: Büro <app@bücher.example>", "Büro <app@xn--bcher-kva.example>"},
	{"list id", "List-Id: Grüße <news.bücher.example>", "Grüße <news.xn--bcher-kva.example>"},
	{"list link", "List-Unsubscribe: <https://bücher.example/ü?a=b>,<mailto:jo@bücher.example?subject=ü>",
		"<https://xn--bcher-kva.example/%C3%BC?a=b>, <mailto:jo@b%C3%BCcher.example?subject=%C3%BC>"},
	{"references", "References: <a@bücher.example> <ü@x.example>",
		"<a@xn--bcher-kva.example> <=C3=BC@x.example>"},
	{"keywords", "Keywords: Größe, Maß", "Größe , Maß"}, // the blank is required (RFC 2047 section 5)
}

// TestAHeaderInUTF8LeavesInASCII reads every field with Python's email package (RFC 2047, RFC 5322).
func TestAHeaderInUTF8LeavesInASCII(t *testing.T) { readsAs(t, eightBitFields) }

// longFields are fields with lines over 998 octets (RFC 5322 section 2.1.1).
var longFields = []headerRow{
	{"ids", "References: " + times(30, "<ref.aaaaaaaaaaaaaaaaaaaaaaaaaaa@mail.example.com>", " "),
		times(30, "<ref.aaaaaaaaaaaaaaaaaaaaaaaaaaa@mail.example.com>", " ")},
	{"ids without blanks", "References: " + times(30, "<ref.aaaaaaaaaaaaaaaaaaaaaaaaaaa@mail.example.com>", ""),
		times(30, "<ref.aaaaaaaaaaaaaaaaaaaaaaaaaaa@mail.example.com>", " ")},
	{"text", "Subject: " + times(300, "word", " "), times(300, "word", " ")},
	{"blanks in text", "Subject: " + times(300, "a  b", "\t"), times(300, "a  b", "\t")},
	{"text without a blank", "Subject: " + strings.Repeat("x", 1500), strings.Repeat("x", 1500)},
	{"a long word in text", "Subject: before " + strings.Repeat("x", 1500) + " after",
		"before " + strings.Repeat("x", 1500) + " after"},
	{"a word that just fits", "X: " + strings.Repeat("x", 997), strings.Repeat("x", 997)},
	{"an encoded word", "Subject: =?utf-8?q?" + strings.Repeat("=C3=BC", 300) + "?=", strings.Repeat("ü", 300)},
	{"a continuation line", "X-A: a\r\n " + times(300, "word", " ") + "\r\n end",
		"a " + times(300, "word", " ") + " end"},
	{"addresses", "Cc: " + times(60, "Ann Doe <ann@example.com>", ", "),
		times(60, "Ann Doe <ann@example.com>", ", ")},
	{"addresses without blanks", "Cc: " + times(60, "ann.doe@department.example.com", ","),
		times(60, "ann.doe@department.example.com", ", ")},
	{"name without a blank", `Cc: "` + strings.Repeat("x", 1100) + `" <a@example.com>`,
		strings.Repeat("x", 1100) + " <a@example.com>"},
	{"name in quotes", `Cc: "Doe, ` + times(300, "word", " ") + `" <a@example.com>`,
		`"Doe, ` + times(300, "word", " ") + `" <a@example.com>`},
	{"links", "List-Unsubscribe: <https://example.com/" + strings.Repeat("x", 960) + ">,<https://example.com/>",
		"<https://example.com/" + strings.Repeat("x", 960) + ">, <https://example.com/>"},
	{"trace", "Received: from a (" + times(200, "word", " ") + ") by b; Sun, 1 Mar 2026 00:00:00 +0000",
		"from a (" + times(200, "word", " ") + ") by b; Sun, 1 Mar 2026 00:00:00 +0000"},
	{"signature", "DKIM-Signature: v=1; " + times(50, "t=aaaaaaaaaaaaaaaaaaaaaaaaa;", " "),
		"v=1; " + times(50, "t=aaaaaaaaaaaaaaaaaaaaaaaaa;", " ")},
}

func times(n int, s, between string) string {
	return strings.TrimSuffix(strings.Repeat(s+between, n), between)
}

// TestALongHeaderLineIsFolded reads every field with Python's email package.
func TestALongHeaderLineIsFolded(t *testing.T) { readsAs(t, longFields) }

var anyEncodedWord = regexp.MustCompile(`=\?[^?\s]+\?[BQbq]\?[^?\s]*\?=`)

// readsAs takes raw email with each field, alone and in an attached mail, and compares what Python reads.
func readsAs(t *testing.T, rows []headerRow) {
	t.Helper()
	var raws [][]byte
	fields := make([]string, len(rows))
	for i, row := range rows {
		row.field = strings.Replace(row.field, "X-Büro-No", "X-No", 1)
		fields[i], _, _ = strings.Cut(row.field, ":")
		inner := row.field + "\r\nFrom: x@example.com\r\n\r\nx\r\n"
		for _, raw := range []string{
			complete + row.field + "\r\n\r\nx\r\n",
			complete + "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/rfc822\n\n" + inner +
				"\n--b--\n",
			complete + "Content-Type: message/rfc822\n\nContent-Type: message/rfc822\n\n" + inner,
		} {
			c, _, err := message.FromRaw([]byte(raw), override, steady())
			if err != nil {
				t.Fatalf("%s: %v", row.name, err)
			}
			if c.SMTPUTF8 || c.EightBit {
				t.Errorf("%s: SMTPUTF8 %v, EightBit %v", row.name, c.SMTPUTF8, c.EightBit)
			}
			checkCarriable(t, &message.Composed{Raw: append(c.Raw, "\r\n"...)})
			for line := range strings.SplitSeq(string(c.Raw), "\r\n") {
				if strings.Contains(line, "=?") && len(line) > 76 && !strings.Contains(row.name, "looks like") {
					t.Errorf("%s: a line with an encoded word has %d columns: %s", row.name, len(line), line)
				}
				for _, word := range anyEncodedWord.FindAllString(line, -1) {
					if len(word) > 75 {
						t.Errorf("%s: an encoded word has %d octets: %s", row.name, len(word), word)
					}
					if strings.HasPrefix(strings.ToLower(word), "=?utf-8") && !utf8.ValidString(decodedHeader(t, word)) {
						t.Errorf("%s: a character is cut: %s", row.name, word)
					}
				}
			}
			if i := strings.Index(string(c.Raw), fields[i]+":"); i > 0 && len(raws)%3 > 0 {
				c.Raw = c.Raw[i:]
			}
			raws = append(raws, c.Raw)
		}
	}
	for i, mail := range readRawWithPython(t, raws) {
		row, field := rows[i/3], fields[i/3]
		at := slices.IndexFunc(mail.Headers, func(h []string) bool { return h[0] == field })
		if at < 0 {
			t.Errorf("%s: is not there:\n%.500s", row.name, raws[i])
			continue
		}
		got := strings.TrimSpace(mail.Headers[at][1])
		if row.name == "name without a blank" { // Python puts one between encoded words of a phrase
			got = strings.ReplaceAll(strings.ReplaceAll(got, "x x", "xx"), "x x", "xx")
		}
		if got != row.want {
			t.Errorf("%s: read as %.300q, want %.300q, from\n%.500s", row.name, got, row.want, header(raws[i]))
		}
	}
}

// TestAFileNameInUTF8LeavesInASCII reads parameters of MIME fields with Python's email package (RFC 2231).
func TestAFileNameInUTF8LeavesInASCII(t *testing.T) {
	long := strings.Repeat("größe", 80)
	rows := []struct{ name, disposition, want string }{
		{"in quotes", `filename="Größe; \"a\", b.txt"`, `Größe; "a", b.txt`},
		{"without quotes", "filename=Größe.txt; size=3", "Größe.txt"},
		{"without quotes, with blanks", "filename=Größe und Maß.txt", "Größe und Maß.txt"},
		{"latin1", "filename=\"Gr\xf6\xdfe.txt\"", "Größe.txt"},
		{"a comment", "filename=a.txt (Größe); size=3", "a.txt"},
		{"in an extended value", "filename*=utf-8''Größe%20x.txt", "Größe x.txt"},
		{"in the second section", `filename*0="a b"; filename*1="ö.txt"`, "a bö.txt"},
		{"long", "filename=\"" + long + ".txt\"", long + ".txt"},
		{"long in ASCII", "filename=\"" + strings.Repeat("x", 1200) + ".txt\"", strings.Repeat("x", 1200) + ".txt"},
		{"long and extended", "filename*=iso-8859-1''" + strings.Repeat("%FC", 400) + "_.txt",
			strings.Repeat("ü", 400) + "_.txt"},
		{"many parameters", times(60, "x-a=aaaaaaaaaaaaaaaaa", ";") + ";filename=a.txt", "a.txt"},
	}
	var raws [][]byte
	for _, row := range rows {
		c, _, err := message.FromRaw([]byte(complete+"Content-Type: multipart/mixed; boundary=b\n\n--b\n"+
			"Content-Disposition: attachment;"+row.disposition+"\n\nx\n--b--\n"), override, steady())
		if err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		if c.EightBit {
			t.Errorf("%s: EightBit", row.name)
		}
		checkCarriable(t, c)
		raws = append(raws, c.Raw)
	}
	for i, mail := range readRawWithPython(t, raws) {
		if len(mail.Parts) != 1 || mail.Parts[0].Filename != rows[i].want {
			t.Errorf("%s: read as %q, want %q, from\n%s", rows[i].name, mail.Parts, rows[i].want, raws[i])
		}
	}
}

func TestAHeaderLineThatCannotBeFoldedIsRefused(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, row := range []struct{ field, raw string }{
		{"References", complete + "References: <" + long + "@example.com>\n\n"},
		{"List-Unsubscribe", complete + "List-Unsubscribe: <https://example.com/" + long + ">\n\n"},
		{"Received", complete + "Received: from " + long + "\n\n"},
		{"DKIM-Signature", complete + "DKIM-Signature: v=1; b=" + long + "\n\n"},
		{"Content-Type", complete + "Content-Type: " + long + "/plain\n\n"},
		{"Content-ID", complete + "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-ID: <" + long +
			">\n\nx\n--b--\n"},
	} {
		_, _, err := message.FromRaw([]byte(row.raw), override, steady())
		want := "raw: the header " + row.field + " can't be folded into lines of 998 octets (RFC 5322 section 2.1.1)"
		if got := faultsOf(t, err); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q", row.field, got)
		}
	}
}

// TestFieldsThatFitKeepTheirBytes: signatures cover them.
func TestFieldsThatFitKeepTheirBytes(t *testing.T) {
	const odd = "X-Odd:  a   b \nList-Id:x<y>\nX-Edge: "
	raw := odd + strings.Repeat("x", 990) + "\n" + complete + "Subject: Größe\n\n"
	c, _, err := message.FromRaw([]byte(raw), override, steady())
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(odd, "\n", "\r\n"); !strings.HasPrefix(string(c.Raw), want) {
		t.Errorf("changed to\n%.200s", c.Raw)
	}
}

// TestAHugeOddHeaderTakesNoLongTime: whoever submits raw mail could keep a process busy otherwise. Work that
// grows with the square of the size takes minutes here.
func TestAHugeOddHeaderTakesNoLongTime(t *testing.T) {
	for name, piece := range map[string]string{"Cc": ":", "List-Id": "ü ", "Content-Type": ";ü=ü", "X": "ü "} {
		raw := complete + name + ": ü" + strings.Repeat(piece, 500_000/len(piece)) + "\n\nx"
		began := time.Now()
		o := override
		o.Envelope = &message.Envelope{To: []string{"x@example.net"}}
		_, _, _ = message.FromRaw([]byte(raw), o, steady())
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("%s of %q took %s", name, piece, took)
		}
	}
}
