package smtpsend

import (
	"bytes"
	"io"

	"github.com/postroom/postroom/internal/message"
)

// blockSize is the size of one write of content. Each has its own deadline.
const blockSize = 32 << 10

// endOfData is the terminator. It is written after BeforeDot and AtDot; its leading CRLF is the one that ends
// the last line.
var endOfData = []byte("\r\n.\r\n")

// wireBody returns content in wire form without its terminator, and the number of dots doubled in it. Clean
// content is returned as it is, not copied.
func wireBody(data []byte) (wire []byte, doubled int) {
	if clean(data) {
		return bytes.TrimSuffix(data, []byte("\r\n")), 0
	}
	var f wireForm
	wire = f.append(make([]byte, 0, len(data)+len(data)/64+64), data)
	return wire, f.doubled
}

// clean reports whether data needs no line end changed and no dot doubled.
func clean(data []byte) bool {
	return data[0] != '.' && !bytes.Contains(data, []byte("\n.")) && !message.HasBareLineEnd(data)
}

// wireForm converts content, in pieces of any size, to wire form: every line end CRLF, dots at line starts
// doubled (RFC 5321 section 4.5.2), the last line end left to endOfData. A bare CR or LF becomes a line end
// before dots are doubled, so a lenient server cannot find a terminator inside the message.
type wireForm struct {
	begun   bool // there was text
	held    bool // a line end is not written yet: it may be the last
	cr      bool // the last octet was a CR, which an LF belongs to
	doubled int  // dots
}

// append appends the next piece.
func (f *wireForm) append(dst, piece []byte) []byte {
	for len(piece) > 0 {
		if f.cr {
			f.cr = false
			if piece[0] == '\n' {
				piece = piece[1:]
				continue
			}
		}
		end := lineEnd(piece)
		if end > 0 {
			dst = f.text(dst, piece[:end])
		}
		if end == len(piece) {
			break
		}
		dst = f.flush(dst)
		f.held, f.cr = true, piece[end] == '\r'
		piece = piece[end+1:]
	}
	return dst
}

// text appends a line or a part of one.
func (f *wireForm) text(dst, text []byte) []byte {
	first := f.held || !f.begun
	dst = f.flush(dst)
	if first && text[0] == '.' {
		dst = append(dst, '.')
		f.doubled++
	}
	f.begun = true
	return append(dst, text...)
}

// flush appends the line end that was held back.
func (f *wireForm) flush(dst []byte) []byte {
	if f.held {
		f.held = false
		dst = append(dst, '\r', '\n')
	}
	return dst
}

// lineEnd returns the index of the first CR or LF, or the length.
func lineEnd(text []byte) int {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	line, _, _ = bytes.Cut(line, []byte("\r"))
	return len(line)
}

// wireReader returns a large content in wire form, block by block.
type wireReader struct {
	content io.Reader
	lacks   int64 // octets still to come
	form    wireForm
	*blocks
}

// blocks are the buffers of a wireReader: as read, and in wire form.
type blocks struct{ in, out []byte }

func newBlocks() any {
	return &blocks{in: make([]byte, blockSize), out: make([]byte, 0, blockSize+blockSize/64)}
}

// next returns the next block, and io.EOF with the last. Any other error is a contentFault.
func (r *wireReader) next() ([]byte, error) {
	n, err := readFull(r.content, r.in)
	r.lacks -= int64(n)
	if err != nil && err != io.EOF { //nolint:errorlint // readFull gives a reader's own
		return nil, contentFault{err}
	}
	if wrong := missized(r.lacks); wrong != nil && (err == io.EOF || r.lacks < 0) {
		return nil, contentFault{wrong}
	}
	r.out = r.form.append(r.out[:0], r.in[:n])
	return r.out, err
}

// contentFault is an error of the content, not of the connection.
type contentFault struct{ error }

func (f contentFault) Unwrap() error { return f.error }
