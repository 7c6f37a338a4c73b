package main

import (
	"cmp"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
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
			without: map[string]string{"enabled": "postroom webhook update --off"}},
		{command: "token add", object: reflect.TypeFor[api.TokenRequest](),
			named: map[string]string{"restrictions": "requests"}},
		{command: "campaign update", object: reflect.TypeFor[api.CampaignPatch](),
			named: map[string]string{"render": "params"}, without: sendsVersion},
		{command: "list update", object: reflect.TypeFor[api.ListPatch](),
			named: map[string]string{"pendingRetention": "pending"}, without: sendsVersion},
		{command: "segment update", object: reflect.TypeFor[api.SegmentPatch](), without: sendsVersion},
		{command: "subscribers update", object: reflect.TypeFor[api.SubscriberPatch](), without: sendsVersion},
		{command: "account update", object: reflect.TypeFor[api.AccountPatch](),
			named: map[string]string{"name": "from", "email": "from", "limits": "per-second",
				"smtpEhloName": "ehlo-name", "idempotencyRequired": "needs-key"},
			without: map[string]string{"senders": "postroom account sender add"}},
		{command: "gateway update", object: reflect.TypeFor[api.GatewayPatch](),
			named: map[string]string{"host": "smtp", "port": "smtp", "secure": "smtp", "tls": "ca",
				"limits": "per-second", "smtpEhloName": "ehlo-name", "api": "key-file"},
			without: map[string]string{"type": "it can't be changed"}},
		{command: "webhook update", object: reflect.TypeFor[api.EndpointPatch](),
			named: map[string]string{"rateLimit": "rate", "enabled": "off"}},
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

// sendsVersion are the fields of patches that no flag has.
var sendsVersion = map[string]string{
	"version": "a command reads the object first, where its change depends on it",
}

// TestEveryFieldHasAPlaceInItsForm: no field of an object that operators edit is forgotten on the pages. The
// name of a part may be made of two: "limits." and "perDay".
func TestEveryFieldHasAPlaceInItsForm(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		object  reflect.Type
		files   string            // of ui, that make the form
		named   map[string]string // fields that have other names there
		without map[string]string // fields that have none, and why
	}{
		{object: reflect.TypeFor[api.Account](), files: "account_form.go relay_form.go form.go",
			without: map[string]string{"senders": "the page of the account lists them, and adds them",
				"smtp.auth.accessToken": "of programs that renew it; others use oauth2"}},
		{object: reflect.TypeFor[api.Gateway](), files: "gateway_form.go gateway_api.go relay_form.go form.go",
			without: map[string]string{"warmup.started": "it is when the warm-up was set"}},
		{object: reflect.TypeFor[api.List](), files: "lists.go form.go templates/list.html templates/lists.html",
			named: map[string]string{"listId": "list"}},
		{object: reflect.TypeFor[api.Segment](), files: "segments.go"},
		{object: reflect.TypeFor[api.SubscriberRequest](),
			files: "subscribers.go subscriber_attributes.go templates/subscriber.html templates/subscribers.html",
			named: map[string]string{"lists": "list", "consent.source": "source", "consent.text": "words",
				"attributes": "attribute.%d.%s"},
			without: map[string]string{"upsert": "the page says that there is one", "consent.time": "it is now",
				"consent.ip": "it is that of the operator"}},
		{object: reflect.TypeFor[api.Campaign](),
			files: "campaign_form.go campaign_choices.go campaign_variants.go templates/campaignform.html",
			named: map[string]string{"variants": "variant"}},
		{object: reflect.TypeFor[api.EndpointRequest](), files: "endpoint_form.go",
			without: map[string]string{"enabled": "buttons of its page switch it on and off"}},
		{object: reflect.TypeFor[api.TemplateRequest](), files: "template_form.go template_variants.go",
			without: map[string]string{"locales": "each has a form of its own"}},
		{object: reflect.TypeFor[api.DigestKind](),
			files: "digest_kinds.go digest_cadence.go templates/digestkind.html", named: map[string]string{
				"title": "title.%d.%s", "preference.hour": "at", "preference.weekdays": "weekdays"}},
		{object: reflect.TypeFor[api.TokenRequest](), files: "tokens.go"},
		{object: reflect.TypeFor[api.PersonRequest](), files: "people.go", named: map[string]string{
			"identity.issuer": "external", "identity.subject": "external"}},
		{object: reflect.TypeFor[api.PersonPatch](), files: "people.go"},
		{object: reflect.TypeFor[api.NewSuppression](), files: "suppressions.go", named: map[string]string{
			"email": "whom", "domain": "whom", "response": "note"}, without: map[string]string{
			"source": "it is always page", "queueId": "evidence of programs: a message that brought it about"}},
	} {
		var form strings.Builder
		for _, file := range strings.Fields(of.files) {
			text, err := os.ReadFile("../../ui/" + file)
			if err != nil {
				t.Fatal(err)
			}
			form.Write(text)
		}
		has := func(name string) bool { return strings.Contains(form.String(), `"`+name+`"`) }
		for _, path := range partsOf(of.object, "") {
			name := cmp.Or(of.named[path], path)
			made := has(name)
			for i, c := range name {
				made = made || c == '.' && (has(name[:i]) || has(name[:i+1])) &&
					(has(name[i+1:]) || strings.Contains(form.String(), name[i:]+`"`))
			}
			if of.without[path] == "" && !made {
				t.Errorf("the form of %s has no %s", of.object, path)
			}
		}
	}
}

// partsOf returns the names of the JSON fields of an object, and of those of its parts below them.
func partsOf(t reflect.Type, above string) (all []string) {
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		part := plainType(f.Type)
		switch {
		case name == "" || name == "-" || f.Anonymous:
		case part.Kind() == reflect.Struct && part != reflect.TypeFor[time.Time]():
			all = append(all, partsOf(part, above+name+".")...)
		default:
			all = append(all, above+name)
		}
	}
	return all
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
