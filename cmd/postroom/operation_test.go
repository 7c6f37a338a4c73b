package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/postroom/postroom/api"
)

// TestEveryRouteIsAnOperation: each operation of the OpenAPI document is a command of postroom api, with an
// argument for each parameter of its path and a flag for each of its query and each field of its body.
func TestEveryRouteIsAnOperation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../server/testdata/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for path, item := range doc.Paths.Map() {
		for method, described := range item.Operations() {
			seen++
			o := described.OperationID
			if at := slices.IndexFunc(api.Operations(), func(is api.Operation) bool {
				return is.ID == o && is.Method == method && is.Path == path
			}); at < 0 {
				t.Errorf("api.Operations has no %s %s %s", o, method, path)
				continue
			}
			flags, arguments := wordsOf(t, o)
			for _, p := range described.Parameters {
				switch {
				case p.Value.In == "path" && !slices.Contains(arguments, p.Value.Name):
					t.Errorf("postroom api %s has no argument %s", o, p.Value.Name)
				case p.Value.In == "query" && !hasField(flags, p.Value.Name) && !unflagged[o+" "+p.Value.Name]:
					t.Errorf("postroom api %s has no flag --%s", o, p.Value.Name)
				}
			}
			if described.RequestBody == nil {
				continue
			}
			body := described.RequestBody.Value.Content.Get("application/json")
			if body == nil || described.RequestBody.Value.Content.Get("text/csv") != nil {
				if !slices.Contains(flags, "file") {
					t.Errorf("postroom api %s has no flag --file", o)
				}
				continue
			}
			for name := range body.Schema.Value.Properties {
				if !hasField(flags, name) {
					t.Errorf("postroom api %s has no flag --%s", o, name)
				}
			}
		}
	}
	if seen < 190 {
		t.Errorf("%d operations were looked up", seen)
	}
}

// unflagged are the parameters of queries that have no flag, with the reason.
var unflagged = map[string]bool{}

// hasField reports whether a field has a flag. One whose name each command has is told from that.
func hasField(flags []string, name string) bool {
	return slices.Contains(flags, "body."+name) || slices.Contains(flags, "query."+name) ||
		slices.Contains(flags, name) && !slices.Contains(ownFlags, name)
}

// wordsOf returns the flags and arguments of an operation.
func wordsOf(t *testing.T, operation string) (flags, arguments []string) {
	t.Helper()
	parser, err := newParser(t.Context(), &console{out: io.Discard, err: io.Discard}, []string{"api", operation})
	if err != nil {
		t.Fatalf("%s: %v", operation, err)
	}
	n := childOf(childOf(parser.Model.Node, "api"), operation)
	for _, f := range n.Flags {
		if flags = append(flags, f.Name); strings.Contains(f.Help, "${") {
			t.Errorf("%s --%s: %s", operation, f.Name, f.Help)
		}
	}
	for _, a := range n.Positional {
		arguments = append(arguments, a.Name)
	}
	return flags, arguments
}

// TestEveryFlagOfAQueryHasAText: postroom api OPERATION --help says what each flag selects.
func TestEveryFlagOfAQueryHasAText(t *testing.T) {
	t.Parallel()
	for _, o := range api.Operations() {
		if o.In == nil || !o.AsQuery {
			continue
		}
		for _, f := range reflect.VisibleFields(reflect.TypeOf(newOperation(o).Given).Elem()) {
			if f.Tag.Get("help") == "" {
				t.Errorf("postroom api %s --%s has no text", o.ID, f.Tag.Get("name"))
			}
		}
	}
}

// TestOperationsAskBeforeWhatCantBeUndone: at a terminal; elsewhere they are refused without --yes.
func TestOperationsAskBeforeWhatCantBeUndone(t *testing.T) {
	t.Parallel()
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.Path
		_, _ = io.WriteString(w, `{"deleted":true}`)
	}))
	defer server.Close()
	for _, tc := range []struct {
		args     string
		terminal bool
		answer   string
		code     int
		want     string // the request; empty: none
	}{
		{args: "deletePerson ann", terminal: true, answer: "n\n", code: 1},
		{args: "deletePerson ann", terminal: true, answer: "y\n", want: "DELETE /v1/people/ann"},
		{args: "deletePerson ann", code: 1},
		{args: "deletePerson ann --yes", want: "DELETE /v1/people/ann"},
		{args: "deleteDomainKey example.com", code: 1},
		{args: "cancelMessages --account shop", code: 1},
		{args: "erasePerson --email ann@example.com", code: 1},
		{args: "erasePerson --email ann@example.com -y", want: "POST /v1/people/erase"},
		{args: "deleteToken 17", want: "DELETE /v1/tokens/17"},
	} {
		asked = ""
		var errs bytes.Buffer
		con := &console{in: strings.NewReader(tc.answer), out: io.Discard, err: &errs, inTTY: tc.terminal,
			errTTY: tc.terminal}
		code := run(t.Context(), append(append([]string{"api"}, strings.Fields(tc.args)...), "--url", server.URL,
			"--token", "x"), con)
		if code != tc.code || asked != tc.want || code > 0 && !strings.Contains(errs.String(), "Add --yes to ") {
			t.Errorf("%s (%q): code %d, %q was asked: %s", tc.args, tc.answer, code, asked, errs.String())
		}
	}
}

// TestABodyFromStandardInput: @- is the same as -.
func TestABodyFromStandardInput(t *testing.T) {
	t.Parallel()
	got := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = string(body)
		_, _ = io.WriteString(w, "{}")
	}))
	defer server.Close()
	for _, from := range []string{"-", "@-"} {
		var errs bytes.Buffer
		con := &console{in: strings.NewReader(`{"name":"News"}`), out: io.Discard, err: &errs}
		code := run(t.Context(), []string{"api", "createList", "--body", from, "--url", server.URL, "--token", "x"},
			con)
		if code != 0 || got != `{"name":"News"}` {
			t.Errorf("--body %s: code %d, sent %q: %s", from, code, got, errs.String())
		}
		got = ""
	}
}
