package query

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// The limits of a query.
const (
	MaxLength = 1000 // characters
	MaxTerms  = 50
	MaxDepth  = 10 // levels of parentheses and negations
	MinPrefix = 2  // letters or digits before a *
)

// Error is an error in a query, with its position.
type Error struct {
	At      int    // position of the character, from 1
	Near    string // the text there; empty at the end
	Message string // for the author of the query
}

// Error returns the message with its position.
func (e *Error) Error() string {
	if e.Near == "" {
		return fmt.Sprintf("at character %d, the end: %s", e.At, e.Message)
	}
	return fmt.Sprintf("at character %d, %q: %s", e.At, e.Near, e.Message)
}

// Parse parses a query; relative times are relative to now. An empty query matches everything. The error is
// always an [*Error].
func Parse(text string, now time.Time) (Node, error) {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if n := utf8.RuneCountInString(text); n > MaxLength {
		return nil, &Error{At: MaxLength + 1, Near: near([]rune(text)[MaxLength:]),
			Message: fmt.Sprintf("a query has at most %d characters, this one has %d", MaxLength, n)}
	}
	if m := pasted.FindStringSubmatch(text); m != nil {
		text = m[1]
	}
	p := &parser{text: []rune(text), now: now}
	p.space()
	if p.done() {
		return All{}, nil
	}
	n, err := p.or()
	if err != nil {
		return nil, err
	}
	if !p.done() { // only a parenthesis ends a query early
		return nil, p.wrong(p.at, "this parenthesis closes nothing; put it into quotes to search for it")
	}
	return n, nil
}

// pasted matches an address with a name, as mail programs show it.
var pasted = regexp.MustCompile(`^[^<>():*]*\s<([^<>()\s:*"]+@[^<>()\s:*"]+)>[\s,;.]*$`)

// parser parses a query.
type parser struct {
	text  []rune
	at    int
	now   time.Time
	terms int
	depth int
}

func (p *parser) done() bool { return p.at >= len(p.text) }

func (p *parser) peek() rune {
	if p.done() {
		return 0
	}
	return p.text[p.at]
}

func (p *parser) space() {
	for !p.done() && unicode.IsSpace(p.peek()) {
		p.at++
	}
}

// wrong returns an error at a position.
func (p *parser) wrong(at int, format string, args ...any) *Error {
	return &Error{At: at + 1, Near: near(p.text[min(at, len(p.text)):]), Message: fmt.Sprintf(format, args...)}
}

// near quotes the beginning of rest.
func near(rest []rune) string {
	for i, r := range rest {
		if i == 20 || i > 0 && unicode.IsSpace(r) {
			return string(rest[:i])
		}
	}
	return string(rest)
}

// or parses alternatives.
func (p *parser) or() (Node, error) {
	var parts []Node
	for {
		n, err := p.and()
		if err != nil {
			return nil, err
		}
		parts = append(parts, n)
		if !p.word("OR") {
			return anyOf(parts), nil
		}
	}
}

// and parses steps that must all match.
func (p *parser) and() (Node, error) {
	var all Node = All{}
	for n := 0; ; n++ {
		p.space()
		if p.done() || p.peek() == ')' || p.ahead("OR") {
			if n == 0 {
				return nil, p.wrong(p.at, "a search term is missing here")
			}
			return all, nil
		}
		if start := p.at; p.word("AND") {
			if p.space(); n == 0 || p.done() || p.peek() == ')' || p.ahead("OR") || p.ahead("AND") {
				return nil, p.wrong(start,
					"AND must be between two search terms; put it into quotes to search for the word")
			}
		}
		part, err := p.unary()
		if err != nil {
			return nil, err
		}
		all = Both(all, part)
	}
}

// unary parses a term, negated or not.
func (p *parser) unary() (Node, error) {
	start := p.at
	if p.depth++; p.depth > MaxDepth {
		return nil, p.wrong(start, "parentheses and negations are nested more than %d deep", MaxDepth)
	}
	defer func() { p.depth-- }()
	switch {
	case p.peek() == '-' || p.ahead("NOT"):
		if p.word("NOT") {
			p.space()
		} else if p.at++; unicode.IsSpace(p.peek()) {
			return nil, p.wrong(start,
				"a - must be directly before the term to exclude; put it into quotes, or leave it out")
		}
		if p.done() || p.peek() == ')' {
			return nil, p.wrong(start, "the term to exclude is missing after this")
		}
		part, err := p.unary()
		if err != nil {
			return nil, err
		}
		return Not{part}, nil
	case p.peek() == '(':
		p.at++
		n, err := p.or()
		if err != nil {
			return nil, err
		}
		if p.peek() != ')' {
			return nil, p.wrong(start, "this parenthesis is never closed")
		}
		p.at++
		return n, nil
	}
	return p.term()
}

// ahead reports whether an operator is next.
func (p *parser) ahead(operator string) bool {
	end := p.at + len(operator)
	if end > len(p.text) || string(p.text[p.at:end]) != operator {
		return false
	}
	return end == len(p.text) || unicode.IsSpace(p.text[end]) || p.text[end] == '(' || p.text[end] == ')'
}

// word consumes an operator, if it is next.
func (p *parser) word(operator string) bool {
	if !p.ahead(operator) {
		return false
	}
	p.at += len(operator)
	return true
}
