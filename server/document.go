package server

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/postroom/postroom/fault"
)

// How much of a hostile document is looked at.
const (
	maxDepth  = 64  // nesting; no request of ours goes deeper than 5 on its own, metadata may
	maxFaults = 100 // faults told; nobody reads more, and a megabyte of "[1,1,1…" must not become ten of answer
)

// document is a JSON text (RFC 8259) being read once, from start to end. It takes what encoding/json takes, less invalid UTF-8, which
// encoding/json quietly replaces. A syntax error sets bad and moves to the end, so that readers need not check after each step.
type document struct {
	text   []byte
	pos    int
	feed   *feed // brings the rest where text is a window; nil: text is all of it
	base   int   // octets that went by before the window
	held   int   // readers that need what they have read
	keep   int   // octets before what the first of them needs
	depth  int
	bad    bool
	cut    bool   // bad because nobody read on
	path   []step // where the reader stands
	faults []fault.Field
}

// step is one step down into the document: a member's key, or an element's index.
type step struct {
	key   string
	index int // when key is empty
}

// fault notes what the value where the reader stands must be, and isn't.
func (d *document) fault(what string) {
	if len(d.faults) < maxFaults {
		d.faults = append(d.faults, wrong(d.here(), what))
	}
}

// here writes the reader's place as clients read it, such as to[0].address.
func (d *document) here() string {
	var b strings.Builder
	for i, s := range d.path {
		switch {
		case s.key == "":
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case i > 0:
			b.WriteString("." + clip(s.key))
		default:
			b.WriteString(clip(s.key))
		}
	}
	return b.String()
}

// clip shortens a key that the client made up, so that a megabyte of it does not come back a hundred times.
func clip(key string) string {
	if len(key) <= 128 {
		return key
	}
	return strings.ToValidUTF8(key[:128], "") + "…"
}

// in runs a reader one step down.
func (d *document) in(s step, read func()) {
	d.path = append(d.path, s)
	read()
	d.path = d.path[:len(d.path)-1]
}

// wrong names a field and what is wrong with it.
func wrong(key, what string) fault.Field { return fault.Field{Key: key, Message: what} }

// fail ends the reading: the text is not JSON.
func (d *document) fail() {
	d.bad, d.pos = true, len(d.text)
	if d.feed != nil {
		d.feed.body = nil
	}
}

// peek skips white space and returns the next byte without taking it; 0 at the end.
func (d *document) peek() byte {
	for d.pos < len(d.text) || d.fill() {
		switch c := d.text[d.pos]; c {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return c
		}
	}
	return 0
}

// end reports whether nothing but white space is left.
func (d *document) end() bool { return !d.bad && d.peek() == 0 && d.pos == len(d.text) }

// null takes a null, if one is next.
func (d *document) null() bool {
	if d.peek() != 'n' {
		return false
	}
	d.word("null")
	return !d.bad
}

// word takes a literal name.
func (d *document) word(w string) {
	if d.has(len(w)) && string(d.text[d.pos:d.pos+len(w)]) == w {
		d.pos += len(w)
		return
	}
	d.fail()
}

// object takes an object, and calls member at each value, which must take it. The key is a slice of the text where it has no escapes, so it
// is good until the value is looked at.
func (d *document) object(member func(key []byte)) {
	d.list('{', '}', func() {
		if d.peek() != '"' {
			d.fail()
			return
		}
		from := d.hold()
		_, escaped := d.rawString()
		to, colon := d.base+d.pos, d.peek() == ':'
		d.held--
		if !colon {
			d.fail()
			return
		}
		key := d.span(from+1, to-1)
		if escaped {
			key = []byte(unescape(key))
		}
		d.pos++
		member(key)
	})
}

// array takes an array, and calls element at each value, which must take it.
func (d *document) array(element func(i int)) {
	i := 0
	d.list('[', ']', func() { element(i); i++ })
}

// list takes what stands between two brackets, separated by commas.
func (d *document) list(opening, closing byte, item func()) {
	if d.peek() != opening || d.depth >= maxDepth {
		d.fail()
		return
	}
	d.depth++
	defer func() { d.depth-- }()
	d.pos++
	if d.peek() == closing {
		d.pos++
		return
	}
	for !d.bad {
		item()
		switch d.peek() {
		case ',':
			d.pos++
		case closing:
			d.pos++
			return
		default:
			d.fail()
		}
	}
}

// skip takes any value and returns its text, which is good until more is read.
func (d *document) skip() []byte {
	first := d.peek()
	from := d.hold()
	defer func() { d.held-- }()
	switch first {
	case '{':
		d.object(func([]byte) { d.skip() })
	case '[':
		d.array(func(int) { d.skip() })
	case '"':
		d.rawString()
	case 't':
		d.word("true")
	case 'f':
		d.word("false")
	case 'n':
		d.word("null")
	default:
		d.number()
	}
	if d.bad {
		return nil
	}
	return d.span(from, d.base+d.pos)
}

// number takes a number and returns its text, as skip does.
func (d *document) number() []byte {
	d.peek()
	from := d.hold()
	defer func() { d.held-- }()
	d.accept("-")
	if !d.accept("0") && d.digits() == 0 {
		d.fail()
		return nil
	}
	if d.accept(".") && d.digits() == 0 {
		d.fail()
		return nil
	}
	if d.accept("eE") {
		d.accept("+-")
		if d.digits() == 0 {
			d.fail()
			return nil
		}
	}
	return d.span(from, d.base+d.pos)
}

func (d *document) accept(any string) bool {
	if d.has(1) && strings.IndexByte(any, d.text[d.pos]) >= 0 {
		d.pos++
		return true
	}
	return false
}

func (d *document) digits() (n int) {
	for d.has(1) && d.text[d.pos] >= '0' && d.text[d.pos] <= '9' {
		d.pos++
		n++
	}
	return n
}

// string takes a string.
func (d *document) string() string {
	raw, escaped := d.rawString()
	if escaped && !d.bad {
		return unescape(raw)
	}
	return string(raw)
}

// stringBytes takes a string. The result is a slice of the text where nothing had to be unescaped, and good until more is read.
func (d *document) stringBytes() []byte {
	raw, escaped := d.rawString()
	if escaped && !d.bad {
		return []byte(unescape(raw))
	}
	return raw
}

// rawString takes a string and returns what stands between the quotes, checked, and whether it holds escapes.
func (d *document) rawString() (raw []byte, escaped bool) {
	from := d.hold()
	escaped = d.quoted()
	d.held--
	if d.bad {
		return nil, false
	}
	return d.span(from+1, d.base+d.pos-1), escaped
}

// quoted passes a string, and reports whether it holds escapes.
func (d *document) quoted() (escaped bool) {
	d.pos++
	for d.pos < len(d.text) || d.fill() {
		d.pos += unmarked(d.text[d.pos:])
		if d.pos == len(d.text) {
			continue
		}
		switch c := d.text[d.pos]; {
		case c == '"':
			d.pos++
			return escaped
		case c == '\\':
			escaped = true
			if !d.escape() {
				d.fail()
				return false
			}
		case c < 0x20:
			d.fail()
			return false
		default:
			r, size := utf8.DecodeRune(d.text[d.pos:])
			if r == utf8.RuneError && size == 1 {
				if !utf8.FullRune(d.text[d.pos:]) && d.fill() {
					continue
				}
				d.fail()
				return false
			}
			d.pos += size
		}
	}
	d.fail()
	return false
}

// unmarked counts the octets that stand in a string for themselves: most of most texts.
func unmarked(text []byte) int {
	for i, c := range text {
		if c < 0x20 || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return i
		}
	}
	return len(text)
}

// escape takes one escape sequence.
func (d *document) escape() bool {
	if !d.has(2) {
		return false
	}
	switch d.text[d.pos+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		d.pos += 2
		return true
	case 'u':
		if !d.has(6) {
			return false
		}
		if _, ok := hex4(d.text[d.pos+2 : d.pos+6]); !ok {
			return false
		}
		d.pos += 6
		return true
	}
	return false
}

// unescape resolves the escapes of a checked string. A lone half of a surrogate pair becomes U+FFFD, as in encoding/json.
func unescape(raw []byte) string {
	var out strings.Builder
	out.Grow(len(raw))
	for {
		escape := bytes.IndexByte(raw, '\\')
		if escape < 0 {
			out.Write(raw)
			return out.String()
		}
		out.Write(raw[:escape])
		raw = raw[escape+1:]
		if raw[0] != 'u' {
			out.WriteByte(unescaped(raw[0]))
			raw = raw[1:]
			continue
		}
		r, _ := hex4(raw[1:5])
		raw = raw[5:]
		if utf16.IsSurrogate(r) {
			low := rune(0)
			if len(raw) >= 6 && raw[0] == '\\' && raw[1] == 'u' {
				low, _ = hex4(raw[2:6])
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				raw = raw[6:]
			}
		}
		out.WriteRune(r)
	}
}

func unescaped(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

func hex4(digits []byte) (r rune, ok bool) {
	for _, c := range digits {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
