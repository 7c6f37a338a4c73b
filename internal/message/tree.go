package message

import (
	"cmp"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// tree arranges a checked draft as
//
//	mixed( alternative( text, related( html, images ), calendar ), attachments )
//
// without the levels that would hold one part only. The plainest alternative comes first (RFC 2046 section
// 5.1.4).
func (k *Composer) tree(d Draft, token, domain string) *part {
	htmlText, images := takeDataImages(d.HTML, token, domain)
	var shown, related, attached, calendars []*part
	var linked map[string]bool
	if slices.ContainsFunc(d.Attachments, func(a Attachment) bool { return a.CID != "" }) {
		linked = LinkedCIDs(htmlText)
	}
	for i, a := range d.Attachments {
		p := attachmentPart(a, i)
		if a.CID != "" && linked[p.cid[1:len(p.cid)-1]] {
			p.disposition = cmp.Or(strings.ToLower(a.Disposition), "inline")
			related = append(related, p)
		} else {
			attached = append(attached, p)
		}
		if calendar := invitation(p); calendar != nil {
			calendars = append(calendars, calendar)
			p.kind, p.parameters = "application/ics", nil // shown as an alternative, kept as an attachment
		}
	}
	text := d.Text
	if text == "" {
		text = TextFromHTML(htmlText)
	}
	if text != "" {
		shown = append(shown, k.text.part("text/plain", text))
	}
	if htmlText != "" {
		body := k.html.part("text/html", addPreview(htmlText, d.PreviewText))
		shown = append(shown, multipart("related", []parameter{{name: "type", value: "text/html"}},
			slices.Concat([]*part{body}, images, related)...))
	}
	alternatives := multipart("alternative", nil, append(shown, calendars...)...)
	if tree := multipart("mixed", nil, append([]*part{alternatives}, attached...)...); tree != nil {
		return tree
	}
	return k.text.part("text/plain", "")
}

func attachmentPart(a Attachment, index int) *part {
	p := &part{filename: cleanFilename(a.Filename), encoding: base64Encoding, body: a.Content,
		disposition: cmp.Or(strings.ToLower(a.Disposition), "attachment")}
	p.kind, p.parameters = mediaType(a.ContentType, p.filename)
	if a.CID != "" {
		p.cid, _ = referenceID(a.CID) // checked before
	}
	if p.filename == "" && p.cid == "" {
		p.filename = fmt.Sprintf("attachment-%d%s", index+1, extensionOf(p.kind))
	}
	switch {
	case strings.HasPrefix(p.kind, "message/"):
		p.carryMessage()
	case strings.HasPrefix(p.kind, "text/") && !p.has("charset") && utf8.Valid(p.body):
		// The default is US-ASCII (RFC 2046 section 4.1.2).
		p.parameters = append(p.parameters, parameter{name: "charset", value: "utf-8"})
	}
	return p
}

func (p *part) has(parameterName string) bool {
	return slices.ContainsFunc(p.parameters, func(q parameter) bool { return q.name == parameterName })
}

// carryMessage sends an attached message unencoded, as its type requires (RFC 2046 section 5.2.1); its parts
// may be encoded. A message with NUL or overlong lines, which no relay accepts, is sent as a plain file.
func (p *part) carryMessage() {
	body := crlf(p.body)
	o := inspect(body)
	if inner, ok := parseEntity(body); ok && p.kind == "message/rfc822" && (o.eightBit || o.longLines) &&
		inner.messageToSevenBit(new(faults), 0, nil) {
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

// calendarMethod finds the property that calendar programs act on.
var calendarMethod = regexp.MustCompile(`(?im)^METHOD(?:;[^:\r\n]*)?:[ \t]*([a-z0-9-]+)[ \t]*\r?$`)

// invitation returns a copy of a calendar attachment for the alternatives, if its type has a method (RFC 6047
// section 2.4).
func invitation(p *part) *part {
	if p.kind != "text/calendar" || !p.has("method") {
		return nil
	}
	body := crlf(p.body)
	if found := calendarMethod.FindSubmatch(body); found != nil { // both must be equal (RFC 5545 section 8.1)
		for i := range p.parameters {
			if p.parameters[i].name == "method" {
				p.parameters[i].value = strings.ToUpper(string(found[1]))
			}
		}
	}
	return &part{kind: p.kind, parameters: p.parameters, encoding: textEncoding(body), body: body}
}

// LinkedCIDs finds the content ids that html refers to, in links or styles. Case counts; %-escapes and
// entities are decoded.
func LinkedCIDs(htmlText string) map[string]bool {
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

// indexFold is strings.Index for an ASCII needle in lower case that matches any case. It ends in a
// colon, which is rarer in text than letters.
func indexFold(s, needle string) int {
	for at := 0; ; {
		colon := strings.IndexByte(s[at:], ':')
		if colon < 0 {
			return -1
		}
		at += colon + 1
		if start := at - len(needle); start >= 0 && strings.EqualFold(s[start:at], needle) {
			return start
		}
	}
}
