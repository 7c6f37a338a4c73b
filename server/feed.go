package server

import "io"

// How much of a large body is at hand while it is read, and how long a string or an object that is taken as it stands may be before all the
// rest is read with it: such a body is a few large values, and gains nothing from being read in pieces.
const (
	window    = 64 << 10
	longValue = 1 << 20
)

// feed brings the rest of a text of which a document has a window: a large body, read while it arrives. The text of a mail merge of 10,000
// entries is thus never held beside what was read from it.
type feed struct {
	body io.Reader
	left int64        // what was promised and has not come; negative: nothing was promised
	turn func() error // waits until a body of large values can be worked on, once all of it was read
	err  error        // why the body ended before its time
}

// fill brings more of the text to hand, and reports whether there was more. What the reader has passed is let go, unless it is held.
func (d *document) fill() bool {
	if d.feed == nil || d.feed.body == nil {
		return false
	}
	if passed := d.passed(); passed > 0 {
		d.text = d.text[:copy(d.text, d.text[passed:])]
		d.pos, d.base = d.pos-passed, d.base+passed
	}
	if len(d.text) >= longValue {
		return d.gather()
	}
	if len(d.text) == cap(d.text) {
		d.text = append(make([]byte, 0, max(window, 4*cap(d.text))), d.text...)
	}
	return d.feed.read(d)
}

// passed is how much of the window nobody needs any more.
func (d *document) passed() int {
	if d.held > 0 {
		return d.keep - d.base
	}
	return d.pos
}

// hold keeps what is read from here on at hand, until held is counted down, and tells how far into the text that is.
func (d *document) hold() int {
	at := d.base + d.pos
	if d.held == 0 {
		d.keep = at
	}
	d.held++
	return at
}

// span is what stands between two places of the text, both of which are at hand. It is good until more is read.
func (d *document) span(from, to int) []byte { return d.text[from-d.base : to-d.base] }

// read appends what the body gives next.
func (f *feed) read(d *document) bool {
	for {
		n, err := f.body.Read(d.text[len(d.text):cap(d.text)])
		d.text = d.text[:len(d.text)+n]
		if f.left >= 0 {
			f.left = max(f.left-int64(n), 0)
		}
		if err != nil {
			f.stop(err)
		}
		if n > 0 || err != nil {
			return n > 0
		}
	}
}

// gather reads all that is left.
func (d *document) gather() bool {
	f, had := d.feed, len(d.text)
	room, promised := 4*had, int64(-1)
	if f.left >= 0 {
		promised = int64(had) + f.left
		room = int(promised) + 1 // it has been reserved, and some of it has come
	}
	text, err := readAll(f.body, append(make([]byte, 0, room), d.text...), promised)
	if err == nil {
		err = f.turn()
	}
	if err != nil {
		f.stop(err)
		return false
	}
	d.text = text
	f.stop(io.EOF)
	return len(text) > had
}

// stop ends the feed.
func (f *feed) stop(err error) {
	f.body = nil
	if err != io.EOF {
		f.err = err
	}
}

// has reports whether so many bytes are left, and has them at hand.
func (d *document) has(n int) bool {
	for len(d.text)-d.pos < n {
		if !d.fill() {
			return false
		}
	}
	return true
}

// enough ends the reading because what was found is reason to refuse, however the text goes on.
func (d *document) enough() {
	d.cut = true
	d.fail()
}

// broken is why the text could not be read to its end; nil: it could.
func (d *document) broken() error {
	if d.feed == nil {
		return nil
	}
	return d.feed.err
}
