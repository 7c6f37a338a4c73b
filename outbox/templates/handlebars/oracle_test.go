package handlebars

import (
	"encoding/json"
	"os"
	"testing"
)

// oracleCase is what npm handlebars or npm mustache made of a template; testdata/generate.js asked them.
type oracleCase struct {
	Name, Template string
	Data           any
	Partials       map[string]string
	Variables      map[string]any
	Mustache       bool
	Output, Error  string
}

// different are the cases in which we do something else on purpose; docs/templates.md says why.
var different = map[string]string{
	"a number at the end of a path":       "a",
	"inline partial and block parameters": "A-1B&#x27;2",
}

// TestAsHandlebarsDoes compares with the results of npm handlebars and npm mustache. ORACLE names another
// file of results.
func TestAsHandlebarsDoes(t *testing.T) {
	file := "testdata/oracle.json"
	if other := os.Getenv("ORACLE"); other != "" {
		file = other
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var cases []oracleCase
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 450 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, c := range cases {
		if other, ok := different[c.Name]; ok {
			c.Output, c.Error = other, ""
		}
		got, err := execute(t, c)
		switch {
		case c.Error != "" && err == nil:
			t.Errorf("%s: %q gives %q, handlebars an error: %s", c.Name, c.Template, got, c.Error)
		case c.Error == "" && err != nil:
			t.Errorf("%s: %q: %v, handlebars gives %q\npartials %q", c.Name, c.Template, err, c.Output, c.Partials)
		case c.Error == "" && got != c.Output:
			t.Errorf("%s: %q\n     gives %q\nhandlebars %q\npartials %q", c.Name, c.Template, got, c.Output,
				c.Partials)
		}
	}
}

func execute(t testing.TB, c oracleCase) (string, error) {
	t.Helper()
	template, err := Parse(c.Template, Options{Partials: c.Partials, Mustache: c.Mustache})
	if err != nil {
		return "", err
	}
	r, err := template.Execute(t.Context(), c.Data, Input{Variables: c.Variables})
	return r.Text, err
}
