package render

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/testkit"
)

var ann = map[string]any{
	"name": "Ann <b>O'Neill</b>\r\nBcc: x@x.test", "url": "java\nscript:alert(1)",
	"items": []any{map[string]any{"sku": "A*1"}, map[string]any{"sku": "[B](c)"}},
}

func render(t *testing.T, s Source, o Options, in Input) Mail {
	t.Helper()
	template, err := Parse(s, o)
	if err != nil {
		t.Fatal(err)
	}
	if in.Data == nil {
		in.Data = ann
	}
	m, err := template.Render(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRender(t *testing.T) {
	got := render(t, Source{
		Subject: "Hi {{name}}\n", PreviewText: "{{name}}",
		HTML: `<style>a{color:red}</style><p>{{name}}</p><a href="{{url}}">go</a>`,
	}, Options{InlineCSS: true}, Input{})
	want := Mail{
		Subject:     "Hi Ann <b>O'Neill</b> Bcc: x@x.test",
		PreviewText: "Ann <b>O'Neill</b> Bcc: x@x.test",
		HTML:        "<p>Ann &lt;b&gt;O&#x27;Neill&lt;/b&gt;\r\nBcc: x@x.test</p><a href=\"#\" style=\"color: red\">go</a>",
		Text:        "Ann <b>O'Neill</b> Bcc: x@x.test\n\ngo\n",
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(got)); diff != "" {
		t.Error(diff)
	}
	if got := render(t, Source{HTML: "<p>{{name}}</p>", Text: "{{name}} & co"}, Options{},
		Input{}); got.Text != ann["name"].(string)+" & co" {
		t.Errorf("the text is %q", got.Text)
	}
}

func TestMarkdown(t *testing.T) {
	source := Source{Format: FormatMarkdown,
		HTML: "# Hi {{name}}\n\n{{#each items}}\n- *{{sku}}*\n{{/each}}\n\n<i>{{name}}</i> {{link 'https://x.test/?a=1&b=2' 'here'}}\n"}
	got := render(t, source, Options{Layout: "<html>{{> @partial-block}}{{name}}</html>", EscapedOnly: true},
		Input{Data: map[string]any{"name": "*A* <x>", "items": ann["items"]}})
	want := "<html><h1>Hi *A* &lt;x&gt;</h1>\n<ul>\n<li><em>A*1</em></li>\n<li><em>[B](c)</em></li>\n</ul>\n" +
		"<p><i>*A* &lt;x&gt;</i> <a href=\"https://x.test/?a=1&amp;b=2\">here</a></p>\n*A* &lt;x&gt;</html>"
	if got.HTML != want {
		t.Errorf("%s\nwant\n%s", got.HTML, want)
	}
	if !strings.Contains(got.Text, "- A*1\n- [B](c)") {
		t.Errorf("the text is %q", got.Text)
	}
}

func TestLayout(t *testing.T) {
	o := Options{Partials: map[string]string{"row": "<li>{{sku}}</li>"},
		Layout: "<html><title>{{> title}}</title>{{> @partial-block}}</html>"}
	got := render(t, Source{HTML: `{{#*inline "title"}}T{{/inline}}<ul>{{#each items}}{{> row}}{{/each}}</ul>`},
		o, Input{})
	if want := "<html><title>T</title><ul><li>A*1</li><li>[B](c)</li></ul></html>"; got.HTML != want {
		t.Errorf("%s\nwant\n%s", got.HTML, want)
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	_, err := Parse(Source{Format: "rtf", Subject: "{{#if a}}", HTML: "a\n{{> nobody}}", Text: "{{shout 1}}",
		PreviewText: "fine"}, Options{})
	e, ok := errors.AsType[*fault.Error](err)
	if !ok || e.Kind != fault.Unprocessable || e.Code != "TemplateFault" {
		t.Fatalf("%#v", err)
	}
	want := []fault.Field{
		{Key: "format", Message: `must be "html" or "markdown"`},
		{Key: "subject", Message: `line 1, column 1: the block "if" isn't closed`},
		{Key: "text", Message: `line 1, column 3: there is no helper "shout"`},
		{Key: "html", Message: `line 2, column 1: there is no partial "nobody"`},
	}
	if diff := cmp.Diff(want, e.Fields); diff != "" {
		t.Error(diff)
	}
}

func TestStrict(t *testing.T) {
	template, err := Parse(Source{Subject: "{{a}}", HTML: "{{a}}{{b.c}}{{name}}"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := template.Render(t.Context(), Input{Data: ann, Strict: true})
	e, ok := errors.AsType[*fault.Error](err)
	if !ok || e.Code != "TemplateVariablesMissing" {
		t.Fatalf("%#v", err)
	}
	want := []fault.Field{{Key: "subject", Message: "a is missing (line 1, column 3)"},
		{Key: "html", Message: "b.c is missing (line 1, column 8)"}}
	if diff := cmp.Diff(want, e.Fields); diff != "" || len(m.Missing) != 2 {
		t.Error(diff, m)
	}
	if m, err := template.Render(t.Context(), Input{Data: ann}); err != nil || len(m.Missing) != 2 {
		t.Errorf("%v, %v", m, err)
	}
}

func TestDisarm(t *testing.T) {
	for _, test := range []struct{ source, want string }{
		{`<a href="JaVa&#115;cript:x">`, `<a href="#">`},
		{"<a href=' \tjava\nscript:x' class=a>b</a >", `<a href="#" class="a">b</a >`},
		{`<a href="data:text/html,x"><img src="data:image/png;base64,AA"><iframe src="data:image/svg+xml,x">`,
			`<a href="#"><img src="data:image/png;base64,AA"><iframe src="#">`},
		{`<meta http-equiv=refresh content="0; URL='javascript:x'">`, `<meta http-equiv="refresh" content="#">`},
		{`<a href="https://x.test/?u=javascript:x" HREF = y>&nbsp;<!-- <a href="javascript:x"> -->`,
			`<a href="https://x.test/?u=javascript:x" HREF = y>&nbsp;<!-- <a href="javascript:x"> -->`},
		{`<form action=vbscript:x><td background="javascript:x">`, `<form action="#"><td background="#">`},
	} {
		if got := disarm(test.source); got != test.want {
			t.Errorf("%s\ngives %s\nwant  %s", test.source, got, test.want)
		}
	}
}

// TestItEnds holds that nothing takes longer than it may.
func TestItEnds(t *testing.T) {
	for name, source := range map[string]Source{
		"loops": {HTML: "{{#each items}}{{#each ../items}}" + strings.Repeat("{{#each @root.items}}", 40) +
			strings.Repeat("{{/each}}", 42)},
		"quotes":   {Format: FormatMarkdown, HTML: strings.Repeat(">", 60_000)},
		"quoted":   {Format: FormatMarkdown, HTML: strings.Repeat(strings.Repeat("> ", 32)+"a\n", 900)},
		"lists":    {Format: FormatMarkdown, HTML: strings.Repeat("- ", 30_000) + "a"},
		"brackets": {Format: FormatMarkdown, HTML: strings.Repeat("[", 60_000)},
		"some": {Format: FormatMarkdown, HTML: strings.Repeat("[a](", 2000) + strings.Repeat("*a_ ", 2000) +
			strings.Repeat("`", 1999)},
		"stars":      {Format: FormatMarkdown, HTML: strings.Repeat("*a_b ", 12_000)},
		"backticks":  {Format: FormatMarkdown, HTML: strings.Repeat("`a``b", 12_000)},
		"references": {Format: FormatMarkdown, HTML: strings.Repeat("[a]: b\n", 1900)},
		"tables": {Format: FormatMarkdown, HTML: "|" + strings.Repeat("a|", 2000) + "\n|" +
			strings.Repeat("-|", 2000) + "\n" + strings.Repeat("|\n", 10_000)},
		"indentation": {Format: FormatMarkdown, HTML: strings.Repeat("1. a\n   ", 7000)},
	} {
		template, err := Parse(source, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		start := testkit.CPUUsed(t)
		_, _ = template.Render(t.Context(), Input{Data: ann})
		if took := testkit.CPUUsed(t) - start; took > 15*time.Second {
			t.Errorf("%s took %s", name, took)
		} else if took > time.Second {
			t.Logf("%s took %s", name, took)
		}
	}
	template, err := Parse(Source{HTML: "{{name}}"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := template.Render(ctx, Input{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the end of the caller's context", err)
	}
}

func TestChoose(t *testing.T) {
	variants := []string{"en", "de", "pt-BR", "pt-PT"}
	for _, test := range []struct{ locale, want string }{{"de", "de"}, {"de_AT", "de"}, {"PT-pt", "pt-PT"},
		{"pt", "pt-BR"}, {"fr", ""}, {"", ""}} {
		if got := Choose(test.locale, variants); got != test.want {
			t.Errorf("%q: %q, want %q", test.locale, got, test.want)
		}
	}
}

func FuzzRenderMarkdown(f *testing.F) {
	f.Add("# {{a}}\n- {{a}}\n\n[x]({{a}}) | {{a}}", "<script>javascript:x</script>\n1. [a](javascript:x)")
	f.Fuzz(func(t *testing.T, source, value string) {
		template, err := Parse(Source{Format: FormatMarkdown, HTML: source, Subject: source},
			Options{InlineCSS: true})
		if err != nil {
			return
		}
		m, err := template.Render(context.Background(), Input{Data: map[string]any{"a": value}})
		if err != nil {
			return
		}
		if strings.ContainsAny(m.Subject, "\r\n\x00") {
			t.Fatalf("the subject is %q", m.Subject)
		}
		if !strings.Contains(source, "{{{") && !strings.Contains(source, "&") &&
			strings.Contains(value, "<script") && !strings.Contains(source, "<") &&
			strings.Contains(m.HTML, "<script") {
			t.Fatalf("a value became a tag: %q", m.HTML)
		}
	})
}
