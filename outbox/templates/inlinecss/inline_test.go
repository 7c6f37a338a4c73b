package inlinecss

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testkit"
)

func TestInline(t *testing.T) {
	for _, test := range []struct{ name, css, body, want string }{
		{"element, class, id", "p{color:red} .a{margin:0} #b{top:1px}", `<p class=a id=b>x</p>`,
			`<p class=a id=b style="color: red; margin: 0; top: 1px">x</p>`},
		{"specificity", "#b{color:a} .a{color:b} p{color:c}", `<p class="a" id="b">x</p>`,
			`<p class="a" id="b" style="color: a">x</p>`},
		{"order", ".a{color:red} .b{color:blue}", `<p class="b a">x</p>`,
			`<p class="b a" style="color: blue">x</p>`},
		{"important", "p{color:red!important} #b{color:blue}", `<p id=b>x</p>`, `<p id=b style="color: red">x</p>`},
		{"own style wins", "p{color:red;margin:0}", `<p style="color: blue">x</p>`,
			`<p style="margin: 0; color: blue">x</p>`},
		{"but not over important", "p{color:red !important}", `<p style="color: blue; top: 0">x</p>`,
			`<p style="top: 0; color: red">x</p>`},
		{"own important", "p{color:red !important}", `<p style='color: blue ! Important'>x</p>`,
			`<p style="color: blue !important">x</p>`},
		{"shorthand and longhand keep their order", "p{margin:1px;margin-left:2px} .a{margin:3px}",
			`<p class=a>x</p>`, `<p class=a style="margin-left: 2px; margin: 3px">x</p>`},
		{"both of a pair in one rule", "p{background:#f00;background:linear-gradient(a,b)}", `<p>x</p>`,
			`<p style="background: #f00; background: linear-gradient(a,b)">x</p>`},
		{"combinators", "div p{a:1} div>p{b:2} h1+p{c:3} h1~p{d:4}", `<div><h1>h</h1><p>x</p><p>y</p></div>`,
			`<div><h1>h</h1><p style="a: 1; b: 2; c: 3; d: 4">x</p><p style="a: 1; b: 2; d: 4">y</p></div>`},
		{"attributes and groups", `a[href^="https:"], td:not(.b){a:1}`, `<a href="https://x">x</a>`,
			`<a href="https://x" style="a: 1">x</a>`},
		{"position", "li:first-child{a:1} li:nth-child(2n){b:2} li:last-child{c:3}",
			`<ul><li>1</li><li>2</li></ul>`,
			`<ul><li style="a: 1">1</li><li style="b: 2; c: 3">2</li></ul>`},
		{"values with quotes", `p{font-family:"A & B",serif}`, `<p>x</p>`,
			`<p style="font-family: &quot;A &amp; B&quot;,serif">x</p>`},
		{"urls with semicolons", "p{background:url(data:image/png;base64,AA==)}", `<p>x</p>`,
			`<p style="background: url(data:image/png;base64,AA==)">x</p>`},
		{"comments", "/* p{a:1} */p{/* b */b:2}", `<p>x</p>`, `<p style="b: 2">x</p>`},
		{"malformed", "p{color} p{:red} p{a:1;;b:2;}}} .x{c:3 p{d:4}", `<p>x</p>`, `<p style="a: 1; b: 2">x</p>`},
		{"void and self-closing", "img{border:0} br{a:1}", `<img src=x><img src="y"/><br />`,
			`<img src=x style="border: 0"><img src="y" style="border: 0"/><br style="a: 1"/>`},
		{"what isn't touched", "b{a:1}",
			"<p  CLASS = x >&nbsp;&amp;<!--[if mso]><b>m</b><![endif]--><![if !mso]><i >n</i><![endif]></p\n>",
			"<p  CLASS = x >&nbsp;&amp;<!--[if mso]><b>m</b><![endif]--><![if !mso]><i >n</i><![endif]></p\n>"},
	} {
		got, err := Inline(t.Context(), "<style>"+test.css+"</style>"+test.body, Options{})
		if err != nil || got != test.want {
			t.Errorf("%s:\n%s, %v, want\n%s", test.name, got, err, test.want)
		}
	}
}

func TestWhatStays(t *testing.T) {
	source := `<html><head><style type="text/css">
@import url(x.css);
p { color: red }
a:hover, p.big, a::before { color: blue }
@media (max-width: 600px) { p { color: green } }
@font-face { font-family: F; src: url(f) }
</style><style media="print">p { a: b }</style></head><body><p class=big>x</p></body></html>`
	want := `<html><head><style type="text/css">
@import url(x.css);
a:hover, a::before { color: blue }
@media (max-width: 600px) { p { color: green } }
@font-face { font-family: F; src: url(f) }
</style><style media="print">p { a: b }</style></head><body><p class=big style="color: blue">x</p></body></html>`
	got, err := Inline(t.Context(), source, Options{})
	if err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	again, err := Inline(t.Context(), want, Options{})
	if err != nil || again != want {
		t.Errorf("the second time something changes: %v\n%s", err, again)
	}
}

func TestNothingToDo(t *testing.T) {
	for _, source := range []string{"", "plain", "<p>x", "<style", "<style>", "<p style='a:b'>x</p>",
		"\x00<\xff>"} {
		if got, err := Inline(t.Context(), source, Options{}); err != nil || got != source {
			t.Errorf("%q: %q, %v", source, got, err)
		}
	}
}

// TestHostileCSS holds that what is meant to take for ever ends, with an error or without.
func TestHostileCSS(t *testing.T) {
	deep := strings.Repeat("<div>", 400)
	for name, source := range map[string]string{
		"descendants":       "<style>" + strings.Repeat("* ", 50) + "x{a:b}</style>" + deep,
		"negations":         "<style>" + strings.Repeat(":not(", 5000) + "</style>" + deep,
		"negated ancestors": "<style>:not(* * * * * * * * x){a:b}</style>" + deep,
		"has":               "<style>:has(:has(:has(*))){a:b}</style>" + deep,
		"open braces":       "<style>" + strings.Repeat("a{", 50_000) + "</style><a>",
		"open media":        "<style>@media " + strings.Repeat("(", 100_000) + "</style><a>",
		"open string":       "<style>a{b:\"" + strings.Repeat("\\", 100_000) + "</style><a>",
		"open comment":      "<style>" + strings.Repeat("/*", 100_000) + "</style><a>",
		"counting": "<style>" + strings.Repeat("i:nth-last-child(3n){a:b}", 2000) + "</style>" +
			strings.Repeat("<i></i>", 20_000),
		"large rules": "<style>i{" + strings.Repeat("a:b;c:d;", 10_000) + "}</style>" +
			strings.Repeat("<i></i>", 20_000),
		"many rules": "<style>" + strings.Repeat("i{a:b}", 40_000) + "</style>" + strings.Repeat("<i></i>",
			20_000),
		"many tags":  "<style>i{a:b}</style>" + strings.Repeat("<b><i>", 50_000),
		"attributes": "<style>i{a:b}</style><i " + strings.Repeat("a=b ", 100_000) + ">",
		"too much":   "<style>" + strings.Repeat("a", 300<<10) + "{}</style>",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		start := testkit.CPUUsed(t)
		if _, err := Inline(ctx, source, Options{}); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s takes too long", name)
		}
		cancel()
		if took := testkit.CPUUsed(t) - start; took > 20*time.Second {
			t.Errorf("%s took %s", name, took)
		}
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Inline(stopped, "<style>a{b:c}</style><a>", Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the end of the context", err)
	}
	if _, err := Inline(t.Context(), "<style>a{b:c}</style>"+strings.Repeat("<b>", 1000), Options{}); !errors.Is(
		err, ErrLimit) {
		t.Errorf("too deep: %v", err)
	}
	if _, err := Inline(t.Context(), "<style>a{b:c}</style><a>", Options{CSS: 5}); !errors.Is(err, ErrLimit) {
		t.Errorf("%v, want a limit", err)
	}
}

func FuzzInline(f *testing.F) {
	f.Add("p{color:red}", "<p style='a:b'>x</p>")
	f.Add("a:hover,b>c+d~e f{x:y!important}@media x{p{a:b}}", "<a><b/><table><p>x<i></table></i>")
	f.Add("p{a:\"</style>", "<style>q{b:c}<p")
	f.Fuzz(func(t *testing.T, css, body string) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		got, err := Inline(ctx, "<style>"+css+"</style>"+body, Options{CSS: 64 << 10, Matches: 200_000})
		if errors.Is(err, context.DeadlineExceeded) {
			t.Fatal("it takes too long")
		}
		if err == nil && strings.Count(got, "<script") > strings.Count(css+body, "<script") {
			t.Fatalf("a script appears: %q", got)
		}
	})
}

func BenchmarkInline(b *testing.B) {
	var page strings.Builder
	page.WriteString("<html><head><style>body{font-family:sans-serif} table{width:100%} td{padding:8px} td.price{text-align:right} .odd{background:#eee}" +
		"h1{font-size:24px} h1,h2{margin:0} a{color:#06c} .footer a{color:#999} @media (max-width:600px){td{padding:4px}}</style></head><body><h1>Order</h1><table>")
	for range 20 {
		page.WriteString(`<tr class="odd"><td>A thing</td><td><a href="https://x.test">A-1</a></td><td class="price">9.99</td></tr>`)
	}
	page.WriteString(`</table><p class="footer"><a href="https://x.test/u">Unsubscribe</a></p></body></html>`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Inline(b.Context(), page.String(), Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
