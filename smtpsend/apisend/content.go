package apisend

import (
	"cmp"
	"errors"
	"fmt"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/message"
)

// content is the parts of a message, for providers whose APIs don't take MIME. Texts and names are as the
// reader of the message would see them, letter for letter.
type content struct {
	from, sender     message.Address   // the author; who sends for them, if that is somebody else
	replyTo, to, cc  []message.Address // as the header names them
	subject          string
	messageID        string // with angle brackets; header has it too
	text, html       string // with LF line ends
	hasText, hasHTML bool
	alternatives     []alternative // alternatives besides text and HTML, in order
	inline           []file        // what html shows by their Content-ID
	files            []file        // attachments, in order
	header           []field       // all other fields, in order
	lost             string        // what neither parts nor alternatives express, if anything
}

// alternative is a further form of the text, such as an invitation.
type alternative struct {
	kind string // media type with its parameters, without charset
	text string
}

// file is a part that isn't a text of the message.
type file struct {
	name    string // empty if none
	kind    string // media type with its parameters
	cid     string // Content-ID without brackets; empty if none
	content []byte
}

// field is a header field. Text is decoded; a structured value keeps its encoded words, because a provider
// that encodes all of it would break it.
type field struct{ name, value string }

// takeApart takes a message apart. It fails if the parts would say something else, for example if it can't
// decode a text. Its caller then treats the provider as one that can't carry the message.
func takeApart(raw []byte) (content, error) {
	var c content
	header, tree, err := message.Open(raw)
	if err == nil {
		err = c.takeHeader(header)
	}
	if err == nil {
		err = c.takeParts(tree)
	}
	if err != nil {
		return content{}, fmt.Errorf("can't be parsed: %w", err)
	}
	return c, nil
}

// beyond names something that the parts can't express, such as "a multipart/report". It returns "" if they
// say all. alternatives reports whether the provider takes alternatives besides text and HTML.
func (c content) beyond(alternatives bool) string {
	if c.lost != "" || alternatives || len(c.alternatives) == 0 {
		return c.lost
	}
	return "an alternative of type " + mediaType(c.alternatives[0].kind)
}

// size returns about how long a request with the parts is: files are in base64.
func (c content) size() int64 {
	n := len(c.text) + len(c.html)
	for _, a := range c.alternatives {
		n += len(a.text)
	}
	for _, h := range c.header {
		n += len(h.name) + len(h.value)
	}
	for _, files := range [][]file{c.inline, c.files} {
		for _, f := range files {
			n += len(f.content)/3*4 + len(f.name)
		}
	}
	return int64(n)
}

// takeHeader stores each field where the content has a place for it, or else in header.
func (c *content) takeHeader(header []message.Header) error {
	seen := map[string]bool{}
	var from, sender []message.Address
	for _, h := range header {
		name := strings.ToLower(h.Name)
		var err error
		switch name {
		case "from":
			from, err = addresses(h.Value)
		case "sender":
			sender, err = addresses(h.Value)
		case "reply-to":
			c.replyTo, err = addresses(h.Value)
		case "to":
			c.to, err = addresses(h.Value)
		case "cc":
			c.cc, err = addresses(h.Value)
		case "subject":
			c.subject = h.Value
		default:
			if name == "message-id" {
				c.messageID = cmp.Or(c.messageID, h.Value)
			}
			if !isLeftOut(name) {
				c.header = append(c.header, field{name: h.Name, value: h.Value})
			}
			continue
		}
		if seen[name] {
			err = errors.New("there are two")
		}
		if seen[name] = true; err != nil {
			return fmt.Errorf("its %s %w", h.Name, err)
		}
	}
	if len(from) == 0 {
		return errors.New("it has no author")
	}
	c.from = from[0]
	if len(from) > 1 || len(sender) > 1 {
		c.lost = "several authors"
	} else if len(sender) == 1 && sender[0].Address != c.from.Address {
		c.sender = sender[0]
	}
	return nil
}

// isLeftOut reports whether a field must not go to a provider: the structure of the MIME, what delivery adds,
// hidden recipients, and signatures, which the provider's own MIME would break.
func isLeftOut(name string) bool {
	switch name {
	case "mime-version", "received", "return-path", "bcc", "resent-bcc", "dkim-signature",
		"domainkey-signature":
		return true
	}
	return strings.HasPrefix(name, "content-") || strings.HasPrefix(name, "arc-")
}

// addresses reads a list of addresses, and returns them in normal form.
func addresses(value string) ([]message.Address, error) {
	list, err := message.ParseAddressList(value)
	for i := range list {
		normal, invalid := message.NormalizeAddress(list[i].Address)
		if list[i].Address = normal; !utf8.ValidString(list[i].Name) {
			invalid = errors.New("has a name that isn't UTF-8")
		}
		err = cmp.Or(err, invalid)
	}
	return list, err
}

// takeParts sorts the parts into text, HTML, alternatives, inline images and attachments.
func (c *content) takeParts(tree *message.Node) error {
	t := partTaker{content: c}
	t.take(tree, atRoot)
	if t.err != nil {
		return t.err
	}
	linked := message.LinkedCIDs(c.html)
	for _, n := range t.loose {
		f := file{name: n.Name, kind: mime.FormatMediaType(n.Type, n.Params), cid: n.CID, content: n.Body}
		switch {
		case n.CID != "" && linked[n.CID]:
			linked[n.CID] = false // if two parts have this id, mail programs show the first
			c.inline = append(c.inline, f)
		case n.Location != "" && strings.Contains(c.html, n.Location):
			t.lose("an image that the HTML names by its Content-Location")
		default:
			c.files = append(c.files, f)
		}
	}
	return nil
}

// place is where in the tree a part is.
type place int

const (
	atRoot        place = iota // the message itself
	inMixed                    // shown one after another
	inAlternative              // one of them is shown
	inRelated                  // next to the HTML, which shows it
)

// partTaker collects the parts of a content.
type partTaker struct {
	*content
	loose []*message.Node // inline images and attachments, in order
	err   error           // the first one
}

// lose notes the first thing that the parts can't express.
func (t *partTaker) lose(what string) { t.lost = cmp.Or(t.lost, what) }

// take takes a part and those in it. It reports whether text to show was among them.
func (t *partTaker) take(n *message.Node, at place) (shown bool) {
	switch {
	case !strings.HasPrefix(n.Type, "multipart/"):
		return t.takeLeaf(n, at)
	case n.Type == "multipart/signed" || n.Type == "multipart/encrypted":
		t.lose("a signed or encrypted message (" + n.Type + ")")
	case at == inRelated:
		t.lose("a " + n.Type + " next to the HTML")
	case n.Type == "multipart/mixed":
		return t.takeMixed(n)
	case n.Type == "multipart/alternative":
		for _, part := range n.Parts {
			shown = t.take(part, inAlternative) || shown
		}
	case n.Type == "multipart/related":
		return t.takeRelated(n, at)
	default:
		t.lose("a " + n.Type)
	}
	return shown
}

// takeMixed takes parts that are shown one after another. A text with a name is the body of the message if it
// comes first.
func (t *partTaker) takeMixed(n *message.Node) (shown bool) {
	for _, part := range n.Parts {
		switch {
		case shown && part.Name != "" && strings.HasPrefix(part.Type, "text/"):
			t.loose = append(t.loose, part)
		case t.take(part, inMixed):
			if shown {
				t.lose("a second text")
			}
			shown = true
		}
	}
	return shown
}

// takeRelated takes HTML and its images (RFC 2387).
func (t *partTaker) takeRelated(n *message.Node, at place) (shown bool) {
	root := 0
	if start := strings.Trim(n.Params["start"], "<>"); start != "" {
		root = max(0, slices.IndexFunc(n.Parts, func(p *message.Node) bool { return p.CID == start }))
	}
	shown = t.take(n.Parts[root], max(at, inMixed))
	for i, part := range n.Parts {
		if i != root {
			t.take(part, inRelated)
		}
	}
	return shown
}

// takeLeaf takes a part without parts.
func (t *partTaker) takeLeaf(n *message.Node, at place) (shown bool) {
	attached := n.Disposition == "attachment"
	isText := n.Type == "text/plain" || n.Type == "text/html"
	switch {
	case strings.HasSuffix(n.Type, "pkcs7-mime") && (at == atRoot || !attached):
		t.lose("a signed or encrypted message (" + n.Type + ")")
	case n.Type == "message/partial" || n.Type == "message/external-body":
		t.lose("a " + n.Type)
	case at == inRelated, attached && n.Type != "text/calendar", attached && at == inMixed:
		t.loose = append(t.loose, n)
	case isText:
		t.takeText(n)
		return true
	case at == inAlternative && strings.HasPrefix(n.Type, "text/"):
		t.takeAlternative(n)
	case at == inAlternative:
		t.lose("an alternative of type " + n.Type)
	case strings.HasPrefix(n.Type, "text/") && n.Name == "" && !attached && !t.hasText && !t.hasHTML:
		t.lose("a message of type " + n.Type)
	default:
		t.loose = append(t.loose, n)
	}
	return false
}

// takeText takes the text or the HTML. A provider shows the HTML instead of the text.
func (t *partTaker) takeText(n *message.Node) {
	text, err := n.Text()
	t.err = cmp.Or(t.err, err)
	switch {
	case t.hasHTML && n.Type == "text/plain":
		t.lose("a text/plain after the HTML")
	case t.hasHTML || t.hasText && n.Type == "text/plain":
		t.lose("a second " + n.Type)
	case strings.EqualFold(n.Params["delsp"], "yes"): // blanks at the ends of lines aren't text (RFC 3676)
		t.lose("a text with delsp=yes")
	case n.Type == "text/plain":
		t.text, t.hasText = text, true
	default:
		t.html, t.hasHTML = text, true
	}
}

func (t *partTaker) takeAlternative(n *message.Node) {
	text, err := n.Text()
	t.err = cmp.Or(t.err, err)
	delete(n.Params, "charset") // text is in UTF-8
	kind := mime.FormatMediaType(n.Type, n.Params)
	t.alternatives = append(t.alternatives, alternative{kind: kind, text: text})
}

// asciiName reports whether a file's name is ASCII.
func (f file) asciiName() bool { return isASCII(f.name) }

// typeMatchesName reports whether the extension of a file's name stands for its type. An unknown extension
// stands for plain bytes only.
func (f file) typeMatchesName() bool {
	kind := mediaType(f.kind)
	return cmp.Or(sameTypes[kind], kind) == message.TypeByName(f.name)
}

// sameTypes are other names of the types that message.TypeByName returns.
var sameTypes = map[string]string{
	"application/csv": "text/csv", "application/ics": "text/calendar",
	"application/javascript": "text/javascript", "application/x-gzip": "application/gzip",
	"application/x-pdf": "application/pdf", "application/x-rar-compressed": "application/vnd.rar",
	"application/x-zip-compressed": "application/zip", "audio/mp3": "audio/mpeg",
	"audio/wave": "audio/wav", "audio/x-m4a": "audio/mp4", "audio/x-wav": "audio/wav",
	"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg",
	"image/x-icon": "image/vnd.microsoft.icon", "image/x-ms-bmp": "image/bmp",
	"image/x-png": "image/png", "text/rtf": "application/rtf", "text/x-markdown": "text/markdown",
	"text/x-vcard": "text/vcard", "text/xml": "application/xml",
}

// mediaType returns a type without its parameters.
func mediaType(kind string) string {
	kind, _, _ = strings.Cut(kind, ";")
	return kind
}

// isASCII reports whether a field's value is ASCII.
func (f field) isASCII() bool { return isASCII(f.value) }

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}
