package testapi

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"mime"
	"mime/multipart"
	"net/mail"
	"net/textproto"
	"strings"
	"time"
)

// content is a message as most APIs take it: in parts. Addresses are values of header fields.
type content struct {
	from, subject, text, html string
	to, cc, replyTo           []string
	headers                   [][2]string
	raw                       bool   // the values of headers are sent as they are, without encoding
	more                      []file // alternatives after text and html
	inline, attached          []file
}

// file is a part with a name.
type file struct {
	kind, name, cid string
	data            []byte
}

// attach adds a file, in base64. It is inline if it has a Content-ID.
func (m *content) attach(kind, name, cid, text string) {
	raw, _ := decoded(text) // what can't be decoded was refused
	if f := (file{kind, name, cid, raw}); cid != "" {
		m.inline = append(m.inline, f)
	} else {
		m.attached = append(m.attached, f)
	}
}

// entity is a part of a MIME message, or all of it.
type entity struct {
	header textproto.MIMEHeader
	body   []byte
}

// join writes the message that a provider makes of its parts.
func (m content) join(id string, now time.Time) []byte {
	var alternatives []entity
	if m.text != "" {
		alternatives = append(alternatives, leaf("text/plain; charset=utf-8", "", file{data: []byte(m.text)}))
	}
	if m.html != "" {
		parts := []entity{leaf("text/html; charset=utf-8", "", file{data: []byte(m.html)})}
		for _, f := range m.inline {
			parts = append(parts, leaf(f.kind, "inline", f))
		}
		alternatives = append(alternatives, several("related", parts))
	}
	for _, f := range m.more {
		alternatives = append(alternatives, leaf(f.kind, "", f))
	}
	parts := []entity{several("alternative", alternatives)}
	for _, f := range m.attached {
		parts = append(parts, leaf(f.kind, "attachment", f))
	}
	body := several("mixed", parts)

	var out bytes.Buffer
	seen := map[string]bool{}
	field := func(name, value string) {
		if value != "" {
			seen[textproto.CanonicalMIMEHeaderKey(name)] = true
			fmt.Fprintf(&out, "%s: %s\r\n", name, value)
		}
	}
	field("From", addressList(m.from))
	field("To", addressList(m.to...))
	field("Cc", addressList(m.cc...))
	field("Reply-To", addressList(m.replyTo...))
	field("Subject", mime.QEncoding.Encode("utf-8", m.subject))
	for _, h := range m.headers {
		if !m.raw {
			h[1] = mime.QEncoding.Encode("utf-8", h[1])
		}
		field(h[0], h[1])
	}
	if !seen["Message-Id"] {
		field("Message-ID", "<"+strings.Trim(id, "<>")+"@provider.test>")
	}
	if !seen["Date"] {
		field("Date", now.UTC().Format(time.RFC1123Z))
	}
	field("MIME-Version", "1.0")
	for name := range body.header {
		field(name, body.header.Get(name))
	}
	out.WriteString("\r\n")
	out.Write(body.body)
	return out.Bytes()
}

// leaf is a part without parts.
func leaf(kind, disposition string, f file) entity {
	if kind == "" {
		kind = "application/octet-stream"
	}
	h := textproto.MIMEHeader{"Content-Type": {kind}, "Content-Transfer-Encoding": {"base64"}}
	if f.cid != "" {
		h.Set("Content-ID", "<"+strings.Trim(f.cid, "<>")+">")
	}
	if disposition != "" {
		params := map[string]string{}
		if f.name != "" {
			params["filename"] = f.name
		}
		h.Set("Content-Disposition", mime.FormatMediaType(disposition, params))
	}
	text := base64.StdEncoding.EncodeToString(f.data)
	var body bytes.Buffer
	for len(text) > 76 {
		body.WriteString(text[:76] + "\r\n")
		text = text[76:]
	}
	body.WriteString(text + "\r\n")
	return entity{h, body.Bytes()}
}

// several makes one part of parts. A single one stays what it is.
func several(kind string, parts []entity) entity {
	switch len(parts) {
	case 0:
		return leaf("text/plain; charset=utf-8", "", file{})
	case 1:
		return parts[0]
	}
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for _, p := range parts {
		part, _ := w.CreatePart(p.header) // neither fails: the buffer takes all
		_, _ = part.Write(p.body)
	}
	_ = w.Close()
	return entity{textproto.MIMEHeader{"Content-Type": {fmt.Sprintf("multipart/%s; boundary=%s", kind,
		w.Boundary())}}, body.Bytes()}
}

// addressList writes addresses as a header field does.
func addressList(list ...string) string {
	var out []string
	for _, text := range list {
		all, err := mail.ParseAddressList(text)
		if err != nil {
			out = append(out, text)
			continue
		}
		for _, a := range all {
			out = append(out, a.String())
		}
	}
	return strings.Join(out, ", ")
}
