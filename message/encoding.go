package message

import (
	"bytes"
	"encoding/base64"
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

// textEncoding chooses how a text with CRLF line ends travels. ASCII in short lines goes as it is, unless a line starts with a dot or with
// "From ", which some relays change, breaking signatures. Mostly ASCII becomes quoted-printable; the rest base64, which is then shorter.
func textEncoding(text []byte) transferEncoding {
	if isPlain(text) {
		return sevenBit
	}
	escapes := 0
	for _, c := range text {
		if c == '=' || !plainByte[c] && c != '\n' {
			escapes++
		}
	}
	if escapes*6 <= len(text) {
		return quotedPrintable
	}
	return base64Encoding
}

// plainByte are the bytes of a line that travels as it is.
var plainByte = func() (plain [256]bool) {
	for c := ' '; c < 0x7f; c++ {
		plain[c] = true
	}
	plain['\t'], plain['\r'] = true, true
	return plain
}()

// isPlain reports whether every line of a text may travel as it is.
func isPlain(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if len(bytes.TrimSuffix(line, []byte("\r"))) > maxColumns || bytes.HasPrefix(line, []byte(".")) || bytes.HasPrefix(line, []byte("From ")) {
			return false
		}
		for _, c := range line {
			if !plainByte[c] {
				return false
			}
		}
	}
	return true
}

// encodedSize estimates from above how many bytes a body takes, so that the result is allocated once.
func encodedSize(encoding transferEncoding, n int) int {
	switch encoding {
	case base64Encoding:
		return (n+56)/57*78 + 4
	case quotedPrintable:
		return n + n/3 + n/16 + 64
	}
	return n
}

// appendEncoded appends a body in its transfer encoding. The last line gets no CRLF: in a multipart the one before the next boundary ends it.
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

// appendQuotedPrintable encodes text with CRLF line ends (RFC 2045 section 6.7). Lines stay within 76 columns, and no line of the result
// starts with a dot or with "From ", soft line breaks included. Characters of several bytes are not torn apart by a soft line break.
func appendQuotedPrintable(dst, text []byte) []byte {
	column := 0
	for i := 0; i < len(text); {
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
		if column == 0 && literal && (text[i] == '.' || text[i] == 'F' && bytes.HasPrefix(text[i:], []byte("From "))) {
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

// qpLiteral reports whether the byte may stand for itself. White space may not at the end of a line, where relays strip it.
func qpLiteral(text []byte, i int) bool {
	switch c := text[i]; {
	case c == ' ' || c == '\t':
		return !endsLine(text, i+1)
	case c == '=':
		return false
	default:
		return c > ' ' && c < 0x7f
	}
}

func endsLine(text []byte, i int) bool {
	return i == len(text) || text[i] == '\r' && i+1 < len(text) && text[i+1] == '\n'
}

// appendCRLF appends text with every line end as CRLF: a bare CR or LF counts as one. What a relay makes of a bare one is its own affair,
// and differs, which is how messages are smuggled past a filter (CVE-2023-51764).
func appendCRLF(dst, text []byte) []byte {
	for len(text) > 0 {
		i := bytes.IndexAny(text, "\r\n")
		if i < 0 {
			return append(dst, text...)
		}
		dst = append(dst, text[:i]...)
		dst = append(dst, "\r\n"...)
		if text[i] == '\r' && i+1 < len(text) && text[i+1] == '\n' {
			i++
		}
		text = text[i+1:]
	}
	return dst
}

// hasBareLineEnd reports whether a CR or an LF stands alone.
func hasBareLineEnd(text []byte) bool {
	for i := 0; i < len(text); {
		n := bytes.IndexByte(text[i:], '\n')
		line := text[i:]
		if n >= 0 {
			line = text[i : i+n]
			if n == 0 || line[n-1] != '\r' {
				return true
			}
			line = line[:n-1]
		}
		if bytes.IndexByte(line, '\r') >= 0 {
			return true
		}
		if n < 0 {
			return false
		}
		i += n + 1
	}
	return false
}

// crlf returns the text with every line end as CRLF, the same one when that is so already.
func crlf(text []byte) []byte {
	if !hasBareLineEnd(text) {
		return text
	}
	return appendCRLF(make([]byte, 0, len(text)+bytes.Count(text, []byte("\n"))+bytes.Count(text, []byte("\r"))), text)
}

// octets describes what a relay needs to be told about a stretch of bytes.
type octets struct {
	nul       bool
	eightBit  bool // octets above 127
	longLines bool // lines over 998 octets
}

func inspect(text []byte) octets {
	var o octets
	o.nul = bytes.IndexByte(text, 0) >= 0
	for _, c := range text {
		if c >= utf8.RuneSelf {
			o.eightBit = true
			break
		}
	}
	for len(text) > maxLine && !o.longLines {
		i := bytes.IndexByte(text, '\n')
		line := len(text)
		if i >= 0 {
			line = len(bytes.TrimSuffix(text[:i], []byte("\r")))
		}
		o.longLines = line > maxLine
		if i < 0 {
			break
		}
		text = text[i+1:]
	}
	return o
}
