package apisend

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/provider"
)

// written writes an address as a header field does, but without encoded words.
func written(a message.Address) string {
	switch {
	case a.Name == "":
		return a.Address
	case strings.ContainsAny(a.Name, `()<>[]:;@\,."`) || strings.TrimSpace(a.Name) != a.Name:
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(a.Name) + `" <` + a.Address + ">"
	}
	return a.Name + " <" + a.Address + ">"
}

// each returns a function's results for a list's elements.
func each[T, U any](list []T, f func(T) U) []U {
	var all []U
	for _, one := range list {
		all = append(all, f(one))
	}
	return all
}

// array is a list in JSON.
func array(items [][]byte) []byte {
	return slices.Concat([]byte("["), bytes.Join(items, []byte(",")), []byte("]"))
}

// others returns the header fields without some, whose names are in lower case.
func (c content) others(without ...string) []field {
	var all []field
next:
	for _, f := range c.header {
		for _, name := range without {
			if strings.EqualFold(f.name, name) {
				continue next
			}
		}
		all = append(all, f)
	}
	return all
}

// byName returns fields as an object; twice is the name of one that an object can't have, because there are
// two.
func byName(fields []field) (_ map[string]string, twice string) {
	object, seen := map[string]string{}, map[string]bool{}
	for _, f := range fields {
		if seen[strings.ToLower(f.name)] {
			twice = f.name
		}
		seen[strings.ToLower(f.name)] = true
		object[f.name] = f.value
	}
	return object, twice
}

// lacksPart names a part that an API can't carry if it has no place for a sender and for further
// alternatives, and requires a text, and a name and a content of each file. It returns "" if there is none.
func (c content) lacksPart() string {
	switch {
	case c.beyond(false) != "":
		return c.beyond(false)
	case c.sender.Address != "":
		return "a sender besides the author"
	case c.text == "" && c.html == "":
		return "no text"
	}
	for _, f := range slices.Concat(c.inline, c.files) {
		switch {
		case f.name == "":
			return "a file without a name"
		case len(f.content) == 0:
			return "an empty file"
		}
	}
	return ""
}

// misnamed is the opposite of typeMatchesName.
func (f file) misnamed() bool { return !f.typeMatchesName() }

// attached returns a file without the id that would make it an image of the HTML for a provider.
func (f file) attached() file {
	f.cid = ""
	return f
}

// firstTag returns the first tag of at most most bytes, or "".
func (m *mail) firstTag(most int) string { return strings.Join(m.tags(1, most), "") }

// proofUpTo returns the proof if it has at most most bytes.
func (m *mail) proofUpTo(most int) string {
	if proof := m.proof(); len(proof) <= most {
		return proof
	}
	return ""
}

// echo is the proof as metadata; nil if there is none.
func echo(proof string) map[string]string {
	if proof == "" {
		return nil
	}
	return map[string]string{provider.EchoField: proof}
}

// blames gives a refusal to the recipients that a text names. The others were not taken because of them.
// Without a name the refusal is for all.
func (x *exchange) blames(r refusal) answer {
	named := map[string]recipient{}
	words := map[string]bool{}
	for _, word := range strings.FieldsFunc(fold(r.text), func(c rune) bool {
		return strings.ContainsRune(" ,;:'\"`<>()[]", c)
	}) {
		words[strings.TrimRight(word, ".")] = true
	}
	for _, to := range x.to {
		if words[fold(to)] {
			named[fold(to)] = recipient{refusal: &r}
		}
	}
	if len(named) == 0 {
		return answer{refusal: &r}
	}
	return answer{each: named, again: true}
}

// general is the meaning of a readable answer whose code says nothing. A code that is not known passes.
func (x *exchange) general(reason, text string) answer {
	m, known := byStatus(x.status, true)
	switch {
	case x.status == http.StatusBadRequest || x.status == http.StatusUnprocessableEntity:
		m = laterMessage
	case !known:
		return answer{unreadable: true}
	}
	return refuse(m, reason, text)
}
