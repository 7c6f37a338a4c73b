package query

import (
	"slices"
	"strings"
	"unicode"
)

// value is a word or phrase to search for, with its position.
type value struct {
	text   string
	quoted bool
	prefix bool // it ends with *
	at     int
}

// term parses a word or a phrase, with its field.
func (p *parser) term() (Node, error) {
	start := p.at
	if p.terms++; p.terms > MaxTerms {
		return nil, p.wrong(start, "a query has at most %d terms", MaxTerms)
	}
	name := p.name()
	if name == "" || name == "mailto" { // which people paste
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		return p.anywhere(v)
	}
	meaning, ok := fields[name]
	if !ok {
		return nil, p.wrong(start,
			"there is no field %s. Use one of %s, or put the text into quotes to search for it literally", name, fieldNames())
	}
	v, err := p.value()
	if err != nil {
		return nil, err
	}
	if v.text == "" {
		return nil, p.wrong(start, "the search term is missing after %s:", name)
	}
	n, err := meaning(p, v)
	if found, ok := n.(Term); ok && found.Value == "" { // to:<>, or only accents
		return nil, p.wrong(v.at, "this contains nothing to search for")
	}
	if found, ok := n.(Prefix); ok && letters(found.Value) < MinPrefix {
		return nil, p.wrong(v.at, "a prefix has at least %d letters or digits before its *", MinPrefix)
	}
	return n, err
}

// name parses a field name and its colon; "" if there is none.
func (p *parser) name() string {
	end := p.at
	for end < len(p.text) && unicode.IsLetter(p.text[end]) {
		end++
	}
	if end == p.at || end == len(p.text) || p.text[end] != ':' {
		return ""
	}
	name := string(p.text[p.at:end])
	p.at = end + 1
	return strings.ToLower(name)
}

// value parses a quoted phrase, or a word up to the next space or parenthesis.
func (p *parser) value() (value, error) {
	v := value{at: p.at}
	if p.peek() == '"' {
		return p.phrase()
	}
	for !p.done() && !unicode.IsSpace(p.peek()) && p.peek() != '(' && p.peek() != ')' && p.peek() != '"' {
		p.at++
	}
	v.text = string(p.text[v.at:p.at])
	if rest, ok := strings.CutSuffix(v.text, "*"); ok {
		v.text, v.prefix = rest, true
		if letters(rest) < MinPrefix {
			return v, p.wrong(v.at, "a prefix has at least %d letters or digits before its *", MinPrefix)
		}
	}
	if strings.Contains(v.text, "*") {
		return v, p.wrong(v.at, "a * is possible only at the end of a word")
	}
	return v, nil
}

func (p *parser) phrase() (value, error) {
	v := value{at: p.at, quoted: true}
	for end := p.at + 1; end < len(p.text); end++ {
		if p.text[end] == '"' {
			v.text = strings.TrimSpace(string(p.text[p.at+1 : end]))
			p.at = end + 1
			return v, nil
		}
	}
	return v, p.wrong(v.at, "this quote is never closed")
}

func letters(text string) int {
	n := 0
	for _, r := range text {
		if inWord(r) {
			n++
		}
	}
	return n
}

// anywhere searches for words in subject and text. A single word is also searched for in addresses and ids.
func (p *parser) anywhere(v value) (Node, error) {
	words := Texts(v.text)
	if len(words) == 0 {
		return nil, p.wrong(v.at, "there is no letter or digit to search for")
	}
	if v.prefix {
		return p.beginning(v, words), nil
	}
	alternatives := []Node{phrase(Subject, words), phrase(Text, words)}
	if whole := Fold(v.text); !strings.ContainsFunc(whole, unicode.IsSpace) {
		for _, address := range addressForms(v.text) {
			alternatives = append(alternatives, Term{To, address}, Term{From, address})
		}
		alternatives = append(alternatives, Term{ID, FoldID(whole)})
	}
	return Or(alternatives), nil
}

// beginning searches for words, addresses and ids with a prefix.
func (p *parser) beginning(v value, words []string) Node {
	alternatives := []Node{beginningIn(Subject, words), beginningIn(Text, words)}
	for _, address := range addressForms(v.text) {
		alternatives = append(alternatives, Prefix{To, address}, Prefix{From, address})
	}
	return Or(append(alternatives, Prefix{ID, FoldID(v.text)}))
}

// beginningIn searches for consecutive words, the last one with a prefix.
func beginningIn(field Field, words []string) Node {
	if len(words) == 1 {
		return Prefix{field, words[0]}
	}
	return Phrase{field, words, true}
}

// phrase searches for consecutive words.
func phrase(field Field, words []string) Node {
	if len(words) == 1 {
		return Term{field, words[0]}
	}
	return Phrase{field, words, false}
}

func fieldNames() string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name+":")
	}
	slices.Sort(names)
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
