package handlebars

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRefer(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       References
	}{
		{"nothing", "Hello {{name}}", References{}},
		{"each once", "{{> b}}{{#if x}}{{> a}}{{else}}{{> b}}{{/if}}", References{Partials: []string{"a", "b"}}},
		{"in an argument's block", "{{#> outer}}{{> inner}}{{/outer}}",
			References{Partials: []string{"inner", "outer"}}},
		{"its own, too", `{{#*inline "row"}}{{> cell}}{{/inline}}{{> row}}`,
			References{Partials: []string{"cell", "row"}}},
		{"computed", `{{> (lookup . "kind")}}`, References{Computed: true}},
		{"a layout", "<body>{{> @partial-block}}</body>", References{Block: true}},
		{"in a comment", "{{!-- {{> a}} --}}", References{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Refer(test.text, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if _, err := Refer("{{#if x}}", Options{}); err == nil {
		t.Error("a source that can't be read has references")
	}
}
