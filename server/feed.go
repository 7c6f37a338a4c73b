package server

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

const (
	// window is the number of bytes of a large body that are read at a time.
	window = 64 << 10
	// longValue is the length of a string, or of an object that is not decoded, from which on the rest of the
	// body is read with it. Such a body consists of few large values: reading it in pieces gains nothing.
	longValue = 128 << 10
)

// errLong stops a decoder whose buffer has become as long as a longValue.
var errLong = errors.New("a long value")

// feed is a large body that is decoded while it arrives. So a mail merge's text of 10,000 entries is never in
// memory together with the decoded entries.
type feed struct {
	body    io.Reader
	size    int64        // declared length of the body; negative if unknown
	most    int64        // longValue, or less in tests
	acquire func() error // called when all of a body with a long value was read; see capacity.acquire
	read    int64        // octets read so far
	passed  func() int64 // returns the octets that were decoded
	long    bool         // the decoder was stopped by errLong
	err     error        // why the body ended early
}

// newStream returns a document that is decoded while its body arrives.
func newStream(body io.Reader, size, most int64, acquire func() error) document {
	buffered := bufio.NewReaderSize(body, window)
	f := &feed{body: buffered, size: size, most: most, acquire: acquire}
	_, err := buffered.Peek(1)
	d := document{json: newDecoder(f), feed: f, empty: err == io.EOF}
	f.passed = d.json.InputOffset
	return d
}

// Read implements io.Reader.
func (f *feed) Read(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	if f.read-f.passed() >= f.most {
		f.long = true
		return 0, errLong
	}
	n, err := f.body.Read(p)
	f.read += int64(n)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

// gathered reads the rest of the body if the decoder was stopped by a long value, and reports whether
// decoding can continue. The buffer for the rest is allocated once, while a decoder would double its buffer
// repeatedly.
func (d *document) gathered() bool {
	f := d.feed
	if f == nil || !f.long {
		return false
	}
	f.long = false
	opened, unread := d.opened(), d.json.UnreadBuffer()
	had, promised := len(opened)+len(unread), int64(-1)
	size := max(window, 4*had)
	if f.size >= 0 {
		promised = int64(had) + f.size - f.read
		size = min(size, int(promised)+1) // it grows with the bytes that arrive
	}
	text, err := readAll(f.body, append(append(make([]byte, 0, size), opened...), unread...), promised)
	if err == nil {
		err = f.acquire()
	}
	if err != nil {
		f.err = err
		return false
	}
	d.json = newDecoder(bytes.NewBuffer(text))
	for err == nil && d.json.InputOffset() < int64(len(opened)) {
		_, err = d.json.ReadToken()
	}
	return err == nil
}

// opened returns a text that brings a new decoder to the current decoder's position. It has the open
// brackets, and in the innermost a name or a value if a colon or a comma is next.
func (d *document) opened() []byte {
	var text []byte
	for i := 1; i <= d.json.StackDepth(); i++ {
		kind, length := d.json.StackIndex(i)
		innermost := i == d.json.StackDepth()
		switch {
		case kind == '[' && innermost && length > 0:
			text = append(text, `[null`...)
		case kind == '[':
			text = append(text, '[')
		case !innermost:
			text = append(text, `{"":`...)
		case length == 0:
			text = append(text, '{')
		case length%2 == 1:
			text = append(text, `{""`...)
		default:
			text = append(text, `{"":null`...)
		}
	}
	return text
}
