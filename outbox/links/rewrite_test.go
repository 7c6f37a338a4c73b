package links

import (
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
)

var update = flag.Bool("update", false, "write what the golden mails become")

// through is a link as the tests rewrite it: what it leads to can be read.
func through(target string) (string, error) {
	return "https://t.test/c/" + url.QueryEscape(target), nil
}

const (
	pixel   = "https://t.test/o/x?a=1&b=2"
	picture = `<img src="https://t.test/o/x?a=1&amp;b=2" width="1" height="1" alt="">`
)

func rewrite(source string, o Options) (string, error) { return Scan(source).Rewrite(o) }

func TestLinks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, html, want string }{
		{"double quotes", `<a href="https://x.test/a">`, `<a href="https://t.test/c/https%3A%2F%2Fx.test%2Fa">`},
		{"single quotes", `<a href='https://x.test/a'>`, `<a href='https://t.test/c/https%3A%2F%2Fx.test%2Fa'>`},
		{"no quotes get some", `<a href=https://x.test/a/>`,
			`<a href="https://t.test/c/https%3A%2F%2Fx.test%2Fa%2F">`},
		{"area", `<area shape=rect href="http://x.test">`,
			`<area shape=rect href="https://t.test/c/http%3A%2F%2Fx.test">`},
		{"capitals", `<A CLASS=b HREF = "HTTPS://X.Test/A">`,
			`<A CLASS=b HREF = "https://t.test/c/https%3A%2F%2Fx.test%2FA">`},
		{"line breaks in the tag", "<a\r\n  href\n=\n\"https://x.test/\"\t>",
			"<a\r\n  href\n=\n\"https://t.test/c/https%3A%2F%2Fx.test%2F\"\t>"},
		{"slashes for blanks", `<a/href="https://x.test/"/>`,
			`<a/href="https://t.test/c/https%3A%2F%2Fx.test%2F"/>`},
		{"entities", `<a href="https://x.test/?a=1&amp;b=2">`,
			`<a href="https://t.test/c/https%3A%2F%2Fx.test%2F%3Fa%3D1%26b%3D2">`},
		{"ampersand that only looks like an entity", `<a href="https://x.test/?a=1&copy=2">`,
			`<a href="https://t.test/c/https%3A%2F%2Fx.test%2F%3Fa%3D1%26copy%3D2">`},
		{"the first href counts", `<a href="https://x.test/1" href="https://x.test/2">`,
			`<a href="https://t.test/c/https%3A%2F%2Fx.test%2F1" href="https://x.test/2">`},
		{"an attribute that ends in href", `<a data-href="https://x.test/1" href="https://x.test/2">`,
			`<a data-href="https://x.test/1" href="https://t.test/c/https%3A%2F%2Fx.test%2F2">`},
		{"href in the value of another", `<a title='href="https://x.test/1"' href=https://x.test/2>`,
			`<a title='href="https://x.test/1"' href="https://t.test/c/https%3A%2F%2Fx.test%2F2">`},
		{"the sign > in a value", `<a title="a > b" href="https://x.test/">`,
			`<a title="a > b" href="https://t.test/c/https%3A%2F%2Fx.test%2F">`},
		{"equals sign for a name", `<a ="x" href="https://x.test/">`,
			`<a ="x" href="https://t.test/c/https%3A%2F%2Fx.test%2F">`},
		{"blanks around", "<a href=\" https://x.test/\n\">", `<a href="https://t.test/c/https%3A%2F%2Fx.test%2F">`},
		{"a blank inside is encoded", `<a href="https://x.test/a b">`,
			`<a href="https://t.test/c/https%3A%2F%2Fx.test%2Fa%2520b">`},
		{"letters outside ASCII", `<a href="https://müller.test:8080/grün?ö#ä">`,
			`<a href="https://t.test/c/https%3A%2F%2Fxn--mller-kva.test%3A8080%2Fgr%25C3%25BCn%3F%25C3%25B6%23%25C3%25A4">`},
		{"fragment of a page", `<a href="https://x.test/#top">`,
			`<a href="https://t.test/c/https%3A%2F%2Fx.test%2F%23top">`},
		{"base", `<base href="https://x.test/news/"><a href="../b?c">`,
			`<base href="https://x.test/news/"><a href="https://t.test/c/https%3A%2F%2Fx.test%2Fb%3Fc">`},
		{"base behind the link", `<a href="b"><base href="https://x.test/n/">`,
			`<a href="https://t.test/c/https%3A%2F%2Fx.test%2Fn%2Fb"><base href="https://x.test/n/">`},
		{"link without scheme", `<base href="https://x.test"><a href="//y.test/b">`,
			`<base href="https://x.test"><a href="https://t.test/c/https%3A%2F%2Fy.test%2Fb">`},
		{"revealed conditional comment", `<![if !mso]><a href="https://x.test/"><![endif]>`,
			`<![if !mso]><a href="https://t.test/c/https%3A%2F%2Fx.test%2F"><![endif]>`},
		{"not only for Outlook", `<!--[if !mso]><!--><a href="https://x.test/"><!--<![endif]-->`,
			`<!--[if !mso]><!--><a href="https://t.test/c/https%3A%2F%2Fx.test%2F"><!--<![endif]-->`},
		{"data-track on", `<a data-track="on" href="https://x.test/">`,
			`<a data-track="on" href="https://t.test/c/https%3A%2F%2Fx.test%2F">`},
		{"address of a host", `<a href="http://[2001:db8::1]:80/">`,
			`<a href="https://t.test/c/http%3A%2F%2F%5B2001%3Adb8%3A%3A1%5D%3A80%2F">`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := rewrite(tt.html, Options{Link: through})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLeftAlone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, html string }{
		{"mailto", `<a href="mailto:a@x.test">`},
		{"tel", `<a href="tel:+49123">`},
		{"sms", `<a href="sms:+49123">`},
		{"cid", `<a href="cid:a@x">`},
		{"data", `<a href="data:text/html,x">`},
		{"javascript", `<a href="javascript:alert(1)">`},
		{"javascript in disguise", "<a href=\"\x01javascript:alert(1)\">"},
		{"ftp", `<a href="ftp://x.test/">`},
		{"fragment", `<a href="#top">`},
		{"fragment beside a base", `<base href="https://x.test/"><a href="#top">`},
		{"empty", `<a href="">`},
		{"blank", `<a href="  ">`},
		{"no value", `<a href>`},
		{"no value, then one", `<a href / href="https://x.test/">`},
		{"no href", `<a name="x">`},
		{"relative", `<a href="b.html">`},
		{"relative to a base that is none", `<base href="/x/"><a href="b.html">`},
		{"another scheme beside a base", `<base href="https://x.test/"><a href="mailto:a@x.test">`},
		{"without scheme or base", `<a href="//x.test/">`},
		{"handlebars", `<a href="https://x.test/{{id}}">`},
		{"handlebars, encoded", `<a href="https://x.test/%7B%7Bid%7D%7D">`},
		{"merge tag", `<a href="https://x.test/*|ID|*">`},
		{"jinja", `<a href="{% url %}">`},
		{"only a mark", `<a href="{{unsubscribe}}">`},
		{"kept", `<a href="https://keep.test/u/1">`},
		{"kept, in capitals", `<a href="HTTPS://Keep.Test/u/1">`},
		{"data-track off", `<a data-track="off" href="https://x.test/">`},
		{"data-track off behind it", `<a href="https://x.test/" DATA-TRACK=Off>`},
		{"comment", `<!-- <a href="https://x.test/"> -->`},
		{"only for Outlook", `<!--[if mso]><a href="https://x.test/"><![endif]-->`},
		{"user name", `<a href="https://bank.test@evil.test/">`},
		{"user name beside a base", `<base href="https://x.test"><a href="//bank.test@evil.test/">`},
		{"line break inside", "<a href=\"https://x.test/\r\nSet-Cookie:a\">"},
		{"line break as an entity", `<a href="https://x.test/&#13;&#10;Set-Cookie:a">`},
		{"tab inside the scheme", "<a href=\"ht\ttps://x.test/\">"},
		{"backslash", `<a href="https:\\x.test\">`},
		{"backslash in the host", `<a href="https://x.test\@evil.test/">`},
		{"encoded host", `<a href="https://x%2etest/">`},
		{"no host", `<a href="https:///a">`},
		{"only a port", `<a href="https://:80/a">`},
		{"port of letters", `<a href="https://x.test:a/">`},
		{"one slash", `<a href="https:/x.test">`},
		{"half a percent sign", `<a href="https://x.test/%2">`},
		{"not UTF-8", "<a href=\"https://x.test/\xff\">"},
		{"too long", `<a href="https://x.test/` + strings.Repeat("a", 2000) + `">`},
		{"other elements", `<link href="https://x.test/"><form action="https://x.test/"><img src="https://x.test/"><svg:a href="https://x.test/">`},
		{"text that looks like a link", `https://x.test/ &lt;a href="https://x.test/">`},
		{"in a style sheet", `<style>a[href="https://x.test/"]{} <a href="https://x.test/"></style>`},
		{"in a title", `<title><a href="https://x.test/"></title>`},
		{"end tag", `</a href="https://x.test/">`},
		{"never closed", `<a href="https://x.test/" `},
		{"quotes never closed", `<a href="https://x.test/> <b>`},
		{"odd bytes", "\x00<\xff a href=x><!-<>< a href='https://x.test'>&amp;&lt"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := rewrite(tt.html, Options{Link: through, Keep: []string{"", "https://KEEP.test/u/"}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.html, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLinksThatStay holds that a link that begins as one to keep is kept wherever it leads.
func TestLinksThatStay(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"https://keep.test/u", "HTTPS://Keep.Test/u", "https://keep.test",
		"https://keep.test/ü", "https://müller.test/u", "https://keep.test/a b", "//keep.test/u", "/u", "u",
		"keep://a/", "https://keep.test/u?t="} {
		for _, link := range []string{prefix, prefix + "/1?a=ü", prefix + "ü.test/", " " + prefix,
			prefix + "\x01", prefix + "{{x}}"} {
			o := Options{Link: through, Keep: []string{prefix}}
			target, web := base{}.target(link)
			if want := !web || kept(target, o.Keep); o.Leaves(link) != want || !want && stays(link, o.Keep) {
				t.Errorf("%q stays with the prefix %q: %v, want %v", link, prefix, o.Leaves(link), want)
			}
		}
	}
}

func TestPixel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, html, want string }{
		{"before the end of the body", "<body><p>a</p></body></html>", "<body><p>a</p>" + picture +
			"</body></html>"},
		{"capitals and blanks", "<BODY>a</BODY \n></HTML>", "<BODY>a" + picture + "</BODY \n></HTML>"},
		{"before the last end", "<body>a</body>b</body>c", "<body>a</body>b" + picture + "</body>c"},
		{"not in a comment", "<body>a</body><!-- </body> -->", "<body>a" + picture + "</body><!-- </body> -->"},
		{"not in a title", "<body>a<title></body></title>", "<body>a<title></body></title>" + picture},
		{"no body", "<p>a", "<p>a" + picture},
		{"nothing at all", "", picture},
		{"link right before the end", `<a href=https://x.test></body>`,
			`<a href="https://t.test/c/https%3A%2F%2Fx.test">` + picture + "</body>"},
		{"link behind the body", `</body><a href="https://x.test">`,
			picture + `</body><a href="https://t.test/c/https%3A%2F%2Fx.test">`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := rewrite(tt.html, Options{Link: through, Pixel: pixel})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOnlyThePixel(t *testing.T) {
	t.Parallel()
	got, err := rewrite(`<a href="https://x.test/">`, Options{Pixel: pixel})
	if want := `<a href="https://x.test/">` + picture; got != want || err != nil {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestALinkThatCannotBeMade(t *testing.T) {
	t.Parallel()
	no := errors.New("no")
	source := `<a href="https://x.test/1"><a href="https://x.test/2">`
	got, err := rewrite(source, Options{Pixel: pixel, Link: func(u string) (string, error) {
		if u == "https://x.test/2" {
			return "", no
		}
		return through(u)
	}})
	if got != source || !errors.Is(err, no) {
		t.Errorf("got %q, %v; want the html as it was and the error", got, err)
	}
	got, err = rewrite(source, Options{Link: func(string) (string, error) { return "", nil }})
	if got != source || err != nil {
		t.Errorf("kept by Link: got %q, %v", got, err)
	}
}

// TestManyLinks: each different link is made once, links from the 501st on stay, known links are rewritten
// wherever they stand.
func TestManyLinks(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 510 {
		fmt.Fprintf(&b, `<a href="https://x.test/%d">`, i)
	}
	b.WriteString(`<a href="https://x.test/0">`)
	asked := 0
	got, err := rewrite(b.String(), Options{Link: func(u string) (string, error) { asked++; return through(u) }})
	if err != nil || asked != 500 || strings.Count(got, "t.test") != 501 {
		t.Errorf("asked %d times, %d rewritten, %v", asked, strings.Count(got, "t.test"), err)
	}
}

// TestGolden rewrites whole emails. Changes other than links can be seen in the difference of the two files.
func TestGolden(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.in.html")
	if err != nil || len(names) == 0 {
		t.Fatal("no golden mails", err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			source, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			o := Options{Link: through, Pixel: pixel, Keep: []string{"https://t.test/unsubscribe"}}
			got, err := rewrite(string(source), o)
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(name, ".in.html") + ".out.html"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// hrefs are the links of html as a browser reads them.
func hrefs(source string) (all []string) {
	z := html.NewTokenizer(strings.NewReader(source))
	for z.Next() != html.ErrorToken {
		token := z.Token()
		if token.Type != html.StartTagToken && token.Type != html.SelfClosingTagToken {
			continue
		}
		for _, a := range token.Attr {
			all = append(all, token.Data+" "+a.Key+"="+a.Val)
		}
	}
	return all
}

func FuzzRewrite(f *testing.F) {
	names, err := filepath.Glob("testdata/*.in.html")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		source, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(source))
	}
	f.Add("<a/ =href=a href = 'https://x.test/&quot;'/ ><base href=https://y.test><a href=a><!--</body>--></body>")
	f.Add("<a href=https://x.test/\x00>\r\n<a href/='https://x.test'><plaintext></body>")
	f.Fuzz(func(t *testing.T, source string) {
		const prefix = "https://t.test/c/"
		made := 0
		link := func(u string) (string, error) {
			made++
			if parsed, err := url.Parse(u); err != nil || parsed.User != nil || parsed.Host == "" ||
				(parsed.Scheme != "http" && parsed.Scheme != "https") ||
				strings.ContainsFunc(u, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
				t.Errorf("%q was to be rewritten", u)
			}
			return prefix + url.QueryEscape(u), nil
		}
		once, err := rewrite(source, Options{Link: link, Keep: []string{prefix}})
		if err != nil {
			t.Fatal(err)
		}
		if made == 0 && once != source {
			t.Errorf("%q became %q, and no link was made", source, once)
		}
		before, after := hrefs(source), hrefs(once)
		if len(before) != len(after) {
			t.Fatalf("%q became %q: attributes %q became %q", source, once, before, after)
		}
		for i := range before {
			if before[i] != after[i] && !strings.HasPrefix(after[i], "a href="+prefix) &&
				!strings.HasPrefix(after[i], "area href="+prefix) {
				t.Errorf("%q became %q", before[i], after[i])
			}
		}
		made = 0
		if twice, err := rewrite(once, Options{Link: link, Keep: []string{prefix}}); twice != once || err != nil ||
			made != 0 {
			t.Errorf("%q rewritten again: %q, %v", once, twice, err)
		}
		with, err := rewrite(source, Options{Pixel: pixel})
		if at := strings.LastIndex(with, picture); err != nil || at < 0 ||
			with[:at]+with[at+len(picture):] != source {
			t.Errorf("with the picture: %q, %v", with, err)
		}
	})
}

func BenchmarkRewrite(b *testing.B) {
	row := `<tr><td class="cell" style="padding:0 10px;font:14px/20px Arial">An offer, and some words about it that go on for a line or two.` +
		`<a href="https://shop.test/item?id=%d&amp;utm_source=mail" style="color:#123456">See it</a></td></tr>` +
		"\n"
	var page strings.Builder
	page.WriteString("<html><body><table>")
	for i := 0; page.Len() < 100<<10; i++ {
		fmt.Fprintf(&page, row, i)
	}
	page.WriteString("</table></body></html>")
	source := page.String()
	b.SetBytes(int64(len(source)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := rewrite(source, Options{Link: through, Pixel: pixel}); err != nil {
			b.Fatal(err)
		}
	}
}
