package apisend

import (
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/postroom/postroom/internal/provider"
)

// mandrill is the Mailchimp Transactional API. It takes MIME as a string. It reads settings from X-MC-*
// header fields and removes them. The key is in the request body.
var mandrill = &adapter{
	base: func(Target) string { return "https://mandrillapp.com" },
	most: 10, // with more, every recipient is just "queued"
	size: 25_000_000, lacks: mandrillLacks, request: mandrillRequest, read: mandrillAnswer,
	check: func(t Target) request {
		raw, _ := encode(map[string]string{"key": t.Key})
		return request{path: "/api/1.0/users/ping2.json", header: jsonHeader(), body: raw}
	},
	checked: func(x *exchange) *refusal {
		var said struct{ Ping string }
		return unless(x.decode(&said) && said.Ping != "")
	},
}

type mandrillMail struct {
	Key   string   `json:"key"`
	MIME  string   `json:"raw_message"`
	From  string   `json:"from_email,omitempty"` // empty means as in the header
	To    []string `json:"to"`
	Async bool     `json:"async"`
	Pool  string   `json:"ip_pool,omitempty"`
}

// mandrillMark matches a merge tag, which Mandrill may replace in MIME too.
var mandrillMark = regexp.MustCompile(`\*\|[^|]+\|\*`)

// mandrillLacks reads the texts of the message. If it can't decode them, it looks at the MIME itself.
func mandrillLacks(_ Target, m *mail) string {
	text := string(m.raw)
	if c, err := takeApart(m.raw); err == nil {
		m.parts, text = c, strings.Join([]string{c.subject, c.text, c.html}, "\n")
	}
	if mark := mandrillMark.FindString(text); mark != "" {
		return "a Mandrill merge tag in its text (*|…|*)"
	}
	return m.lacksInText()
}

func mandrillRequest(t Target, m *mail, g group) (request, error) {
	body := mandrillMail{Key: t.Key, From: m.parts.from.Address, To: g.all(), Pool: t.Pool}
	body.MIME = mandrillFields(t, m, body.To) + string(m.raw)
	raw, err := encode(body)
	return request{path: "/api/1.0/messages/send-raw.json", header: jsonHeader(), body: raw}, err
}

// mandrillFields returns the header fields with settings. They add the proof and tags, and turn tracking and
// changes of the content off. If the header names all recipients, it stays as it is. Otherwise each recipient
// gets a copy that names no one else, so hidden recipients stay hidden. Fields that the message already has
// aren't added.
func mandrillFields(t Target, m *mail, to []string) string {
	preserve, named := "true", m.parts.named()
	for _, address := range to {
		if _, known := named.find(address); !known {
			preserve = "false"
		}
	}
	fields := []field{
		{"X-MC-Tags", strings.Join(mandrillTags(m), ",")}, {"X-MC-Subaccount", t.Subaccount},
		{"X-MC-Track", "none"}, {"X-MC-Autotext", "no"}, {"X-MC-AutoHtml", "no"}, {"X-MC-InlineCSS", "no"},
		{"X-MC-PreserveRecipients", preserve},
	}
	if proof := m.proof(); proof != "" {
		name, value, _ := provider.Echo(provider.Mandrill, proof)
		fields = append(fields, field{name, value})
	}
	own := map[string]bool{}
	for _, f := range m.parts.header {
		own[strings.ToLower(f.name)] = true
	}
	var out strings.Builder
	for _, f := range fields {
		if f.value != "" && !own[strings.ToLower(f.name)] {
			out.WriteString(f.name + ": " + f.value + "\r\n")
		}
	}
	return out.String()
}

// mandrillTags returns the tags, without names that Mandrill reserves: they begin with an underscore.
func mandrillTags(m *mail) []string {
	var tags []string
	for _, tag := range m.plainTags(10, 50) {
		if !strings.HasPrefix(tag, "_") {
			tags = append(tags, tag)
		}
	}
	return tags
}

// mandrillResult is one recipient in an answer.
type mandrillResult struct {
	Email  string `json:"email"`
	Status string `json:"status"` // sent, queued, scheduled, rejected, invalid
	Reason string `json:"reject_reason"`
	ID     id     `json:"_id"`
}

func mandrillAnswer(x *exchange) answer {
	var list []mandrillResult
	if !x.ok() || !x.decode(&list) {
		return mandrillFailure(x)
	}
	if len(list) == 0 {
		return answer{unreadable: true}
	}
	out := answer{listed: true, each: map[string]recipient{}}
	for _, r := range list {
		to := fold(r.Email)
		if before, named := out.each[to]; !named || before.refusal != nil || before.doubt != nil {
			out.each[to] = r.recipient() // accepted wins over other results
		}
	}
	return out
}

// mandrillRejected has the meanings of reject_reason. Any other reason is about the recipient.
var mandrillRejected = map[string]refusal{
	"hard-bounce":     {meaning: unknownAddress},
	"soft-bounce":     {meaning: laterAddress},
	"rule":            {meaning: badMessage},
	"invalid-sender":  {meaning: badSender},
	"unsigned":        {meaning: badSender},
	"test-mode-limit": {meaning: tooFast, wait: quotaWait},
}

func (r mandrillResult) recipient() recipient {
	switch r.Status {
	case "sent", "queued", "scheduled":
		return recipient{id: string(r.ID)}
	case "rejected", "invalid":
		said, known := mandrillRejected[r.Reason]
		if !known || r.Status == "invalid" {
			said = refusal{meaning: badAddress}
		}
		said.reason, said.text = r.Status, r.Reason
		return recipient{refusal: &said}
	}
	return recipient{doubt: errors.New("unknown status " + strconv.Quote(r.Status))}
}

// mandrillFailure reads an error. Most errors have status 500, even a wrong key.
func mandrillFailure(x *exchange) answer {
	var said struct{ Status, Name, Message string }
	if !x.decode(&said) || said.Status != "error" || said.Name == "" {
		return answer{unreadable: true}
	}
	if x.status == http.StatusTooManyRequests {
		return refuse(tooFast, said.Name, said.Message)
	}
	switch said.Name {
	case "Invalid_Key", "Unknown_Subaccount":
		return refuse(badKey, said.Name, said.Message)
	case "PaymentRequired":
		return refuse(badSender, said.Name, said.Message)
	case "ValidationError":
		return refuse(badMessage, said.Name, said.Message)
	case "GeneralError", "ServiceUnavailable":
		return refuse(broken, said.Name, said.Message)
	}
	return x.general(said.Name, said.Message)
}
