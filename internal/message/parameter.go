package message

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxParameter is the maximum length of a parameter value that is not split.
const maxParameter = 60

// parameters writes "; name=value" for each parameter, on a new line if the line is full.
func (w *headerWriter) parameters(params []parameter) {
	for _, p := range params {
		w.buf = append(w.buf, ';')
		w.col++
		w.word(" ", p.String())
	}
}

// parameter is one parameter of a Content-Type or Content-Disposition.
type parameter struct {
	name, value string
	extended    bool // percent-encoded (RFC 2231 section 4), so not quoted
}

func (p parameter) String() string {
	if p.extended {
		return p.name + "=" + p.value
	}
	return p.name + "=" + parameterValue(p.value)
}

// filenameParameters returns the file name parameters of Content-Disposition. A short ASCII name is written
// as it is. Other names are written as in RFC 2231, split if long, followed by an ASCII version for parsers
// without RFC 2231. The true name comes first, for parsers that take the first one.
func filenameParameters(filename string) []parameter {
	if isASCII(filename) && !strings.Contains(filename, "=?") {
		return continued("filename", filename)
	}
	return append(extended("filename", filename), parameter{name: "filename", value: asciiLikeness(filename)})
}

// nameParameter writes the file name into Content-Type, for Outlook: it expects encoded words there, although
// RFC 2047 section 5 forbids them.
func (w *headerWriter) nameParameter(filename string) {
	if isASCII(filename) && !strings.Contains(filename, "=?") {
		w.parameters(continued("name", filename))
		return
	}
	w.buf = append(w.buf, ';')
	w.col++
	w.enclosed(`name="`, filename, `"`)
}

// continued writes an ASCII value as it is, split into name*0, name*1, … if long (RFC 2231 section 3).
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

// parameterSafe is the attribute-chars of RFC 2231 section 7 that every parser accepts.
const parameterSafe = alphanumeric + ".-_"

// extended percent-encodes a value with its charset, split if long (RFC 2231 sections 3 and 4).
func extended(name, value string) []parameter {
	var pieces []string
	piece := "utf-8''"
	for value != "" {
		_, size := utf8.DecodeRuneInString(value)
		escaped := escape(value[:size], '%', parameterSafe)
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

// asciiLikeness replaces characters outside ASCII and shortens the name. It keeps the extension: programs
// choose by it how to open a file.
func asciiLikeness(filename string) string {
	name := strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf || strings.ContainsRune(`?"\`, r) {
			return '_'
		}
		return r
	}, filename)
	if len(name) <= maxParameter {
		return name
	}
	extension := ""
	if dot := strings.LastIndexByte(name, '.'); dot > 0 && len(name)-dot <= 12 {
		extension = name[dot:]
	}
	return name[:maxParameter-len(extension)] + extension
}

// parameterValue quotes a value unless it is a simple token. RFC 2045 section 5.1 allows more, but Python's
// parser loses a name with an apostrophe.
func parameterValue(value string) string {
	if value != "" && strings.Trim(value, alphanumeric+"!*+-._") == "" {
		return value
	}
	return `"` + quotedPairs.Replace(value) + `"`
}
