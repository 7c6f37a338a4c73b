package message

import (
	"bytes"
	"mime"
	"slices"
	"strings"
)

// maxDepth is the maximum nesting of parts that are read. Real mail has about five levels.
const maxDepth = 20

// entity is a message or a part of one (RFC 2045 section 2.4). Its lines end with CRLF.
type entity struct {
	header rawHeader
	body   []byte
}

// parseEntity splits a message or part into header and body. ok is false if it has no body or no valid
// header.
func parseEntity(text []byte) (e entity, ok bool) {
	if rest, bare := bytes.CutPrefix(text, []byte("\r\n")); bare {
		return entity{body: rest}, true
	}
	i := bytes.Index(text, []byte("\r\n\r\n"))
	if i < 0 || i > maxRawHeader {
		return entity{}, false
	}
	var f faults
	e = entity{header: rawHeader{fields: f.parseFields(text[:i+2])}, body: text[i+4:]}
	return e, f.err() == nil
}

// bytes returns the entity as text.
func (e *entity) bytes() []byte {
	size := 2 + len(e.body)
	for _, field := range e.header.fields {
		size += len(field.bytes)
	}
	text := make([]byte, 0, size)
	for _, field := range e.header.fields {
		text = append(text, field.bytes...)
	}
	text = append(text, "\r\n"...)
	return append(text, e.body...)
}

// messageToSevenBit encodes the parts that need 8BITMIME or have too long lines (RFC 6152, RFC 5321 section
// 4.5.3.1.6), so that every relay accepts the message. Signed parts and headers stay as they are. It reports
// whether anything changed. boundaries are those of the enclosing parts.
func (e *entity) messageToSevenBit(depth int, boundaries []string) bool {
	return !e.header.isSigned() && e.toSevenBit("text/plain", depth, boundaries)
}

// isSigned reports whether a message has a signature that a change of its body would break.
func (h *rawHeader) isSigned() bool {
	return slices.ContainsFunc(h.fields, func(f rawField) bool {
		return f.name == "dkim-signature" || f.name == "domainkey-signature" || strings.HasPrefix(f.name, "arc-")
	})
}

// sealedTypes are the signed or encrypted types, whose content must not change (RFC 1847, RFC 3156, RFC
// 8551).
var sealedTypes = map[string]bool{
	"multipart/signed": true, "multipart/encrypted": true, "application/pgp-encrypted": true,
	"application/pgp-signature": true,
	"application/pkcs7-mime":    true, "application/x-pkcs7-mime": true, "application/pkcs7-signature": true,
	"application/x-pkcs7-signature": true,
}

// toSevenBit is messageToSevenBit for any entity. usual is its type if the header has none.
func (e *entity) toSevenBit(usual string, depth int, boundaries []string) bool {
	if !isIdentity(e.header.get("Content-Transfer-Encoding")) {
		return false // already encoded, or in an unknown encoding
	}
	kind := e.header.mediaType(usual)
	changed := false
	switch {
	case depth >= maxDepth || sealedTypes[kind]:
		return false
	case strings.HasPrefix(kind, "multipart/"):
		changed = e.partsToSevenBit(kind, depth, boundaries)
	case kind == "message/rfc822" || kind == "message/global":
		inner, ok := parseEntity(e.body)
		if ok && inner.messageToSevenBit(depth+1, boundaries) {
			e.body, changed = inner.bytes(), true
		}
	case strings.HasPrefix(kind, "message/"): // must not be encoded (RFC 2046 section 5.2)
		return false
	default:
		return e.encode(kind, boundaries)
	}
	if changed && e.header.get("Content-Transfer-Encoding") != "" && !inspect(e.body).eightBit {
		e.header.setIdentifiers("Content-Transfer-Encoding", string(sevenBit))
	}
	return changed
}

// isIdentity reports whether a Content-Transfer-Encoding leaves bytes unencoded. Case is ignored.
func isIdentity(encoding string) bool {
	switch strings.ToLower(encoding) {
	case "", "7bit", "8bit", "binary":
		return true
	}
	return false
}

// mediaType is the type in the header, in lower case and without parameters.
func (h *rawHeader) mediaType(usual string) string {
	kind, _, _ := strings.Cut(h.get("Content-Type"), ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	if kind == "" {
		return usual
	}
	return kind
}

// encode encodes a body without parts: text as the shorter of quoted-printable and base64, other content as
// base64.
func (e *entity) encode(kind string, boundaries []string) bool {
	if o := inspect(e.body); !o.eightBit && !o.longLines {
		return false
	}
	encoding := base64Encoding
	if strings.HasPrefix(kind, "text/") || !strings.Contains(kind, "/") {
		encoding = textEncoding(e.body)
	}
	encoded := appendEncoded(make([]byte, 0, encodedSize(encoding, len(e.body))), encoding, e.body)
	if hasBoundary(encoded, boundaries) { // a soft line break can move one to the start of a line
		encoding = base64Encoding
		encoded = appendEncoded(nil, encoding, e.body)
	}
	e.body = encoded
	e.header.setIdentifiers("Content-Transfer-Encoding", string(encoding))
	return true
}

// hasBoundary reports whether a line starts with a boundary of an enclosing part.
func hasBoundary(text []byte, boundaries []string) bool {
	for len(text) > 0 {
		line, rest := cutLine(text)
		if bytes.HasPrefix(line, []byte("--")) {
			for _, b := range boundaries {
				if bytes.HasPrefix(line[2:], []byte(b)) {
					return true
				}
			}
		}
		text = rest
	}
	return false
}

// partsToSevenBit encodes each part of a multipart. Text between the parts stays as it is.
func (e *entity) partsToSevenBit(kind string, depth int, boundaries []string) bool {
	_, params, err := mime.ParseMediaType(e.header.get("Content-Type"))
	boundary := params["boundary"]
	if err != nil || boundary == "" {
		return false
	}
	usual := "text/plain"
	if kind == "multipart/digest" {
		usual = "message/rfc822" // RFC 2046 section 5.1.5
	}
	boundaries = append(slices.Clip(boundaries), boundary)
	var out []byte // the rewritten part of the body
	done := 0      // end of what out contains
	for _, place := range findParts(e.body, boundary) {
		part, ok := parseEntity(e.body[place.from:place.to])
		if !ok || !part.toSevenBit(usual, depth+1, boundaries) {
			continue
		}
		out = append(out, e.body[done:place.from]...)
		out = append(out, part.bytes()...)
		done = place.to
	}
	if done == 0 {
		return false
	}
	e.body = append(out, e.body[done:]...)
	return true
}

// span is a stretch of a body.
type span struct{ from, to int }

// findParts finds the parts between boundary lines (RFC 2046 section 5.1.1). The line end before a boundary
// belongs to the boundary. A part without an end counts too.
func findParts(body []byte, boundary string) []span {
	var parts []span
	begin := -1 // of the part that is being read
	for at := 0; at < len(body); {
		line, rest := cutLine(body[at:])
		next := len(body) - len(rest)
		if closes, ok := isBoundary(line, boundary); ok {
			if begin >= 0 {
				parts = append(parts, span{begin, max(begin, at-2)})
			}
			if closes {
				return parts
			}
			begin = next
		}
		at = next
	}
	if begin >= 0 {
		parts = append(parts, span{begin, len(body)})
	}
	return parts
}

// isBoundary reports whether a line is a boundary, and whether it is the closing one.
func isBoundary(line []byte, boundary string) (closes, ok bool) {
	line, ok = bytes.CutPrefix(line, []byte("--"))
	if !ok {
		return false, false
	}
	if line, ok = bytes.CutPrefix(line, []byte(boundary)); !ok {
		return false, false
	}
	line = bytes.TrimRight(line, " \t")
	return string(line) == "--", len(line) == 0 || string(line) == "--"
}
