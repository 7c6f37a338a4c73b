package main

import (
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/alecthomas/kong"

	"github.com/postroom/postroom/api"
)

// TestEveryFieldHasAFlag: no field of an object that has a command to add it is forgotten there. Objects
// without such a command are made by postroom api, which has all fields.
func TestEveryFieldHasAFlag(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		command string
		object  reflect.Type
		named   map[string]string // fields whose flags or arguments have other names
		without map[string]string // fields that have none, and why
	}{
		{command: "campaign add", object: reflect.TypeFor[api.Campaign](),
			named: map[string]string{"campaign": "id", "render": "params"}},
		{command: "list add", object: reflect.TypeFor[api.List](),
			named: map[string]string{"listId": "id", "pendingRetention": "pending"}},
		{command: "segment add", object: reflect.TypeFor[api.Segment](),
			named: map[string]string{"segment": "id"}},
		{command: "subscribers add", object: reflect.TypeFor[api.SubscriberRequest](),
			named: map[string]string{"consent": "source"}},
		{command: "account add", object: reflect.TypeFor[api.Account](),
			named: map[string]string{"name": "from", "email": "from", "limits": "per-second",
				"smtpEhloName":        "ehlo-name",
				"idempotencyRequired": "needs-key"},
			without: map[string]string{"senders": "postroom account sender add"}},
		{command: "gateway add", object: reflect.TypeFor[api.Gateway](),
			named: map[string]string{"host": "smtp", "port": "smtp", "secure": "smtp", "tls": "ca",
				"limits": "per-second", "smtpEhloName": "ehlo-name"}},
		{command: "webhook add", object: reflect.TypeFor[api.EndpointRequest](),
			named:   map[string]string{"rateLimit": "rate"},
			without: map[string]string{"enabled": "postroom webhook edit --off"}},
		{command: "token create", object: reflect.TypeFor[api.TokenRequest](),
			named: map[string]string{"restrictions": "requests"}},
		{command: "suppressions add", object: reflect.TypeFor[api.NewSuppression](),
			named: map[string]string{"email": "whom", "domain": "whom", "response": "note"},
			without: map[string]string{"source": "it is always cli",
				"queueId": "evidence of programs: a message that brought it about"}},
	} {
		words := strings.Fields(of.command)
		parser, err := newParser(t.Context(), &console{out: io.Discard, err: io.Discard}, words)
		if err != nil {
			t.Fatal(err)
		}
		n := childOf(childOf(parser.Model.Node, words[0]), words[1])
		for _, field := range fieldNames(of.object) {
			switch name, renamed := of.named[field]; {
			case of.without[field] != "":
			case renamed && !takes(n, name):
				t.Errorf("postroom %s has no %s for %s", of.command, name, field)
			case !renamed && !takes(n, field):
				t.Errorf("postroom %s has no flag for %s", of.command, field)
			}
		}
	}
}

// fieldNames returns the names of the JSON fields of an object.
func fieldNames(t reflect.Type) (names []string) {
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" && !f.Anonymous && len(f.Index) <= 3 {
			names = append(names, name)
		}
	}
	return names
}

// takes reports whether a command has a flag or an argument for a field: of its name, of one of its values,
// or for its parts.
func takes(n *kong.Node, field string) bool {
	var name strings.Builder
	for _, r := range field {
		if unicode.IsUpper(r) {
			name.WriteByte('-')
		}
		name.WriteRune(unicode.ToLower(r))
	}
	is := func(flag string) bool {
		return flag == name.String() || flag == strings.TrimSuffix(name.String(), "s") ||
			strings.HasPrefix(flag, name.String()+"-")
	}
	return slices.ContainsFunc(n.Flags, func(f *kong.Flag) bool { return is(f.Name) }) ||
		slices.ContainsFunc(n.Positional, func(a *kong.Positional) bool { return is(a.Name) })
}
