package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/postroom/postroom/api/fault"
)

// params returns the params; all digits of their numbers are kept.
func (p Personalization) params() (any, error) {
	switch {
	case p.Decoded != nil:
		return p.Decoded, nil
	case len(p.Params) == 0:
		return nil, nil
	}
	params, err := decode(p.Params)
	if err != nil {
		return nil, fault.InvalidFields([]fault.Field{
			{Key: "params", Message: fmt.Sprintf("must be an object: %s", err)}})
	}
	return params, nil
}

// decoders are idle decoders. They accept what encoding/json accepts.
var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// decode reads an object as encoding/json with UseNumber does, in two thirds of the time: each message of a
// batch has params, and they are read when it is accepted and whenever it is sent.
func decode(raw []byte) (map[string]any, error) {
	d, _ := decoders.Get().(*jsontext.Decoder)
	defer decoders.Put(d)
	d.Reset(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	value, err := valueOf(d)
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok && value != nil {
		return nil, errors.New("it is another value")
	}
	return object, nil
}

// valueOf reads a value. Its depth is bounded by the decoder.
func valueOf(d *jsontext.Decoder) (any, error) {
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case '"':
		return token.String(), nil
	case '0':
		return json.Number(token.String()), nil
	case 't', 'f':
		return token.Bool(), nil
	case '{':
		object := map[string]any{}
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			key := name.String()
			if object[key], err = valueOf(d); err != nil {
				return nil, err
			}
		}
		_, err = d.ReadToken()
		return object, err
	case '[':
		array := []any{}
		for d.PeekKind() != ']' {
			one, err := valueOf(d)
			if err != nil {
				return nil, err
			}
			array = append(array, one)
		}
		_, err = d.ReadToken()
		return array, err
	}
	return nil, nil
}
