package message

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxParameter is how long a parameter's value may be to stay in one piece.
const maxParameter = 60

// parameters writes "; name=value" for each, every one on a line of its own where the line is full.
func (w *headerWriter) parameters(params []parameter) {
	for _, p := range params {
		w.buf = append(w.buf, ';')
		w.col++
		value := p.value
		if !p.extended {
			value = parameterValue(value)
		}
		w.word(" ", p.name+"="+value)
	}
}

// parameter is one parameter of a Content-Type or Content-Disposition.
type parameter struct {
	name, value string
	extended    bool // the value is percent-encoded (RFC 2231 section 4), so quotes would be part of it
}

// filenameParameters names a file in Content-Disposition. A short ASCII name stands as it is. Any other is written as RFC 2231 asks, in
// pieces where it is long, followed by an ASCII likeness for programs that know no RFC 2231; those that do take the first, and parsers that
// go by order meet the true name first.
func filenameParameters(filename string) []parameter {
	if isASCII(filename) && !strings.Contains(filename, "=?") {
		return continued("filename", filename)
	}
	return append(extended("filename", filename), parameter{name: "filename", value: asciiLikeness(filename)})
}

// nameParameter names a file in Content-Type too, for Outlook, which looks there for encoded words although RFC 2047 section 5 forbids them.
func (w *headerWriter) nameParameter(filename string) {
	if isASCII(filename) && !strings.Contains(filename, "=?") {
		w.parameters(continued("name", filename))
		return
	}
	words := encodeWords(filename, maxColumns-len(` name="";`))
	words[0] = `name="` + words[0]
	words[len(words)-1] += `"`
	w.buf = append(w.buf, ';')
	w.col++
	for _, word := range words {
		w.word(" ", word)
	}
}

// continued writes an ASCII value as it is, cut into name*0, name*1, … where it is long (RFC 2231 section 3).
func continued(name, value string) []parameter {
	if len(value) <= maxParameter {
		return []parameter{{name: name, value: value}}
	}
	var params []parameter
	for i := 0; value != ""; i++ {
		n := min(maxParameter, len(value))
		params = append(params, parameter{name: fmt.Sprintf("%s*%d", name, i), value: value[:n]})
		value = value[n:]
	}
	return params
}

// extended percent-encodes a value with its charset, in pieces where it is long (RFC 2231 sections 3 and 4).
func extended(name, value string) []parameter {
	var pieces []string
	piece := "utf-8''"
	for value != "" {
		_, size := utf8.DecodeRuneInString(value)
		escaped := percentEncode(value[:size])
		if len(piece)+len(escaped) > maxParameter {
			pieces = append(pieces, piece)
			piece = ""
		}
		piece += escaped
		value = value[size:]
	}
	pieces = append(pieces, piece)
	if len(pieces) == 1 {
		return []parameter{{name: name + "*", value: pieces[0], extended: true}}
	}
	params := make([]parameter, len(pieces))
	for i, piece := range pieces {
		params[i] = parameter{name: fmt.Sprintf("%s*%d*", name, i), value: piece, extended: true}
	}
	return params
}

// percentEncode keeps the attribute-char of RFC 2231 section 7 that every parser agrees on.
func percentEncode(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_' {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(upperHex[c>>4])
		b.WriteByte(upperHex[c&15])
	}
	return b.String()
}

// asciiLikeness replaces what is not ASCII and shortens, keeping the extension, by which many programs decide how to open a file.
func asciiLikeness(filename string) string {
	var b strings.Builder
	for _, r := range filename {
		if r >= utf8.RuneSelf || r == '?' || r == '"' || r == '\\' {
			r = '_'
		}
		b.WriteRune(r)
	}
	name := b.String()
	if len(name) <= maxParameter {
		return name
	}
	extension := ""
	if dot := strings.LastIndexByte(name, '.'); dot > 0 && len(name)-dot <= 12 {
		extension = name[dot:]
	}
	return name[:maxParameter-len(extension)] + extension
}

// parameterValue quotes a value unless it is a token that no parser takes for more (RFC 2045 section 5.1 allows more than this, and
// Python's parser loses a name with an apostrophe).
func parameterValue(value string) string {
	for i := 0; i < len(value); i++ {
		if c := value[i]; !(qSafe(c) && c != '/' || c == '.' || c == '_') {
			return `"` + quotedPairs.Replace(value) + `"`
		}
	}
	if value == "" {
		return `""`
	}
	return value
}
