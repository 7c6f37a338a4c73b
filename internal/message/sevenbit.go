package message

import (
	"bytes"
	"cmp"
	"iter"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxDepth is the maximum nesting of parts that are read. Real mail has about five levels.
const maxDepth = 20

// entity is a message or a part of one (RFC 2045 section 2.4). Its lines end with CRLF.
type entity struct {
	header   rawHeader
	body     []byte
	attached bool // it is an attached message or a part of one, which stays as it is wherever it can
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

// bytes returns the entity as text. Bare line ends of its body become CRLF.
func (e *entity) bytes() []byte {
	size, bare := e.header.size()+2+len(e.body), HasBareLineEnd(e.body)
	if bare {
		size += bytes.Count(e.body, []byte("\n")) + bytes.Count(e.body, []byte("\r"))
	}
	text := make([]byte, 0, size)
	for _, field := range e.header.fields {
		text = append(text, field.bytes...)
	}
	text = append(text, "\r\n"...)
	if bare {
		return appendCRLF(text, e.body)
	}
	return append(text, e.body...)
}

// messageToSevenBit encodes the fields and parts that need 8BITMIME or have too long lines (RFC 6152, RFC
// 5321 section 4.5.3.1.6), so that every relay accepts the message. A signed body stays as it is. It reports
// whether anything changed. boundaries are the enclosing parts'.
func (e *entity) messageToSevenBit(f *faults, depth int, boundaries []string) bool {
	if e.header.isSigned() {
		e.header.checkMIME(f)
		return e.header.makeCarriable(f)
	}
	return e.toSevenBit(f, "text/plain", depth, boundaries)
}

// isSigned reports whether a message has a signature that a change of its body would break.
func (h *rawHeader) isSigned() bool {
	return slices.ContainsFunc(h.fields, func(f rawField) bool { return isSignature(f.name) })
}

func isSignature(field string) bool {
	return field == "dkim-signature" || field == "domainkey-signature" || strings.HasPrefix(field, "arc-")
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
func (e *entity) toSevenBit(f *faults, usual string, depth int, boundaries []string) bool {
	if !e.attached {
		e.header.checkMIME(f)
	}
	rewritten := e.header.makeCarriable(f)
	kind := e.header.mediaType(usual)
	changed := false
	switch {
	case depth >= maxDepth || sealedTypes[kind]:
		return rewritten
	case !isIdentity(e.header.get("Content-Transfer-Encoding")):
		return rewritten // already encoded, or in an unknown encoding
	case strings.HasPrefix(kind, "multipart/"):
		part := "text/plain"
		if kind == "multipart/digest" {
			part = "message/rfc822" // RFC 2046 section 5.1.5
		}
		changed = e.changeParts(boundaries, func(p *entity, boundaries []string) (changed, stop bool) {
			p.attached = e.attached
			return p.toSevenBit(f, part, depth+1, boundaries), false
		})
	case kind == "message/rfc822" || kind == "message/global":
		inner, ok := parseEntity(e.body)
		inner.attached = true
		if ok && inner.messageToSevenBit(f, depth+1, boundaries) {
			e.body, changed = inner.bytes(), true
		}
	case strings.HasPrefix(kind, "message/"): // must not be encoded (RFC 2046 section 5.2)
		return rewritten
	default:
		return e.encode(kind, boundaries) || rewritten
	}
	if changed && e.header.get("Content-Transfer-Encoding") != "" && !inspect(e.body).eightBit {
		e.header.setIdentifiers("Content-Transfer-Encoding", string(sevenBit))
	}
	return changed || rewritten
}

// isIdentity reports whether a Content-Transfer-Encoding leaves bytes unencoded. Case is ignored.
func isIdentity(encoding string) bool {
	return slices.Contains([]string{"", "7bit", "8bit", "binary"}, strings.ToLower(encoding))
}

// mediaType is the type in the header, in lower case and without parameters.
func (h *rawHeader) mediaType(usual string) string {
	kind, _, _ := strings.Cut(h.get("Content-Type"), ";")
	return cmp.Or(strings.ToLower(strings.TrimSpace(kind)), usual)
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
		if !isASCII(e.body) && utf8.Valid(e.body) {
			e.labelUTF8(kind)
		}
	}
	e.setBody(e.body, encoding, boundaries)
	return true
}

// labelUTF8 adds the charset to a text in UTF-8 without one, which would be US-ASCII (RFC 2045 section 5.2).
func (e *entity) labelUTF8(kind string) {
	value := e.header.get("Content-Type")
	_, params, err := mime.ParseMediaType(value)
	if params["charset"] != "" || err != nil && strings.Contains(strings.ToLower(value), "charset") {
		return
	}
	value = cmp.Or(strings.TrimRight(value, "; \t"), kind) + "; charset=utf-8"
	e.header.write("Content-Type", func(w *headerWriter) {
		w.begin("Content-Type")
		w.lexemes(lexemes(value))
		w.end()
	})
}

// setBody replaces the body by one in that encoding, or in base64 if a line starts with a boundary: a soft
// line break can move one there.
func (e *entity) setBody(body []byte, encoding transferEncoding, boundaries []string) {
	e.body = appendEncoded(make([]byte, 0, encodedSize(encoding, len(body))), encoding, body)
	if hasBoundary(e.body, boundaries) {
		encoding = base64Encoding
		e.body = appendEncoded(nil, encoding, body)
	}
	e.header.setIdentifiers("Content-Transfer-Encoding", string(encoding))
}

// hasBoundary reports whether a line starts with a boundary of an enclosing part.
func hasBoundary(text []byte, boundaries []string) bool {
	for len(text) > 0 {
		line, rest := cutLine(text)
		if line, dashes := bytes.CutPrefix(line, []byte("--")); dashes &&
			slices.ContainsFunc(boundaries, func(b string) bool { return bytes.HasPrefix(line, []byte(b)) }) {
			return true
		}
		text = rest
	}
	return false
}

// changeParts passes each part of a multipart to change, until one stops. It reports whether a part changed.
// Text between the parts stays as it is; so does a multipart that cannot be read.
func (e *entity) changeParts(boundaries []string, change func(*entity, []string) (changed, stop bool)) bool {
	_, params, err := mime.ParseMediaType(e.header.get("Content-Type"))
	boundary := params["boundary"]
	if err != nil || boundary == "" || !isIdentity(e.header.get("Content-Transfer-Encoding")) {
		return false
	}
	boundaries = append(slices.Clip(boundaries), boundary)
	var out []byte // the rewritten part of the body
	done := 0      // end of what out contains
	for from, to := range FindParts(e.body, boundary) {
		part, ok := parseEntity(e.body[from:to])
		if !ok {
			continue
		}
		changed, stop := change(&part, boundaries)
		if changed {
			out = append(append(out, e.body[done:from]...), part.bytes()...)
			done = to
		}
		if stop {
			break
		}
	}
	if done > 0 {
		e.body = append(out, e.body[done:]...)
	}
	return done > 0
}

// FindParts returns where the parts between the boundary lines of a body begin and end (RFC 2046 section
// 5.1.1). The line end before a boundary belongs to the boundary. A part without an end counts too.
func FindParts(body []byte, boundary string) iter.Seq2[int, int] {
	return func(yield func(from, to int) bool) {
		begin := len(body) // where the part that is being read begins
		for at := 0; at < len(body); {
			line, rest := cutLine(body[at:])
			next := len(body) - len(rest)
			if closes, ok := isBoundary(line, boundary); ok {
				if begin < at && !yield(begin, begin+len(withoutLineEnd(body[begin:at]))) || closes {
					return
				}
				begin = next
			}
			at = next
		}
		if begin < len(body) {
			yield(begin, len(body))
		}
	}
}

func withoutLineEnd(text []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
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
