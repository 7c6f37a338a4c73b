package templates

import (
	"fmt"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

// BenchmarkTemplate finds a template with two partials and a layout, in a locale, as every message that names
// one does.
func BenchmarkTemplate(b *testing.B) {
	db := testredis.Connect(b, redisdb.Options{URL: testredis.URL(b)})
	t, err := New(db, people{}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	order := html("order", "<p>{{> greeting}}</p>{{> footer}}")
	order.Layout, order.Locales = "frame", map[string]api.TemplateContent{"de": {Subject: "x"},
		"fr": {Subject: "y"}}
	for _, req := range []api.TemplateRequest{partial("greeting", "Hello"), partial("footer", "Bye"),
		of("layout", "frame", "{{> @partial-block}}"), order} {
		if _, err := t.Create(b.Context(), "", req); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := t.Template(b.Context(), "shop", "order", "de-CH"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFooterOfThousands changes a partial that 2,000 templates use, each of which is read again.
func BenchmarkFooterOfThousands(b *testing.B) {
	db := testredis.Connect(b, redisdb.Options{URL: testredis.URL(b)})
	t, err := New(db, people{}, Options{Now: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := t.Create(b.Context(), "", partial("footer", "Bye")); err != nil {
		b.Fatal(err)
	}
	for i := range 2000 {
		text := fmt.Sprintf("<p>%04d {{params.name}}</p>%2000s{{> footer}}", i, "")
		if _, err := t.Create(b.Context(), "", html(fmt.Sprint("t", i), text)); err != nil {
			b.Fatal(err)
		}
	}
	n := 0
	for b.Loop() {
		n++
		if _, err := t.Update(b.Context(), "", "footer", api.TemplatePatch{
			Content: &api.TemplateContent{HTML: fmt.Sprint(n)}}); err != nil {
			b.Fatal(err)
		}
	}
}
