package bounce

import (
	"bytes"
	"mime"
	"regexp"
	"strings"

	"github.com/postroom/postroom/internal/message"
)

// Bounds on the structure of an email. Real bounces have 3 parts on 2 levels.
const (
	maxDepth      = 8
	maxParts      = 100
	maxFields     = 500
	maxFieldBytes = 8 << 10
)

// field is one header field: name in lower case, value unfolded and not decoded.
type field struct{ name, value string }

type header []field

// get returns the first field of a name.
func (h header) get(name string) string {
	for _, f := range h {
		if f.name == name {
			return f.value
		}
	}
	return ""
}

// all returns the values of the fields of a name.
func (h header) all(name string) []string {
	var out []string
	for _, f := range h {
		if f.name == name {
			out = append(out, f.value)
		}
	}
	return out
}

// part is an email or a part of one (RFC 2045, RFC 2046).
type part struct {
	header   header
	media    string // such as "text/plain", in lower case
	params   map[string]string
	body     []byte // as received, with line ends LF
	children []*part
}

// mailParser counts the parts, so that parsing an email of nothing but parts ends.
type mailParser struct {
	parts     int
	truncated bool
}

// parseMail parses an email into its parts. It accepts more than RFC 5322: any line end, an mbox line before
// the header, and header lines that are not fields.
func parseMail(raw []byte) (*part, bool) {
	raw = bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n"))
	raw = bytes.ReplaceAll(raw, []byte("\r"), []byte("\n"))
	for { // some programs write empty lines before the header
		line, rest, more := bytes.Cut(raw, []byte("\n"))
		if !more || len(bytes.TrimSpace(line)) > 0 {
			break
		}
		raw = rest
	}
	if bytes.HasPrefix(raw, []byte("From ")) || bytes.HasPrefix(raw, []byte(">From ")) {
		if end := bytes.IndexByte(raw, '\n'); end >= 0 {
			raw = raw[end+1:]
		}
	}
	p := &mailParser{}
	root := p.parse(raw, "text/plain", 0)
	return root, p.truncated
}

func (p *mailParser) parse(raw []byte, defaultMedia string, depth int) *part {
	p.parts++
	head, body := splitHeader(raw)
	out := &part{header: head, body: body}
	out.media, out.params = mediaType(head.get("content-type"), defaultMedia)
	boundary := out.params["boundary"]
	if !strings.HasPrefix(out.media, "multipart/") || boundary == "" {
		return out
	}
	childMedia := "text/plain"
	if out.media == "multipart/digest" {
		childMedia = "message/rfc822"
	}
	for from, to := range message.FindParts(body, boundary) {
		if depth >= maxDepth || p.parts >= maxParts {
			p.truncated = true
			break
		}
		out.children = append(out.children, p.parse(body[from:to], childMedia, depth+1))
	}
	if len(out.children) == 0 { // a gateway merged the parts into one text
		out.media = "text/plain"
	}
	return out
}

// splitHeader reads fields up to the first empty line. Text without a field is all body.
func splitHeader(raw []byte) (header, []byte) {
	var (
		out   header
		value []byte // the last field's, so that a field with a thousand folds is not copied a thousand times
	)
	finish := func() {
		if len(out) > 0 {
			out[len(out)-1].value = string(value)
		}
	}
	rest := raw
	for len(rest) > 0 {
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		if len(bytes.TrimSpace(line)) == 0 {
			finish()
			return out, after
		}
		folded := line[0] == ' ' || line[0] == '\t'
		name, first, isField := cutField(line)
		folded = folded || !isField && bytes.HasSuffix(value, []byte(";")) // a fold that lost its white space
		switch {
		case folded && len(out) > 0:
			if len(value)+len(line) < maxFieldBytes {
				value = append(append(value, ' '), bytes.TrimSpace(line)...)
			}
		case !folded && isField && len(out) < maxFields:
			finish()
			out = append(out, field{name: name})
			value = append([]byte(nil), first...)
		case len(out) == 0:
			return nil, raw // a part without header, not even an empty line
		}
		rest = after
	}
	finish()
	return out, nil
}

// cutField parses "Name: value".
func cutField(line []byte) (name string, value []byte, ok bool) {
	before, after, found := bytes.Cut(line[:min(len(line), maxFieldBytes)], []byte(":"))
	before = bytes.TrimRight(before, " \t")
	if !found || len(before) == 0 || len(before) > 76 {
		return "", nil, false
	}
	for _, c := range before {
		if c <= ' ' || c >= 0x7f {
			return "", nil, false
		}
	}
	return strings.ToLower(string(before)), bytes.TrimSpace(after), true
}

var looseParam = regexp.MustCompile(`(?i)\b(boundary|charset|report-type)\s*=\s*(?:"([^"]*)"|([^\s;"]+))`)

// mediaType parses a Content-Type, even one that mime.ParseMediaType refuses.
func mediaType(value, fallback string) (string, map[string]string) {
	if value == "" {
		return fallback, map[string]string{}
	}
	if media, params, err := mime.ParseMediaType(value); err == nil {
		return media, params
	}
	media, _, _ := strings.Cut(value, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	params := map[string]string{}
	for _, m := range looseParam.FindAllStringSubmatch(value, 10) {
		params[strings.ToLower(m[1])] = m[2] + m[3]
	}
	if !strings.Contains(media, "/") {
		media = fallback
	}
	return media, params
}

// walk visits a part and the parts in it, in order, but not inside embedded messages.
func (p *part) walk(visit func(*part)) {
	visit(p)
	for _, child := range p.children {
		child.walk(visit)
	}
}
