package handlebars

import "strings"

// edges is the white space control of a node.
type edges struct {
	strip
	alone               bool // may stand alone on its line
	openAlone, endAlone bool // so may its opening tag, and its closing one
}

// trim removes white space at tags with a tilde, and lines that contain only a tag that prints nothing. The
// order of the steps is Handlebars': some results depend on it.
func (p *program) trim(root bool) {
	if p == nil {
		return
	}
	for i, n := range p.body {
		e, ok := trimInside(n)
		if !ok {
			continue
		}
		blankBefore, blankAfter := blankBefore(p.body, i, root), blankAfter(p.body, i, root)
		if e.close {
			omitAfter(p.body, i, true)
		}
		if e.open {
			omitBefore(p.body, i, true)
		}
		if e.alone && blankBefore && blankAfter {
			omitAfter(p.body, i, false)
			if called, ok := n.(*partial); omitBefore(p.body, i, false) && ok {
				called.indent = trailingBlanks(p.body[i-1].(*content).original)
			}
		}
		if e.openAlone && blankBefore {
			omitAfter(inner(n, false).body, -1, false)
			omitBefore(p.body, i, false)
		}
		if e.endAlone && blankAfter {
			omitAfter(p.body, i, false)
			last := inner(n, true)
			omitBefore(last.body, len(last.body), false)
		}
	}
}

// trimInside trims the inside of a node and returns the white space control of its edges.
func trimInside(n node) (edges, bool) {
	switch n := n.(type) {
	case *output:
		return edges{strip: n.strip}, true
	case *comment:
		return edges{strip: n.strip, alone: true}, true
	case *partial:
		if n.block == nil {
			return edges{strip: n.strip, alone: true}, true
		}
		return trimBlock(n.block, nil, n.strip, strip{}, n.closeStrip), true
	case *inline:
		return trimBlock(n.program, nil, n.openStrip, strip{}, n.closeStrip), true
	case *block:
		return trimBlock(n.program, n.inverse, n.openStrip, n.inverseStrip, n.closeStrip), true
	}
	return edges{}, false
}

func trimBlock(first, inverse *program, opening, middle, closing strip) edges {
	first.trim(false)
	inverse.trim(false)
	if first == nil {
		first, inverse = inverse, nil
	}
	second, last := inverse, inverse
	if inverse != nil && inverse.chained {
		second = inverse.body[0].(*block).program
		for last.chained {
			last = last.body[0].(*block).program
		}
	}
	beforeEnd := first
	if second != nil {
		beforeEnd = second
	}
	e := edges{
		strip:     strip{open: opening.open, close: closing.close},
		openAlone: blankAfter(first.body, -1, false),
		endAlone:  blankBefore(beforeEnd.body, len(beforeEnd.body), false),
	}
	if opening.close {
		omitAfter(first.body, -1, true)
	}
	if inverse == nil {
		if closing.open {
			omitBefore(first.body, len(first.body), true)
		}
		return e
	}
	if middle.open {
		omitBefore(first.body, len(first.body), true)
	}
	if middle.close {
		omitAfter(second.body, -1, true)
	}
	if closing.open {
		omitBefore(last.body, len(last.body), true)
	}
	// otherwise not alone on the line
	if blankBefore(first.body, len(first.body), false) && blankAfter(second.body, -1, false) {
		omitBefore(first.body, len(first.body), false)
		omitAfter(second.body, -1, false)
	}
	return e
}

// inner returns the program after a node's opening tag, or before its closing tag.
func inner(n node, last bool) *program {
	switch n := n.(type) {
	case *partial:
		return n.block
	case *inline:
		return n.program
	case *block:
		if n.program == nil || last && n.inverse != nil {
			return n.inverse
		}
		return n.program
	}
	return &program{}
}

// blankBefore reports whether only white space precedes node i on its line.
func blankBefore(body []node, i int, root bool) bool {
	if i == 0 {
		return root
	}
	before, ok := body[i-1].(*content)
	if !ok {
		return false
	}
	rest := strings.TrimRightFunc(before.original, isSpace)
	return rest == "" && root && i == 1 || strings.Contains(before.original[len(rest):], "\n")
}

// blankAfter reports whether only white space follows node i on its line.
func blankAfter(body []node, i int, root bool) bool {
	if i+1 == len(body) {
		return root
	}
	after, ok := body[i+1].(*content)
	if !ok {
		return false
	}
	rest := strings.TrimLeftFunc(after.original, isSpace)
	return rest == "" && root && i+2 == len(body) ||
		strings.Contains(after.original[:len(after.original)-len(rest)], "\n")
}

// omitAfter removes white space after node i: all, or once the rest of the line.
func omitAfter(body []node, i int, all bool) {
	if i+1 >= len(body) {
		return
	}
	c, ok := body[i+1].(*content)
	if !ok || !all && c.rightStripped {
		return
	}
	before := len(c.value)
	if all {
		c.value = strings.TrimLeftFunc(c.value, isSpace)
	} else {
		c.value = strings.TrimLeft(c.value, " \t")
		c.value = strings.TrimPrefix(c.value, "\r")
		c.value = strings.TrimPrefix(c.value, "\n")
	}
	c.rightStripped = len(c.value) != before
}

// omitBefore removes white space before node i: all, or once that on the line. It reports whether there was
// any.
func omitBefore(body []node, i int, all bool) bool {
	if i <= 0 || i > len(body) {
		return false
	}
	c, ok := body[i-1].(*content)
	if !ok || !all && c.leftStripped {
		return false
	}
	before := len(c.value)
	if all {
		c.value = strings.TrimRightFunc(c.value, isSpace)
	} else {
		c.value = strings.TrimRight(c.value, " \t")
	}
	c.leftStripped = len(c.value) != before
	return c.leftStripped
}

func trailingBlanks(s string) string { return s[len(strings.TrimRight(s, " \t")):] }
