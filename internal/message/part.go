package message

import (
	"bytes"
	"slices"
	"strconv"
)

// part is one node of the MIME tree: a leaf with a body, or a multipart with children.
type part struct {
	kind        string // "text/plain", "multipart/mixed"
	parameters  []parameter
	disposition string // "", "inline", "attachment"
	filename    string
	cid         string // with angle brackets
	encoding    transferEncoding
	body        []byte
	lines       []*lines // a text's lines, instead of body
	children    []*part
}

// multipart joins parts under one node. A single part is returned itself. Nil parts are ignored; without
// parts the result is nil.
func multipart(kind string, parameters []parameter, parts ...*part) *part {
	children := slices.DeleteFunc(parts, func(p *part) bool { return p == nil })
	switch len(children) {
	case 0:
		return nil
	case 1:
		return children[0]
	}
	return &part{kind: "multipart/" + kind, parameters: parameters, children: children}
}

// write writes a part with its header. Boundaries are made from the message's token and the number of
// boundaries before.
func (p *part) write(w *headerWriter, token string, boundaries *int) {
	boundary := ""
	if p.children != nil {
		boundary = p.boundary(token, *boundaries)
		*boundaries++
	}
	p.writeHeader(w, boundary)
	w.end()
	if p.children == nil {
		w.buf = p.appendBody(w.buf)
		return
	}
	for i, child := range p.children {
		if i > 0 {
			w.end()
		}
		w.buf = append(w.buf, "--"+boundary+"\r\n"...)
		child.write(w, token, boundaries)
	}
	w.buf = append(w.buf, "\r\n--"+boundary+"--"...)
}

func (p *part) writeHeader(w *headerWriter, boundary string) {
	w.begin("Content-Type")
	w.word(" ", p.kind)
	w.parameters(p.parameters)
	if p.filename != "" {
		w.nameParameter(p.filename)
	}
	if boundary != "" {
		w.parameters([]parameter{{name: "boundary", value: boundary}})
	}
	w.end()
	switch {
	case p.children == nil:
		w.identifiers("Content-Transfer-Encoding", string(p.encoding))
	case p.isEightBit(): // a part's encoding also applies to its parents (RFC 2045 section 6.4)
		w.identifiers("Content-Transfer-Encoding", string(eightBit))
	}
	if p.cid != "" {
		w.identifiers("Content-ID", p.cid)
	}
	if p.disposition != "" {
		w.begin("Content-Disposition")
		w.word(" ", p.disposition)
		if p.filename != "" {
			w.parameters(filenameParameters(p.filename))
		}
		w.end()
	}
}

// boundary returns a line that no part contains. "=_" never occurs in quoted-printable or base64. Unencoded
// parts are searched: an attacker may know the token, or the attached message may be our own.
func (p *part) boundary(token string, n int) string {
	boundary := "=_" + strconv.Itoa(n) + "_" + token
	for p.any(func(q *part) bool {
		has := func(l *lines) bool { return bytes.Contains(l.body, []byte(boundary)) }
		return (q.encoding == sevenBit || q.encoding == eightBit) && (bytes.Contains(q.body, []byte(boundary)) ||
			slices.ContainsFunc(q.lines, has))
	}) {
		boundary += "x"
	}
	return boundary
}

func (p *part) isEightBit() bool {
	return p.any(func(q *part) bool { return q.encoding == eightBit })
}

// any reports whether is is true for the part or one inside it.
func (p *part) any(is func(*part) bool) bool {
	return is(p) || slices.ContainsFunc(p.children, func(child *part) bool { return child.any(is) })
}

// size is an upper estimate of the part's octets.
func (p *part) size() int {
	n := 512 + 9*len(p.filename) + 2*len(p.cid) + encodedSize(p.encoding, len(p.body))
	for _, l := range p.lines {
		if p.encoding == quotedPrintable && l.quoted != nil {
			n += len(l.quoted)
		} else {
			n += encodedSize(p.encoding, len(l.body))
		}
	}
	for _, child := range p.children {
		n += child.size() + 128
	}
	return n
}
