package inlinecss

import (
	"slices"
	"strings"

	"github.com/andybalholm/cascadia"
	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/css"
)

// rule is one selector with its declarations.
type rule struct {
	selector
	specificity  cascadia.Specificity
	order        int
	declarations []declaration
	size         int // bytes of the declarations
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

// pieces returns all tokens but comments. Each has at least one byte, also in what is not CSS.
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

// parseSheet returns the rules that can be inlined, numbered from first, and the text of the rest.
func parseSheet(text string, first int) (rules []rule, kept string) {
	var keep strings.Builder
	all := pieces(text)
	for i := 0; i < len(all); {
		if k := all[i].kind; k == css.WhitespaceToken || k == css.SemicolonToken || k == css.RightBraceToken {
			i++
			continue
		}
		head, body, next, hasBody := statement(all, i)
		whole := strings.TrimSpace(join(all[i:next]))
		if all[i].kind == css.AtKeywordToken {
			if !strings.EqualFold(all[i].text, "@charset") {
				keep.WriteString(whole + "\n")
			}
			i = next
			continue
		}
		i = next
		if !hasBody {
			continue
		}
		declarations := parseDeclarations(body)
		var others []string
		for _, selector := range split(head, css.CommaToken) {
			compiled, ok := parseSelector(selector)
			switch {
			case !ok:
				others = append(others, strings.TrimSpace(join(selector)))
			case len(declarations) > 0:
				rules = append(rules, rule{compiled, compiled.whole.Specificity(), first + len(rules), declarations,
					sizeOf(declarations)})
			}
		}
		if others = slices.DeleteFunc(others, func(s string) bool { return s == "" }); len(others) > 0 {
			keep.WriteString(strings.Join(others, ", ") + " {" + join(body) + "}\n")
		}
	}
	return rules, strings.ReplaceAll(keep.String(), "</", "<\\/")
}

// statement finds the end of the statement that begins at piece i: the end of its block, or the semicolon of
// an at-rule.
func statement(all []piece, i int) (head, body []piece, next int, hasBody bool) {
	isAt := all[i].kind == css.AtKeywordToken
	depth, open := 0, -1
	for j := i; j < len(all); j++ {
		switch all[j].kind {
		case css.LeftBraceToken:
			if depth++; depth == 1 {
				open = j
			}
		case css.RightBraceToken:
			if depth--; depth <= 0 {
				if open < 0 {
					return nil, nil, j + 1, false
				}
				return all[i:open], all[open+1 : j], j + 1, true
			}
		case css.SemicolonToken:
			if depth == 0 && isAt {
				return all[i:j], nil, j + 1, false
			}
		}
	}
	if open < 0 {
		return nil, nil, len(all), false
	}
	return all[i:open], all[open+1:], len(all), true
}

// parseDeclarations reads the body of a rule, or a style attribute. Malformed declarations are skipped.
func parseDeclarations(body []piece) []declaration {
	var result []declaration
	for _, d := range split(body, css.SemicolonToken) {
		text := strings.TrimSpace(join(d))
		name, value, ok := strings.Cut(text, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || value == "" || name == "" || strings.ContainsAny(name, " \t\r\n{}()\"'\\;@<>") ||
			strings.ContainsAny(value, "{}<") {
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
			result = append(result, declaration{name, strings.Join(strings.Fields(value), " "), important})
		}
	}
	return result
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
