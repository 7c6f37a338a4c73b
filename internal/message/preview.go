package message

import (
	"html"
	"strings"

	xhtml "golang.org/x/net/html"
)

// The preview is in a block that mail programs hide in the message and show in the list beside the subject.
// The padding keeps the first words of the message out of the list.
const (
	previewOpen = `<div style="display:none;font-size:1px;line-height:1px;max-height:0;max-width:0;opacity:0;overflow:hidden;mso-hide:all">`
	previewPad  = `&#847;&zwnj;&nbsp;`
	previewFill = 140 // maximum number of characters in lists
)

// addPreview inserts a preview text after the body tag, or where the body would begin.
func addPreview(source, preview string) string {
	preview = strings.Join(strings.Fields(preview), " ")
	if preview == "" {
		return source
	}
	at := bodyStart(source)
	pad := strings.Repeat(previewPad, max(0, previewFill-len([]rune(preview))))
	return source[:at] + previewOpen + html.EscapeString(preview) + pad + "</div>" + source[at:]
}

// bodyStart returns the offset after the body tag. Without one it is the end of the head, the html tag or the
// doctype.
func bodyStart(source string) int {
	z := xhtml.NewTokenizer(strings.NewReader(source))
	offset, fallback := 0, 0
	for {
		kind := z.Next()
		if kind == xhtml.ErrorToken {
			return fallback
		}
		offset += len(z.Raw())
		name, _ := z.TagName()
		switch {
		case kind == xhtml.StartTagToken && string(name) == "body":
			return offset
		case kind == xhtml.EndTagToken && string(name) == "head", kind == xhtml.StartTagToken &&
			string(name) == "html",
			kind == xhtml.DoctypeToken:
			fallback = offset
		}
	}
}
