package apisend

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/message"
)

// mailjet is the API of Mailjet, version 3.1. It takes a list of messages and answers for each of their
// recipients.
var mailjet = &adapter{
	base:    func(Target) string { return "https://api.mailjet.com" },
	most:    50,
	size:    15 << 20,
	apart:   true,
	lacks:   mailjetLacks,
	request: mailjetRequest,
	read:    mailjetAnswer,
	list:    &listing{most: 50, request: mailjetList, split: mailjetSplit},
	check: func(t Target) request {
		return request{path: "/v3/REST/sender", header: mailjetHeader(t)}
	},
}

// mailjetMail is a message.
type mailjetMail struct {
	From               mailjetPerson
	To                 []mailjetPerson
	Cc                 []mailjetPerson   `json:",omitempty"`
	Bcc                []mailjetPerson   `json:",omitempty"`
	ReplyTo            *mailjetPerson    `json:",omitempty"`
	Subject            string            `json:",omitempty"`
	TextPart           string            `json:",omitempty"`
	HTMLPart           string            `json:",omitempty"`
	CustomID           string            `json:",omitempty"`
	CustomCampaign     string            `json:",omitempty"`
	Headers            map[string]string `json:",omitempty"`
	Attachments        []mailjetFile     `json:",omitempty"`
	InlinedAttachments []mailjetFile     `json:",omitempty"`
	TrackOpens         string
	TrackClicks        string
}

type mailjetPerson struct {
	Email string
	Name  string `json:",omitempty"`
}

type mailjetFile struct {
	ContentType, Filename string
	Base64Content         []byte
	ContentID             string `json:",omitempty"`
}

// mailjetOwn are the header fields that it writes itself, and List-ID, which it refuses.
var mailjetOwn = []string{"date", "message-id", "list-id"}

// mailjetRefused are further header fields that it refuses.
var mailjetRefused = []string{"delivered-to", "domainkey-status", "received-spf", "authentication-results",
	"x-mailjet-prio", "x-csa-complaints"}

func mailjetLacks(_ Target, m *mail) string {
	c := m.parts
	_, twice := byName(c.others(mailjetOwn...))
	switch {
	case c.lacksPart() != "":
		return c.lacksPart()
	case twice != "":
		return "two fields " + twice
	case len(c.replyTo) > 1:
		return "several Reply-To"
	case len(c.others(mailjetRefused...)) < len(c.header):
		return "one of the fields " + strings.Join(mailjetRefused, ", ")
	}
	return ""
}

func mailjetRequest(t Target, m *mail, g group) (request, error) {
	c := m.parts
	one := mailjetMail{
		From: mailjetOf(c.from), To: each(g.to, mailjetOf), Cc: each(g.cc, mailjetOf),
		Bcc: each(g.bcc, mailjetOf), Subject: c.subject, TextPart: c.text, HTMLPart: c.html,
		CustomID:       m.proofUpTo(64),
		CustomCampaign: m.firstTag(255), TrackOpens: "disabled", TrackClicks: "disabled",
		Attachments: each(each(c.files, file.attached), mailjetFileOf), InlinedAttachments: each(c.inline,
			mailjetFileOf),
	}
	for _, a := range c.replyTo {
		one.ReplyTo = new(mailjetOf(a))
	}
	one.Headers, _ = byName(c.others(mailjetOwn...))
	item, err := encode(one)
	if err != nil {
		return request{}, err
	}
	return mailjetList(t, "", [][]byte{item})
}

func mailjetOf(a message.Address) mailjetPerson { return mailjetPerson{a.Address, a.Name} }

func mailjetFileOf(f file) mailjetFile { return mailjetFile{f.kind, f.name, f.content, f.cid} }

// mailjetList is the request with messages.
func mailjetList(t Target, _ string, items [][]byte) (request, error) {
	body, err := encode(struct {
		Messages             json.RawMessage
		AdvanceErrorHandling bool
		SandboxMode          bool `json:",omitempty"`
	}{array(items), true, t.Sandbox})
	return request{path: "/v3.1/send", header: mailjetHeader(t), body: body, item: items[0]}, err
}

func mailjetHeader(t Target) http.Header {
	return jsonHeader("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(t.Key+":"+t.Secret)))
}

// mailjetSaid is an answer. Messages is absent if it refuses the whole request.
type mailjetSaid struct {
	Messages                []json.RawMessage
	ErrorCode, ErrorMessage string
}

// mailjetItem is the answer for one message.
type mailjetItem struct {
	Status string
	Errors []struct {
		ErrorCode, ErrorMessage string
		StatusCode              int
		ErrorRelatedTo          []string
	}
	To, Cc, Bcc []struct {
		Email     string
		MessageID id
	}
}

func mailjetAnswer(x *exchange) answer {
	var said mailjetSaid
	switch {
	case !x.decode(&said):
		return answer{unreadable: true}
	case len(said.Messages) > 0:
		return x.mailjetItems(said.Messages)
	case x.ok() || said.ErrorCode == "" && said.ErrorMessage == "":
		return answer{unreadable: true}
	case says(said.ErrorMessage, "quota") && x.status != http.StatusTooManyRequests:
		return answer{refusal: &refusal{tooFast, said.ErrorCode, said.ErrorMessage, quotaWait}}
	case x.status == http.StatusBadRequest:
		return refuse(badMessage, said.ErrorCode, said.ErrorMessage)
	}
	return x.general(said.ErrorCode, said.ErrorMessage)
}

// mailjetSplit splits the answer to a list. Its status is the status of a failed message.
func mailjetSplit(x *exchange) (answers []*exchange, list bool) {
	var said mailjetSaid
	if !x.decode(&said) || said.Messages == nil {
		return nil, false
	}
	return each(said.Messages, func(item json.RawMessage) *exchange {
		return x.part(x.status, slices.Concat([]byte(`{"Messages":[`), item, []byte("]}")))
	}), true
}

// mailjetItems says what the answer for a message means. It lists the recipients of a message that was taken.
func (x *exchange) mailjetItems(items []json.RawMessage) answer {
	var one mailjetItem
	if len(items) != 1 || json.Unmarshal(items[0], &one) != nil {
		return answer{listed: true}
	}
	if one.Status == "success" {
		out := answer{listed: true, each: map[string]recipient{}}
		for _, r := range slices.Concat(one.To, one.Cc, one.Bcc) {
			if r.MessageID == "0" {
				r.MessageID = "" // it isn't one
			}
			out.each[fold(r.Email)] = recipient{id: string(r.MessageID)}
		}
		return out
	}
	if one.Status != "error" || len(one.Errors) == 0 {
		return answer{listed: true}
	}
	e := one.Errors[0]
	r := refusal{meaning: badMessage, reason: e.ErrorCode, text: e.ErrorMessage}
	about := strings.Join(e.ErrorRelatedTo, " ")
	switch {
	case e.StatusCode >= 500:
		r.meaning = laterMessage
	case says(about, "From", "Sender"):
		r.meaning = badSender
	case says(about, "To[", "Cc[", "Bcc["), about == "To", about == "Cc", about == "Bcc":
		r.meaning = badAddress
		return x.blames(r)
	}
	return answer{refusal: &r}
}
