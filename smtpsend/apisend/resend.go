package apisend

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/provider"
)

// resend is the API of Resend. It remembers keys against duplicates for a day.
var resend = &adapter{
	base:      func(Target) string { return "https://api.resend.com" },
	most:      50,
	size:      40 << 20,
	apart:     true,
	lacks:     resendLacks,
	request:   resendRequest,
	read:      resendAnswer,
	reset:     inSeconds("Ratelimit-Reset"),
	remembers: 24 * time.Hour,
	check: func(t Target) request {
		return request{path: "/domains", header: jsonHeader("Authorization", "Bearer "+t.Key)}
	},
	fine: func(x *exchange) bool { // of a key that may only send
		var said resendSaid
		return x.decode(&said) && said.Name == "restricted_api_key"
	},
}

// resendMail is a message.
type resendMail struct {
	From        string            `json:"from"`
	To          []string          `json:"to"`
	Cc          []string          `json:"cc,omitempty"`
	Bcc         []string          `json:"bcc,omitempty"`
	ReplyTo     []string          `json:"reply_to,omitempty"`
	Subject     string            `json:"subject"`
	Text        string            `json:"text,omitempty"`
	HTML        string            `json:"html,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Attachments []resendFile      `json:"attachments,omitempty"`
	Tags        []resendTag       `json:"tags,omitempty"`
}

type resendFile struct {
	Filename    string `json:"filename"`
	Content     []byte `json:"content"`
	ContentType string `json:"content_type"`
	ContentID   string `json:"content_id,omitempty"`
}

type resendTag struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// resendOwn are the header fields that it writes itself.
var resendOwn = []string{"date", "message-id"}

func resendLacks(_ Target, m *mail) string {
	c := m.parts
	_, twice := byName(c.others(resendOwn...))
	switch {
	case c.lacksPart() != "":
		return c.lacksPart()
	case twice != "":
		return "two fields " + twice
	case m.beyondASCII():
		return "an address with letters beyond ASCII"
	case c.subject == "":
		return "no subject"
	}
	for _, f := range slices.Concat(c.inline, c.files) { // it drops the whole message, without a word
		if !f.typeMatchesName() {
			return "a file whose type is not that of its name"
		}
	}
	return ""
}

func resendRequest(t Target, m *mail, g group) (request, error) {
	c := m.parts
	one := resendMail{
		From: written(c.from), To: eachWritten(g.to), Cc: eachWritten(g.cc), Bcc: eachWritten(g.bcc),
		ReplyTo: eachWritten(c.replyTo), Subject: c.subject, Text: c.text, HTML: c.html,
	}
	one.Headers, _ = byName(c.others(resendOwn...))
	for _, f := range c.inline {
		one.Attachments = append(one.Attachments, resendFile{f.name, f.content, f.kind, f.cid})
	}
	for _, f := range c.files {
		one.Attachments = append(one.Attachments, resendFile{f.name, f.content, f.kind, ""})
	}
	if proof := m.proof(); isResendTag(proof) {
		one.Tags = append(one.Tags, resendTag{provider.EchoField, proof})
	}
	if tag := m.firstTag(256); isResendTag(tag) {
		one.Tags = append(one.Tags, resendTag{"tag", tag})
	}
	body, err := encode(one)
	q := request{path: "/emails", body: body, key: m.key, header: jsonHeader("Authorization", "Bearer "+t.Key)}
	if q.key != "" {
		q.header.Set("Idempotency-Key", q.key)
	}
	return q, err
}

// isResendTag reports whether a text can be the value of a tag.
func isResendTag(s string) bool {
	return s != "" && len(s) <= 256 && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// resendSaid is an answer.
type resendSaid struct {
	ID      id     `json:"id"`
	Name    string `json:"name"`
	Message string `json:"message"`
}

func resendAnswer(x *exchange) answer {
	var said resendSaid
	switch {
	case !x.decode(&said):
		return answer{unreadable: true}
	case x.ok() && said.ID != "":
		return answer{id: string(said.ID)}
	case x.ok(), said.Name == "", x.status == http.StatusConflict:
		// a conflict is one of two requests with the same key: the other one decides
		return answer{unreadable: true}
	}
	r := refusal{reason: said.Name, text: said.Message}
	switch said.Name {
	case "missing_api_key", "invalid_api_key", "restricted_api_key":
		r.meaning = badKey
	case "daily_quota_exceeded", "monthly_quota_exceeded":
		r.meaning, r.wait = tooFast, quotaWait
	case "rate_limit_exceeded":
		r.meaning = tooFast
	case "invalid_from_address":
		r.meaning = badSender
	case "security_error", "invalid_attachment", "missing_required_field":
		r.meaning = badMessage
	case "validation_error":
		return x.resendInvalid(r)
	default:
		return x.general(said.Name, said.Message)
	}
	return answer{refusal: &r}
}

// resendInvalid says what a validation_error means, whose text names the field.
func (x *exchange) resendInvalid(r refusal) answer {
	switch {
	case says(r.text, "API key"):
		r.meaning = badKey
	case says(r.text, "not verified", "testing emails", "`from`"):
		r.meaning = badSender
	case says(r.text, "`to`", "`cc`", "`bcc`"):
		r.meaning = badAddress
		return x.blames(r)
	case x.status == http.StatusForbidden || x.status == http.StatusUnauthorized:
		r.meaning = badKey
	default:
		r.meaning = badMessage
	}
	return answer{refusal: &r}
}
