package outbox

import (
	"html"
	"regexp"
	"slices"
	"strings"

	"github.com/postroom/postroom/outbox/templates/render"
)

// LinkOf returns a link as it stands in the content, before params filled it in. If params fill in links of
// the content, and this one is none of them, its query and fragment may be one person's, and are left out.
func (f Snapshot) LinkOf(address string) string {
	best, literal := "", -1
	for _, link := range f.Links {
		if link == address {
			return link
		}
		if parts := variables.Split(link, -1); len(parts) > 1 && fits(address, parts) {
			if n := len(strings.Join(parts, "")); n > literal {
				best, literal = link, n
			}
		}
	}
	switch {
	case literal >= 0:
		return best
	case len(f.Links) > 0:
		return address[:strings.IndexAny(address+"#", "?#")]
	}
	return address
}

// fits reports whether an address is made of parts in this order, with anything between them.
func fits(address string, parts []string) bool {
	rest, ok := strings.CutPrefix(address, parts[0])
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, part)
		if !ok || i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return ok && strings.HasSuffix(rest, last)
}

// linksOf returns the links of a content if params fill in any of them; else none.
func linksOf(c render.Content) []string {
	sources := []string{c.Source.HTML, c.Options.Layout}
	for _, partial := range c.Options.Partials {
		sources = append(sources, partial)
	}
	var all []string
	filled := false
	for _, source := range sources {
		found := webAddress.FindAllString(source, -1)
		for _, match := range wholeLink.FindAllStringSubmatch(source, -1) {
			found = append(found, match[1])
		}
		for _, link := range found {
			link = html.UnescapeString(link)
			if strings.HasSuffix(link, ")") && strings.Count(link, "(") < strings.Count(link, ")") { // Markdown
				link = strings.TrimSuffix(link, ")")
			}
			filled = filled || variables.MatchString(link)
			if len(all) < mostLinks && !slices.Contains(all, link) {
				all = append(all, link)
			}
		}
	}
	if !filled {
		return nil
	}
	slices.Sort(all)
	return all
}

// An address in a content, before params fill it in: a web address, or a variable that is the whole target.
var (
	webAddress = regexp.MustCompile(`(?is)https?://(?:\{\{\{?.*?\}\}\}?|[^\s"'<>{}])+`)
	wholeLink  = regexp.MustCompile(`(?is)href\s*=\s*["']?\s*(\{\{\{?.*?\}\}\}?(?:\{\{\{?.*?\}\}\}?|[^\s"'<>{}])*)`)
	variables  = regexp.MustCompile(`(?s)\{\{\{?#.*\{\{\{?/.*?\}\}\}?|\{\{\{?.*?\}\}\}?`)
)

// mostLinks bounds the links of a content that are stored with it.
const mostLinks = 200
