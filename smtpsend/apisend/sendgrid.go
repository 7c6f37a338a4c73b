package apisend

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/provider"
)

// sendGrid is the v3 API of Twilio SendGrid. It takes parts. It has no keys against duplicates, and reports
// later refusals by webhook only.
var sendGrid = &adapter{
	base: func(t Target) string {
		if t.Region == "eu" {
			return "https://api.eu.sendgrid.com"
		}
		return "https://api.sendgrid.com"
	},
	most: 1000, size: 30 << 20, apart: true,
	lacks: sendGridLacks, request: sendGridRequest, read: sendGridAnswer,
	reset: unixTime("X-RateLimit-Reset"),
	check: func(t Target) request {
		return request{path: "/v3/scopes", header: jsonHeader("Authorization", "Bearer "+t.Key)}
	},
	checked: sendGridChecked,
}

type sendGridMail struct {
	Personalizations []sendGridTo      `json:"personalizations"` // always one
	From             person            `json:"from"`
	ReplyTo          []person          `json:"reply_to_list,omitempty"`
	Subject          string            `json:"subject"`
	Content          []sendGridText    `json:"content"`
	Attachments      []sendGridFile    `json:"attachments,omitempty"`
	Headers          map[string]string `json:"headers,omitempty"`
	Categories       []string          `json:"categories,omitempty"`
	Pool             string            `json:"ip_pool_name,omitempty"`
	Tracking         map[string]onOff  `json:"tracking_settings"`
	Settings         map[string]onOff  `json:"mail_settings,omitempty"`
}

type sendGridTo struct {
	To   []person          `json:"to"`
	Cc   []person          `json:"cc,omitempty"`
	Bcc  []person          `json:"bcc,omitempty"`
	Args map[string]string `json:"custom_args,omitempty"`
}

type sendGridText struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

type sendGridFile struct {
	Content     []byte `json:"content"` // base64
	Type        string `json:"type"`    // without parameters: SendGrid refuses a semicolon
	Filename    string `json:"filename"`
	Disposition string `json:"disposition"`
	ContentID   string `json:"content_id,omitempty"`
}

type onOff struct {
	Enable     bool  `json:"enable"`
	EnableText *bool `json:"enable_text,omitempty"`
}

func sendGridLacks(_ Target, m *mail) string {
	c := m.parts
	if what := c.beyond(true); what != "" {
		return what
	}
	if what := c.missing("x-sg-id", "x-sg-eid"); what != "" {
		return what
	}
	for _, f := range append(slices.Clone(c.files), c.inline...) {
		switch {
		case f.name == "" || len(f.content) == 0:
			return "attachments: an attachment without a name or without content"
		case !f.asciiName():
			return "attachments: an attachment whose name isn't ASCII"
		case strings.HasPrefix(f.kind, "text/") && !isASCII(string(f.content)):
			return "attachments: a text attachment that isn't ASCII" // its charset may be lost
		}
	}
	return m.wide()
}

func sendGridRequest(t Target, m *mail, g group) (request, error) {
	c, no := m.parts, false
	body := sendGridMail{
		Personalizations: []sendGridTo{{To: people(g.to), Cc: people(g.cc), Bcc: people(g.bcc)}},
		From:             person{c.from.Address, c.from.Name}, ReplyTo: people(c.replyTo), Subject: c.subject,
		Headers: c.headers(), Categories: m.tags(10, 255), Pool: t.Pool,
		Tracking: map[string]onOff{"click_tracking": {EnableText: &no}, "open_tracking": {},
			"subscription_tracking": {}},
	}
	if proof := m.proof(); proof != "" {
		body.Personalizations[0].Args = map[string]string{provider.EchoField: proof}
	}
	if t.Sandbox {
		body.Settings = map[string]onOff{"sandbox_mode": {Enable: true}}
	}
	for _, part := range append([]alternative{{"text/plain", c.text}, {"text/html", c.html}},
		c.alternatives...) {
		if part.text != "" { // it refuses empty ones
			body.Content = append(body.Content, sendGridText{mediaType(part.kind), part.text})
		}
	}
	for _, f := range c.files {
		body.Attachments = append(body.Attachments, sendGridFile{f.content, mediaType(f.kind), f.name,
			"attachment", ""})
	}
	for _, f := range c.inline {
		body.Attachments = append(body.Attachments, sendGridFile{f.content, mediaType(f.kind), f.name, "inline",
			f.cid})
	}
	raw, err := encode(body)
	return request{path: "/v3/mail/send", header: jsonHeader("Authorization", "Bearer "+t.Key), body: raw}, err
}

// sendGridError is one of the errors of an answer.
type sendGridError struct{ Message, Field string }

func sendGridAnswer(x *exchange) answer {
	if x.ok() { // 200 in the sandbox
		taken := x.status == http.StatusAccepted || x.status == http.StatusOK && x.target.Sandbox
		return answer{id: x.header.Get("X-Message-Id"), unreadable: !taken || len(x.body) > 0}
	}
	var said struct{ Errors []sendGridError }
	if !x.decode(&said) || len(said.Errors) == 0 {
		return answer{unreadable: true}
	}
	whole := said.Errors[0]
	each := map[string]recipient{}
	for _, e := range said.Errors {
		if to, is := x.sendGridRecipient(e.Field); is {
			each[fold(to)] = recipient{refusal: &refusal{meaning: badAddress, reason: e.Field, text: e.Message}}
		} else if whole = e; strings.HasPrefix(e.Field, "from") {
			break
		}
	}
	if x.status == http.StatusBadRequest && len(each) == len(said.Errors) {
		return answer{each: each, again: true}
	}
	r := x.sendGridRefusal(whole)
	if r == nil {
		return answer{unreadable: true}
	}
	return answer{refusal: r}
}

// sendGridRefusal returns what an error means that isn't about a recipient, or nil if the status doesn't say.
func (x *exchange) sendGridRefusal(e sendGridError) *refusal {
	r := refusal{reason: e.Field, text: e.Message}
	var known bool
	r.meaning, known = byStatus(x.status, true)
	denied := x.status == http.StatusUnauthorized || x.status == http.StatusForbidden
	switch {
	case denied && says(e.Message, "credits exceeded"):
		r.meaning, r.wait = tooFast, quotaWait
	case x.status == http.StatusForbidden && says(e.Message, "bad requests"):
		r.meaning, r.wait = busy, time.Minute
	case x.status == http.StatusForbidden && says(e.Message, "verified sender identity"),
		x.status == http.StatusBadRequest && strings.HasPrefix(e.Field, "from"):
		r.meaning = badSender
	case !known:
		return nil
	}
	return &r
}

// sendGridRecipient returns the recipient that a field names, such as personalizations.0.cc.1.email.
func (x *exchange) sendGridRecipient(field string) (string, bool) {
	path := strings.Split(field, ".")
	if len(path) < 4 || path[0] != "personalizations" || path[1] != "0" {
		return "", false
	}
	list := map[string][]message.Address{"to": x.group.to, "cc": x.group.cc, "bcc": x.group.bcc}[path[2]]
	n, err := strconv.Atoi(path[3])
	if err != nil || n < 0 || n >= len(list) {
		return "", false
	}
	return list[n].Address, true
}

// sendGridChecked requires the right to send.
func sendGridChecked(x *exchange) *refusal {
	var said struct{ Scopes []string }
	if !x.ok() || x.decode(&said) && slices.Contains(said.Scopes, "mail.send") {
		return nil
	}
	return &refusal{meaning: badKey, reason: "mail.send", text: "the key may not send mail"}
}
