package links

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// maxDistinct bounds the different links of one email that are rewritten. Ordinary mail has fewer; an email
// with more is a list of data.
const maxDistinct = 500

// Options are the settings of a rewrite. The zero value changes nothing.
type Options struct {
	// Link returns the URL that a click goes to first. url is the final URL: absolute, http or https, in ASCII.
	// Link is called once for each different link. If it returns "", the link stays as it is. If Link is nil,
	// all links stay.
	Link func(url string) (string, error)
	// Pixel is the URL of the image that counts opens. If empty, none is added.
	Pixel string
	// Keep lists prefixes of URLs that are never rewritten, for example unsubscribe pages. Scheme and host are
	// compared in lower case.
	Keep []string
}

// Leaves reports whether an absolute link stays as it is.
func (o Options) Leaves(link string) bool {
	if o.Link == nil || stays(link, o.Keep) {
		return true
	}
	target, web := base{}.target(link)
	return !web || kept(target, o.Keep)
}

// Rewrite returns the html with its links rewritten. The pixel goes before the end of the body, or at the end
// of the html if the body has no end tag. It fails only if Options.Link does; then the html is unchanged.
func (p Page) Rewrite(o Options) (string, error) {
	var edits []edit
	if o.Link != nil {
		var err error
		if edits, err = rewritten(p, o); err != nil {
			return p.source, err
		}
	}
	if o.Pixel != "" {
		edits = inserted(edits, p.bodyEnd, `<img src="`+html.EscapeString(o.Pixel)+`" width="1" height="1" alt="">`)
	}
	return spliced(p.source, edits), nil
}

// edit replaces a piece of the html.
type edit struct {
	start, end int
	text       string
}

// rewritten returns the edits of links.
func rewritten(p Page, o Options) ([]edit, error) {
	var edits []edit
	known := make(map[string]string, min(len(p.links), maxDistinct))
	for _, l := range p.links {
		if stays(l.value, o.Keep) {
			continue
		}
		target, web := l.target, l.web
		if !l.led {
			target, web = p.base.target(l.value)
		}
		if !web || kept(target, o.Keep) {
			continue
		}
		to, seen := known[target]
		if !seen {
			if len(known) == maxDistinct {
				continue
			}
			var err error
			if to, err = o.Link(target); err != nil {
				return nil, fmt.Errorf("rewrite link: %w", err)
			}
			known[target] = to
		}
		if to != "" {
			edits = append(edits, edit{l.start, l.end, l.written(to)})
		}
	}
	return edits, nil
}

// written returns a URL as an attribute value. A value without quotes gets some: it may now end in a slash,
// which would close the element.
func (l link) written(url string) string {
	if l.quoted {
		return html.EscapeString(url)
	}
	return `"` + html.EscapeString(url) + `"`
}

// kept reports whether a URL begins with one of the prefixes.
func kept(url string, prefixes []string) bool {
	for _, p := range prefixes {
		if p != "" && (strings.HasPrefix(url, p) || strings.HasPrefix(url, lowerHost(p))) {
			return true
		}
	}
	return false
}

// stays reports whether a link is kept for how it begins, which is sooner found than where it leads: its
// target begins alike.
func stays(link string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		_, rest, _ := strings.Cut(p, "://")
		return strings.HasPrefix(link, p) && strings.Contains(rest, "/") && encoded(p) == p
	})
}

// inserted adds a text at an offset to edits, which are sorted by offset. The offset is never inside a link.
func inserted(edits []edit, at int, text string) []edit {
	i := len(edits)
	for i > 0 && edits[i-1].start >= at {
		i--
	}
	return slices.Insert(edits, i, edit{at, at, text})
}

func spliced(source string, edits []edit) string {
	if len(edits) == 0 {
		return source
	}
	size := len(source)
	for _, e := range edits {
		size += len(e.text)
	}
	var b strings.Builder
	b.Grow(size)
	at := 0
	for _, e := range edits {
		b.WriteString(source[at:e.start])
		b.WriteString(e.text)
		at = e.end
	}
	b.WriteString(source[at:])
	return b.String()
}
