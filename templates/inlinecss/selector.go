package inlinecss

import (
	"strings"

	"github.com/andybalholm/cascadia"
	"github.com/tdewolff/parse/v2/css"
)

// part is a simple selector, with the way that leads to it from the part before: ' ', '>', '+' or '~'.
type part struct {
	selector   cascadia.Sel
	combinator byte
	counts     bool // it has a pseudo-class, for which brothers and sisters may have to be counted
}

// maxParts is how many parts a selector may have; those with more stay in the style element.
const maxParts = 60

// parseSelector reads a selector. The parts are matched here, one after the other, and only each part by cascadia: its own matching of
// combined selectors takes exponential time for some. ok is false for what can't be inlined, such as :hover.
func parseSelector(all []piece) (parts []part, specificity [3]int, ok bool) {
	var current strings.Builder
	combinator := byte(' ')
	flush := func() bool {
		if current.Len() == 0 {
			return true
		}
		s, err := cascadia.Parse(current.String())
		if err != nil || len(parts) == maxParts {
			return false
		}
		for i, n := range s.Specificity() {
			specificity[i] += n
		}
		parts = append(parts, part{s, combinator, strings.Contains(current.String(), ":")})
		combinator = ' '
		current.Reset()
		return true
	}
	depth := 0
	for i, p := range all {
		switch p.kind {
		case css.LeftParenthesisToken, css.FunctionToken, css.LeftBracketToken:
			depth++
		case css.RightParenthesisToken, css.RightBracketToken:
			depth--
		}
		switch {
		case depth > 0 || p.kind == css.RightParenthesisToken || p.kind == css.RightBracketToken:
		case p.kind == css.WhitespaceToken:
			if !flush() {
				return nil, specificity, false
			}
			continue
		case p.kind == css.DelimToken && strings.Contains(">+~", p.text):
			if !flush() || len(parts) == 0 || combinator != ' ' {
				return nil, specificity, false
			}
			combinator = p.text[0]
			continue
		}
		if p.kind == css.ColonToken && !fixedPseudo(all[i+1:]) {
			return nil, specificity, false
		}
		current.WriteString(p.text)
	}
	ok = depth == 0 && flush() && len(parts) > 0 && combinator == ' '
	return parts, specificity, ok
}

// fixedPseudo reports whether a pseudo-class says something that the html decides, and that takes little time to find out.
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

// isSimple reports whether what stands inside the parentheses of :not is nothing but simple selectors, which are matched in a step.
func isSimple(all []piece) bool {
	for _, p := range all {
		switch {
		case p.kind == css.RightParenthesisToken:
			return true
		case p.kind == css.WhitespaceToken, p.kind == css.FunctionToken, p.kind == css.ColonToken,
			p.kind == css.DelimToken && strings.Contains(">+~", p.text):
			return false
		}
	}
	return false
}
