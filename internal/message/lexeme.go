package message

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// lexeme is a piece of a field's value (RFC 5322 section 3.2) with the blanks before it.
type lexeme struct {
	kind  lexemeKind
	space string
	text  string
}

type lexemeKind byte

const (
	atomLexeme    lexemeKind = 'a' // any other text without blanks
	commentLexeme lexemeKind = '('
	quotedLexeme  lexemeKind = '"'
	angleLexeme   lexemeKind = '<' // from < to >
	specialLexeme lexemeKind = ',' // a comma, semicolon or colon
	encodeLexeme  lexemeKind = '=' // text to write as encoded words
	finalLexeme   lexemeKind = '@' // an address, id or URL that is written as it is
)

// words splits text at its blanks.
func words(text string) []lexeme {
	var list []lexeme
	for text = strings.TrimRight(text, " \t"); text != ""; {
		word := strings.TrimLeft(text, " \t")
		space := text[:len(text)-len(word)]
		if end := strings.IndexAny(word, " \t"); end >= 0 {
			word = word[:end]
		}
		list = append(list, lexeme{atomLexeme, space, word})
		text = text[len(space)+len(word):]
	}
	return list
}

// lexemes splits the value of a structured field. A comment or quoted string that is too long for a line is
// split at its blanks if that suffices.
func lexemes(value string) []lexeme {
	var list []lexeme
	for value = strings.TrimRight(value, " \t"); value != ""; {
		rest := strings.TrimLeft(value, " \t")
		l := lexeme{kind: atomLexeme, space: value[:len(value)-len(rest)]}
		n := 0
		switch c := rest[0]; c {
		case '(', '"', '<':
			l.kind, n = lexemeKind(c), enclosedSize(rest)
		case ',', ';', ':':
			l.kind, n = specialLexeme, 1
		default:
			if n = strings.IndexAny(rest, " \t(\"<,;:"); n < 0 {
				n = len(rest)
			}
		}
		l.text, value = rest[:n], rest[n:]
		if i := len(list) - 1; l.space == "" && l.text[0] == '@' && i >= 0 && list[i].kind == quotedLexeme {
			list[i] = lexeme{atomLexeme, list[i].space, list[i].text + l.text} // a quoted local part
			continue
		}
		pieces := words(l.space + l.text)
		if l.leaves() || slices.ContainsFunc(pieces, func(p lexeme) bool {
			return !p.leaves() || strings.HasSuffix(p.text, `\`)
		}) {
			pieces = []lexeme{l}
		}
		list = append(list, pieces...)
	}
	return list
}

// enclosedSize is the size of the comment, quoted string or angle at the start of s. One without an end
// takes all of s.
func enclosedSize(s string) int {
	depth, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == '"' && s[0] != '(':
			if quoted = !quoted; s[0] == '"' && !quoted {
				return i + 1
			}
		case quoted:
		case c == s[0]:
			depth++
		case c == ')' && s[0] == '(' || c == '>' && s[0] == '<':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// leaves reports whether a lexeme may leave as it is: in ASCII, and short enough for a line.
func (l lexeme) leaves() bool {
	return l.kind == finalLexeme || isASCII(l.text) && len(l.text) < maxLine
}

// isWord reports whether a lexeme is part of a text or a phrase.
func (l lexeme) isWord() bool { return l.kind == atomLexeme || l.kind == quotedLexeme }

// encodes reports whether a lexeme is written as encoded words.
func (l lexeme) encodes() bool {
	return l.kind == encodeLexeme || l.kind == commentLexeme && !l.leaves()
}

var (
	quotedPair        = regexp.MustCompile(`\\(.)`)
	encodedWordSyntax = regexp.MustCompile(`^=\?[!->@-~]+\?[bBqQ]\?[!->@-~]*\?=$`)
)

func isEncodedWord(s string) bool { return encodedWordSyntax.MatchString(s) }

// content is the text that a lexeme stands for.
func (l lexeme) content() string {
	closing := map[lexemeKind]string{quotedLexeme: `"`, commentLexeme: ")"}[l.kind]
	if closing != "" {
		return quotedPair.ReplaceAllString(strings.TrimSuffix(l.text[1:], closing), "$1")
	}
	if isEncodedWord(l.text) {
		if decoded, err := wordDecoder().Decode(l.text); err == nil {
			return ValidText(decoded)
		}
	}
	return l.text
}

// encodeText replaces the words that may not leave, and the words between them, by text to encode. Encoded
// words stay as they are.
func encodeText(list []lexeme) []lexeme {
	var out []lexeme
	stays := func(i int) bool {
		return i >= 0 && i < len(list) && list[i].leaves() && isEncodedWord(list[i].text)
	}
	for i := 0; i < len(list); i++ {
		if list[i].leaves() || list[i].encodes() {
			out = append(out, list[i])
			continue
		}
		end := i + 1
		for j := end; j < len(list) && list[j].isWord() && !stays(j); j++ {
			if !list[j].leaves() {
				end = j + 1
			}
		}
		if list[i].space != "" && !stays(i-1) { // blanks between encoded words aren't text (RFC 2047 section 6.2)
			list[i].space = list[i].space[1:]
		}
		var text strings.Builder
		for _, word := range list[i:end] {
			text.WriteString(word.space + word.content())
		}
		if stays(end) {
			text.WriteString(list[end].space)
		}
		out = append(out, lexeme{kind: encodeLexeme, text: text.String()})
		i = end - 1
	}
	return out
}

// lexemes writes lexemes, and folds where a line is full. It adds a blank after a comma or a semicolon,
// before an angle, and around encoded words.
func (w *headerWriter) lexemes(list []lexeme) {
	for i := 0; i < len(list); {
		l := list[i]
		text := []string{l.text}
		for i++; i < len(list) && list[i].sticksTo(list[i-1]); i++ {
			text = append(text, list[i].text)
		}
		switch {
		case l.kind == encodeLexeme:
			w.encoded(l.text)
		case l.encodes():
			w.enclosed("(", l.content(), ")")
		default:
			w.word(cmp.Or(l.space, " "), strings.Join(text, ""))
		}
	}
}

// sticksTo reports whether no blank may come between a lexeme and the one before it.
func (l lexeme) sticksTo(before lexeme) bool {
	return l.space == "" && !l.encodes() && !before.encodes() && l.text[0] != '<' &&
		(before.kind != specialLexeme || before.text == ":")
}
