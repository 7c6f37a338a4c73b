package message

import (
	"errors"
	"mime"
	"strings"
)

// Mark sets headers, replacing headers of the same names, and passes the html to a function: the first
// text/html part that is not an attachment. Lines must end with CRLF, as FromRaw leaves them. Html stays
// unchanged if it is signed or encrypted, if its charset does not extend ASCII, or if it cannot be decoded.
// Headers must be valid. The error is html's, or reports that raw is not a message.
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
		e.header.write(h.Name, func(w *headerWriter) { w.field(h.Name, h.Value) })
	}
	return e.bytes(), nil
}

// Readdress replaces the addresses of To and Cc by change's result. It removes DKIM signatures, because they
// would no longer be valid. author is the first address of From. raw must be a message of Compose.
func Readdress(raw []byte, change func([]Address) []Address) (changed []byte, author string, _ error) {
	e, ok := parseEntity(raw)
	from, err := ParseAddressList(e.header.get("From"))
	if !ok || err != nil || len(from) == 0 {
		return nil, "", errors.New("readdress a message: it has no author")
	}
	e.header.remove("DKIM-Signature")
	for _, name := range []string{"To", "Cc"} {
		if list, err := ParseAddressList(e.header.get(name)); err == nil {
			e.header.setAddresses(name, change(list)...)
		}
	}
	return e.bytes(), from[0].Address, nil
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
		var err error
		changed := e.changeParts(boundaries, func(p *entity, boundaries []string) (changed, stop bool) {
			changed, err = p.changeHTML("text/plain", depth+1, boundaries, html)
			return changed, changed || err != nil
		})
		return changed, err
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
	body := crlf([]byte(changed))
	e.setBody(body, textEncoding(body), boundaries)
	return true, nil
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
	text, err := e.decoded()
	return string(text), err == nil
}
