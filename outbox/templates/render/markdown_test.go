package render

import (
	"html"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const awkward = "O'Neil-Smith & <b>Co.</b> (\"Ltd.\") `x` *y* _z_ [a](b) | ~~c~~ \\d #1"

// TestValuesOfMarkdownAreShownAsTheyAre fills the places in which Markdown may have a value. In each a reader
// sees the value itself, as CommonMark shows code and raw html (0.31, 6.1, 6.6).
func TestValuesOfMarkdownAreShownAsTheyAre(t *testing.T) {
	t.Parallel()
	const u = "https://a.example/x_y/~z?a=1&b=*2#h_1"
	text := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(awkward)
	for name, c := range map[string]struct{ source, want, text string }{
		"double quotes": {`<a href="{{u}}">Pay</a>`, `<p><a href="` + html.EscapeString(u) +
			`">Pay</a></p>`, "Pay <" + u + ">"},
		"single quotes": {`<a href='{{u}}'>Pay</a>`, `<p><a href='` + html.EscapeString(u) +
			`'>Pay</a></p>`, "Pay <" + u + ">"},
		"no quotes":   {`<a href={{u}} title={{v}}>Pay</a>`, "", "Pay <" + u + ">"},
		"several":     {`<a title="{{v}}" href="{{u}}&amp;c={{v}}">Pay</a> <img alt="{{v}}" src='{{u}}'>`, "", ""},
		"html block":  {"<table><tr><td title='{{v}}'>\n{{v}}</td></tr></table>", "", awkward},
		"inline html": {`Hi <b class="{{v}}">{{v}}</b>!`, "", "Hi " + awkward + "!"},
		"text":        {"Hi {{v}}", "<p>Hi " + text + "</p>", "Hi " + awkward},
		"heading":     {"# {{v}}", "<h1>" + text + "</h1>", awkward},
		"emphasis": {"**{{v}}**, _{{v}}_", "<p><strong>" + text + "</strong>, <em>" + text +
			"</em></p>", awkward + ", " + awkward},
		"code":            {"Your code: `{{c}}`", "<p>Your code: <code>A_B-C*1</code></p>", "Your code: A_B-C*1"},
		"awkward code":    {"`{{v}}`", "", awkward},
		"fence":           {"```{{c}}\n{{v}}\n```", "", awkward},
		"tildes":          {"~~~\n{{v}}\n~~~", "", awkward},
		"indented":        {"    {{v}}", "", awkward},
		"table":           {"| a | b |\n|---|---|\n| {{v}} | {{c}} |", "", "a b\n" + awkward + " A_B-C*1"},
		"link":            {`[{{v}}]({{u}} "{{v}}")`, "", awkward + " <" + u + ">"},
		"image":           {`![{{v}}]({{u}})`, "", awkward},
		"reference":       {"[Pay][{{c}}]\n\n[{{c}}]: {{u}}", "", "Pay <" + u + ">"},
		"link helper":     {`{{link u v style="color:red"}}`, "", awkward + " <" + u + ">"},
		"link in a block": {`<div>{{link u v}}</div>`, "", awkward + " <" + u + ">"},
		"url helper":      {`<a href="{{url u x="_"}}">Pay</a>`, "", "Pay <https://a.example/x_y/~z?a=1&b=*2&x=_#h_1>"},
		"default":         {"`{{default nothing v}}`", "", awkward},
		"currency":        {"<p>{{currency 1234.5 'EUR'}}</p>", "<p>€1,234.50</p>", "€1,234.50"},
		"each and if":     {"{{#each list}}\n{{@index}}. `{{this}}`{{#if ../c}} <b>{{../c}}</b>{{/if}}\n{{/each}}", "", ""},
		"partial":         {"{{> code}}", "", awkward},
		"web address":     {"https://a.example:{{c}} and https://a.example{{c}}", "", ""},
		"bare":            {"{{u}}", "<p>https://a.example/x_y/~z?a=1&amp;b=*2#h_1</p>", u},
		"style and text":  {"<style>p{color:{{c}} }</style>\n\n<!-- {{v}} -->\n\n{{c}}", "", "A_B-C*1"},
	} {
		got := render(t, Source{Format: FormatMarkdown, HTML: c.source},
			Options{Partials: map[string]string{"code": "`{{v}}`"},
				Layout: "<body>{{> @partial-block}}</body>"}, Input{Data: map[string]any{
				"u": u, "v": awkward, "c": "A_B-C*1", "list": []any{"A_B", "<i>"}}})
		page := strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(got.HTML, "<body>"), "</body>"))
		if c.want != "" && page != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, page, c.want)
		}
		if c.text != "" && strings.TrimSpace(got.Text) != c.text {
			t.Errorf("%s: the text is\n%swant\n%s\nof %s", name, got.Text, c.text, page)
		}
		if strings.Contains(page, "QJZX") || strings.Contains(strings.ReplaceAll(page, `\d`, ""), `\`) {
			t.Errorf("%s: %s", name, page)
		}
	}
}

// TestValuesOfMarkdownStayInTheirPlaces holds that no value ends its tag, text or code, or begins Markdown.
func TestValuesOfMarkdownStayInTheirPlaces(t *testing.T) {
	t.Parallel()
	const nasty = "\"'> onload=x <script>y</script> -->\n```\n~~~\n\n# h\n\n    code\n- `i` <b"
	tags := func(page string) []string {
		var names []string
		for rest := page; ; {
			i := strings.IndexByte(rest, '<')
			if i < 0 {
				return names
			}
			rest = rest[i+1:]
			names = append(names, rest[:strings.IndexAny(rest+" ", " />\n")+1])
		}
	}
	for _, source := range []string{
		`<a href="{{v}}" title='{{v}}'>x</a>`, `<div id={{v}} class=a>x</div>`, "<div {{v}}>x</div>", "`{{v}}`",
		"```\n{{v}}\n```", "    {{v}}", "<pre>{{v}}</pre>", "<textarea>{{v}}</textarea>", "<!-- {{v}} -->\nx",
		"<style>{{v}}</style>", "<script>{{v}}</script>", "<div>\n{{v}}\n</div>", "[x]({{v}} \"{{v}}\")",
		"![{{v}}](x)",
		"<p a='{{v}}",
	} {
		of := func(value string) Mail {
			return render(t, Source{Format: FormatMarkdown, HTML: source}, Options{},
				Input{Data: map[string]any{"v": value}})
		}
		got, plain := of(nasty), of("plain")
		if diff := cmp.Diff(tags(plain.HTML), tags(got.HTML)); diff != "" {
			t.Errorf("%q: %s\n%s", source, got.HTML, diff)
		}
	}
	for source, want := range map[string]string{
		"<{{v}}>":                      "<&#115;cript>",
		"<div><{{v}}></div>":           "<div><&#115;cript></div>",
		"<a href=\"{{u}}\">x</a>":      `<p><a href="#">x</a></p>`,
		"[x]({{u}})":                   `<p><a href="#">x</a></p>`,
		"<div {{on}}>x</div>":          "<div onclick&#x3D;y>x</div>",
		"Hi {{lines}}":                 "<p>Hi a<br />\nb</p>",
		"{{n}}. a":                     "<ol start=\"7\">\n<li>a</li>\n</ol>",
		"{{dash}} a":                   "<p>- a</p>",
		"<p>{{lines}}</p>":             "<p>a\n\n b</p>",
		"QJZX9Z `QJZX99999999999999Z`": "<p>QJZX9Z <code>QJZX99999999999999Z</code></p>",
	} {
		got := render(t, Source{Format: FormatMarkdown, HTML: source}, Options{}, Input{Data: map[string]any{
			"v": "script", "u": " java\nscript:x", "on": "onclick=y", "lines": "a\n\n b", "n": 7, "dash": "-"}})
		if strings.TrimSpace(got.HTML) != want && got.HTML != want {
			t.Errorf("%q: %s, want %s", source, got.HTML, want)
		}
	}
}
