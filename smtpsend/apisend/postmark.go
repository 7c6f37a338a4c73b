package apisend

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/postroom/postroom/internal/message"
)

// postmark is the API of Postmark. Its errors have a number besides the status.
var postmark = &adapter{
	base:    func(Target) string { return "https://api.postmarkapp.com" },
	most:    50,
	size:    10 << 20,
	apart:   true,
	lacks:   postmarkLacks,
	request: postmarkRequest,
	read:    postmarkAnswer,
	list: &listing{most: 500, split: postmarkSplit, request: func(t Target, _ string, items [][]byte) (request,
		error) {
		return request{path: "/email/batch", header: postmarkHeader(t), body: array(items)}, nil
	}},
	check: func(t Target) request {
		return request{path: "/server", header: postmarkHeader(t)}
	},
}

func postmarkHeader(t Target) http.Header { return jsonHeader("X-Postmark-Server-Token", t.Key) }

// postmarkMail is a message.
type postmarkMail struct {
	From          string
	To            string
	Cc            string `json:",omitempty"`
	Bcc           string `json:",omitempty"`
	ReplyTo       string `json:",omitempty"`
	Subject       string
	TextBody      string `json:",omitempty"`
	HTMLBody      string `json:"HtmlBody,omitempty"`
	Tag           string `json:",omitempty"`
	MessageStream string
	TrackOpens    bool
	TrackLinks    string
	Metadata      map[string]string `json:",omitempty"`
	Headers       []postmarkField   `json:",omitempty"`
	Attachments   []postmarkFile    `json:",omitempty"`
}

type postmarkField struct{ Name, Value string }

type postmarkFile struct {
	Name, ContentType string
	Content           []byte
	ContentID         string `json:",omitempty"`
}

// postmarkText bounds the text and the HTML, each.
const postmarkText = 5 << 20

func postmarkLacks(_ Target, m *mail) string {
	c := m.parts
	switch {
	case c.lacksPart() != "":
		return c.lacksPart()
	case m.wide() != "":
		return m.wide()
	case len(c.text) > postmarkText || len(c.html) > postmarkText:
		return "a text of more than 5 MB"
	}
	return ""
}

func postmarkRequest(t Target, m *mail, g group) (request, error) {
	c := m.parts
	one := postmarkMail{
		From: written(c.from), To: postmarkList(g.to), Cc: postmarkList(g.cc), Bcc: postmarkList(g.bcc),
		ReplyTo: postmarkList(c.replyTo), Subject: c.subject, TextBody: c.text, HTMLBody: c.html,
		Tag: m.firstTag(1000), MessageStream: cmp.Or(t.Stream, "outbound"), TrackLinks: "None",
		Metadata: echo(m.proofUpTo(80)),
	}
	for _, f := range c.others("date") { // it writes its own
		one.Headers = append(one.Headers, postmarkField{f.name, f.value})
		if strings.EqualFold(f.name, "Message-ID") {
			one.Headers = append(one.Headers, postmarkField{"X-PM-KeepID", "true"})
		}
	}
	for _, f := range c.inline {
		one.Attachments = append(one.Attachments, postmarkFile{f.name, f.kind, f.content, "cid:" + f.cid})
	}
	for _, f := range c.files {
		one.Attachments = append(one.Attachments, postmarkFile{f.name, f.kind, f.content, ""})
	}
	body, err := encode(one)
	return request{path: "/email", header: postmarkHeader(t), body: body, item: body}, err
}

func postmarkList(list []message.Address) string { return strings.Join(each(list, written), ", ") }

// postmarkSaid is an answer, or an item of one to a list.
type postmarkSaid struct {
	ErrorCode *int
	Message   string
	MessageID id
}

func postmarkAnswer(x *exchange) answer {
	var said postmarkSaid
	if !x.decode(&said) || said.ErrorCode == nil && said.MessageID == "" {
		return answer{unreadable: true}
	}
	code := 0 // also of "Message accepted, but delivery may be delayed"
	if said.ErrorCode != nil {
		code = *said.ErrorCode
	}
	if !x.ok() || code != 0 {
		return x.postmarkRefused(code, said.Message)
	}
	if said.MessageID == "" {
		return answer{unreadable: true}
	}
	out := answer{id: string(said.MessageID)}
	if says(said.Message, "inactive addresses:") {
		// it took the message for the recipients that it does not name
		out.each = x.blames(refusal{meaning: unknownAddress, reason: "406", text: said.Message}).each
	}
	return out
}

// postmarkSplit takes the answer to a list apart. It has the status 200 whatever its items say.
func postmarkSplit(x *exchange) (answers []*exchange, list bool) {
	var items []json.RawMessage
	if !x.ok() || !x.decode(&items) || items == nil {
		return nil, false
	}
	return each(items, func(item json.RawMessage) *exchange {
		one := x.part(x.status, item)
		var said postmarkSaid
		if one.decode(&said) && said.ErrorCode != nil && *said.ErrorCode != 0 {
			one.status = http.StatusUnprocessableEntity
		}
		return one
	}), true
}

// postmarkMeanings are the meanings of codes.
var postmarkMeanings = map[int]meaning{
	10: badKey, 100: unavailable, 300: badMessage, 400: badSender, 401: badSender, 402: badMessage,
	403: badMessage, 405: badSender, 406: badAddress, 409: badMessage, 410: tooLarge, 411: badMessage,
	412: badSender, 413: badSender, 429: tooFast,
}

// postmarkRefused says what an error means.
func (x *exchange) postmarkRefused(code int, text string) answer {
	m, known := postmarkMeanings[code]
	if code >= 1200 && code < 1300 { // the message stream
		m, known = badSender, true
	}
	if !known {
		return x.general(strconv.Itoa(code), text)
	}
	if code == 300 && says(text, "'To'", "'Cc'", "'Bcc'") {
		m = badAddress
	}
	if code == 300 && says(text, "'From'", "sender signature") {
		m = badSender
	}
	r := refusal{meaning: m, reason: strconv.Itoa(code), text: text}
	if m != badAddress {
		return answer{refusal: &r}
	}
	a := x.blames(r)
	if code == 406 && len(a.each) > 0 {
		r.meaning = unknownAddress // it names recipients whose mail bounced, or who complained
		a = x.blames(r)
	}
	return a
}
