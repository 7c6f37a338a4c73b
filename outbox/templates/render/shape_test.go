package render

import (
	"context"
	"flag"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/outbox/links"
)

// pieces are what the html of TestShapesChangeNothing is made of.
var pieces = []string{
	"{{a}}", "{{b}}", "{{a}} {{b}}", "{{{a}}}", "{{#if b}}yes{{else}}no{{/if}}",
	"{{#if a}}{{a}}{{/if}}", " ", "\n", "x",
	"<p>", "</p>", "<p>{{a}}</p>", "<div>", "</div>", "<b>", "</b>", "<br>", "<hr/>", "<li>",
	"<td>", "<pre>", "</pre>",
	`<a href="{{a}}">`, `<a href='{{b}}'>`, `<a href={{b}}>`, `<a href="https://x.test/{{b}}">`,
	`<a href="https://x.test">`,
	`<a href="https://{{a}}">`, `<a href="https://{{a}}/{{b}}?c={{a}}">`, `<a href="{{a}}{{b}}">`,
	`<a href="/{{a}}">`,
	`<a href="mailto:{{b}}">`, `<a href="javascript:x" title="{{a}}">`,
	`<a href="java{{a}}" href="{{b}}">`, "</a>",
	"x.test", "https://x.test", `<img alt="{{a}}" src="{{b}}">`, `<img src="data:{{a}}">`, `<img alt={{a}}>`,
	`<html lang="{{a}}" dir="{{b}}">`, `<p dir="{{a}}" lang='{{b}}'>`, `<p lang={{a}}>`,
	"<style>:lang(c){color:red} p[dir=c]{color:blue}</style>",
	`<p style="display:{{a}}">`, `<p class="{{a}}">`, `<p title="&{{a}}">`,
	`<p title="{{a}}amp;" {{b}}>`, "<{{a}}>",
	"</{{a}}>", "<!{{a}}>", "<!--{{a}}-->", "<!-- {{a}} -->", "<!--{{a}}>", "<!-- -{{b}}> -->", "<?{{a}}?>",
	"<style>p{color:red} .c{display:none}</style>", "<style>[title=c],[alt=c]{color:blue}</style>",
	"<style>{{a}}</style>",
	"<style>a:first-child{color:red}", "</style>", "<title>{{a}}</title>",
	"<title>{{b}}</ti{{a}}>x", "<textarea>{{a}}",
	"</textarea>", "<script>{{a}}</script>", "<head>", "</head>", "<body>", "<table>", "</table>",
	"&amp{{a}}", "&#{{b}};",
	"&am{{a}}", "<", "&", ">", "\"", "'", "\u00ad", "\u00a0", "\xff", "\xe2\x80", "Qv7zjx",
	"Qv7zjx0z", "<svg>", "<select>",
	`<meta http-equiv="refresh" content="0;url={{a}}">`, `<base href="{{b}}">`, `<p hidden title='{{a}}'>`,
}

var layouts = []string{
	"<html><body>{{> @partial-block}}</body></html>", "{{a}}<p>Ann</p>{{> @partial-block}}{{b}}",
	"<p>{{b}}</p>\n  {{> @partial-block}}\n", "{{> @partial-block}}<hr>{{> @partial-block}}", "no {{a}}",
	"<title>{{> @partial-block}}</title>", `<a href="{{a}}">{{> @partial-block}}</a>`,
}

// values are what the holes of pieces are filled with.
var values = []string{
	"", "Ann", "Ann Smith", "O'Neill & <b>", "https://x.test", "https://x.test/",
	"http://y.test/?a=1&b=2", "x.test",
	"javascript:alert(1)", "data:image/png;base64,AA==", " led", "ends ", "two  blanks", "a\nb",
	"a\r\nb", "\u00a0", "x\u00adx",
	"\u200b", "\x00", "\xff", "ü", "日本", "amp;", "p;", "-", "--", "none", "c", "tle", "!--",
	"{{a}}", "Qv7zjx0z", "65", "\"", "`=",
	"https://", "://x.test", "ftp://x.test", "mailto:a@x.test", "\ufeff", "…", "//x.test", "a/b", "script",
}

func pick(dice *rand.Rand, from []string) string { return from[dice.IntN(len(from))] }

// rendered renders a template with two values.
func rendered(t *testing.T, template *Template, a, b string) Mail {
	t.Helper()
	m, err := template.Render(context.Background(), Input{Data: map[string]any{"a": a, "b": b}})
	if err != nil {
		m.Text = err.Error()
	}
	return m
}

// sameAgain compares mail of a template that was used before with mail of a new one.
func sameAgain(t *testing.T, source Source, o Options, a, b string, before ...string) (shaped bool) {
	t.Helper()
	used, err := Parse(source, o)
	if err != nil {
		return false
	}
	for i := 0; i+1 < len(before); i += 2 {
		rendered(t, used, before[i], before[i+1])
	}
	fresh, err := Parse(source, o)
	if err != nil {
		t.Fatal(err)
	}
	got := rendered(t, used, a, b)
	if diff := cmp.Diff(rendered(t, fresh, a, b), got, cmpopts.IgnoreUnexported(Mail{})); diff != "" {
		t.Fatalf("%+v with %q and %q after %q (-new +used):\n%s", source, a, b, before, diff)
	}
	sameLinks(t, got)
	for _, one := range used.shapes.kept {
		shaped = shaped || one.holes != nil
	}
	return shaped
}

// sameLinks compares the stored links of an email with the links in its html.
func sameLinks(t *testing.T, m Mail) {
	t.Helper()
	if m.shape == nil {
		return // they are read in its html
	}
	for _, o := range []links.Options{{}, {Pixel: "https://p.test/o/1", Keep: []string{"https://y.test/"},
		Link: func(to string) (string, error) { return "https://p.test/c/" + to, nil }}} {
		want, _ := links.Scan(m.HTML).Rewrite(o)
		got := m
		got.changed = o
		if got.HTML, _ = m.page().Rewrite(o); got.HTML != want {
			t.Fatalf("of %q: links are rewritten as\n%s\nwant\n%s", m.HTML, got.HTML, want)
		}
		for _, prefix := range []string{"https://y.test/", "http", "java"} {
			if shows := got.ShowsLink(prefix); shows != message.ShowsLink(want, prefix) {
				t.Fatalf("%q shows a link to %s: %v", want, prefix, shows)
			}
		}
	}
}

var rounds = flag.Int("rounds", 3000, "random pages to render; 30000 take a minute with the race detector")

// TestShapesChangeNothing renders random html with random values: data kept from earlier mail must not show.
func TestShapesChangeNothing(t *testing.T) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(1, 2))
	shaped := 0
	for range *rounds {
		var source strings.Builder
		for range 1 + dice.IntN(7) {
			source.WriteString(pick(dice, pieces))
		}
		letter, o := Source{HTML: source.String()}, Options{InlineCSS: dice.IntN(3) == 0}
		if dice.IntN(3) == 0 {
			letter.Format = FormatMarkdown
		}
		if dice.IntN(3) == 0 {
			o.Layout = pick(dice, layouts)
		}
		if sameAgain(t, letter, o, pick(dice, values),
			pick(dice, values),
			"Ann", "https://y.test/b", "Bob Miller", "x", pick(dice, values), pick(dice, values)) {
			shaped++
		}
	}
	if shaped < *rounds/5 {
		t.Errorf("only %d of %d had a shape", shaped, *rounds)
	}
}

// TestShapeOfANewsletter holds that the pages of ordinary mail are made of the first.
func TestShapeOfANewsletter(t *testing.T) {
	t.Parallel()
	const news = `<html><head><title>{{a}}</title><style>h1{color:red}</style></head><body><!-- {{a}} -->` +
		`<h1>Hello {{a}},</h1>` +
		`<p><a href="https://x.test/?u={{a}}">Sale for {{a}}</a> <img src="https://x.test/{{a}}.png" alt="{{a}}">` +
		`<a href="{{b}}">Leave</a></p></body></html>`
	for _, inline := range []bool{false, true} {
		if !sameAgain(t, Source{HTML: news}, Options{InlineCSS: inline}, "Zoë O'Hara", "https://y.test/?t=1", "Ann",
			"https://y.test/b") {
			t.Errorf("inlined %v: no shape", inline)
		}
	}
}

// TestShapeOfMarkdown is TestShapeOfANewsletter of Markdown, with and without a layout.
func TestShapeOfMarkdown(t *testing.T) {
	t.Parallel()
	const news = "# Hello {{a}}\n\n[Sale for {{a}}](https://x.test/?u={{a}}) and `{{a}}`\n\n[Leave]({{b}})\n"
	for _, layout := range []string{"", layouts[0], "<title>{{a}}</title>{{> @partial-block}}<p>{{b}}</p>"} {
		if !sameAgain(t, Source{HTML: news, Format: FormatMarkdown}, Options{InlineCSS: true, Layout: layout},
			"Zoë O'Hara", "https://y.test/?t=1", "Ann", "https://y.test/b") {
			t.Errorf("in the layout %q: no shape", layout)
		}
	}
}

// TestLanguagesHaveShapes holds that the language of an email does not keep it from having a shape, unless
// CSS is inlined, which may ask for it.
func TestLanguagesHaveShapes(t *testing.T) {
	t.Parallel()
	const page = `<style>:lang(c) p{color:blue}</style><div lang="{{a}}" dir="{{b}}"><p>x</p></div>`
	for _, inline := range []bool{false, true} {
		if sameAgain(t, Source{HTML: page}, Options{InlineCSS: inline}, "c", "rtl", "en", "ltr") == inline {
			t.Errorf("inlined %v: a shape is %v", inline, inline)
		}
	}
}

// TestAttributesOfShapesAreNotMatched holds that CSS that names an attribute sees the values in it.
func TestAttributesOfShapesAreNotMatched(t *testing.T) {
	t.Parallel()
	const page = `<style>[alt=c]{color:blue}</style><img alt="{{a}}" src="https://x.test/">`
	if sameAgain(t, Source{HTML: page}, Options{InlineCSS: true}, "c", "", "Ann", "") {
		t.Error("it has a shape")
	}
}

// TestShapesAreFew holds that values that are not escaped do not fill memory.
func TestShapesAreFew(t *testing.T) {
	t.Parallel()
	template, err := Parse(Source{HTML: "<p>{{{a}}} {{b}}</p>"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		rendered(t, template, v, "x")
	}
	if n := len(template.shapes.kept); n != maxShapes {
		t.Errorf("%d shapes are kept, want %d", n, maxShapes)
	}
}

// FuzzShapes is TestShapesChangeNothing with any html and values.
func FuzzShapes(f *testing.F) {
	for i, piece := range pieces {
		f.Add(piece+"{{a}}"+pieces[(i+1)%len(pieces)], values[i%len(values)], "https://y.test/", i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, source, a, b string, inline bool) {
		for _, format := range []Format{FormatHTML, FormatMarkdown} {
			sameAgain(t, Source{HTML: source, Format: format}, Options{InlineCSS: inline}, a, b, "Ann",
				"https://y.test/b", b, a)
		}
	})
}
