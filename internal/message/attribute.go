package message

import "strings"

const (
	htmlBlanks = " \t\r\n\f"
	endsOfName = htmlBlanks + "/>"
)

// Attribute is the position of an attribute in a start tag of html, for packages that change html and leave
// every other byte as it is. The tokenizer of golang.org/x/net/html returns values without their positions.
type Attribute struct {
	Start, End           int  // from its name to the end of its value, quotes included
	ValueStart, ValueEnd int  // the value without quotes; if equal, it is empty or missing
	Quoted               bool // the value is in quotes
}

// FindAttribute returns the first attribute of that name, in any case. It parses as browsers and the
// tokenizer do (WHATWG HTML, 13.2.5.32 to 13.2.5.38). Only the first attribute of a name counts.
func FindAttribute(tag, name string) (Attribute, bool) {
	i := strings.IndexAny(tag, endsOfName)
	for i >= 0 && i < len(tag) && tag[i] != '>' {
		if strings.IndexByte(endsOfName, tag[i]) >= 0 {
			i++
			continue
		}
		a := Attribute{Start: i}
		i++ // an equals sign at the first place is part of the name
		for i < len(tag) && tag[i] != '=' && strings.IndexByte(endsOfName, tag[i]) < 0 {
			i++
		}
		a.End = i
		found := strings.EqualFold(tag[a.Start:i], name)
		if equals := skipBlanks(tag, i); equals < len(tag) && tag[equals] == '=' {
			a.value(tag, skipBlanks(tag, equals+1))
			i = a.End
		}
		if found {
			return a, true
		}
	}
	return Attribute{}, false
}

// value sets the position of the value that begins at i.
func (a *Attribute) value(tag string, i int) {
	a.ValueStart, a.ValueEnd, a.End = len(tag), len(tag), len(tag) // a quote is not closed
	if i < len(tag) && (tag[i] == '"' || tag[i] == '\'') {
		a.Quoted = true
		if n := strings.IndexByte(tag[i+1:], tag[i]); n >= 0 {
			a.ValueStart, a.ValueEnd, a.End = i+1, i+1+n, i+n+2
		}
		return
	}
	a.ValueStart = i
	if n := strings.IndexAny(tag[i:], htmlBlanks+">"); n >= 0 {
		a.ValueEnd, a.End = i+n, i+n
	}
}

func skipBlanks(s string, i int) int { return len(s) - len(strings.TrimLeft(s[i:], htmlBlanks)) }
