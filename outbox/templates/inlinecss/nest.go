package inlinecss

import (
	"slices"
	"strings"

	"github.com/andybalholm/cascadia"
	"github.com/tdewolff/parse/v2/css"
)

// nestable is a selector in which & is replaced by a selector of the rule around it.
type nestable struct {
	text   string
	weighs string // the selector that has its specificity: for &, the heaviest selector of its list
}

// maxSelectors bounds the selectors that are made of one nested selector. For more, :is() says the same.
const maxSelectors = 64

// selectors reads the selectors of a rule, which may stand inside a rule with other selectors. It returns
// none for a list that browsers drop, because a selector of it can't be one.
func (p *parser) selectors(list []piece, around []nestable) []nestable {
	var result []nestable
	for _, s := range split(list, css.CommaToken) {
		s = trim(s)
		if !plausible(s) {
			return nil
		}
		if around == nil {
			text := substituted(s, []string{":scope"})[0]
			result = append(result, nestable{text, text})
			continue
		}
		for _, one := range resolve(s, around) {
			if p.room -= len(one.text) + len(one.weighs); p.room < 0 {
				return nil
			}
			result = append(result, one)
		}
	}
	return result
}

// resolve writes a nested selector without nesting (CSS Nesting 1, 3.2 and 4).
func resolve(s []piece, around []nestable) []nestable {
	if isCombinator(s[0]) || !slices.ContainsFunc(s, isParent) {
		s = slices.Concat([]piece{{css.DelimToken, "&"}, {css.WhitespaceToken, " "}}, s)
	}
	texts, ways := make([]string, len(around)), 1
	for i, a := range around {
		texts[i] = a.text
	}
	depth := 0
	for _, p := range s {
		depth = deeper(depth, p)
		if ways <= maxSelectors && isParent(p) {
			ways *= len(texts)
			if depth > 0 && len(texts) > 1 { // :not(&) means none of them
				ways = maxSelectors + 1
			}
		}
	}
	if ways > maxSelectors {
		texts = []string{":is(" + strings.Join(texts, ", ") + ")"}
	}
	weighs := substituted(s, []string{heaviest(around)})[0]
	var result []nestable
	for _, text := range substituted(s, texts) {
		result = append(result, nestable{text, weighs})
	}
	return result
}

// heaviest returns the selector of a list with the highest specificity.
func heaviest(list []nestable) string {
	found, most := list[0].weighs, cascadia.Specificity{}
	for _, one := range list {
		if s, ok := parseSelector(pieces(one.weighs)); ok && most.Less(s.whole.Specificity()) {
			found, most = one.weighs, s.whole.Specificity()
		}
	}
	return found
}

// substituted replaces each & by each of some selectors.
func substituted(s []piece, parents []string) []string {
	at := slices.IndexFunc(s, isParent)
	if at < 0 {
		return []string{join(s)}
	}
	start := at // the compound selector's start
	for depth := 0; start > 0; start-- {
		p := s[start-1]
		switch {
		case p.kind == css.RightParenthesisToken || p.kind == css.RightBracketToken:
			depth++
		case deeper(0, p) > 0:
			depth--
		}
		ends := p.kind == css.WhitespaceToken || p.kind == css.CommaToken || isCombinator(p)
		if depth < 0 || depth == 0 && ends {
			break
		}
	}
	before, after := s[start:at], s[at+1:]
	if len(before) == 0 && len(after) > 0 && isType(after[0]) {
		before, after = after[:1], after[1:]
	}
	typed := len(before) > 0 && isType(before[0])
	var result []string
	for _, text := range parents {
		parent := pieces(text)
		depth := 0
		complex := slices.ContainsFunc(parent, func(p piece) bool {
			depth = deeper(depth, p)
			return depth == 0 && (p.kind == css.WhitespaceToken || isCombinator(p))
		})
		var compound []piece
		switch {
		case complex && (start > 0 || typed) || typed && isType(parent[0]):
			compound = slices.Concat(before, []piece{{css.FunctionToken, ":is("}}, parent,
				[]piece{{css.RightParenthesisToken, ")"}})
		case typed:
			compound = slices.Concat(before, parent)
		default:
			compound = slices.Concat(parent, before)
		}
		result = append(result, substituted(slices.Concat(s[:start], compound, after), parents)...)
	}
	return result
}

func isParent(p piece) bool { return p.kind == css.DelimToken && p.text == "&" }

func isType(p piece) bool {
	return p.kind == css.IdentToken || p.kind == css.DelimToken && p.text == "*"
}

func isCombinator(p piece) bool {
	return p.kind == css.DelimToken && strings.Contains(">+~", p.text)
}

// plausible reports whether pieces may be a selector, if not one that we know.
func plausible(s []piece) bool {
	depth, parents := 0, 0
	for i, p := range s {
		depth = deeper(depth, p)
		switch p.kind {
		case css.DelimToken:
			if isParent(p) {
				parents++
			}
		case css.SemicolonToken, css.LeftBraceToken, css.RightBraceToken, css.AtKeywordToken, css.BadStringToken,
			css.BadURLToken:
			return false
		case css.NumberToken, css.PercentageToken, css.DimensionToken, css.StringToken:
			if depth == 0 {
				return false
			}
		case css.ColonToken:
			if depth == 0 && (i+1 == len(s) || s[i+1].kind != css.IdentToken && s[i+1].kind != css.FunctionToken &&
				s[i+1].kind != css.ColonToken) {
				return false
			}
		}
	}
	return len(s) > 0 && parents < 8
}

// deeper returns the depth of brackets after a piece.
func deeper(depth int, p piece) int {
	switch p.kind {
	case css.LeftParenthesisToken, css.FunctionToken, css.LeftBracketToken:
		return depth + 1
	case css.RightParenthesisToken, css.RightBracketToken:
		return max(0, depth-1)
	}
	return depth
}

// trim removes white space around pieces.
func trim(s []piece) []piece {
	for len(s) > 0 && s[0].kind == css.WhitespaceToken {
		s = s[1:]
	}
	for len(s) > 0 && s[len(s)-1].kind == css.WhitespaceToken {
		s = s[:len(s)-1]
	}
	return s
}
