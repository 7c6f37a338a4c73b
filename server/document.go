package server

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/postroom/postroom/api/fault"
)

// Bounds of hostile documents.
const (
	maxDepth  = 64  // nesting; types of package api nest 5 deep, metadata may nest deeper
	maxFaults = 100 // errors in one answer, so that it is not larger than the request
)

// document is a JSON text (RFC 8259) that is read once, from start to end. It accepts what encoding/json
// accepts, except invalid UTF-8, which encoding/json silently replaces. After a syntax error bad is set and
// reads return nothing, so that readers need not check each step.
type document struct {
	json   *jsontext.Decoder
	feed   *feed // the body, if it is large; nil if the text is in memory
	empty  bool  // the text has no octet
	bad    bool
	cut    bool   // bad because of enough
	path   []step // position of the reader
	faults []fault.Field
}

// step is one step down into the document: a member's key, or an element's index.
type step struct {
	key   string
	index int // when key is empty
}

func newDocument(text []byte) document {
	return document{json: newDecoder(bytes.NewBuffer(text)), empty: len(text) == 0}
}

// newDecoder returns a decoder that leaves some checks to document. A repeated key is its field's error, and
// does not end the reading. Method value refuses invalid UTF-8. Half of a surrogate pair becomes U+FFFD, as
// in encoding/json.
func newDecoder(r io.Reader) *jsontext.Decoder {
	return jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// fault notes an error about the value at the current position.
func (d *document) fault(what string) {
	if len(d.faults) < maxFaults {
		d.faults = append(d.faults, wrong(d.here(), what))
	}
}

// here returns the current position as in answers, such as to[0].address.
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

// clip shortens an unknown key: the answer must not repeat a key of a megabyte a hundred times.
func clip(key string) string {
	if len(key) <= 128 {
		return key
	}
	return strings.ToValidUTF8(key[:128], "") + "…"
}

// in calls read one step down.
func (d *document) in(s step, read func()) {
	d.path = append(d.path, s)
	read()
	d.path = d.path[:len(d.path)-1]
}

func invalid(key, what string) error { return fault.InvalidField(key, "%s", what) }

func wrong(key, what string) fault.Field { return fault.Field{Key: key, Message: what} }

// fail ends the reading because the text is not JSON.
func (d *document) fail() { d.bad = true }

// enough ends the reading because the request is refused whatever follows.
func (d *document) enough() { d.cut, d.bad = true, true }

// broken returns the error of reading the body, or nil.
func (d *document) broken() error {
	if d.feed == nil {
		return nil
	}
	return d.feed.err
}

// peek returns the kind of the next value without reading it, or 0 if there is none.
func (d *document) peek() jsontext.Kind {
	if d.bad {
		return 0
	}
	kind := d.json.PeekKind()
	if kind == 0 && d.gathered() {
		kind = d.json.PeekKind()
	}
	return kind
}

// end reports whether only white space is left.
func (d *document) end() bool {
	if d.bad || d.peek() != 0 {
		return false
	}
	_, err := d.json.ReadToken()
	return err == io.EOF
}

// value reads a value or the name of a member, and returns its text, which is valid until the next read.
func (d *document) value() jsontext.Value {
	if d.bad {
		return nil
	}
	v, err := d.json.ReadValue()
	if err != nil && d.gathered() {
		v, err = d.json.ReadValue()
	}
	if err != nil || !utf8.Valid(v) || d.tooDeep(v) {
		d.fail()
		return nil
	}
	return v
}

// tooDeep reports whether a value nests deeper than maxDepth.
func (d *document) tooDeep(v jsontext.Value) bool {
	at := d.json.StackDepth()
	if at+bytes.Count(v, []byte("{"))+bytes.Count(v, []byte("[")) <= maxDepth {
		return false
	}
	inside := newDecoder(bytes.NewBuffer(v))
	for at+inside.StackDepth() <= maxDepth {
		if _, err := inside.ReadToken(); err != nil {
			return false
		}
	}
	return true
}

// null reads a null if it is next, and reports whether it was.
func (d *document) null() bool { return d.peek() == 'n' && d.value() != nil }

// object reads an object and calls member at each value, which must read the value. The key is valid until
// then.
func (d *document) object(member func(key []byte)) {
	d.list(func() {
		if name := d.value(); name != nil {
			member(unquoted(name))
		}
	})
}

// array reads an array and calls element at each value, which must read the value.
func (d *document) array(element func(i int)) {
	i := 0
	d.list(func() { element(i); i++ })
}

// list reads an object or array and calls item at each name or element.
func (d *document) list(item func()) {
	if d.bad || d.json.StackDepth() >= maxDepth {
		d.fail()
		return
	}
	_, _ = d.json.ReadToken() // the bracket that peek returned
	for !d.bad {
		switch d.peek() {
		case '}', ']':
			if _, err := d.json.ReadToken(); err != nil {
				d.fail()
			}
			return
		case 0:
			d.fail()
		default:
			item()
		}
	}
}

// text reads a string and returns its content, which is valid until the next read.
func (d *document) text() []byte {
	if v := d.value(); v != nil {
		return unquoted(v)
	}
	return nil
}

// unquoted returns the content of a string, without a copy if there are no escapes.
func unquoted(v jsontext.Value) []byte {
	if bytes.IndexByte(v, '\\') < 0 {
		return v[1 : len(v)-1]
	}
	text, _ := jsontext.AppendUnquote(make([]byte, 0, len(v)), v) // its error is half of a surrogate pair
	return text
}
