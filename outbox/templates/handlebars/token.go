package handlebars

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind int

const (
	tokenEnd         tokenKind = iota // the source ends inside a tag
	tokenID                           // a name, or .. or .
	tokenLiteralID                    // [a name in brackets]
	tokenSeparator                    // . or / between names
	tokenString                       // "…" or '…'
	tokenNumber                       // 12, -1.5
	tokenWord                         // true, false, null, undefined
	tokenAt                           // @
	tokenEquals                       // =
	tokenOpen                         // (
	tokenShut                         // )
	tokenAs                           // as |
	tokenPipe                         // |
	tokenClose                        // }}
	tokenCloseTriple                  // }}}
	tokenCloseRaw                     // }}}}
	tokenUnknown
)

type token struct {
	kind   tokenKind
	text   string // the name, or the content of a string
	tilde  bool   // a closing token with ~
	offset int
	end    int
}

// token reads the token at the current offset, after white space, and moves behind it.
func (p *parser) token() token {
	t := p.peek()
	p.at = t.end
	return t
}

// peek reads the token at the current offset without moving.
func (p *parser) peek() token {
	text := p.src.text[:p.limit]
	at := p.at
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		if !isSpace(r) {
			break
		}
		at += size
	}
	t := token{offset: at, end: at}
	rest := text[at:]
	if rest == "" {
		if customDelimiters(p) && p.limit < len(p.src.text) {
			return token{kind: tokenClose, offset: at, end: p.limit + len(p.shut)}
		}
		return t
	}
	if p.readClose(&t, rest) {
		return t
	}
	t.kind, t.end = tokenUnknown, at+1
	switch c := rest[0]; {
	case c == '(':
		t.kind = tokenOpen
	case c == ')':
		t.kind = tokenShut
	case c == '=':
		t.kind = tokenEquals
	case c == '@':
		t.kind = tokenAt
	case c == '|':
		t.kind = tokenPipe
	case c == '"' || c == '\'':
		readString(&t, rest)
	case c == '[':
		readBrackets(&t, rest)
	case strings.HasPrefix(rest, ".."):
		t.kind, t.text, t.end = tokenID, "..", at+2
	case c == '.' && endsName(rest[1:]):
		t.kind, t.text = tokenID, "."
	case c == '.' || c == '/':
		t.kind = tokenSeparator
	default:
		readWord(&t, rest)
	}
	return t
}

// readClose recognises the end of a tag: }}, }}} and }}}}, each with a tilde where the language allows one.
func (p *parser) readClose(t *token, rest string) bool {
	if customDelimiters(p) {
		return false // the limit is the end of the tag
	}
	for _, closing := range [...]struct {
		text  string
		kind  tokenKind
		tilde bool
	}{
		{"}}}}", tokenCloseRaw, false},
		{"}~}}", tokenCloseTriple, true},
		{"}}}", tokenCloseTriple, false},
		{"~}}", tokenClose, true},
		{"}}", tokenClose, false},
	} {
		if strings.HasPrefix(rest, closing.text) {
			t.kind, t.tilde, t.end = closing.kind, closing.tilde, t.offset+len(closing.text)
			return true
		}
	}
	return false
}

// readString reads a string in quotes; a backslash hides the quote, and nothing else.
func readString(t *token, rest string) {
	quote := rest[0]
	for i := 1; i < len(rest); i++ {
		switch {
		case rest[i] == '\\' && i+1 < len(rest) && rest[i+1] == quote:
			i++
		case rest[i] == quote:
			t.kind, t.end = tokenString, t.offset+i+1
			t.text = strings.ReplaceAll(rest[1:i], `\`+string(quote), string(quote))
			return
		}
	}
}

// readBrackets reads a name in brackets, in which \] and \\ stand for ] and \.
func readBrackets(t *token, rest string) {
	for i := 1; i < len(rest); i++ {
		switch {
		case rest[i] == '\\' && i+1 < len(rest) && (rest[i+1] == ']' || rest[i+1] == '\\'):
			i++
		case rest[i] == ']':
			t.kind, t.end = tokenLiteralID, t.offset+i+1
			t.text = strings.NewReplacer(`\\`, `\`, `\]`, `]`).Replace(rest[1:i])
			return
		}
	}
}

// readWord reads a name, a number, or one of the words that are values.
func readWord(t *token, rest string) {
	end := nameEnd(rest)
	if n := numberEnd(rest); n > 0 && endsLiteral(rest[n:]) {
		t.kind, t.text, t.end = tokenNumber, rest[:n], t.offset+n
		return
	}
	if end == 0 || !endsName(rest[end:]) {
		return
	}
	t.kind, t.text, t.end = tokenID, rest[:end], t.offset+end
	switch t.text {
	case "true", "false", "null", "undefined":
		if endsLiteral(rest[end:]) {
			t.kind = tokenWord
		}
	case "as":
		after := strings.TrimLeftFunc(rest[end:], isSpace)
		if len(after) < len(rest[end:]) && strings.HasPrefix(after, "|") {
			t.kind, t.end = tokenAs, t.offset+len(rest)-len(after)+1
		}
	}
}

// numberEnd returns the length of the number at the start of s, 0 for none.
func numberEnd(s string) int {
	digits := func(i int) int {
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return i
	}
	start := 0
	if strings.HasPrefix(s, "-") {
		start = 1
	}
	end := digits(start)
	if end == start {
		return 0
	}
	if end < len(s) && s[end] == '.' {
		if more := digits(end + 1); more > end+1 {
			return more
		}
	}
	return end
}

// nameEnd returns the length of the name at the start of s.
func nameEnd(s string) int {
	for i, r := range s {
		if isSpace(r) || r < utf8.RuneSelf && strings.IndexByte("!\"#%&'()*+,./;<=>@[\\]^`{|}~", byte(r)) >= 0 {
			return i
		}
	}
	return len(s)
}

// endsName reports whether a name may end before s.
func endsName(s string) bool { return startsWith(s, "=~}/.)]|") }

// endsLiteral reports whether a number, true, false, null or undefined may end before s.
func endsLiteral(s string) bool { return startsWith(s, "~})]") }

func startsWith(s, chars string) bool {
	r, size := utf8.DecodeRuneInString(s)
	return size == 0 || isSpace(r) || r < utf8.RuneSelf && strings.IndexByte(chars, byte(r)) >= 0
}

// isSpace is what \s means in JavaScript.
func isSpace(r rune) bool {
	return r == ' ' || r == '\n' || r == '\r' || r == '\t' || r == '\ufeff' || r != 0x85 && unicode.IsSpace(r)
}
