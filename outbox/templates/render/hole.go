package render

import (
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/postroom/postroom/internal/message"
)

// standIn begins a value's stand-in. Html that contains it is not shaped.
const standIn = "Qv7zjx"

// openEntity matches text that may be the beginning of an entity, which the next letters would end.
var openEntity = regexp.MustCompile(`&[#0-9A-Za-z]*$`)

// Values in harmless attributes change nothing but themselves. Values in addresses must not begin the scheme
// of an address. CSS is not matched with either of them, unless it has a [, but with languages.
var (
	harmless  = []string{"alt", "title"}
	languages = []string{"lang", "dir"}
	addresses = []string{"href", "src", "background"}
)

// holesOf returns where values stand between texts. It is not ok if the values could change the form of the
// html: in tags, style elements and scripts, in most attributes, next to an open entity. inlines says that
// its CSS is inlined.
func holesOf(around []string, inlines bool) ([]hole, bool) {
	holes, places := make([]hole, len(around)-1), make([]int, len(around)-1)
	var page strings.Builder
	for i := range holes {
		page.WriteString(around[i])
		if openEntity.MatchString(around[i]) {
			return nil, false
		}
		places[i] = page.Len()
		page.WriteString(standIn)
	}
	page.WriteString(around[len(holes)])
	source := page.String()
	z := html.NewTokenizer(strings.NewReader(source))
	element, attributes := "", false
	for at, next := 0, 0; next < len(holes); {
		kind := z.Next()
		raw := source[at : at+len(z.Raw())]
		if kind == html.ErrorToken {
			return nil, false
		}
		for ; next < len(holes) && places[next] < at+len(raw); next++ {
			ok := false
			switch kind {
			case html.TextToken:
				ok = inText(element, raw)
			case html.StartTagToken, html.SelfClosingTagToken:
				holes[next].address, ok = inTag(raw, places[next]-at, inlines)
				attributes = true
			case html.CommentToken:
				ok = inComment(raw, places[next]-at)
			}
			if !ok {
				return nil, false
			}
		}
		name, _ := z.TagName()
		element = ""
		if kind == html.StartTagToken {
			element = string(name)
		}
		at += len(raw)
	}
	return holes, !(inlines && attributes && slices.ContainsFunc(around, func(part string) bool {
		return strings.Contains(part, "[")
	}))
}

// inText reports whether a value may stand in a text. element is the one whose start tag is directly before.
func inText(element, raw string) bool {
	switch element {
	case "script", "style", "iframe", "noembed", "noframes", "noscript", "plaintext", "xmp":
		return false
	case "title", "textarea": // its end tag could be made of a value
		return !strings.Contains(raw, "<")
	}
	return true
}

// inTag reports whether a value may stand at an offset of a start tag, and whether an address begins with it.
// inlines: CSS is inlined.
func inTag(raw string, at int, inlines bool) (address, ok bool) {
	if len(raw) > len("<base") && strings.EqualFold(raw[:len("<base")], "<base") {
		return false, false // all links may depend on it
	}
	for _, name := range slices.Concat(harmless, languages, addresses) {
		a, found := message.FindAttribute(raw, name)
		if !found || !a.Quoted || at < a.ValueStart || at+len(standIn) > a.ValueEnd {
			continue
		}
		before := raw[a.ValueStart:at]
		switch {
		case slices.Contains(harmless, name):
			return false, true
		case slices.Contains(languages, name):
			return false, !inlines
		case before == "":
			return true, true
		}
		return false, isWeb(before) || strings.HasPrefix(before, standIn) ||
			strings.HasPrefix(before, "mailto:")
	}
	return false, false
}

// inComment reports whether a value may stand at an offset of a comment: it can't be a part of its end.
func inComment(raw string, at int) bool {
	after := raw[at+len(standIn):]
	return strings.HasPrefix(raw, "<!--") && after != "" && strings.IndexByte("->!", after[0]) < 0
}
