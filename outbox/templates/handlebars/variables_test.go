package handlebars

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVariables(t *testing.T) {
	template, err := Parse(`{{name}} {{#if order.vip}}{{order.total}}{{/if}}{{#each items as |item i|}}{{sku}}{{item.price}}{{i}}{{../name}}{{@index}}
{{#each tags}}{{this}}{{/each}}{{@root.site.url}}{{/each}}{{#with address}}{{city}}{{/with}}{{> p to=name}}{{> p items.[0]}}{{#people}}{{age}}{{/people}}
{{upper (default nick "x")}}`, Options{Partials: map[string]string{"p": "{{to}}{{subject}}"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range template.Variables() {
		got = append(got, v.Name)
	}
	want := []string{"name", "order.vip", "order.total", "items", "items[].sku", "items[].price", "items[].tags",
		"site.url", "address", "address.city",
		"subject", "items.0", "items.0.to", "items.0.subject", "people", "people.age", "nick"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
