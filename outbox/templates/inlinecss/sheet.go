package inlinecss

import (
	"fmt"
	"slices"
	"strings"

	"github.com/andybalholm/cascadia"
	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/css"
)

// rule is one selector with its declarations.
type rule struct {
	selector
	text         string // the selector
	specificity  cascadia.Specificity
	order        int
	declarations []declaration
	size         int           // bytes of the declarations
	known        bool          // its selector and specificity are
	inlined      bool          // it goes into attributes
	stays        []string      // elements without a tag for which the rule is needed in a style element
	rivalled     []declaration // declarations that a style element needs too
}

// block is declarations with their selectors, or another part of a style sheet, in source order.
type block struct {
	within   []string // the at-rules around it, from the outermost
	rules    []*rule  // for the selectors that can be inlined
	others   []string // the other selectors
	body     string   // the declarations as they are written
	verbatim string   // an at-rule as it is written
	nested   bool     // it stood inside another rule
}

// declaration is one property with its value.
type declaration struct {
	property, value string
	important       bool
}

// piece is a token of CSS.
type piece struct {
	kind css.TokenType
	text string
}

// pieces returns all tokens but comments. Each has at least one byte, even in text that isn't CSS.
func pieces(text string) []piece {
	var all []piece
	l := css.NewLexer(parse.NewInputString(text))
	for {
		kind, data := l.Next()
		switch kind {
		case css.ErrorToken:
			return all
		case css.CommentToken, css.CDOToken, css.CDCToken:
			continue
		}
		all = append(all, piece{kind, string(data)})
	}
}

// parser reads a page's style elements.
type parser struct {
	rules  []*rule // from all style elements
	blocks []*block
	embeds bool // nothing is inlined
	order  int  // the next block's
	room   int  // bytes that the selectors and bodies of blocks may still take
}

// parse returns the blocks of a style element. Nested rules are written out flat.
func (p *parser) parse(text string) ([]*block, error) {
	p.blocks = nil
	p.contents(pieces(text), nil, nil, 0)
	if p.room < 0 {
		return nil, fmt.Errorf("rules in rules make too much CSS: %w", ErrLimit)
	}
	return p.blocks, nil
}

// contents reads a list of rules (CSS Syntax 3, 5.5.1), or, with the selectors of a rule around it, the
// content of a rule (CSS Nesting 1).
func (p *parser) contents(all []piece, around []nestable, within []string, depth int) {
	start := 0 // the start of declarations
	for i := 0; i < len(all) && p.room >= 0; {
		if k := all[i].kind; k == css.WhitespaceToken || k == css.SemicolonToken && around != nil {
			i++
			continue
		}
		head, body, next, hasBody := statement(all, i, around != nil)
		isAt := all[i].kind == css.AtKeywordToken
		if around != nil && !isAt && (!hasBody || all[i].kind == css.CustomPropertyNameToken) {
			i = next // a declaration
			continue
		}
		p.declarations(all[start:i], around, within, depth)
		start = next
		switch {
		case isAt:
			p.atRule(head, body, join(all[i:next]), around, within, depth, hasBody)
		case hasBody:
			if inner := p.selectors(head, around); len(inner) > 0 && depth < maxDepth {
				p.contents(body, inner, within, depth+1)
			}
		}
		i = next
	}
	p.declarations(all[start:], around, within, depth)
}

// maxDepth bounds rules in rules.
const maxDepth = 32

// atRule reads an at-rule. If it has rules for some screens only, and rules in them, it is written out flat.
func (p *parser) atRule(head, body []piece, whole string, around []nestable, within []string, depth int,
	hasBody bool) {
	name := strings.ToLower(head[0].text)
	groups := hasBody && slices.Contains([]string{"@media", "@supports", "@layer", "@container",
		"@starting-style"}, name)
	inner := append(slices.Clip(within), strings.TrimSpace(join(head)))
	first := len(p.blocks)
	switch {
	case name == "@charset":
	case groups && around != nil && depth < maxDepth:
		p.contents(body, around, inner, depth+1)
	case groups && around == nil && len(within) < maxDepth:
		p.contents(body, nil, inner, depth)
		isNested := func(b *block) bool { return b.nested }
		if len(within) == 0 && !slices.ContainsFunc(p.blocks[first:], isNested) {
			for _, b := range p.blocks[first:] { // their rules are still compared with others
				b.others, b.verbatim = nil, ""
			}
			p.add(&block{verbatim: whole})
		}
	case around != nil:
		b := &block{within: within, body: whole, nested: true}
		for _, s := range around {
			b.others = append(b.others, s.text)
		}
		p.add(b)
	default:
		p.add(&block{within: within, verbatim: whole})
	}
}

// declarations adds a block. Declarations for some screens only can't be inlined.
func (p *parser) declarations(body []piece, around []nestable, within []string, depth int) {
	text := join(body)
	if strings.TrimSpace(text) == "" || around == nil {
		return
	}
	b := &block{within: within, body: text, nested: depth > 1}
	declarations := parseDeclarations(body)
	for _, s := range around {
		r := &rule{text: s.text, order: p.order, declarations: declarations, size: sizeOf(declarations)}
		r.selector, r.known = parseSelector(pieces(s.text))
		weighs := r.selector
		if s.weighs != s.text && r.known {
			weighs, r.known = parseSelector(pieces(s.weighs))
		}
		if r.known {
			r.specificity = weighs.whole.Specificity()
		}
		r.inlined = r.known && len(within) == 0 && !p.embeds
		if !r.inlined {
			b.others = append(b.others, s.text)
		}
		if len(declarations) > 0 {
			b.rules = append(b.rules, r)
			p.rules = append(p.rules, r)
		}
	}
	p.add(b)
}

func (p *parser) add(b *block) {
	p.order++
	p.blocks = append(p.blocks, b)
	p.room -= len(b.body) + len(b.verbatim)
	for _, s := range b.others {
		p.room -= len(s)
	}
}

// kept writes the blocks that are needed in a style element. The text can't end the element.
func kept(blocks []*block) string {
	var keep strings.Builder
	for _, b := range blocks {
		all := b.others
		for _, r := range b.rules {
			all = append(all, r.stays...)
		}
		text := strings.TrimSpace(b.verbatim)
		if len(all) > 0 {
			text = strings.Join(all, ", ") + " {" + b.body + "}"
		}
		if text != "" {
			for _, at := range slices.Backward(b.within) {
				text = at + " { " + text + " }"
			}
			keep.WriteString(text + "\n")
		}
		for _, r := range b.rules {
			if len(r.rivalled) > 0 {
				keep.WriteString(r.text + " {" + written(r.rivalled) + "}\n")
			}
		}
	}
	return strings.ReplaceAll(keep.String(), "</", "<\\/")
}

// written writes important declarations.
func written(all []declaration) string {
	var texts []string
	for _, d := range all {
		texts = append(texts, d.property+": "+d.value+" !important")
	}
	return strings.Join(texts, "; ")
}

// statement finds the end of the statement that begins at piece i: the end of its block, or a semicolon,
// which ends an at-rule and a declaration.
func statement(all []piece, i int, inRule bool) (head, body []piece, next int, hasBody bool) {
	ends := inRule || all[i].kind == css.AtKeywordToken
	custom := all[i].kind == css.CustomPropertyNameToken
	depth, brackets, open := 0, 0, -1
	for j := i; j < len(all); j++ {
		brackets = deeper(brackets, all[j])
		switch all[j].kind {
		case css.LeftBraceToken:
			if depth++; depth == 1 && open < 0 {
				open, brackets = j, 0
			}
		case css.RightBraceToken:
			if open < 0 { // one too many, in the selector
				continue
			}
			if depth--; depth == 0 && !(custom && inRule) {
				return all[i:open], all[open+1 : j], j + 1, true
			}
		case css.SemicolonToken:
			if depth == 0 && brackets == 0 && ends {
				return all[i:j], nil, j + 1, false
			}
		}
	}
	if open < 0 {
		return all[i:], nil, len(all), false
	}
	return all[i:open], all[open+1:], len(all), true
}

// parseDeclarations reads the body of a rule, or a style attribute. Malformed declarations are skipped.
func parseDeclarations(body []piece) []declaration {
	var result []declaration
	for _, d := range split(body, css.SemicolonToken) {
		colon := slices.IndexFunc(d, func(p piece) bool { return p.kind == css.ColonToken })
		if colon < 0 || slices.ContainsFunc(d, breaksDeclaration) {
			continue
		}
		name, value := strings.TrimSpace(join(d[:colon])), oneLine(d[colon+1:])
		if name == "" || strings.ContainsAny(name, " \t\r\n()\"'\\@<>") {
			continue
		}
		if !strings.HasPrefix(name, "--") {
			name = strings.ToLower(name)
		}
		important := false
		if mark := strings.LastIndexByte(value, '!'); mark >= 0 &&
			strings.EqualFold(strings.TrimSpace(value[mark+1:]), "important") {
			value, important = strings.TrimSpace(value[:mark]), true
		}
		if value != "" {
			result = append(result, declaration{name, value, important})
		}
	}
	return result
}

// breaksDeclaration reports whether a declaration with a piece is malformed, or no declaration for an
// attribute.
func breaksDeclaration(p piece) bool {
	return p.kind == css.LeftBraceToken || p.kind == css.RightBraceToken || p.kind == css.BadStringToken ||
		p.kind == css.BadURLToken
}

// oneLine returns a value with one blank for each run of white space outside of strings and addresses.
func oneLine(value []piece) string {
	var b strings.Builder
	for _, p := range value {
		if p.kind == css.WhitespaceToken {
			p.text = " "
		}
		b.WriteString(p.text)
	}
	return strings.TrimSpace(b.String())
}

// sizeOf returns the length of declarations in an attribute, in bytes.
func sizeOf(all []declaration) int {
	n := 0
	for _, d := range all {
		n += len(d.property) + len(d.value) + 4
	}
	return n
}

// split splits pieces at tokens of a kind outside of brackets.
func split(all []piece, at css.TokenType) [][]piece {
	var result [][]piece
	depth, start := 0, 0
	for i, p := range all {
		switch p.kind {
		case css.LeftParenthesisToken, css.FunctionToken, css.LeftBracketToken, css.LeftBraceToken:
			depth++
		case css.RightParenthesisToken, css.RightBracketToken, css.RightBraceToken:
			depth = max(0, depth-1)
		case at:
			if depth == 0 {
				result = append(result, all[start:i])
				start = i + 1
			}
		}
	}
	return append(result, all[start:])
}

func join(all []piece) string {
	var b strings.Builder
	for _, p := range all {
		b.WriteString(p.text)
	}
	return b.String()
}
