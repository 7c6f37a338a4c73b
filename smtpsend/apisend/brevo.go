package apisend

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"html"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/provider"
)

// brevo is the v3 API of Brevo. It takes parts, and fewer of them than the others. It writes its own
// Message-ID. A key lasts 15 minutes by one of its pages, and 30 by another.
var brevo = &adapter{
	base: func(Target) string { return "https://api.brevo.com" },
	most: 99, size: 20 << 20, apart: true,
	lacks: brevoLacks, request: brevoRequest, read: brevoAnswer,
	reset: inSeconds("X-Sib-Ratelimit-Reset"), remembers: 15 * time.Minute,
	check: func(t Target) request {
		return request{path: "/v3/account", header: jsonHeader("Api-Key", t.Key)}
	},
}

type brevoMail struct {
	Sender     person            `json:"sender"`
	To         []person          `json:"to"`
	Cc         []person          `json:"cc,omitempty"`
	Bcc        []person          `json:"bcc,omitempty"`
	ReplyTo    *person           `json:"replyTo,omitempty"`
	Subject    string            `json:"subject"`
	HTML       string            `json:"htmlContent"`
	Text       string            `json:"textContent,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`
	Tags       []string          `json:"tags,omitempty"`
	Attachment []brevoFile       `json:"attachment,omitempty"`
}

type brevoFile struct {
	Name    string `json:"name"`
	Content []byte `json:"content"` // base64
}

// brevoExtensions are the endings of file names that Brevo takes.
var brevoExtensions = strings.Fields(`.aif .aifc .aiff .avi .bmp .cgm .css .csv .doc .docm .docx .eps .ez
	.flac .gif .htm .html .ics .jpeg .jpg .m4a .m4v .mkv .mobi .mov .mp3 .mp4 .mpeg .mpg .msg .odt .ods .ogg
	.pdf .png .ppt .pptx .pub .rtf .shtml .tar .tif .tiff .txt .wav .wma .wmv .xls .xlsx .xml .zip`)

// brevoProofField has our proof of the message; recipients see it.
const brevoProofField = "X-Mailin-custom"

func brevoLacks(_ Target, m *mail) string {
	c := m.parts
	if what := c.beyond(false); what != "" {
		return what
	}
	// Brevo acts on some fields: with X-Sib-Sandbox a message is dropped.
	if what := c.missing("x-sib-sandbox", "sender.ip", "idempotencykey", strings.ToLower(brevoProofField),
		"x-mailin-tag"); what != "" {
		return what
	}
	switch {
	case len(c.inline) > 0:
		return "attachments: an inline image"
	case len(c.replyTo) > 1:
		return "replyTo: several Reply-To"
	case len(c.replyTo) == 1 && brevoMangles(c.replyTo[0].Name):
		return "replyTo: a Reply-To whose name has both punctuation and letters beyond ASCII"
	}
	for _, f := range c.header {
		if !f.isASCII() {
			return "headers: the header field " + f.name + ", which isn't ASCII"
		}
	}
	for _, f := range c.files {
		if what := brevoLacksFile(f); what != "" {
			return what
		}
	}
	return m.wide()
}

func brevoLacksFile(f file) string {
	_, params, _ := mime.ParseMediaType(f.kind)
	charset := strings.ToLower(params["charset"])
	switch {
	case len(f.content) == 0:
		return "attachments: an empty attachment"
	case !f.asciiName():
		return "attachments: an attachment whose name isn't ASCII"
	case !slices.Contains(brevoExtensions, strings.ToLower(path.Ext(f.name))) || !f.typeMatchesName():
		return "attachments: an attachment whose name doesn't end with an extension that Brevo knows for its type"
	case strings.HasPrefix(f.kind, "text/") && !isASCII(string(f.content)) &&
		(charset != "" && charset != "utf-8" || !utf8.Valid(f.content)):
		return "attachments: a text attachment that isn't in UTF-8"
	}
	return ""
}

func brevoRequest(t Target, m *mail, g group) (request, error) {
	c := m.parts
	body := brevoMail{
		Sender: brevoPeople([]message.Address{c.from})[0], To: brevoPeople(g.to), Cc: brevoPeople(g.cc),
		Bcc: brevoPeople(g.bcc), Subject: c.subject, HTML: c.html, Text: c.text, Headers: c.headers("message-id"),
		Tags: m.tags(10, 255),
	}
	if len(c.replyTo) == 1 {
		body.ReplyTo = &people(c.replyTo)[0]
	}
	if body.HTML == "" {
		body.HTML = brevoHTML(c.text)
	}
	for _, f := range c.files {
		body.Attachment = append(body.Attachment, brevoFile{f.name, f.content})
	}
	if proof := m.proof(); proof != "" {
		raw, err := json.Marshal(map[string]string{provider.EchoField: proof})
		if err != nil {
			return request{}, err
		}
		body.Headers[brevoProofField] = string(raw)
	}
	if t.Sandbox {
		body.Headers["X-Sib-Sandbox"] = "drop"
	}
	if m.key != "" {
		body.Headers["idempotencyKey"] = brevoKey(m.key)
	}
	raw, err := encode(body)
	return request{path: "/v3/smtp/email", header: jsonHeader("Api-Key", t.Key), body: raw, key: m.key}, err
}

// brevoKey makes a UUID (RFC 9562 section 5.8) of a key.
func brevoKey(key string) string {
	b := sha256.Sum256([]byte(key))
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

// brevoHTML is the HTML of a message that has text only: Brevo requires HTML.
func brevoHTML(text string) string {
	return `<div style="white-space: pre-wrap">` + html.EscapeString(text) + "</div>"
}

// brevoMangles reports whether Brevo would drop a name, unless it is an encoded word.
func brevoMangles(name string) bool {
	return !isASCII(name) && strings.ContainsAny(name, `()<>[]:;@\,."`)
}

func brevoPeople(list []message.Address) []person {
	all := people(list)
	for i, p := range all {
		if brevoMangles(p.Name) {
			all[i].Name = mime.QEncoding.Encode("utf-8", p.Name)
		}
	}
	return all
}

func brevoAnswer(x *exchange) answer {
	var said struct {
		ID            id `json:"messageId"`
		Code, Message string
	}
	switch {
	case x.status == http.StatusCreated && len(x.body) == 0:
		return answer{}
	case !x.decode(&said):
		return answer{unreadable: true}
	case x.ok():
		return answer{id: string(said.ID), unreadable: said.ID == ""}
	case said.Code == "duplicate_request" && x.status == http.StatusBadRequest:
		return answer{} // the first was taken, and its id is unknown
	case said.Code == "":
		return answer{unreadable: true}
	}
	r := refusal{reason: said.Code, text: said.Message}
	var known bool
	r.meaning, known = byStatus(x.status, true)
	parameter := said.Code == "invalid_parameter" || said.Code == "missing_parameter"
	switch {
	case said.Code == "not_enough_credits":
		r.meaning, r.wait = tooFast, quotaWait
	case x.status != http.StatusBadRequest || !parameter:
	case says(said.Message, "sender"):
		r.meaning = badSender
	case says(said.Message, " to", "recipient", "email is not valid"):
		r.meaning = badAddress
		return answer{refusal: &r, unnamed: true}
	}
	return answer{refusal: &r, unreadable: !known}
}
