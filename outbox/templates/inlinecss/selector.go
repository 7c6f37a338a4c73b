package inlinecss

import (
	"strings"

	"github.com/andybalholm/cascadia"
	"github.com/tdewolff/parse/v2/css"
)

// selector is one selector, compiled by cascadia.
type selector struct {
	whole   cascadia.Sel
	subject cascadia.Sel // what follows the last combinator; an element that fails it fails the whole
	parts   int          // compound selectors: combinators and one
	// combinators ' ' and '~', for which cascadia tries one ancestor or sibling after the other
	ways     int
	siblings bool // it has '~'
	counts   bool // it has '~' or a pseudo-class, for which siblings are visited
}

// parseSelector compiles a selector. ok is false for what cannot be inlined, such as :hover.
func parseSelector(all []piece) (s selector, ok bool) {
	depth, subject, combinator := 0, 0, ">" // the first piece of the subject, and the combinator before it
	for i, p := range all {
		inside := depth > 0
		depth = deeper(depth, p)
		if p.kind == css.ColonToken {
			s.counts = true
			if !fixedPseudo(all[i+1:]) {
				return s, false
			}
		}
		switch {
		case inside:
		case p.kind == css.WhitespaceToken && combinator == "":
			combinator = " "
		case isCombinator(p):
			combinator = p.text
		case combinator != "" && p.kind != css.WhitespaceToken:
			s.parts, subject = s.parts+1, i
			if combinator == " " || combinator == "~" {
				s.ways++
			}
			s.siblings = s.siblings || combinator == "~"
			combinator = ""
		}
	}
	s.counts = s.counts || s.siblings
	var err, subjectErr error
	s.whole, err = cascadia.Parse(join(all))
	s.subject, subjectErr = cascadia.Parse(join(all[subject:]))
	return s, err == nil && subjectErr == nil
}

// fixedPseudo reports whether a pseudo-class depends on the html only and is quick to match.
func fixedPseudo(all []piece) bool {
	if len(all) == 0 {
		return false
	}
	switch strings.ToLower(all[0].text) {
	case "first-child", "last-child", "only-child", "first-of-type", "last-of-type", "only-of-type", "empty",
		"nth-child(", "nth-last-child(", "nth-of-type(", "nth-last-of-type(":
		return true
	case "not(":
		return isSimple(all[1:])
	}
	return false
}

// isSimple reports whether the argument of :not has only simple selectors, which are matched in one step.
func isSimple(all []piece) bool {
	for _, p := range all {
		switch {
		case p.kind == css.RightParenthesisToken:
			return true
		case p.kind == css.WhitespaceToken, p.kind == css.FunctionToken, p.kind == css.ColonToken,
			isCombinator(p):
			return false
		}
	}
	return false
}
