package message_test

import (
	"html"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/message"
)

func TestTextFromHTML(t *testing.T) {
	for _, row := range []struct{ name, html, want string }{
		{"nothing", "", ""},
		{"only an image", "<img src=x>", ""},
		{"plain", "Hello", "Hello\n"},
		{"paragraphs with attributes", `<p class="a">One</p><p style="x">Two</p>`, "One\n\nTwo\n"},
		{"white space collapses", "<p> a \n\t b&nbsp;&nbsp;c </p>", "a b c\n"},
		{"blanks around inline elements", "<b>a</b> <i>b</i><u>c</u>", "a bc\n"},
		{"line breaks", "a<br>b<br/>c<br><br>d", "a\nb\nc\n\nd\n"},
		{"entities", "&lt;b&gt; &amp; &euro; &#128512;", "<b> & € 😀\n"},
		{"headings", "<h1>T</h1>text<h2>U</h2>", "T\n\ntext\n\nU\n"},
		{"lists", "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>end", "- a\n- b\n  - c\n\nend\n"},
		{"table", "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td><td>d</td></tr></table>", "a b\nc d\n"},
		{"link", `<a href="https://x.example/?a=1&amp;b=2">here</a>.`, "here <https://x.example/?a=1&b=2>.\n"},
		{"link that shows itself",
			`<a href="https://x.example">x.example</a> <a href="https://x.example/a">https://x.example/a</a>`,
			"x.example https://x.example/a\n"},
		{"link to nowhere", `<a href="#top">up</a> <a href="javascript:alert(1)">js</a> <a name=x>n</a>`,
			"up js n\n"},
		{"link around an image", `<a href="https://x.example/i"><img alt="Our shop" src=x></a>`,
			"Our shop <https://x.example/i>\n"},
		{"link never closed", `<a href="https://x.example/i">one <a href="https://x.example/j">two</a> three`,
			"one <https://x.example/i> two <https://x.example/j> three\n"},
		{"script and style", "a<script>if (1<2) {'</p>'}</script><style>p{}</style>b", "ab\n"},
		{"head", "<html><head><title>T</title><meta x></head><body>b</body>", "b\n"},
		{"head never closed", "<head><title>T</title><body>b", "b\n"},
		{"hidden", `<div style="display: none">x<div>y</div></div>a<span style='VISIBILITY:hidden'>z</span>b`,
			"ab\n"},
		{"comment", "a<!-- x --><!--[if mso]><p>y</p><![endif]-->b", "ab\n"},
		{"preformatted", "<pre>a\r\n  b</pre>c", "a\n  b\n\nc\n"},
		{"rule", "a<hr>b", "a\n\n---\n\nb\n"},
		{"fillers", "a\u034f\u200b\u00adb", "ab\n"},
		{"wrong html", "<p>a<b>b</p></i></div><<p", "ab\n\n<\n"},
		{"not UTF-8", "a\xffb", "a\uFFFDb\n"},
		{"NUL", "a\x00b", "ab\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := message.TextFromHTML(row.html); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// TestHostileHTMLTakesLinearTime gives html that is slow for parsers that look back. A minute is far beyond
// what a linear one needs, and far below what a quadratic one does.
func TestHostileHTMLTakesLinearTime(t *testing.T) {
	const n = 60_000
	started := time.Now()
	for name, html := range map[string]string{
		"open links": strings.Repeat(`<a href=http://x>`, n) + strings.Repeat("x ", n) + strings.Repeat("</a>",
			n),
		"open divs":     strings.Repeat("<div style=display:none>", n),
		"angles":        strings.Repeat("<", n*4),
		"entities":      strings.Repeat("&amp", n*4),
		"open comments": strings.Repeat("<!--", n*4),
		"attributes":    "<p " + strings.Repeat("a=b ", n) + ">",
		"cid":           strings.Repeat("cid:", n*4),
		"data":          strings.Repeat("<img src=data:image/png;base64,AA==>", n),
		"marks":         strings.Repeat("\u0301", n),
	} {
		d := message.Draft{From: ann, To: []message.Address{bob}, Date: noon, HTML: html, PreviewText: "p",
			Attachments: []message.Attachment{{CID: "x"}}}
		checkCarriable(t, compose(t, d))
		if spent := time.Since(started); spent > time.Minute {
			t.Fatalf("%s: %v", name, spent)
		}
	}
}

func TestSteadyValuesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{
		"Ann": true, "Ann Smith": true, "O'Neill & <b>": true, "日本": true, "": false, " ": false, " Ann": false,
		"Ann ": false, "Ann  Smith": false, "a\nb": false, "a\u00a0b": false, "a\u00adb": false, "\u200b": false,
		"\x00": false, "\xff": false, "\ufffd": false,
	} {
		if got := message.Steady(value); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
		if text := message.TextFromHTML("<p>x" + html.EscapeString(value) + "y"); want && text != "x"+value+"y\n" {
			t.Errorf("%q became %q", value, text)
		}
	}
}

// TestReadersSeeALink looks at what a browser shows, not at what the source contains.
func TestReadersSeeALink(t *testing.T) {
	t.Parallel()
	for html, want := range map[string]bool{
		`<a href="U1">leave</a>`:                                  true,
		`<A HREF='U1'>leave</A>`:                                  true,
		`<a href=U1>leave</a>`:                                    true,
		"<a href=\" \n U1 \">leave</a>":                           true,
		"<a href=\"https://m.example/\n\tunsub?t=1\">leave</a>":   true,
		`<a href="https://m.example/unsub&#x3F;t&#x3D;1">x</a>`:   true,
		`<a href="U1">leave`:                                      true,
		`<a href="U1">leave<a href="https://x.example">x</a>`:     true,
		`<a href="U1"><img src="x.png" alt="leave"></a>`:          true,
		`<a href="U1"><img src="x.png" width="90"></a>`:           true,
		`<map><area href="U1" alt="leave"></map>`:                 true,
		`<p>Leave: U1</p>`:                                        true,
		`<!--[if !mso]><!--><a href="U1">x</a><!--<![endif]-->`:   true,
		`<a href="https://x.example/?u=U1">leave</a>`:             false,
		`<!-- <a href="U1">leave</a> -->`:                         false,
		`<!--[if mso]><a href="U1">leave</a><![endif]-->`:         false,
		`<p style="display:none"><a href="U1">leave</a></p>`:      false,
		`<a href="U1"><b style="display: none">leave</b></a>`:     false,
		`<a href="U1"></a>`:                                       false,
		"<a href=\"U1\">\u00a0&nbsp;&zwnj;\u200b\u2060\u3164</a>": false,
		`<a href="U1"><img src="x.png" width="1" height="1"></a>`: false,
		`<a href="U1"><img src="x" style="height: 0px"></a>`:      false,
		`<a href="U1"><img src="x" alt="x" style="display:none">`: false,
		`<map><area href="U1"></map>`:                             false,
		`<style>/* U1 */</style>`:                                 false,
		`<script>"U1"</script>`:                                   false,
		`<p data-x="U1">x</p>`:                                    false,
		`<img src="U1">`:                                          false,
		`<link href="U1">`:                                        false,
	} {
		html = strings.ReplaceAll(html, "U1", "https://m.example/unsub?t=1")
		if got := message.ShowsLink(html, "https://m.example/other?t=", "https://m.example/unsub?t="); got != want {
			t.Errorf("%s: %v", html, got)
		}
	}
}

// TestTextKeepsTheTargetsOfLinks reads addresses as browsers do (WHATWG URL, 4.4) and expects them as RFC
// 3986 writes them.
func TestTextKeepsTheTargetsOfLinks(t *testing.T) {
	t.Parallel()
	for html, want := range map[string]string{
		`<a href="HTTPS://a.example/x">Up</a>`:                            "Up <https://a.example/x>",
		`<a href=" https://a.example/x">Sp</a>`:                           "Sp <https://a.example/x>",
		`<a href="&#10;https://a.example/x&#9;">NL</a>`:                   "NL <https://a.example/x>",
		"<a href=\"https://a.ex\n\tample/x\">NL</a>":                      "NL <https://a.example/x>",
		`<a href="//a.example/x">Proto</a>`:                               "Proto <https://a.example/x>",
		`<a href="https:\\a.example\x">Back</a>`:                          "Back <https://a.example/x>",
		`<a href="mailto:a@b.example">Write us</a>`:                       "Write us <a@b.example>",
		`<a href="MAILTO:a%2Bc@b.example?subject=x">Write us</a>`:         "Write us <a+c@b.example>",
		`<a href="mailto:a@b.example">Write to A@b.example</a>`:           "Write to A@b.example",
		`<a href="mailto:?subject=x">Share</a>`:                           "Share",
		`<a href="tel:+41">Call</a>`:                                      "Call <+41>",
		`<a href="tel:+41-44-123">Call +41 44 123</a>`:                    "Call +41 44 123",
		`<a href="sms:+41?body=x">Text us</a>`:                            "Text us <+41>",
		`<a href="ftp://f.example/y">Get</a>`:                             "Get <ftp://f.example/y>",
		`<a href="https://a.example/?q=a b&lt;">Find</a>`:                 "Find <https://a.example/?q=a%20b%3C>",
		`<a href="https://bücher.example/ü">Buch</a>`:                     "Buch <https://xn--bcher-kva.example/%C3%BC>",
		`<a href="https://bücher.example/ü">https://bücher.example/ü</a>`: "https://bücher.example/ü",
		`<a href="https://x.example/">x.example</a>`:                      "x.example",
		`<a href="#part">Part</a><a href="javascript:x"> js</a>`:          "Part js",
		`<a href=" JavaScript://a/%0ax">js</a>`:                           "js",
		`<a href="data:text/html,x">data</a> <a href="">none</a>`:         "data none",
		`<a href="https://a.example/x">here </a>there`:                    "here <https://a.example/x> there",
		`<a href="https://a.example/x">never closed`:                      "never closed <https://a.example/x>",
		`<ul><li><a href="https://x.example">x.example</a></ul>`:          "- x.example",
	} {
		if got := message.TextFromHTML(html); got != want+"\n" {
			t.Errorf("%s: %q, want %q", html, got, want)
		}
	}
}

// TestTextShowsWhatBrowsersShow expects the lines, numbers and elements that browsers show (WHATWG HTML,
// 4.4.5 to 4.4.8, 6.1 and 15.3).
func TestTextShowsWhatBrowsersShow(t *testing.T) {
	t.Parallel()
	for html, want := range map[string]string{
		`a<p hidden>x</p>b`:                                 "ab",
		`<p hidden>x<p>y`:                                   "y",
		`<div><p hidden>x</div>y`:                           "y",
		`a<div hidden="until-found">x<div>y</div></div>b`:   "ab",
		`a<img alt=x hidden>b<br hidden>c`:                  "abc",
		`<template><p>x</p></template>a`:                    "a",
		`<iframe>x</iframe><noembed>x</noembed>a`:           "a",
		`<datalist><option>x</datalist><dialog>x</dialog>a`: "a",
		`<dialog open>a</dialog>`:                           "a",
		`<noscript><b>a</b></noscript>`:                     "a",
		`<p aria-hidden="true">a</p>`:                       "a",
		`<ol><li>Pay</li><li>Wait</li></ol>`:                "1. Pay\n2. Wait",
		`<ol start="9"><li>a<li>b<li value=20>c<li>d</ol>e`: "9. a\n10. b\n20. c\n21. d\n\ne",
		`<ol reversed><li>a<li>b<ul><li>x</ul><li>c</ol>`:   "3. a\n2. b\n   - x\n1. c",
		`<ol reversed start=0><li>a<li>b</ol>`:              "0. a\n-1. b",
		`<ol><li><p>a</p><p>b<br>c</p></li><li>d</li></ol>`: "1. a\n\n   b\n   c\n\n2. d",
		`<ul><li>a<ol><li>b<ul><li>c</ul></ol></ul>d`:       "- a\n  1. b\n     - c\n\nd",
		`<ul><li><ul><li>a</ul></ul>`:                       "- - a",
		`a<ul><li></ul>b`:                                   "a\n\nb",
		`<li>a</li><li>b</li></ul>c`:                        "- a\n- b\n\nc",
		`<details><summary>Terms</summary>They</details>`:   "Terms\nThey",
		`a<hgroup>b</hgroup>c<legend>d</legend>e`:           "a\nb\nc\nd\ne",
		`<xmp><b></xmp>`:                                    "<b>",
	} {
		if got := message.TextFromHTML(html); got != want+"\n" {
			t.Errorf("%s: %q, want %q", html, got, want)
		}
	}
}
