package message

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/quotedprintable"
	"slices"
	"strings"
)

// Mark sets headers, replacing those of the same names, and passes the html to a function: the first
// text/html part that is not an attachment. Lines must end with CRLF, as FromRaw leaves them. Html stays
// unchanged if it is signed or encrypted, if its charset does not extend ASCII, or if it cannot be decoded.
// Headers must be valid. The error is that of html, or reports that raw is not a message.
func Mark(raw []byte, headers []Header, html func(string) (string, error)) ([]byte, error) {
	e, ok := parseEntity(raw)
	if !ok {
		return nil, errors.New("mark a message: it has no header")
	}
	if html != nil && !e.header.isSigned() {
		if _, err := e.changeHTML("text/plain", 0, nil, html); err != nil {
			return nil, err
		}
	}
	for _, h := range headers {
		var w headerWriter
		w.field(h.Name, h.Value)
		e.header.set(h.Name, w.take())
	}
	return e.bytes(), nil
}

// changeHTML passes the first html of an entity to html. It reports whether one was found that can be
// changed.
func (e *entity) changeHTML(usual string, depth int, boundaries []string, html func(string) (string, error)) (
	bool, error) {
	kind := e.header.mediaType(usual)
	switch {
	case depth >= maxDepth || sealedTypes[kind]:
		return false, nil
	case strings.HasPrefix(kind, "multipart/"):
		return e.changePart(depth, boundaries, html)
	case kind != "text/html" || strings.HasPrefix(strings.ToLower(e.header.get("Content-Disposition")),
		"attachment"):
		return false, nil
	}
	text, ok := e.text()
	if !ok {
		return false, nil
	}
	changed, err := html(text)
	if err != nil {
		return false, err
	}
	e.setText([]byte(changed), boundaries)
	return true, nil
}

// changePart searches the parts of a multipart for html.
func (e *entity) changePart(depth int, boundaries []string, html func(string) (string, error)) (bool, error) {
	_, params, err := mime.ParseMediaType(e.header.get("Content-Type"))
	boundary := params["boundary"]
	if err != nil || boundary == "" || !isIdentity(e.header.get("Content-Transfer-Encoding")) {
		return false, nil //nolint:nilerr // unreadable parts stay unchanged
	}
	for _, place := range findParts(e.body, boundary) {
		part, ok := parseEntity(e.body[place.from:place.to])
		if !ok {
			continue
		}
		changed, err := part.changeHTML("text/plain", depth+1, append(slices.Clip(boundaries), boundary), html)
		if err != nil {
			return false, err
		}
		if changed {
			e.body = slices.Concat(e.body[:place.from], part.bytes(), e.body[place.to:])
			return true, nil
		}
	}
	return false, nil
}

// text decodes the transfer encoding of a text body. Its charset stays and must extend ASCII.
func (e *entity) text() (string, bool) {
	_, params, err := mime.ParseMediaType(e.header.get("Content-Type"))
	charset := strings.ToLower(params["charset"])
	for _, other := range []string{"utf-16", "utf-32", "utf-7", "ucs-", "iso-2022-", "iso-10646-", "hz-", "big5",
		"shift_jis", "gbk", "gb18030"} {
		if strings.HasPrefix(charset, other) { // two of their bytes can look like ASCII
			return "", false
		}
	}
	if err != nil {
		return "", false
	}
	switch encoding := strings.ToLower(e.header.get("Content-Transfer-Encoding")); {
	case isIdentity(encoding):
		return string(e.body), true
	case encoding == "quoted-printable":
		text, err := io.ReadAll(quotedprintable.NewReader(bytes.NewReader(e.body)))
		return string(text), err == nil
	case encoding == "base64":
		text, err := io.ReadAll(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(e.body)))
		return string(text), err == nil
	}
	return "", false
}

// setText replaces the text of the entity, in an encoding that every relay accepts.
func (e *entity) setText(text []byte, boundaries []string) {
	text = crlf(text)
	encoding := textEncoding(text)
	encoded := appendEncoded(nil, encoding, text)
	if hasBoundary(encoded, boundaries) {
		encoding = base64Encoding
		encoded = appendEncoded(nil, encoding, text)
	}
	e.body = encoded
	e.header.setIdentifiers("Content-Transfer-Encoding", string(encoding))
}
