package dkim

import (
	"bufio"
	"bytes"
	"crypto/sha256"
)

// appendRelaxed appends a field in the form that is signed (RFC 6376 section 3.4.2). Its name is in lower
// case, its value unfolded, each run of white space one blank, and none at its ends.
func appendRelaxed(dst []byte, f headerField) []byte {
	name := f.name()
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	dst = append(dst, ':')
	value := f[bytes.IndexByte(f, ':')+1:]
	start, space := len(dst), false
	for _, c := range value {
		switch c {
		case ' ', '\t', '\r', '\n':
			space = true
			continue
		}
		if space && len(dst) > start {
			dst = append(dst, ' ')
		}
		space = false
		dst = append(dst, c)
	}
	return append(dst, "\r\n"...)
}

// hashBody returns the hash of a body in the form that is signed (RFC 6376 section 3.4.4). Lines have no
// white space at their end, and every other run of it is one blank. There are no empty lines at the end, and
// a line end after the last line. If nothing else is left, it is empty.
func hashBody(body []byte) []byte {
	h := sha256.New()
	w := bufio.NewWriterSize(h, min(len(body), 32<<10)) // hashing small pieces is slow; neither fails
	empty := 0
	for len(body) > 0 {
		line := body
		if i := bytes.IndexByte(body, '\n'); i >= 0 {
			line, body = body[:i-1], body[i+1:]
		} else {
			body = nil
		}
		if line = bytes.TrimRight(line, " \t"); len(line) == 0 {
			empty++
			continue
		}
		for ; empty > 0; empty-- {
			_, _ = w.WriteString("\r\n")
		}
		writeReduced(w, line)
		_, _ = w.WriteString("\r\n")
	}
	_ = w.Flush()
	return h.Sum(nil)
}

// writeReduced writes a line with each run of white space as one blank.
func writeReduced(w *bufio.Writer, line []byte) {
	if bytes.IndexByte(line, '\t') < 0 && !bytes.Contains(line, []byte("  ")) {
		_, _ = w.Write(line)
		return
	}
	space := false
	for _, c := range line {
		if c == ' ' || c == '\t' {
			space = true
			continue
		}
		if space {
			_ = w.WriteByte(' ')
		}
		space = false
		_ = w.WriteByte(c)
	}
}
