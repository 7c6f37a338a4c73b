package message_test

import (
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/postroom/postroom/internal/message"
)

func TestFindAttribute(t *testing.T) {
	for _, row := range []struct{ tag, whole, value string }{
		{`<a href="x">`, `href="x"`, "x"},
		{`<a title='>' HREF = 'x y' >`, `HREF = 'x y'`, "x y"},
		{`<a/href=x/y>`, `href=x/y`, "x/y"},
		{`<a data-href=1 href=2 href=3>`, `href=2`, "2"},
		{`<a =href=1 href>`, `href`, ""},
		{`<a href="x`, `href="x`, ""},
		{`<a href=>`, `href=`, ""},
		{`<a title="href=1">`, "", ""},
		{`<href>`, "", ""},
	} {
		a, ok := message.FindAttribute(row.tag, "href")
		if ok != (row.whole != "") || row.tag[a.Start:a.End] != row.whole ||
			row.tag[a.ValueStart:a.ValueEnd] != row.value {
			t.Errorf("%s: %q with value %q", row.tag, row.tag[a.Start:a.End], row.tag[a.ValueStart:a.ValueEnd])
		}
	}
}

// FuzzFindAttribute holds the position against the value that the tokenizer finds.
func FuzzFindAttribute(f *testing.F) {
	f.Add(`<a title='>' HREF = 'x y' >`)
	f.Add(`<a/href=x/y>`)
	f.Add(`<a =href=1 href>`)
	f.Fuzz(func(t *testing.T, tag string) {
		found, ok := message.FindAttribute(tag, "href")
		z := html.NewTokenizer(strings.NewReader(tag))
		if z.Next() != html.StartTagToken || len(z.Raw()) != len(tag) || strings.ContainsAny(tag, "\r\x00") {
			return
		}
		for _, a := range z.Token().Attr {
			if a.Key == "href" {
				if value := html.UnescapeString(tag[found.ValueStart:found.ValueEnd]); !ok || value != a.Val {
					t.Fatalf("%q, want %q", value, a.Val)
				}
				return
			}
		}
		if ok {
			t.Fatalf("found %+v", found)
		}
	})
}
