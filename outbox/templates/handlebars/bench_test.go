package handlebars

import (
	"os"
	"testing"
)

// BenchmarkTypicalMail renders the html of an order confirmation: 7 KB, a layout, twenty rows.
func BenchmarkTypicalMail(b *testing.B) {
	template, data := typicalMail(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := template.Execute(b.Context(), data, Input{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseTypicalMail(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		typicalMail(b)
	}
}

func typicalMail(t testing.TB) (*Template, any) {
	t.Helper()
	read := func(name string) string {
		text, err := os.ReadFile("testdata/mail/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	template, err := Parse(read("order.hbs"), Options{Partials: map[string]string{"layout": read("layout.hbs"),
		"row": read("row.hbs")}})
	if err != nil {
		t.Fatal(err)
	}
	items := make([]any, 20)
	for i := range items {
		items[i] = map[string]any{"sku": "A-" + numberText(float64(i)), "title": "A thing & its \"name\"",
			"price": 9.99, "count": float64(i%3 + 1)}
	}
	return template, map[string]any{"name": "Ann O'Neill", "number": "2024-00017", "items": items,
		"total": 399.6, "at": "2024-03-02T15:04:05Z"}
}
