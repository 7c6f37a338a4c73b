package render

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/outbox/links"
	"github.com/postroom/postroom/outbox/templates/handlebars"
)

// Limits of what a template keeps of its finished pages.
const (
	maxShapes = 8         // a block that is printed or not makes two of one
	maxShaped = 128 << 10 // bytes of a page that is kept
)

// shapes are a template's finished pages, by what its html has around a message's values. A campaign's
// messages differ in few words, so only the first is read as html: links are disarmed in it, CSS inlined, the
// text made of it. The others put their values into the first one's result.
type shapes struct {
	mu   sync.RWMutex
	kept []*shape
}

// shape is the finished form of all pages that differ in their values only.
type shape struct {
	around []string // the executed html around its values
	holes  []hole   // nil if the page's form depends on the values
	html   filling
	text   filling
	made   bool // the text is made of the html
	links  []shapedLink
	same   bool // html is the executed one

	page      links.Page // html with stand-ins
	addresses []filling  // the page's links
	standIns  []int      // lengths
}

// hole is where a value goes.
type hole struct{ address bool } // address: a link's, which begins with it

// shapedLink is a link whose address or text has values. They decide whether and how the text has its
// address.
type shapedLink struct {
	link                message.TextLink
	href, shown, target filling
}

// of returns the link with values.
func (l shapedLink) of(values []handlebars.Value) message.TextLink {
	real := l.link
	real.Href, real.Shown = l.href.of(values), l.shown.of(values)
	return real
}

// fill sets the html and the text of a page, if one of its shape was finished before and its values allow it.
func (s *shapes) fill(page handlebars.Result, m *Mail) bool {
	found := s.find(page)
	if found == nil || found.holes == nil || !found.takes(page.Values) {
		return false
	}
	m.HTML, m.shape, m.values = page.Text, found, page.Values
	if !found.same {
		m.HTML = found.html.with(page, true)
	}
	m.Text = found.text.with(page, false)
	return true
}

// moved returns where an offset of the html with stand-ins is in that with values.
func (s *shape) moved(offset int, values []handlebars.Value) int {
	at, grown := 0, 0
	for i, v := range values {
		if at += len(s.html.around[i]); at >= offset {
			break
		}
		at += s.standIns[i]
		grown += v.End - v.Start - s.standIns[i]
	}
	return offset + grown
}

// find returns the shape of a page, or nil.
func (s *shapes) find(page handlebars.Result) *shape {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, one := range s.kept {
		if one.is(page) {
			return one
		}
	}
	return nil
}

// keep keeps a shape, unless there are enough.
func (s *shapes) keep(one *shape) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) < maxShapes {
		s.kept = append(s.kept, one)
	}
}

// wants reports whether a page's shape should be kept.
func (s *shapes) wants(page handlebars.Result) bool {
	if len(page.Text) > maxShaped || s.find(page) != nil {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.kept) < maxShapes
}

// is reports whether a page has this shape.
func (s *shape) is(page handlebars.Result) bool {
	if len(page.Values) != len(s.around)-1 {
		return false
	}
	at := 0
	for i, v := range page.Values {
		if page.Text[at:v.Start] != s.around[i] {
			return false
		}
		at = v.End
	}
	return page.Text[at:] == s.around[len(page.Values)]
}

// takes reports whether values change nothing but the places where they stand.
func (s *shape) takes(values []handlebars.Value) bool {
	for i, v := range values {
		if !message.Steady(v.Text) || s.holes[i].address && !isWeb(v.Text) {
			return false
		}
	}
	return !s.made || !slices.ContainsFunc(s.links, func(l shapedLink) bool {
		return l.of(values).Target() != l.target.of(values)
	})
}

func isWeb(address string) bool {
	return strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://")
}

// newShape finds the finished form of pages like page, by finishing it twice with stand-ins for its values.
// If values may change more than their places, or the page can't be finished, it has no holes.
func newShape(ctx context.Context, page handlebars.Result, t *Template) *shape {
	s := &shape{around: make([]string, 0, len(page.Values)+1)}
	at := 0
	for _, v := range page.Values {
		s.around = append(s.around, strings.Clone(page.Text[at:v.Start]))
		at = v.End
	}
	s.around = append(s.around, strings.Clone(page.Text[at:]))
	if slices.ContainsFunc(s.around, func(part string) bool { return strings.Contains(part, standIn) }) {
		return s
	}
	holes, ok := holesOf(s.around, t.options.InlineCSS)
	if !ok {
		return s
	}
	first, ok := s.finished(ctx, holes, "https://", "", t)
	if !ok {
		return s
	}
	second, ok := s.finished(ctx, holes, "http://x.", "second", t)
	if !ok || !first.equal(second) {
		return s
	}
	first.around, first.holes, first.made = s.around, holes, t.text == nil
	first.same = first.html.equal(plain(s.around))
	return &first
}

// finished finishes the page with stand-ins. It is not ok if one of them is lost, repeated or moved in the
// html, or repeated in the text.
func (s *shape) finished(ctx context.Context, holes []hole, scheme, more string, t *Template) (shape, bool) {
	names := make([]string, len(holes))
	var page strings.Builder
	for i, h := range holes {
		names[i] = standIn + strconv.Itoa(i) + more + "z"
		if h.address {
			names[i] = scheme + names[i]
		}
		page.WriteString(s.around[i] + names[i])
	}
	page.WriteString(s.around[len(holes)])
	html, text, shown, ok := t.stoodIn(ctx, page.String())
	if !ok {
		return shape{}, false
	}
	done := shape{html: split(html, names), text: split(text, names), page: links.Scan(html)}
	for _, name := range names {
		done.standIns = append(done.standIns, len(name))
	}
	for _, address := range done.page.Addresses() {
		done.addresses = append(done.addresses, split(address, names))
	}
	for _, l := range shown {
		one := shapedLink{l, split(l.Href, names), split(l.Shown, names), split(l.Target(), names)}
		if len(one.href.holes)+len(one.shown.holes) > 0 {
			done.links = append(done.links, one)
		}
	}
	return done, done.html.equal(filling{done.html.around, plain(s.around).holes}) && done.text.once()
}

func (s shape) equal(other shape) bool {
	return s.html.equal(other.html) && s.text.equal(other.text) &&
		slices.EqualFunc(s.links, other.links, func(a, b shapedLink) bool {
			return a.target.equal(b.target) && a.href.equal(b.href) && a.shown.equal(b.shown)
		})
}
