package render

import (
	"strings"

	"golang.org/x/net/html"

	"github.com/postroom/postroom/templates/handlebars"
)

// disarm removes script addresses from html: links to "javascript:" and "data:" become "#". Images may use
// data:. All other bytes stay.
func disarm(source string) string {
	var out strings.Builder
	z := html.NewTokenizer(strings.NewReader(source))
	done, at := 0, 0
	for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
		start := at
		at += len(z.Raw())
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		token := z.Token()
		if !disarmTag(&token) {
			continue
		}
		out.WriteString(source[done:start])
		out.WriteString(token.String())
		done = at
	}
	if done == 0 {
		return source
	}
	out.WriteString(source[done:])
	return out.String()
}

// disarmTag changes the dangerous attributes of a tag, and reports whether there were any.
func disarmTag(token *html.Token) (changed bool) {
	for i := range token.Attr {
		a := &token.Attr[i]
		if isDangerous(token.Data, a.Key, a.Val) {
			a.Val = "#"
			changed = true
		}
	}
	return changed
}

func isDangerous(tag, name, value string) bool {
	switch name {
	case "href", "action", "formaction", "cite", "longdesc", "data", "ping", "xlink:href":
		return runs(value, false)
	case "src", "background", "poster", "lowsrc", "dynsrc":
		return runs(value, tag == "img" || name == "background")
	case "srcset":
		return runs(value, true)
	case "content":
		_, address, isRefresh := strings.Cut(strings.ToLower(value), "url=")
		return tag == "meta" && isRefresh && runs(strings.Trim(address, "'\""), false)
	}
	return false
}

// runs reports whether an address runs a script, or may.
func runs(address string, imagesAllowed bool) bool {
	switch handlebars.Scheme(address) {
	case "javascript", "vbscript", "livescript":
		return true
	case "data":
		return !imagesAllowed || !strings.HasPrefix(strings.ToLower(strings.TrimSpace(address)), "data:image/")
	}
	return false
}
