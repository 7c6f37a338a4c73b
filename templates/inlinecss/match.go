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

// matcher finds the elements that rules are for.
type matcher struct {
	ctx      context.Context
	left     int // comparisons
	room     int // bytes of declarations
	elements []element
	found    map[int]*cascade // by the number of the start tag
}

// element is an element of the page. Parents and elder siblings come before it.
type element struct {
	node           *html.Node
	parent, before int // in the list; -1 for none
	tag            int // number of its start tag; -1 for one that the html doesn't have
	children       int // nodes directly inside
	prefixes       uint64
	above, beside  uint64 // prefixes matched by any ancestor, by any elder sibling
}

// collect lists the elements, and takes the numbers off their tags again.
func (m *matcher) collect(root *html.Node, tags int) {
	m.found = map[int]*cascade{}
	seen := make([]bool, tags)
	type position struct {
		node           *html.Node
		parent, before int
	}
	var todo []position
	for p := (position{root.FirstChild, -1, -1}); p.node != nil || len(todo) > 0; {
		if p.node == nil {
			p, todo = todo[len(todo)-1], todo[:len(todo)-1]
			continue
		}
		if p.parent >= 0 {
			m.elements[p.parent].children++
		}
		next := position{p.node.NextSibling, p.parent, p.before}
		if p.node.Type == html.ElementNode {
			i := len(m.elements)
			m.elements = append(m.elements, element{node: p.node, parent: p.parent, before: p.before, tag: takeNumber(p.node, seen)})
			next.before = i
			todo = append(todo, next)
			p = position{p.node.FirstChild, i, -1}
			continue
		}
		p = next
	}
}

// takeNumber reads the number of an element's tag. An element that the parser made twice of one tag has it the first time only.
func takeNumber(n *html.Node, seen []bool) int {
	for i, a := range n.Attr {
		if a.Key != marker {
			continue
		}
		n.Attr = slices.Delete(n.Attr, i, i+1)
		number, err := strconv.Atoi(a.Val)
		if err != nil || number < 0 || number >= len(seen) || seen[number] {
			return -1
		}
		seen[number] = true
		return number
	}
	return -1
}

// apply notes a rule's declarations at the elements that its selector matches. It goes through the elements once: bit i of prefixes says
// that the first i+1 parts of the selector match up to this element.
func (m *matcher) apply(r *rule) error {
	last := uint64(1) << (len(r.parts) - 1)
	for i := range m.elements {
		if i%256 == 0 {
			if err := m.ctx.Err(); err != nil {
				return err
			}
		}
		e := &m.elements[i]
		if m.left -= m.cost(e, r.parts); m.left < 0 {
			return fmt.Errorf("too many rules for too many elements: %w", ErrLimit)
		}
		m.match(e, r.parts)
		if e.prefixes&last != 0 && e.tag >= 0 && !isInvisible(e.node.Data) {
			c := m.found[e.tag]
			if c == nil {
				c = &cascade{}
				m.found[e.tag] = c
			}
			c.rules = append(c.rules, r)
			m.left -= 4 // to be put in order later
			if m.room -= r.size; m.room < 0 {
				return fmt.Errorf("too many declarations for too many elements: %w", ErrLimit)
			}
		}
	}
	return nil
}

// cost is how many comparisons it takes to match an element.
func (m *matcher) cost(e *element, parts []part) int {
	n := len(parts)
	for _, p := range parts {
		if p.counts && e.parent >= 0 {
			n += m.elements[e.parent].children
		}
	}
	return n
}

func (m *matcher) match(e *element, parts []part) {
	var parent, before element
	e.above, e.beside = 0, 0
	if e.parent >= 0 {
		parent = m.elements[e.parent]
		e.above = parent.above | parent.prefixes
	}
	if e.before >= 0 {
		before = m.elements[e.before]
		e.beside = before.beside | before.prefixes
	}
	e.prefixes = 0
	for i, p := range parts {
		if i > 0 {
			from := e.above
			switch p.combinator {
			case '>':
				from = parent.prefixes
			case '+':
				from = before.prefixes
			case '~':
				from = e.beside
			}
			if from&(1<<(i-1)) == 0 {
				continue
			}
		}
		if p.selector.Match(e.node) {
			e.prefixes |= 1 << i
		}
	}
}

// isInvisible reports whether an element shows nothing that style could change.
func isInvisible(name string) bool {
	switch name {
	case "head", "style", "script", "title", "meta", "link", "base", "template":
		return true
	}
	return false
}

// cascade is what applies to one element.
type cascade struct{ rules []*rule }

// text gives the declarations that win, weakest first, together with those of the element's own style attribute. Where a rule says a
// property twice, both stay: the first is meant for programs that don't understand the second.
func (c *cascade) text(own string) string {
	type entry struct {
		declaration
		weight, source int
	}
	slices.SortStableFunc(c.rules, func(a, b *rule) int {
		return cmp.Or(slices.Compare(a.specificity[:], b.specificity[:]), a.order-b.order)
	})
	const isOwn, isImportant = 1, 2
	var all []entry
	add := func(declarations []declaration, weight, source int) {
		for _, d := range declarations {
			w := weight
			if d.important {
				w += isImportant
			}
			all = append(all, entry{d, w, source})
		}
	}
	for i, r := range c.rules {
		add(r.declarations, 0, i)
	}
	add(parseDeclarations(pieces(own)), isOwn, len(c.rules))
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
			text += " !important" // its author wants it to win over rules in style elements too
		}
		result = append(result, text)
	}
	return strings.Join(result, "; ")
}
