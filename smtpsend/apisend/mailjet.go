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
		From: mailjetPeople(c.from)[0], To: mailjetPeople(g.to...), Cc: mailjetPeople(g.cc...),
		Bcc: mailjetPeople(g.bcc...), Subject: c.subject, TextPart: c.text, HTMLPart: c.html,
		CustomID: m.proofUpTo(64), CustomCampaign: m.firstTag(255), Attachments: mailjetFiles(c.files),
		InlinedAttachments: mailjetFiles(c.inline), TrackOpens: "disabled", TrackClicks: "disabled",
	}
	if len(c.replyTo) > 0 {
		one.ReplyTo = &mailjetPeople(c.replyTo...)[0]
	}
	one.Headers, _ = byName(c.others(mailjetOwn...))
	item, err := encode(one)
	if err != nil {
		return request{}, err
	}
	return mailjetList(t, item)
}

// mailjetList is the request with messages.
func mailjetList(t Target, items ...[]byte) (request, error) {
	list := struct {
		Messages             []json.RawMessage
		AdvanceErrorHandling bool
		SandboxMode          bool `json:",omitempty"`
	}{AdvanceErrorHandling: true, SandboxMode: t.Sandbox}
	for _, item := range items {
		list.Messages = append(list.Messages, item)
	}
	body, err := encode(list)
	return request{path: "/v3.1/send", header: mailjetHeader(t), body: body}, err
}

func mailjetHeader(t Target) http.Header {
	return jsonHeader("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(t.Key+":"+t.Secret)))
}

func mailjetPeople(list ...message.Address) []mailjetPerson {
	var all []mailjetPerson
	for _, a := range list {
		all = append(all, mailjetPerson{a.Address, a.Name})
	}
	return all
}

func mailjetFiles(list []file) []mailjetFile {
	var all []mailjetFile
	for _, f := range list {
		all = append(all, mailjetFile{f.kind, f.name, f.content, f.cid})
	}
	return all
}

// mailjetSaid is an answer. Messages is absent if it refuses the whole request.
type mailjetSaid struct {
	Messages     []mailjetItem
	ErrorCode    string
	ErrorMessage string
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
	case len(said.Messages) == 1:
		return x.mailjetItem(said.Messages[0])
	case len(said.Messages) > 0:
		return answer{listed: true} // for which of them?
	case x.ok() || said.ErrorCode == "" && said.ErrorMessage == "":
		return answer{unreadable: true}
	case says(said.ErrorMessage, "quota") && x.status != http.StatusTooManyRequests:
		return answer{refusal: &refusal{tooFast, said.ErrorCode, said.ErrorMessage, quotaWait}}
	case x.status == http.StatusBadRequest:
		return refuse(badMessage, said.ErrorCode, said.ErrorMessage)
	}
	return x.general(said.ErrorCode, said.ErrorMessage)
}

// mailjetItem says what the answer for a message means. It lists the recipients of a message that was taken.
func (x *exchange) mailjetItem(one mailjetItem) answer {
	if one.Status == "success" {
		out := answer{listed: true, each: map[string]recipient{}}
		for _, r := range slices.Concat(one.To, one.Cc, one.Bcc) {
			if r.MessageID == "0" {
				r.MessageID = "" // it is none
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
