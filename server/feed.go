package server

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

const (
	// window is how much of a large body is read at a time.
	window = 64 << 10
	// longValue is how long a string, or an object that is kept as it is, may be before the rest of the body is
	// read with it: such a body is a few large values, and gains nothing from being read in pieces.
	longValue = 128 << 10
)

// errLong stops a decoder whose buffer has become as long as a longValue.
var errLong = errors.New("a long value")

// feed is a large body that is decoded while it arrives. The text of a mail merge of 10,000 entries is thus
// never held beside what was decoded from it.
type feed struct {
	body   io.Reader
	size   int64        // of the body as promised; negative: unknown
	most   int64        // longValue, or less in tests
	turn   func() error // waits until a body of large values can be worked on, once all of it was read
	read   int64        // octets read so far
	passed func() int64 // octets that the decoder is done with
	long   bool         // the decoder was stopped by errLong
	err    error        // why the body ended early
}

// newStream reads a body while it arrives.
func newStream(body io.Reader, size, most int64, turn func() error) document {
	buffered := bufio.NewReaderSize(body, window)
	f := &feed{body: buffered, size: size, most: most, turn: turn}
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

// gathered reads the rest of a body whose decoder was stopped by a long value, and reports whether the
// decoding can go on. A decoder doubles its buffer to hold a long value; a buffer for the whole rest is
// allocated once.
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
		size = int(promised) + 1 // it has been reserved, and some of it has come
	}
	text, err := readAll(f.body, append(append(make([]byte, 0, size), opened...), unread...), promised)
	if err == nil {
		err = f.turn()
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

// opened returns a text that brings a new decoder to the place where the present one stands: the brackets
// that are open there, and in the innermost a name or a value, where the next thing is a colon or a comma.
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
