package message

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"
)

// The bounds of what Open reads, apart from maxRawHeader.
const (
	mostNodes   = 1000 // parts, multiparts included
	deepestNode = 32   // nested parts
)

// Node is a message, or a part of one, with its content decoded.
type Node struct {
	Type        string            // media type, in lower case
	Params      map[string]string // parameters of the type, without the file name
	Disposition string            // in lower case; empty if none
	Name        string            // file name; empty if none
	CID         string            // Content-ID without brackets; empty if none
	Location    string            // Content-Location; empty if none
	Body        []byte            // decoded from its transfer encoding; nil if the part is a multipart
	Parts       []*Node           // nil unless the part is a multipart
}

// Open takes a whole message apart for a program that joins it again. It returns the header, unfolded, and
// the parts. Fields that are text are decoded; structured ones, such as addresses, keep their encoded words.
// Open fails rather than guess: if it can't decode something, or the message breaks the rules of MIME, a copy
// made of the parts would say something else. Lines must end with CRLF, as FromRaw leaves them. The error
// follows the word "message": "part 2: its base64 is broken".
func Open(raw []byte) ([]Header, *Node, error) {
	e, ok := parseEntity(raw)
	if !ok {
		return nil, nil, errors.New("its header has no end, is too long or has a line that isn't a field")
	}
	header, err := e.header.decoded()
	if err != nil {
		return nil, nil, err
	}
	left := mostNodes
	tree, err := e.open(1, &left)
	return header, tree, err
}

// open reads an entity and its parts. left is how many parts may follow.
func (e *entity) open(depth int, left *int) (*Node, error) {
	if *left--; *left < 0 || depth > deepestNode {
		return nil, fmt.Errorf("it has over %d parts, or over %d nested ones", mostNodes, deepestNode)
	}
	n, err := e.header.node()
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(n.Type, "multipart/") {
		n.Body, err = e.decoded()
		return n, err
	}
	boundary := n.Params["boundary"]
	if boundary == "" || !isIdentity(e.header.get("Content-Transfer-Encoding")) {
		return nil, fmt.Errorf("its %s has no boundary, or a transfer encoding", n.Type)
	}
	for from, to := range FindParts(e.body, boundary) {
		part, ok := parseEntity(e.body[from:to])
		if !ok { // the empty line after a header may belong to the boundary (RFC 2046 section 5.1.1)
			part, ok = parseEntity(append(slices.Clip(e.body[from:to]), "\r\n"...))
		}
		if !ok || to == len(e.body) {
			return nil, fmt.Errorf("part %d: it has no end, or no valid header", len(n.Parts)+1)
		}
		child, err := part.open(depth+1, left)
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", len(n.Parts)+1, err)
		}
		n.Parts = append(n.Parts, child)
	}
	if len(n.Parts) == 0 {
		return nil, fmt.Errorf("its %s has no parts", n.Type)
	}
	return n, nil
}

// node reads what a header says about its content.
func (h *rawHeader) node() (*Node, error) {
	for _, field := range h.fields {
		if !utf8.Valid(field.bytes) {
			return nil, fmt.Errorf("its %s isn't UTF-8", field.name)
		}
	}
	var f faults
	if h.checkMIME(&f); len(f.Fields) > 0 {
		return nil, errors.New("it " + f.Fields[0].Message)
	}
	kind, params, name, err := parametersOf(cmp.Or(h.get("Content-Type"), "text/plain"), "name")
	if err != nil || !strings.Contains(kind, "/") {
		return nil, errors.New("its Content-Type can't be read")
	}
	disposition, _, filename, err := parametersOf(h.get("Content-Disposition"), "filename")
	if err != nil {
		return nil, errors.New("its Content-Disposition can't be read")
	}
	delete(params, "name")
	return &Node{Type: kind, Params: params, Disposition: disposition,
		Name: cmp.Or(filename, name), CID: strings.Trim(h.get("Content-ID"), "<>"),
		Location: h.get("Content-Location")}, nil
}

// extendedName finds the charset of a file name (RFC 2231 section 4). Package mime knows UTF-8 only, and
// drops other names without an error.
var extendedName = regexp.MustCompile(`(?i)(name\*(?:0\*)?[ \t]*=[ \t]*"?)([^'";\s]*)'`)

// parametersOf parses a Content-Type or Content-Disposition. It also returns the parameter that is the file
// name. One without the asterisk of RFC 2231 may have encoded words, as Outlook writes them.
func parametersOf(value, nameKey string) (kind string, params map[string]string, name string, err error) {
	if value == "" {
		return "", nil, "", nil
	}
	charset := "utf-8"
	if found := extendedName.FindStringSubmatch(value); found != nil {
		charset = cmp.Or(found[2], charset)
		value = extendedName.ReplaceAllString(value, "${1}utf-8'")
	}
	if kind, params, err = mime.ParseMediaType(value); err != nil {
		return "", nil, "", err
	}
	name = params[nameKey]
	switch lower := strings.ToLower(value); {
	case !strings.Contains(lower, nameKey+"*"):
		name, err = decodeStrictly(name)
	case name == "":
		err = errors.New("a file name without a charset")
	default:
		name, err = inUTF8([]byte(name), charset)
	}
	return kind, params, name, cmp.Or(err, checkControl(name))
}

// decoded returns the fields for a reader. Text is decoded.
func (h *rawHeader) decoded() ([]Header, error) {
	header := make([]Header, 0, len(h.fields))
	for _, field := range h.fields {
		name, value := string(field.bytes[:len(field.name)]), field.value()
		err := checkControl(value)
		switch {
		case !utf8.Valid(field.bytes):
			err = errors.New("it isn't UTF-8")
		case addressFields[field.name]:
			err = cmp.Or(err, checkWords(value))
		case !structuredFields[field.name] && !strings.HasPrefix(field.name, "list-") && err == nil:
			value, err = decodeStrictly(value)
		}
		if err != nil {
			return nil, fmt.Errorf("its %s can't be read: %w", name, err)
		}
		header = append(header, Header{Name: name, Value: value})
	}
	return header, nil
}

// encodedWords finds what readers read as encoded words, wherever it stands.
var encodedWords = regexp.MustCompile(`=\?[!->@-~]+\?[bBqQ]\?[!->@-~]*\?=`)

// strictWords decodes encoded words. Unlike wordDecoder it fails at an unknown charset.
var strictWords = mime.WordDecoder{CharsetReader: func(charset string, input io.Reader) (io.Reader, error) {
	text, err := io.ReadAll(input)
	decoded, invalid := inUTF8(text, charset)
	return strings.NewReader(decoded), cmp.Or(err, invalid)
}}

// checkWords reports an encoded word that can't be decoded, or that hides a line break. A character in UTF-8
// may be split between two words.
func checkWords(value string) error {
	for _, word := range encodedWords.FindAllString(value, -1) {
		decoded, err := strictWords.Decode(word)
		if err != nil {
			return fmt.Errorf("an encoded word is broken: %w", err)
		}
		if strings.HasPrefix(strings.ToLower(word), "=?us-ascii?") && !isASCII(decoded) {
			return errors.New("an encoded word isn't ASCII, as it says")
		}
		if err := checkControl(decoded); err != nil {
			return err
		}
	}
	return nil
}

// decodeStrictly decodes a field that is text. Without a word that is an encoded one by RFC 2047 section 5 it
// stays as it is.
func decodeStrictly(value string) (string, error) {
	if !slices.ContainsFunc(strings.Fields(value), isEncodedWord) {
		return value, nil
	}
	if err := checkWords(value); err != nil {
		return "", err
	}
	decoded, err := strictWords.DecodeHeader(value)
	if err == nil && !utf8.ValidString(decoded) {
		err = errors.New("it isn't UTF-8, as it says")
	}
	return decoded, err
}

func checkControl(value string) error {
	if strings.ContainsFunc(value, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }) {
		return errors.New("it has a control character")
	}
	return nil
}

// decoded returns the body without its transfer encoding.
func (e *entity) decoded() ([]byte, error) {
	switch encoding := strings.ToLower(e.header.get("Content-Transfer-Encoding")); {
	case encoding == "quoted-printable":
		body, err := io.ReadAll(quotedprintable.NewReader(bytes.NewReader(e.body)))
		if err != nil {
			return nil, errors.New("its quoted-printable is broken")
		}
		return body, nil
	case encoding == "base64":
		text := e.body
		if bytes.ContainsAny(text, " \t") {
			text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte(" "), nil), []byte("\t"), nil)
		}
		body := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
		n, err := base64.StdEncoding.Decode(body, text)
		if err != nil {
			return nil, errors.New("its base64 is broken")
		}
		return body[:n], nil
	case !isIdentity(encoding):
		return nil, errors.New("its transfer encoding is unknown")
	}
	return e.body, nil
}

// Text returns the body of a text in UTF-8, with LF for CRLF. A text without a charset counts as UTF-8.
func (n *Node) Text() (string, error) {
	text, err := inUTF8(n.Body, n.Params["charset"])
	return strings.ReplaceAll(text, "\r\n", "\n"), err
}

// inUTF8 decodes a text. It fails at octets that stand for nothing in the charset, which a reader would
// replace.
func inUTF8(text []byte, charset string) (string, error) {
	switch strings.ToLower(charset) {
	case "", "utf-8", "utf8":
		if !utf8.Valid(text) {
			return "", errors.New("a text isn't UTF-8")
		}
		return string(text), nil
	case "us-ascii", "ascii": // htmlindex takes it for windows-1252
		if !isASCII(text) {
			return "", errors.New("a text isn't ASCII, as it says")
		}
		return string(text), nil
	}
	known, err := htmlindex.Get(charset)
	if err != nil || strings.HasPrefix(strings.ToLower(charset), "utf-16") { // its byte order is unknown
		return "", fmt.Errorf("a text has the unknown charset %.40q", charset)
	}
	decoded, err := known.NewDecoder().Bytes(text)
	if err != nil || bytes.ContainsRune(decoded, utf8.RuneError) {
		return "", fmt.Errorf("a text isn't %.40q, as it says", charset)
	}
	return string(decoded), nil
}
