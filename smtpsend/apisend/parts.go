package apisend

import (
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/message"
)

// person is an address as several APIs have it.
type person struct {
	Email string `json:"email"`
	Name  string `json:"name,omitempty"`
}

func people(list []message.Address) []person {
	var all []person
	for _, a := range list {
		all = append(all, person{a.Address, a.Name})
	}
	return all
}

// missing names what an API requires and the message doesn't have, or what it has no field for, as
// adapter.lacks does. It may be a subject, a text, a Sender, or two header fields of one name. reserved are
// the names of fields that the provider writes or acts on, in lower case. It returns "" if there is nothing.
func (c content) missing(reserved ...string) string {
	switch {
	case c.subject == "":
		return "subject: no subject"
	case c.text == "" && c.html == "":
		return "text: no text"
	case c.sender.Address != "":
		return "headers: a Sender who isn't the author"
	}
	for _, f := range c.header {
		if slices.Contains(reserved, strings.ToLower(f.name)) {
			return "headers: the header field " + f.name
		}
	}
	if _, twice := byName(c.header); twice != "" {
		return "headers: two header fields " + twice
	}
	return ""
}

// headers returns the other header fields, without some whose names are given in lower case. It leaves out
// Date: the provider writes its own.
func (c content) headers(without ...string) map[string]string {
	all, _ := byName(c.others(append(without, "date")...))
	return all
}

// wide names an address that isn't ASCII (RFC 6531), or returns "".
func (m *mail) wide() string {
	all := slices.Clone(m.To)
	for _, list := range [][]message.Address{{m.parts.from}, m.parts.replyTo, m.parts.to, m.parts.cc} {
		for _, a := range list {
			all = append(all, a.Address)
		}
	}
	if i := slices.IndexFunc(all, func(a string) bool { return !isASCII(a) }); i >= 0 {
		return "to: an address that isn't ASCII"
	}
	return ""
}

// tags returns the first tags, each once, without tags that are longer than the provider takes.
func (m *mail) tags(most, longest int) []string {
	var all []string
	for _, tag := range m.Labels.Tags {
		if len(all) < most && len(tag) <= longest && !slices.Contains(all, tag) {
			all = append(all, tag)
		}
	}
	return all
}
