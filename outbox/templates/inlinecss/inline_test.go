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

// TestNestedRules expects what CSS Nesting 1 says of selectors, specificity and order.
func TestNestedRules(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, css, body, kept, want string }{
		{"a descendant", ".card{color:red;h1{font-weight:bold}}", `<div class="card"><h1>x</h1></div>`, "",
			`<div class="card" style="color: red"><h1 style="font-weight: bold">x</h1></div>`},
		{"a state", "a{color:red;&:hover{color:blue}}", `<a href="#">x</a>`, "a:hover {color:blue}",
			`<a href="#" style="color: red">x</a>`},
		{"& at the end", ".x{.b &{a:1}}", `<i class=b><i class=x>`, "", `<i class=b><i class=x style="a: 1">`},
		{"& inside", ".x{.b & u{a:1} b&{a:2} &.y:not(&.z){a:3}}", `<i class=b><b class="x y"><u>`, "",
			`<i class=b><b class="x y" style="a: 3"><u style="a: 1">`},
		{"types and classes", "p{.x&{a:1} &p{b:2} &.y{c:3}}", `<p class="x y">`, "p:is(p) {b:2}",
			`<p class="x y" style="a: 1; c: 3">`},
		{"combinators", ".x{> p{a:1} + p{b:2} ~ u{c:3} & + &{d:4}}", `<i class=x><p></p></i><p></p><u></u><i class=x></i><i class=x>`,
			"", `<i class=x><p style="a: 1"></p></i><p style="b: 2"></p><u style="c: 3"></u>` +
				`<i class=x></i><i class=x style="d: 4">`},
		{"lists", "h1,.x{b,u{a:1}}", `<h1><b></b></h1><i class=x><u>`, "",
			`<h1><b style="a: 1"></b></h1><i class=x><u style="a: 1">`},
		{"& has the weight of the heaviest", "#i,.x{& u{a:1}} .x.x.x u{a:2}", `<i class=x><u>`, "",
			`<i class=x><u style="a: 1">`},
		{"three levels", ".a{.b{.c{x:1} &.d{y:2}}}", `<i class=a><i class="b d"><i class=c>`, "",
			`<i class=a><i class="b d" style="y: 2"><i class=c style="x: 1">`},
		{"declarations after a rule", ".a{x:1;&{x:2}x:3;y:4}", `<i class=a>`, "", `<i class=a style="x: 3; y: 4">`},
		{"an at-rule in a rule", ".a{x:1;@media print{x:2;u{y:3}&:hover{z:4}}}", `<i class=a><u>`,
			"@media print { .a {x:2;} }\n@media print { .a u {y:3} }\n@media print { .a:hover {z:4} }",
			`<i class=a style="x: 1"><u>`},
		{"a rule in an at-rule", "@media print{.a{x:1;u{y:2}}b{z:3}}@media (width>1px){b{x:1}}", `<u>`,
			"@media print { .a {x:1;} }\n@media print { .a u {y:2} }\n@media print { b {z:3} }\n@media (width>1px){b{x:1}}",
			`<u>`},
		{"a complex parent", ".a .b{.c &{x:1} & u{y:2}}", `<i class=a><i class=b><u>`, ".c :is(.a .b) {x:1}",
			`<i class=a><i class=b><u style="y: 2">`},
		{"none of a list", ".a,.b{:not(&){x:1}}", `<u>`, ":not(:is(.a, .b)) {x:1}", `<u>`},
		{"a custom property", ".a{--x:{b:c};x:1;}", `<i class=a>`, "", `<i class=a style="x: 1">`},
	} {
		want := test.want
		if test.kept != "" {
			want = "<style>\n" + test.kept + "\n</style>" + want
		}
		got, err := Inline(t.Context(), "<style>"+test.css+"</style>"+test.body, Options{})
		if err != nil || got != want {
			t.Errorf("%s:\n%s, %v, want\n%s", test.name, got, err, want)
		}
	}
}

// TestValuesStayWhole holds that strings and addresses are written as they are (CSS Syntax 3, 4.3.5 and
// 4.3.6).
func TestValuesStayWhole(t *testing.T) {
	t.Parallel()
	const svg = `url("data:image/svg+xml;utf8,<svg xmlns='http://www.w3.org/2000/svg'/>")`
	for css, want := range map[string]string{
		".b{background:" + svg + " no-repeat;color:red}": "background: url(&quot;data:image/svg+xml;utf8,&lt;svg " +
			"xmlns='http://www.w3.org/2000/svg'/>&quot;) no-repeat; color: red",
		`.b{content:"{a;b}";quotes:"<" ">"}`:              `content: &quot;{a;b}&quot;; quotes: &quot;&lt;&quot; &quot;>&quot;`,
		".b{font-family:'My  Font' ,\n\t x}":              "font-family: 'My  Font' , x",
		".b{background:url(a{b<c) ,url( x )}":             "background: url(a{b&lt;c) ,url( x )",
		`.b{content:"\3C a  \"}"}`:                        `content: &quot;\3C a  \&quot;}&quot;`,
		"a{}.b{x:url(a b);content:\"x\ny\";color:red}":    "",
		".b{width:calc(1px  +  2px)!important;--v:a   b}": "--v: a b; width: calc(1px + 2px)",
		`.b{color:red;background:{a:b}}`:                  "color: red",
		`.b{font-family:"a!important"}`:                   "font-family: &quot;a!important&quot;",
	} {
		got, err := Inline(t.Context(), "<style>"+css+"</style><i class=b>", Options{})
		if want != "" {
			want = ` style="` + want + `"`
		}
		if err != nil || !strings.HasSuffix(got, "<i class=b"+want+">") {
			t.Errorf("%s:\n%s, %v, want\n%s", css, got, err, want)
		}
	}
	const ends = `<style>a:hover{content:"</sty` + `le"} b:hover{content:"<` + `/*x*//style>"}</style><a>`
	if got, err := Inline(t.Context(), ends, Options{}); err != nil || strings.Count(got, "</style") > 2 {
		t.Errorf("%s, %v", got, err)
	}
}

// TestImportantWinsAsInABrowser expects the cascade's winner on a phone (CSS Cascade 4, 6.1).
func TestImportantWinsAsInABrowser(t *testing.T) {
	t.Parallel()
	const phone, red = "@media (max-width:600px){.c{color:blue!important}}", ".c{color:red!important}"
	const body, inlined = `<p class="c">x</p>`, `<p class="c" style="color: red">x</p>`
	for css, want := range map[string]string{
		phone + red:                        phone + "\n.c {color: red !important}",
		red + phone:                        phone,
		red + ".c:hover{margin:0}":         ".c:hover {margin:0}",
		"p{color:red!important}" + phone:   phone,
		"p.c{color:red!important}" + phone: "p.c {color: red !important}\n" + phone,
		".c{color:red!important;}a:hover{color:x!important}": ".c {color: red !important}\na:hover {color:x!important}",
		"@media print{p{margin-top:0!important}}.c{margin:1px!important;color:red}": "@media print{p{margin-top:0!important}}\n" +
			".c {margin: 1px !important}",
	} {
		got, err := Inline(t.Context(), "<style>"+css+"</style>"+body, Options{})
		shown := strings.Replace(got, "; margin: 1px", "", 1)
		if err != nil || shown != "<style>\n"+want+"\n</style>"+inlined {
			t.Errorf("%s:\n%s, %v, want\n%s", css, got, err, want)
		}
	}
	embedded := "<style data-embed>.c{color:blue!important}</style>"
	got, err := Inline(t.Context(), embedded+"<style>"+red+"</style>"+body, Options{})
	if want := embedded + "<style>\n.c {color: red !important}\n</style>" + inlined; err != nil || got != want {
		t.Errorf("%s, %v, want\n%s", got, err, want)
	}
}

// TestRulesOfElementsWithoutTagsStay: browsers make html and body, and drop a rule after a brace too many.
func TestRulesOfElementsWithoutTagsStay(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"<style>body{margin:0}</style><p>x":        "<style>\nbody {margin:0}\n</style><p>x",
		"<style>*{margin:0}</style><p>x":           "<style>\nhtml, body {margin:0}\n</style><p style=\"margin: 0\">x",
		"<style>body{margin:0}</style><body><p>x":  `<body style="margin: 0"><p>x`,
		"<style>p{a:1}} p{b:2} p{c:3}</style><p>x": `<p style="a: 1; c: 3">x`,
		"<style>p,,b{a:1}p,1{a:1}</style><p>x":     "<p>x",
	} {
		if got, err := Inline(t.Context(), source, Options{}); err != nil || got != want {
			t.Errorf("%s:\n%s, %v, want\n%s", source, got, err, want)
		}
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

// TestHostileCSS checks that CSS that is meant to take for ever ends, with an error or without.
func TestHostileCSS(t *testing.T) {
	deep := strings.Repeat("<div>", 400)
	for name, source := range map[string]string{
		"descendants":       "<style>" + strings.Repeat("* ", 50) + "x{a:b}</style>" + deep,
		"negations":         "<style>" + strings.Repeat(":not(", 5000) + "</style>" + deep,
		"negated ancestors": "<style>:not(* * * * * * * * x){a:b}</style>" + deep,
		"has":               "<style>:has(:has(:has(*))){a:b}</style>" + deep,
		"nested braces":     "<style>" + strings.Repeat("a,b{", 50_000) + "</style><a>",
		"nested lists":      "<style>" + strings.Repeat(strings.Repeat("a,", 50)+"a{", 40) + "x:y</style><a>",
		"parents":           "<style>a{b{" + strings.Repeat("&", 20_000) + "{x:y}}}</style><a>",
		"nested media":      "<style>" + strings.Repeat("@media x{a{", 20_000) + "</style><a>",
		"states of many": "<style>" + strings.Repeat("a,", 10_000) + "a{" + strings.Repeat("&:hover{x:y}",
			10_000) + "}</style><a>",
		"important":    "<style>" + strings.Repeat("a:hover{a:b!important}i{a:b!important}", 6_000) + "</style><i>",
		"open braces":  "<style>" + strings.Repeat("a{", 50_000) + "</style><a>",
		"open media":   "<style>@media " + strings.Repeat("(", 100_000) + "</style><a>",
		"open string":  "<style>a{b:\"" + strings.Repeat("\\", 100_000) + "</style><a>",
		"open comment": "<style>" + strings.Repeat("/*", 100_000) + "</style><a>",
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
		if took := testkit.CPUUsed(t) - start; took > time.Minute {
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
