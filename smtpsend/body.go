package smtpsend

import (
	"bytes"
)

// blockSize is how much of a body one write, and so one deadline, covers.
const blockSize = 32 << 10

// endOfData is the terminator. It is written after BeforeDot and AtDot; its leading CRLF is the one that ends the last line.
var endOfData = []byte("\r\n.\r\n")

// wireBody is the content as it goes on the wire without its terminator: every line end CRLF, dots at line starts doubled (RFC
// 5321 section 4.5.2), the last line end left to endOfData. A bare CR or LF becomes a line end before dots are looked at, so no
// reading of the message by a lenient server finds a terminator inside it. Clean content is returned as it is, uncopied.
func wireBody(data []byte) []byte {
	if clean(data) {
		return bytes.TrimSuffix(data, []byte("\r\n"))
	}
	out := make([]byte, 0, len(data)+len(data)/64+64)
	lineStart := true
	for i := 0; i < len(data); i++ {
		c := data[i]
		switch {
		case c == '\r' || c == '\n':
			if c == '\r' && i+1 < len(data) && data[i+1] == '\n' {
				i++
			}
			out = append(out, '\r', '\n')
			lineStart = true
			continue
		case c == '.' && lineStart:
			out = append(out, '.')
		}
		out = append(out, c)
		lineStart = false
	}
	return bytes.TrimSuffix(out, []byte("\r\n"))
}

// clean reports whether data needs neither a line end mended nor a dot doubled.
func clean(data []byte) bool {
	if data[0] == '.' {
		return false
	}
	for rest := data; ; {
		lf := bytes.IndexByte(rest, '\n')
		line := rest
		if lf >= 0 {
			line = rest[:lf]
			if lf == 0 || line[lf-1] != '\r' {
				return false
			}
			line = line[:lf-1]
		}
		if bytes.IndexByte(line, '\r') >= 0 {
			return false
		}
		if lf < 0 {
			return true
		}
		rest = rest[lf+1:]
		if len(rest) > 0 && rest[0] == '.' {
			return false
		}
	}
}
