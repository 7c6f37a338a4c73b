package server

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/schedule"
	"github.com/postroom/postroom/server/settings"
)

// shape reads the next value of a document into a Go value of one type, and notes its faults. Shapes are
// built once, from the types of package api and their tags, as the OpenAPI document is.
type shape func(d *document, into reflect.Value)

// Types with their own shapes.
var (
	timeType      = reflect.TypeFor[time.Time]()
	bytesType     = reflect.TypeFor[[]byte]()
	rawType       = reflect.TypeFor[json.RawMessage]()
	addressesType = reflect.TypeFor[api.Addresses]()
	emailsType    = reflect.TypeFor[api.Emails]()
	valuesType    = reflect.TypeFor[api.OneOrMany[api.HeaderValue]]()
	entriesType   = reflect.TypeFor[[]api.MailMergeEntry]()
	renderType    = reflect.TypeFor[api.Render]()
	eventType     = reflect.TypeFor[eventRow]()
)

// shapeOf returns the shape of a type in a field with bounds. A type without a shape is a programmer's error:
// it panics when the routes are made.
func shapeOf(t reflect.Type, b bounds) shape {
	switch t {
	case timeType:
		return readTime
	case rawType:
		return readRaw
	case bytesType:
		return readBase64
	case addressesType:
		return oneOrMany(listShape(t, shapeOf(t.Elem(), bounds{}), b), shapeOf(t.Elem(), bounds{}), '{')
	case emailsType:
		return oneOrMany(listShape(t, readEmail, b), readEmail, '"')
	case valuesType:
		return oneOrMany(listShape(t, readHeaderValue, b), readHeaderValue, anyValue)
	case renderType:
		return renderShape()
	case eventType:
		return eventShape()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return pointerShape(t, b)
	case reflect.Struct:
		return structShape(t)
	case reflect.Slice:
		return listShape(t, shapeOf(t.Elem(), b.ofElements()), b)
	case reflect.Map:
		return mapShape(t)
	case reflect.String:
		return stringShape(b)
	case reflect.Int:
		return intShape(b)
	case reflect.Float64:
		return floatShape(b)
	case reflect.Bool:
		return readBool
	case reflect.Interface:
		return readAny
	}
	panic("server: no way to read a " + t.String() + " from a request")
}

// member is one field of a struct shape.
type member struct {
	name     string
	index    []int
	read     shape
	required bool
}

// takenByNull reports whether a null in a field removes the value: the field points to a pointer, as in
// patches. For any other field null is the same as absent.
func takenByNull(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Pointer
}

// structShape reads an object. Unknown, repeated and missing keys are faults. For null see takenByNull.
func structShape(t reflect.Type) shape {
	members := membersOf(t)
	byName := make(map[string]int, len(members))
	for i, m := range members {
		byName[m.name] = i
	}
	return func(d *document, into reflect.Value) {
		if !d.expect('{', "must be of type object") {
			return
		}
		var seen uint64 // a bit for each member
		d.object(func(key []byte) {
			i, ok := byName[string(key)]
			if !ok {
				d.in(step{key: string(key)}, func() { unknown(d, into, string(key)) })
				return
			}
			d.path = append(d.path, step{key: members[i].name})
			defer func() { d.path = d.path[:len(d.path)-1] }()
			if seen&(1<<i) != 0 {
				d.fault("is given twice")
			}
			seen |= 1 << i
			if d.null() {
				seen &^= 1 << i
				if field := into.FieldByIndex(members[i].index); takenByNull(field.Type()) {
					field.Set(reflect.New(field.Type().Elem()))
				}
				return
			}
			members[i].read(d, into.FieldByIndex(members[i].index))
		})
		for i, m := range members {
			if m.required && seen&(1<<i) == 0 && !d.bad {
				d.in(step{key: m.name}, func() { d.fault("is required") })
			}
		}
	}
}

// membersOf returns the fields that requests may set, including embedded ones.
func membersOf(t reflect.Type) []member {
	var members []member
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Anonymous || name == "-" || name == "" {
			continue
		}
		members = append(members, member{
			name:     name,
			index:    f.Index,
			read:     shapeOf(f.Type, boundsOf(f)),
			required: !strings.Contains(options, "omitempty") && f.Tag.Get("required") != "false",
		})
	}
	if len(members) > 64 {
		panic("server: " + t.String() + " has more fields than structShape has bits")
	}
	return members
}

func unknown(d *document, into reflect.Value, key string) {
	if s, ok := into.Addr().Interface().(*settingsRequest); ok && settings.Ignored(key) {
		s.ignored = append(s.ignored, key)
	} else {
		d.fault("is not allowed")
	}
	d.value()
}

func pointerShape(t reflect.Type, b bounds) shape {
	read := shapeOf(t.Elem(), b)
	return func(d *document, into reflect.Value) {
		into.Set(reflect.New(t.Elem()))
		read(d, into.Elem())
	}
}

// listShape reads an array. Too many entries of a mail merge end the reading: they make a request large.
func listShape(t reflect.Type, read shape, b bounds) shape {
	return func(d *document, into reflect.Value) {
		if !d.expect('[', "must be an array") {
			return
		}
		list := reflect.MakeSlice(t, 0, 0)
		d.array(func(i int) {
			element := reflect.New(t.Elem()).Elem()
			d.path = append(d.path, step{index: i})
			read(d, element)
			d.path = d.path[:len(d.path)-1]
			if b.maxItems == nil || i < *b.maxItems {
				list = reflect.Append(list, element)
			}
			if b.maxItems != nil && i == *b.maxItems {
				d.fault("must contain less than or equal to " + strconv.Itoa(*b.maxItems) + " items")
				if t == entriesType {
					d.enough()
				}
			}
		})
		if b.minItems != nil && list.Len() < *b.minItems {
			d.fault("must contain at least " + strconv.Itoa(*b.minItems) + " items")
		}
		into.Set(list)
	}
}

// anyValue says that a single value may begin with anything but a bracket. A null is not a value.
const anyValue jsontext.Kind = 0

// oneOrMany reads a list, or a single value, which begins with first, as a list of one.
func oneOrMany(many, one shape, first jsontext.Kind) shape {
	return func(d *document, into reflect.Value) {
		if first == anyValue && d.null() {
			return
		}
		if kind := d.peek(); kind == '[' || first != anyValue && kind != first {
			many(d, into)
			return
		}
		list := reflect.MakeSlice(into.Type(), 1, 1)
		one(d, list.Index(0))
		into.Set(list)
	}
}

// renderShape reads an object, or false.
func renderShape() shape {
	read := structShape(renderType)
	return func(d *document, into reflect.Value) {
		if d.peek() == 'f' {
			d.value()
			into.Set(reflect.ValueOf(api.Render{Off: true}))
			return
		}
		read(d, into)
	}
}

// mostRowFaults bounds the errors of one of many events.
const mostRowFaults = 20

// eventShape reads one of several events. It notes the event's errors, which don't refuse the others.
func eventShape() shape {
	read := structShape(reflect.TypeFor[api.DigestEvent]())
	return func(d *document, into reflect.Value) {
		faults, path := d.faults, d.path
		d.faults, d.path = nil, nil
		row := into.Addr().Interface().(*eventRow)
		read(d, reflect.ValueOf(&row.DigestEvent).Elem())
		row.faults = d.faults[:min(len(d.faults), mostRowFaults)]
		d.faults, d.path = faults, path
	}
}

// mapShape reads an object with any keys. In a map of pointers a null is nil.
func mapShape(t reflect.Type) shape {
	read := shapeOf(t.Elem(), bounds{})
	return func(d *document, into reflect.Value) {
		if !d.expect('{', "must be of type object") {
			return
		}
		m := reflect.MakeMap(t)
		d.object(func(key []byte) {
			value := reflect.New(t.Elem()).Elem()
			name := reflect.ValueOf(string(key)).Convert(t.Key())
			d.in(step{key: string(key)}, func() {
				if m.MapIndex(name).IsValid() {
					d.fault("is given twice")
				}
				if t.Elem().Kind() != reflect.Pointer || !d.null() {
					read(d, value)
				}
			})
			m.SetMapIndex(name, value)
		})
		into.Set(m)
	}
}

func stringShape(b bounds) shape {
	return func(d *document, into reflect.Value) {
		if !d.expect('"', "must be a string") {
			return
		}
		s := string(d.text())
		for _, what := range b.ofString(s) {
			d.fault(what)
		}
		into.SetString(s)
	}
}

// readHeaderValue reads the text of a header. Numbers and booleans are text as they are written.
func readHeaderValue(d *document, into reflect.Value) {
	switch d.peek() {
	case '0', 't', 'f':
		into.SetString(string(d.value()))
	default:
		stringShape(bounds{})(d, into)
	}
}

// readEmail reads an address that email can be sent to, and keeps its spelling.
func readEmail(d *document, into reflect.Value) {
	if !d.expect('"', "must be a string") {
		return
	}
	s := string(d.text())
	if _, err := message.NormalizeAddress(s); err != nil && !d.bad {
		d.fault(err.Error())
	}
	into.SetString(s)
}

func intShape(b bounds) shape {
	return func(d *document, into reflect.Value) {
		if !d.expect('0', "must be a number") {
			return
		}
		n, err := strconv.Atoi(string(d.value()))
		if err != nil {
			d.fault("must be an integer")
			return
		}
		for _, what := range b.ofNumber(float64(n)) {
			d.fault(what)
		}
		into.SetInt(int64(n))
	}
}

func floatShape(b bounds) shape {
	return func(d *document, into reflect.Value) {
		if !d.expect('0', "must be a number") {
			return
		}
		x, err := strconv.ParseFloat(string(d.value()), 64)
		if err != nil {
			d.fault("must be a number that fits into 64 bits")
			return
		}
		for _, what := range b.ofNumber(x) {
			d.fault(what)
		}
		into.SetFloat(x)
	}
}

func readBool(d *document, into reflect.Value) {
	switch d.peek() {
	case 't', 'f':
		into.SetBool(d.peek() == 't')
	default:
		d.fault("must be a boolean")
	}
	d.value()
}

func readTime(d *document, into reflect.Value) {
	if !d.expect('"', "must be in ISO 8601 date format") {
		return
	}
	t, err := schedule.Instant(string(d.text()), schedule.Floating)
	if err != nil {
		d.fault("must be in ISO 8601 date format")
		return
	}
	into.Set(reflect.ValueOf(t))
}

// readRaw keeps the JSON of an object.
func readRaw(d *document, into reflect.Value) {
	if !d.expect('{', "must be of type object") {
		return
	}
	into.SetBytes(bytes.Clone(d.value()))
}

// readAny keeps a value of any kind.
func readAny(d *document, into reflect.Value) {
	var v any
	if text := d.value(); text != nil && json.Unmarshal(text, &v) != nil {
		d.fault("must have numbers that fit into 64 bits")
	}
	if v != nil {
		into.Set(reflect.ValueOf(v))
	}
}

// readBase64 decodes from the buffer of the request, so that a large attachment is in memory only twice: as
// text and as bytes.
func readBase64(d *document, into reflect.Value) {
	if !d.expect('"', "must be a string") {
		return
	}
	text := d.text()
	out := make([]byte, base64.RawStdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(out, text)
	if err != nil {
		n, err = base64.RawStdEncoding.Decode(out, text)
	}
	if err != nil {
		d.fault("must be a valid base64 string")
		return
	}
	into.SetBytes(out[:n])
}

// expect reports whether the next value begins with first. If not, it notes the error and skips the value.
func (d *document) expect(first jsontext.Kind, what string) bool {
	if d.peek() == first {
		return true
	}
	d.fault(what)
	d.value()
	return false
}
