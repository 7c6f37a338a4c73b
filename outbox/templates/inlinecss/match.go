package inlinecss

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// matcher finds the elements that each rule is for.
type matcher struct {
	ctx      context.Context
	steps    int // that matching may still take
	space    int // bytes of declarations that may still be written
	elements []element
	weights  map[*html.Node]weight
	found    map[int]*cascade // by the number of the start tag
}

// element is an element of the page.
type element struct {
	node *html.Node
	tag  int // number of its start tag; copied or implied
}

// Numbers of elements that the parser made without a tag: it repeated one, or there was none.
const (
	copied  = -1
	implied = -2
)

// weight is the work of looking at a node once: a step, and more for one with long attributes.
type weight struct{ own, children int }

// collect lists the elements, and removes the numbers from their tags.
func (m *matcher) collect(root *html.Node, tags int) {
	m.found, m.weights = map[int]*cascade{}, map[*html.Node]weight{}
	seen := make([]bool, tags)
	for n := range root.Descendants() {
		w := m.weights[n]
		w.own = 1
		if n.Type == html.ElementNode {
			m.elements = append(m.elements, element{n, takeNumber(n, seen)})
			for _, a := range n.Attr {
				w.own += len(a.Key+a.Val) / 64
			}
		}
		m.weights[n] = w
		parent := m.weights[n.Parent]
		parent.children += w.own
		m.weights[n.Parent] = parent
	}
}

// takeNumber reads the number of an element's tag. If the parser made several elements of one tag, only the
// first has it.
func takeNumber(n *html.Node, seen []bool) int {
	for i, a := range n.Attr {
		if a.Key != marker {
			continue
		}
		n.Attr = slices.Delete(n.Attr, i, i+1)
		number, err := strconv.Atoi(a.Val)
		if err != nil || number < 0 || number >= len(seen) || seen[number] {
			return copied
		}
		seen[number] = true
		return number
	}
	return implied
}

// apply adds a rule to the elements that its selector matches.
func (m *matcher) apply(r *rule) error {
	if !r.inlined {
		return nil
	}
	for i, e := range m.elements {
		if i%256 == 0 {
			if err := m.ctx.Err(); err != nil {
				return err
			}
		}
		m.steps--
		if r.counts {
			m.steps -= m.weights[e.node.Parent].children
		}
		if m.steps >= 0 && r.parts > 1 && r.subject.Match(e.node) {
			m.steps -= m.cost(e.node, &r.selector)
		}
		if m.steps < 0 {
			return fmt.Errorf("too many rules for too many elements: %w", ErrLimit)
		}
		if e.tag == copied || isInvisible(e.node.Data) || !r.whole.Match(e.node) {
			continue
		}
		if e.tag == implied {
			if name := e.node.Data; name == "html" || name == "body" { // a page has one
				r.stays = append(r.stays, name)
			}
			continue
		}
		if m.found[e.tag] == nil {
			m.found[e.tag] = &cascade{}
		}
		m.found[e.tag].rules = append(m.found[e.tag].rules, r)
		m.steps -= 4 // for the later sort
		if m.space -= r.size; m.space < 0 {
			return fmt.Errorf("too many declarations for too many elements: %w", ErrLimit)
		}
	}
	return nil
}

// cost is an upper bound of the nodes that cascadia looks at to match a selector of several parts. For each
// combinator ' ' or '~' it tries one ancestor or elder sibling after the other, so the bound grows with the
// number of ways to choose as many of them. A step of cascadia is so much cheaper than a comparison of
// [Options] that 16 count as one.
func (m *matcher) cost(n *html.Node, s *selector) int {
	nodes, choices := 0, 0
	for a := range n.Ancestors() {
		w := m.weights[a]
		nodes += w.own
		choices++
		if s.counts {
			nodes += w.children
		}
	}
	if s.siblings {
		choices = nodes
	}
	steps := s.parts * nodes
	for i := 1; i < s.ways && steps/16 <= m.steps && i < choices/2; i++ {
		steps = steps * (choices - i) / (i + 1)
	}
	return steps / 16
}

// isInvisible reports whether an element shows nothing that style could change.
func isInvisible(name string) bool {
	return slices.Contains([]string{"head", "style", "script", "title", "meta", "link", "base", "template"},
		name)
}

// cascade is the rules that match one element.
type cascade struct{ rules []*rule }

// text returns the winning declarations, weakest first, with the element's own style attribute. If a rule has
// a property twice, both stay: the first is for programs that do not understand the second.
func (c *cascade) text(own string) string {
	type entry struct {
		declaration
		weight, source int
	}
	slices.SortStableFunc(c.rules, compare)
	const isOwn, isImportant = 1, 2
	var all []entry
	for i, r := range append(c.rules, &rule{declarations: parseDeclarations(pieces(own))}) {
		for _, d := range r.declarations {
			weight := 0
			if i == len(c.rules) {
				weight += isOwn
			}
			if d.important {
				weight += isImportant
			}
			all = append(all, entry{d, weight, i})
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int { return a.weight - b.weight })
	winners := make(map[string]entry, len(all))
	for _, e := range all {
		winners[e.property] = e
	}
	var result []string
	for _, e := range all {
		if w := winners[e.property]; w.source != e.source || w.weight != e.weight {
			continue
		}
		text := e.property + ": " + e.value
		if e.weight == isOwn+isImportant {
			text += " !important" // it must win over rules in style elements too
		}
		result = append(result, text)
	}
	return strings.Join(result, "; ")
}

// keepImportant also keeps inlined !important declarations in style elements if they must win over others
// that stay there. In an attribute they would lose to every !important of a style element.
func keepImportant(rules []*rule) {
	family := func(d declaration) string { // margin and margin-top are about the same
		name, _, _ := strings.Cut(d.property, "-")
		return name
	}
	rivals := map[string][]*rule{}
	for _, r := range rules {
		for _, d := range r.declarations {
			if d.important && !r.inlined {
				rivals[family(d)] = append(rivals[family(d)], r)
			}
		}
	}
	for _, r := range rules {
		loses := func(rival *rule) bool {
			return rival.order != r.order && (!rival.known || compare(rival, r) < 0)
		}
		for _, d := range r.declarations {
			if d.important && r.inlined && slices.ContainsFunc(rivals[family(d)], loses) {
				r.rivalled = append(r.rivalled, d)
			}
		}
	}
}

// compare orders rules by specificity and place.
func compare(a, b *rule) int {
	return cmp.Or(slices.Compare(a.specificity[:], b.specificity[:]), a.order-b.order)
}
