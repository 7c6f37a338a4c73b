package handlebars

import "strings"

// wordBytes is what \w means in JavaScript.
const wordBytes = "_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

type tagKind int

const (
	tagEnd          tagKind = iota // the end of the source
	tagOutput                      // {{
	tagUnescaped                   // {{&
	tagTriple                      // {{{
	tagBlock                       // {{#
	tagInverse                     // {{^name
	tagElse                        // {{else}} or {{^}}
	tagElseChain                   // {{else name
	tagShut                        // {{/
	tagPartial                     // {{>
	tagPartialBlock                // {{#>
	tagInline                      // {{#*inline
	tagRawBlock                    // {{{{
	tagComment                     // {{! or {{!--
	tagDelimiters                  // {{=, in Mustache
)

// tag is the beginning of a tag: its sigil, and whether it takes away the white space before it.
type tag struct {
	kind   tagKind
	strip  strip
	offset int
}

// tag reads the beginning of the tag at the current offset.
func (p *parser) tag() tag {
	t := tag{offset: p.at}
	p.at += len(p.open)
	if customDelimiters(p) {
		end := strings.Index(p.src.text[p.at:], p.shut)
		if end < 0 {
			panic(p.fault(t.offset, "the tag has no end"))
		}
		p.limit = p.at + end
	} else if strings.HasPrefix(p.src.text[p.at:], "{{") {
		p.at += 2
		t.kind = tagRawBlock
		return t
	}
	t.strip.open = p.skip("~")
	for _, s := range sigils {
		if p.skip(s.text) {
			t.kind = s.kind
			return t
		}
	}
	switch {
	case p.skip("*"):
		panic(p.fault(t.offset, "there are no decorators but {{#*inline \"name\"}}"))
	case p.loader.template.options.Mustache && p.skip("="):
		t.kind = tagDelimiters
	case p.skip("^"):
		t.kind = tagInverse
		p.elseTag(&t)
	case p.skipElse():
		t.kind = tagElseChain
		p.elseTag(&t)
	default:
		t.kind = tagOutput
	}
	return t
}

// sigils are what a tag begins with, longer ones first.
var sigils = [...]struct {
	text string
	kind tagKind
}{
	{"!", tagComment}, {"#>", tagPartialBlock}, {"#*", tagInline}, {"#", tagBlock}, {">", tagPartial},
	{"/", tagShut}, {"{", tagTriple}, {"&", tagUnescaped},
}

// skip moves past a prefix, if it comes next.
func (p *parser) skip(prefix string) bool {
	found := strings.HasPrefix(p.src.text[p.at:p.limit], prefix)
	if found {
		p.at += len(prefix)
	}
	return found
}

// skipElse moves past the word else, if it comes next.
func (p *parser) skipElse() bool {
	after, found := strings.CutPrefix(strings.TrimLeftFunc(p.src.text[p.at:p.limit], isSpace), "else")
	if !found || after != "" && strings.IndexByte(wordBytes, after[0]) >= 0 {
		return false
	}
	p.at = p.limit - len(after)
	return true
}

// elseTag looks whether the tag ends right here: then it only divides a block.
func (p *parser) elseTag(t *tag) {
	if next := p.peek(); next.kind == tokenClose {
		t.kind = tagElse
		t.strip.close = next.tilde
		p.at, p.limit = next.end, len(p.src.text)
	}
}

// comment reads the rest of a comment. One that begins with two hyphens ends with two, and may have braces
// between.
func (p *parser) comment(t tag) node {
	rest := p.src.text[p.at:]
	end, shut := strings.Index(rest, p.shut), len(p.shut)
	if !customDelimiters(p) && strings.HasPrefix(rest, "--") {
		end, shut = dashedEnd(rest)
	}
	if end < 0 {
		panic(p.fault(t.offset, "the comment has no end"))
	}
	t.strip.close = !customDelimiters(p) && p.src.text[p.at+end+shut-3] == '~'
	p.at += end + shut
	p.limit = len(p.src.text)
	return &comment{strip: t.strip}
}

// dashedEnd finds --}} or --~}}, whichever comes first.
func dashedEnd(s string) (at, length int) {
	at, length = strings.Index(s, "--}}"), len("--}}")
	if tilde := strings.Index(s, "--~}}"); tilde >= 0 && (at < 0 || tilde < at) {
		return tilde, len("--~}}")
	}
	return at, length
}

// delimiters reads a change of delimiters: {{=<% %>=}}.
func (p *parser) delimiters(t tag) node {
	rest := p.src.text[p.at:]
	end := strings.Index(rest, "="+p.shut)
	if end < 0 {
		panic(p.fault(t.offset, "the change of delimiters has no end"))
	}
	pair := strings.Fields(rest[:end])
	if len(pair) != 2 || strings.Contains(pair[0]+pair[1], "=") {
		panic(p.fault(t.offset, "a change of delimiters names two, without an equals sign: {{=<%% %%>=}}"))
	}
	p.at += end + 1 + len(p.shut)
	p.open, p.shut = pair[0], pair[1]
	p.limit = len(p.src.text)
	return &comment{strip: t.strip}
}
