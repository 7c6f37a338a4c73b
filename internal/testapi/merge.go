package testapi

import (
	"bytes"
	"html"
	"maps"
	"net/mail"
	"net/textproto"
	"slices"
	"strings"
)

// person is an address with a name, as several APIs have it.
type person struct {
	Email string `json:"email"`
	Name  string `json:"name"`
}

func (p person) String() string { return (&mail.Address{Name: p.Name, Address: p.Email}).String() }

// people are addresses as values of a header field.
func people(list []person) []string {
	var out []string
	for _, p := range list {
		out = append(out, p.String())
	}
	return out
}

// pairs lists header fields in the order of their names.
func pairs(headers map[string]string) (out [][2]string) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		out = append(out, [2]string{name, headers[name]})
	}
	return out
}

// merged is what all have, and what one has of its own.
func merged[V any](all, own map[string]V) map[string]V {
	out := map[string]V{}
	maps.Copy(out, all)
	maps.Copy(out, own)
	return out
}

// objects makes a list for an answer. It is never nil: an empty list isn't null in JSON.
func objects[T any](list []T, make func(T) any) []any {
	out := []any{}
	for _, one := range list {
		out = append(out, make(one))
	}
	return out
}

// filler replaces names between two marks by their values.
func filler(left, right string, values map[string]string) *strings.Replacer {
	var all []string
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(values))) { // -h1- must not hide in -h10-
		all = append(all, left+name+right, values[name])
	}
	return strings.NewReplacer(all...)
}

// handlebars replaces {{name}} by values, escaped for HTML if escape is set, and {{{name}}}.
func handlebars(values map[string]string, escape bool) *strings.Replacer {
	var all []string
	for name, value := range values {
		all = append(all, "{{{"+name+"}}}", value)
	}
	for name, value := range values {
		if escape {
			value = html.EscapeString(value)
		}
		all = append(all, "{{"+name+"}}", value)
	}
	return strings.NewReplacer(all...)
}

// withHeader returns a message with another value of a header field, or without the field.
func withHeader(message []byte, name, value string) []byte {
	head, body, _ := bytes.Cut(message, []byte("\r\n\r\n"))
	var out []byte
	if value != "" {
		out = []byte(name + ": " + value + "\r\n")
	}
	skip := false
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		if len(line) == 0 || line[0] != ' ' && line[0] != '\t' {
			have, _, _ := bytes.Cut(line, []byte(":"))
			skip = textproto.CanonicalMIMEHeaderKey(string(have)) == textproto.CanonicalMIMEHeaderKey(name)
		}
		if !skip {
			out = append(append(out, line...), "\r\n"...)
		}
	}
	return append(append(out, "\r\n"...), body...)
}
