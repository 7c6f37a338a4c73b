package apisend

import (
	"encoding/json"
	"net/http"
	"regexp"
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
	list:      &listing{most: 100, request: resendList, split: resendSplit},
	reset:     inSeconds("Ratelimit-Reset"),
	remembers: 24 * time.Hour,
	check: func(t Target) request {
		return request{path: "/domains", header: resendHeader(t, "")}
	},
	fine: func(x *exchange) bool { return says(string(x.body), `"restricted_api_key"`) }, // it may only send
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
	case m.wide() != "":
		return m.wide()
	case c.subject == "":
		return "no subject"
	case slices.ContainsFunc(slices.Concat(c.inline, c.files), file.misnamed):
		return "a file whose type doesn't match its name" // it would drop the message without a word
	}
	return ""
}

func resendRequest(t Target, m *mail, g group) (request, error) {
	c := m.parts
	one := resendMail{
		From: written(c.from), To: each(g.to, written), Cc: each(g.cc, written), Bcc: each(g.bcc, written),
		ReplyTo: each(c.replyTo, written), Subject: c.subject, Text: c.text, HTML: c.html,
	}
	one.Headers, _ = byName(c.others(resendOwn...))
	one.Attachments = append(each(c.inline, resendFileOf), each(each(c.files, file.attached), resendFileOf)...)
	for _, tag := range []resendTag{{provider.EchoField, m.proof()}, {"tag", m.firstTag(256)}} {
		if resendTagValue.MatchString(tag.Value) {
			one.Tags = append(one.Tags, tag)
		}
	}
	body, err := encode(one)
	q := request{path: "/emails", body: body, key: m.key, header: resendHeader(t, m.key)}
	if len(one.Attachments) == 0 { // a list can't have any
		q.item = body
	}
	return q, err
}

// resendList is a request whose valid messages it takes.
func resendList(t Target, key string, items [][]byte) (request, error) {
	q := request{path: "/emails/batch", body: array(items), key: key, header: resendHeader(t, key)}
	q.header.Set("X-Batch-Validation", "permissive")
	return q, nil
}

func resendHeader(t Target, key string) http.Header {
	h := jsonHeader("Authorization", "Bearer "+t.Key)
	if key != "" {
		h.Set("Idempotency-Key", key)
	}
	return h
}

func resendFileOf(f file) resendFile { return resendFile{f.name, f.content, f.kind, f.cid} }

var resendTagValue = regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)

// resendSaid is an answer, or an error in one to a list.
type resendSaid struct {
	Index   *int   `json:"index"`
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
	r := refusal{meaning: resendMeanings[said.Name], reason: said.Name, text: said.Message}
	switch {
	case said.Name == "validation_error":
		return x.resendInvalid(r)
	case r.verdict == "":
		return x.general(said.Name, said.Message)
	case strings.HasSuffix(said.Name, "_quota_exceeded"):
		r.wait = quotaWait
	}
	return answer{refusal: &r}
}

// resendMeanings are the meanings of errors by their name.
var resendMeanings = map[string]meaning{
	"missing_api_key": badKey, "invalid_api_key": badKey, "restricted_api_key": badKey,
	"rate_limit_exceeded": tooFast, "daily_quota_exceeded": tooFast, "monthly_quota_exceeded": tooFast,
	"invalid_from_address": badSender, "security_error": badMessage, "invalid_attachment": badMessage,
	"missing_required_field": badMessage,
}

// resendSplit takes the answer to a list apart: data has the messages that were taken, in their order, and
// errors has the others with their index.
func resendSplit(x *exchange) (answers []*exchange, list bool) {
	var said struct {
		Data   []json.RawMessage
		Errors []resendSaid
	}
	if !x.ok() || !x.decode(&said) || said.Data == nil {
		return nil, false
	}
	answers = make([]*exchange, len(said.Data)+len(said.Errors))
	for _, e := range said.Errors {
		if e.Index == nil || *e.Index < 0 || *e.Index >= len(answers) || answers[*e.Index] != nil {
			return nil, true // it contradicts itself
		}
		body, _ := encode(resendSaid{Name: "validation_error", Message: e.Message}) // it has a JSON
		answers[*e.Index] = x.part(http.StatusUnprocessableEntity, body)
	}
	for i := range answers {
		if answers[i] == nil {
			answers[i], said.Data = x.part(x.status, said.Data[0]), said.Data[1:]
		}
	}
	return answers, true
}

// resendInvalid says what a validation_error means, whose text names the field.
func (x *exchange) resendInvalid(r refusal) answer {
	switch {
	case says(r.text, "not verified", "testing emails", "`from`"):
		r.meaning = badSender
	case says(r.text, "`to`", "`cc`", "`bcc`"):
		r.meaning = badAddress
		return x.blames(r)
	case says(r.text, "API key"), x.status == http.StatusForbidden, x.status == http.StatusUnauthorized:
		r.meaning = badKey
	default:
		r.meaning = badMessage
	}
	return answer{refusal: &r}
}
