package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/message"
)

// Bounds of a body. The largest known batches are SendGrid's, up to 768 KB.
const (
	MaxBody   = 2 << 20 // bytes of a body
	MaxEvents = 5000    // elements of a body, and events read from it
	maxDepth  = 24      // of JSON within an element
)

var errTwice = errors.New("has a key twice")

// object is a JSON object. Numbers are json.Number, so that ids of 17 digits keep their digits. Keys are
// matched exactly.
type object map[string]any

// parseObject reads exactly one JSON object.
func parseObject(raw []byte) (object, error) {
	v, err := parseJSON(raw)
	if err != nil {
		return nil, err
	}
	o, ok := v.(object)
	if !ok {
		return nil, errors.New("is not a JSON object")
	}
	return o, nil
}

func parseJSON(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	v, err := parseValue(dec, maxDepth)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("has something behind its end")
	}
	return v, nil
}

func parseValue(dec *json.Decoder, depth int) (any, error) {
	t, err := dec.Token()
	if err != nil {
		return nil, fmt.Errorf("is not JSON: %w", err)
	}
	d, ok := t.(json.Delim)
	if !ok {
		return t, nil
	}
	if depth == 0 {
		return nil, errors.New("is nested too deeply")
	}
	if d == '{' {
		return parseMembers(dec, depth-1)
	}
	list := []any{}
	for dec.More() {
		v, err := parseValue(dec, depth-1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, closing(dec)
}

func parseMembers(dec *json.Decoder, depth int) (object, error) {
	o := object{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("is not JSON: %w", err)
		}
		name := t.(string) // the decoder lets nothing else stand here
		if _, twice := o[name]; twice {
			return nil, errTwice
		}
		if o[name], err = parseValue(dec, depth); err != nil {
			return nil, err
		}
	}
	return o, closing(dec)
}

func closing(dec *json.Decoder) error {
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("is not JSON: %w", err)
	}
	return nil
}

// elements returns a body's elements: an array's, or a single object.
func elements(body []byte) ([]json.RawMessage, error) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || (body[0] != '[' && body[0] != '{') {
		return nil, wrongBody("The body is neither a JSON object nor a list of them")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if body[0] == '[' {
		dec.Token() // the bracket
	}
	var all []json.RawMessage
	for dec.More() {
		if len(all) == MaxEvents {
			return nil, tooLarge()
		}
		var one json.RawMessage
		if err := dec.Decode(&one); err != nil {
			return nil, wrongBody("The body is not JSON")
		}
		all = append(all, one)
	}
	if body[0] == '[' && closing(dec) != nil {
		return nil, wrongBody("The body is not JSON")
	}
	if _, err := dec.Token(); err != io.EOF || body[0] == '{' && len(all) != 1 {
		return nil, wrongBody("The body is more than one JSON value")
	}
	return all, nil
}

// text returns a string, or a number as written, or "".
func (o object) text(key string) string { return asText(o[key]) }

func asText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}

func (o object) firstText(keys ...string) string {
	for _, key := range keys {
		if s := o.text(key); s != "" {
			return s
		}
	}
	return ""
}

// object returns the object under a key, or a nil one, whose fields are empty.
func (o object) object(key string) object {
	inner, _ := o[key].(object)
	return inner
}

// list returns the elements of the array under a key.
func (o object) list(key string) []any {
	l, _ := o[key].([]any)
	return l
}

func (o object) objects(key string) []object {
	var found []object
	for _, v := range o.list(key) {
		if inner, ok := v.(object); ok {
			found = append(found, inner)
		}
	}
	return found
}

// texts returns the strings under a key: an array's, or a single one.
func (o object) texts(key string) []string {
	if l, ok := o[key].([]any); ok {
		var found []string
		for _, v := range l {
			if s := asText(v); s != "" {
				found = append(found, s)
			}
		}
		return found
	}
	if s := o.text(key); s != "" {
		return []string{s}
	}
	return nil
}

// is reports whether the value under a key is true.
func (o object) is(key string) bool { b, _ := o[key].(bool); return b }

// canonical returns the JSON of a value with sorted keys.
func canonical(v any) []byte {
	raw, err := json.Marshal(v) // sorts keys; numbers keep the digits they had
	if err != nil {
		return nil // not reachable: v came out of parseValue
	}
	return raw
}

// without returns the object without the members of some names. A name may end with a star.
func (o object) without(names []string) object {
	rest := maps.Clone(o)
	maps.DeleteFunc(rest, func(name string, _ any) bool {
		return slices.ContainsFunc(names, func(own string) bool {
			start, open := strings.CutSuffix(own, "*")
			return name == own || open && strings.HasPrefix(name, start)
		})
	})
	return rest
}

// cut writes an element as JSON of at most MaxRaw bytes: as it is, or with its texts cut, or as a string that
// is the beginning of the JSON.
func cut(o object) json.RawMessage {
	for most := MaxRaw; most > 16; most /= 4 {
		if raw := canonical(clipped(o, most)); len(raw) <= MaxRaw {
			return raw
		}
	}
	// as a string it has a backslash at each quote
	return canonical(message.Clip(string(canonical(o)), MaxRaw/3))
}

// clipped is a value with its texts cut to a number of bytes.
func clipped(v any, most int) any {
	switch v := v.(type) {
	case string:
		return message.Clip(v, most)
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = clipped(one, most)
		}
		return out
	case object:
		out := object{}
		for key, one := range v {
			out[key] = clipped(one, most)
		}
		return out
	}
	return v
}
