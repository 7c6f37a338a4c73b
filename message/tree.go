package message

import (
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// buildTree arranges a checked draft as
//
//	mixed( alternative( text, related( html, images ), calendar ), attachments )
//
// without the levels that would hold one part only. The plainest alternative comes first (RFC 2046 section
// 5.1.4).
func buildTree(d Draft, token, domain string) *part {
	htmlText, images := takeDataImages(d.HTML, token, domain)
	var shown, related, attached, calendars []*part
	var linked map[string]bool
	if slices.ContainsFunc(d.Attachments, func(a Attachment) bool { return a.CID != "" }) {
		linked = linkedCIDs(htmlText)
	}
	for i, a := range d.Attachments {
		p := attachmentPart(a, i)
		switch {
		case a.CID != "" && linked[p.cid[1:len(p.cid)-1]]:
			related = append(related, inlineUnless(p, a.Disposition))
		default:
			attached = append(attached, p)
		}
		if calendar := invitation(p); calendar != nil {
			calendars = append(calendars, calendar)
			p.kind, p.parameters = "application/ics", nil // shown as an alternative, kept as an attachment
		}
	}
	shown = append(shown, textBody(d, htmlText))
	if htmlText != "" {
		related = append(images, related...)
		body := textPart("text/html", addPreview(htmlText, d.PreviewText))
		shown = append(shown, multipart("related", []parameter{{name: "type", value: "text/html"}},
			append([]*part{body}, related...)...))
	}
	alternatives := multipart("alternative", nil, append(shown, calendars...)...)
	if tree := multipart("mixed", nil, append([]*part{alternatives}, attached...)...); tree != nil {
		return tree
	}
	return textPart("text/plain", "")
}

// textBody returns the text part: the given text, a text made from html, or nil.
func textBody(d Draft, htmlText string) *part {
	text := d.Text
	if text == "" && htmlText != "" {
		text = TextFromHTML(htmlText)
	}
	if text == "" {
		return nil
	}
	return textPart("text/plain", text)
}

func textPart(kind, text string) *part {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	body := crlf([]byte(text))
	return &part{kind: kind, parameters: []parameter{{name: "charset", value: "utf-8"}},
		encoding: textEncoding(body), body: body}
}

func attachmentPart(a Attachment, index int) *part {
	p := &part{filename: cleanFilename(a.Filename), disposition: strings.ToLower(a.Disposition),
		encoding: base64Encoding, body: a.Content}
	p.kind, p.parameters = mediaType(a.ContentType, p.filename)
	if p.disposition == "" {
		p.disposition = "attachment"
	}
	if a.CID != "" {
		p.cid, _ = referenceID(a.CID) // checked before
	}
	if p.filename == "" && p.cid == "" {
		p.filename = fmt.Sprintf("attachment-%d%s", index+1, extensionOf(p.kind))
	}
	switch {
	case strings.HasPrefix(p.kind, "message/"):
		p.carryMessage()
	case strings.HasPrefix(p.kind, "text/"):
		p.nameCharset()
	}
	return p
}

// carryMessage sends an attached message unencoded, as its type requires (RFC 2046 section 5.2.1); its parts
// may be encoded. A message with NUL or overlong lines, which no relay accepts, is sent as a plain file.
func (p *part) carryMessage() {
	body := crlf(p.body)
	o := inspect(body)
	if inner, ok := parseEntity(body); ok && p.kind == "message/rfc822" && (o.eightBit || o.longLines) &&
		inner.messageToSevenBit(0, nil) {
		body = inner.bytes()
		o = inspect(body)
	}
	switch {
	case o.nul || o.longLines:
		p.kind, p.parameters = octetStream, nil
		return
	case o.eightBit:
		p.encoding = eightBit
	default:
		p.encoding = sevenBit
	}
	p.body = body
}

// nameCharset adds the charset to a text file in valid UTF-8. The default is US-ASCII (RFC 2046 section
// 4.1.2).
func (p *part) nameCharset() {
	for _, known := range p.parameters {
		if known.name == "charset" {
			return
		}
	}
	if utf8.Valid(p.body) {
		p.parameters = append(p.parameters, parameter{name: "charset", value: "utf-8"})
	}
}

func inlineUnless(p *part, disposition string) *part {
	if disposition == "" {
		p.disposition = "inline"
	}
	return p
}

// invitation returns a copy of a calendar attachment for the alternatives, if its type has a method (RFC 6047
// section 2.4).
func invitation(p *part) *part {
	if p.kind != "text/calendar" {
		return nil
	}
	for _, param := range p.parameters {
		if param.name == "method" {
			body := crlf(p.body)
			return &part{kind: p.kind, parameters: p.parameters, encoding: textEncoding(body), body: body}
		}
	}
	return nil
}

// linkedCIDs finds the content ids that html refers to, in links or styles. Case counts; %-escapes and
// entities are decoded.
func linkedCIDs(htmlText string) map[string]bool {
	linked := make(map[string]bool)
	for rest := htmlText; ; {
		i := indexFold(rest, "cid:")
		if i < 0 {
			return linked
		}
		rest = rest[i+len("cid:"):]
		window := rest[:min(len(rest), maxMessageID*3)] // the maximum id length, with every octet escaped
		end := strings.IndexAny(window, "\"'<> )\t\r\n")
		if end < 0 {
			end = len(window)
		}
		id := html.UnescapeString(rest[:end])
		rest = rest[end:]
		linked[id] = true
		if unescaped, err := url.PathUnescape(id); err == nil {
			linked[unescaped] = true
		}
	}
}

// indexFold is strings.Index for an ASCII needle in lower case that matches any case.
func indexFold(s, needle string) int {
	first := needle[:1] + strings.ToUpper(needle[:1])
	for i := 0; i+len(needle) <= len(s); i++ {
		next := strings.IndexAny(s[i:], first)
		if next < 0 {
			return -1
		}
		i += next
		if i+len(needle) <= len(s) && strings.EqualFold(s[i:i+len(needle)], needle) {
			return i
		}
	}
	return -1
}
