package message

import (
	"bytes"
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// transferEncoding is a Content-Transfer-Encoding (RFC 2045 section 6).
type transferEncoding string

const (
	sevenBit        transferEncoding = "7bit"
	eightBit        transferEncoding = "8bit" // attached message/* only, which may not be encoded
	quotedPrintable transferEncoding = "quoted-printable"
	base64Encoding  transferEncoding = "base64"
)

// textEncoding returns the encoding for a text with CRLF line ends. ASCII in short lines stays as it is,
// unless a line starts with a dot or "From ": some relays change those lines, which breaks signatures. Mostly
// ASCII becomes quoted-printable; other text base64, which is then shorter.
func textEncoding(text []byte) transferEncoding {
	plain, escapes := survey(text)
	return encodingOf(plain, escapes, len(text))
}

func encodingOf(plain bool, escapes, size int) transferEncoding {
	switch {
	case plain:
		return sevenBit
	case escapes*6 <= size:
		return quotedPrintable
	}
	return base64Encoding
}

// survey reports whether every line of a text can stay unencoded, and counts the octets that quoted-printable
// escapes.
func survey(text []byte) (plain bool, escapes int) {
	for _, c := range text {
		escapes += escapedByte[c]
	}
	if escapes > bytes.Count(text, []byte("=")) {
		return false, escapes
	}
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		if len(line) > maxColumns && len(bytes.TrimSuffix(line, []byte("\r"))) > maxColumns ||
			bytes.HasPrefix(line, []byte(".")) || bytes.HasPrefix(line, []byte("From ")) {
			return false, escapes
		}
		text = rest
	}
	return true, escapes
}

// escapedByte is 1 for each byte that quoted-printable escapes wherever it stands.
var escapedByte = func() (escaped [256]int) {
	for c := range escaped {
		if (c < ' ' || c >= 0x7f || c == '=') && c != '\t' && c != '\r' && c != '\n' {
			escaped[c] = 1
		}
	}
	return escaped
}()

// encodedSize is an upper estimate of a body's encoded size, so that the result is allocated once.
func encodedSize(encoding transferEncoding, n int) int {
	switch encoding {
	case base64Encoding:
		return (n+56)/57*78 + 4
	case quotedPrintable:
		return n + n/3 + n/16 + 64
	}
	return n
}

// appendEncoded appends a body in its transfer encoding. The last line gets no CRLF: in a multipart, the CRLF
// before the next boundary ends it.
func appendEncoded(dst []byte, encoding transferEncoding, body []byte) []byte {
	switch encoding {
	case base64Encoding:
		return appendBase64(dst, body)
	case quotedPrintable:
		return appendQuotedPrintable(dst, body)
	}
	return append(dst, body...)
}

func appendBase64(dst, body []byte) []byte {
	const line = 57 // becomes 76 columns
	for len(body) > line {
		dst = base64.StdEncoding.AppendEncode(dst, body[:line])
		dst = append(dst, "\r\n"...)
		body = body[line:]
	}
	return base64.StdEncoding.AppendEncode(dst, body)
}

// appendQuotedPrintable encodes text with CRLF line ends (RFC 2045 section 6.7). Lines have at most 76
// columns. No line starts with a dot or "From ", soft line breaks included. Soft line breaks do not split
// multibyte characters.
func appendQuotedPrintable(dst, text []byte) []byte {
	column := 0
	for i := 0; i < len(text); {
		if n := plainRun(text[i:], maxColumns-1-column); n > 0 && (column > 0 || text[i] != '.' && text[i] != 'F') {
			dst = append(dst, text[i:i+n]...)
			column += n
			i += n
			continue
		}
		if text[i] == '\r' && i+1 < len(text) && text[i+1] == '\n' {
			dst = append(dst, "\r\n"...)
			column = 0
			i += 2
			continue
		}
		size := 1
		if text[i] >= utf8.RuneSelf {
			_, size = utf8.DecodeRune(text[i:])
		}
		literal := size == 1 && qpLiteral(text, i)
		width := 3 * size
		if literal {
			width = 1
		}
		if column+width > maxColumns-1 && !(column+width == maxColumns && endsLine(text, i+size)) {
			dst = append(dst, "=\r\n"...)
			column = 0
		}
		if column == 0 && literal && (text[i] == '.' || text[i] == 'F' &&
			bytes.HasPrefix(text[i:], []byte("From "))) {
			literal, width = false, 3
		}
		if literal {
			dst = append(dst, text[i])
		} else {
			for _, c := range text[i : i+size] {
				dst = append(dst, '=', upperHex[c>>4], upperHex[c&15])
			}
		}
		column += width
		i += size
	}
	return dst
}

// plainRun returns how many bytes at the start of a text, of most, need no encoding whatever follows.
func plainRun(text []byte, most int) int {
	most = min(most, len(text))
	n := 0
	for n < most && text[n] >= ' ' && text[n] < 0x7f && text[n] != '=' {
		n++
	}
	for n > 0 && text[n-1] == ' ' {
		n--
	}
	return n
}

// qpLiteral reports whether the byte needs no encoding. White space at the end of a line does: relays remove
// it.
func qpLiteral(text []byte, i int) bool {
	switch c := text[i]; {
	case c == ' ' || c == '\t':
		return !endsLine(text, i+1)
	default:
		return c > ' ' && c < 0x7f && c != '='
	}
}

func endsLine(text []byte, i int) bool {
	return i == len(text) || text[i] == '\r' && i+1 < len(text) && text[i+1] == '\n'
}

// appendCRLF appends text with CRLF line ends; a bare CR or LF counts as one line end. Relays differ on bare
// ones, which lets attackers smuggle messages past a filter (CVE-2023-51764).
func appendCRLF(dst, text []byte) []byte {
	for len(text) > 0 {
		line, rest := cutLine(text)
		dst = append(dst, line...)
		if len(line) < len(text) {
			dst = append(dst, "\r\n"...)
		}
		text = rest
	}
	return dst
}

// HasBareLineEnd reports whether a CR or an LF stands alone.
func HasBareLineEnd(text []byte) bool {
	lf := bytes.Count(text, []byte("\n"))
	return lf != bytes.Count(text, []byte("\r")) || lf > 0 && lf != bytes.Count(text, []byte("\r\n"))
}

// crlfOf is crlf for a string. Most text has no CR, and is copied once.
func crlfOf(text string) []byte {
	if strings.IndexByte(text, '\r') >= 0 {
		return crlf([]byte(text))
	}
	dst := make([]byte, 0, len(text)+strings.Count(text, "\n"))
	for {
		i := strings.IndexByte(text, '\n')
		if i < 0 {
			return append(dst, text...)
		}
		dst = append(append(dst, text[:i]...), "\r\n"...)
		text = text[i+1:]
	}
}

// crlf returns text with CRLF line ends. It returns text itself if nothing changes.
func crlf(text []byte) []byte {
	if !HasBareLineEnd(text) {
		return text
	}
	return appendCRLF(make([]byte, 0, len(text)+bytes.Count(text, []byte("\n"))+bytes.Count(text, []byte("\r"))),
		text)
}

// octets describes the features of bytes that a relay must support.
type octets struct {
	nul       bool
	eightBit  bool // octets above 127
	longLines bool // lines over 998 octets
}

func inspect(text []byte) octets {
	o := octets{nul: bytes.IndexByte(text, 0) >= 0, eightBit: !isASCII(text)}
	for line := range bytes.Lines(text) {
		if len(line) > maxLine && len(bytes.TrimRight(line, "\r\n")) > maxLine {
			o.longLines = true
			break
		}
	}
	return o
}
