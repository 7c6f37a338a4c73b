package testapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/mail"
	"strconv"
	"strings"
)

type sparkpostMessage struct {
	Recipients []sparkpostRecipient `json:"recipients"`
	Content    struct {
		RFC822      string            `json:"email_rfc822"`
		From        json.RawMessage   `json:"from"`
		ReplyTo     string            `json:"reply_to"`
		Subject     string            `json:"subject"`
		Text        string            `json:"text"`
		HTML        string            `json:"html"`
		Headers     map[string]string `json:"headers"`
		Attachments []sparkpostFile   `json:"attachments"`
		Inline      []sparkpostFile   `json:"inline_images"`
	} `json:"content"`
	Options struct {
		Substitute *bool  `json:"perform_substitutions"`
		Sandbox    bool   `json:"sandbox"`
		Pool       string `json:"ip_pool"`
	} `json:"options"`
	Campaign   string            `json:"campaign_id"`
	Metadata   map[string]string `json:"metadata"`
	ReturnPath string            `json:"return_path"`
}

type sparkpostRecipient struct {
	Address struct {
		person
		HeaderTo string `json:"header_to"`
	} `json:"address"`
	Tags     []string          `json:"tags"`
	Metadata map[string]string `json:"metadata"`
	Values   map[string]string `json:"substitution_data"`
}

type sparkpostFile struct{ Name, Type, Data string }

func sparkpost() provider {
	return provider{
		auth: func(c *call) (answer, bool) {
			return answer{http.StatusUnauthorized, nil, object{"errors": []any{
				object{"message": "Unauthorized."}}}}, c.r.Header.Get("Authorization") == c.o.Key
		},
		routes: sparkpostHooks.routes(
			route{"POST", "/api/v1/transmissions", sparkpostSend},
			route{"GET", "/api/v1/sending-domains", func(c *call) answer {
				return answer{200, nil, object{"results": objects(c.o.domains(), func(d string) any {
					return object{"domain": d, "status": object{"ownership_verified": true,
						"dkim_status": "valid", "spf_status": "valid", "compliance_status": "valid"}}
				})}}
			}},
		),
		lost: func(_ *call, status int) answer {
			return sparkpostError(status, "1600", "resource not found", "Resource not found")
		},
		says: func(*call) map[Say]answer {
			return map[Say]answer{
				Throttled: sparkpostError(429, "", "Too many requests", ""),
				Spent:     sparkpostError(420, "2102", "Exceed Sending Limit (daily)", ""),
				Down:      sparkpostError(503, "1501", "Service unavailable", ""),
			}
		},
	}
}

func sparkpostError(status int, code, text, description string) answer {
	e := object{"message": text}
	for name, value := range map[string]string{"code": code, "description": description} {
		if value != "" {
			e[name] = value
		}
	}
	return answer{status, nil, object{"errors": []any{e}}}
}

func sparkpostSend(c *call) answer {
	var m sparkpostMessage
	if !c.isJSON() || c.decode(&m, true) != nil {
		return sparkpostError(400, "1300", "invalid data format/type", "The body isn't a transmission in JSON")
	}
	from := m.from()
	if refusal, ok := c.sparkpostRefuses(m, address(from)); ok {
		return refusal
	}
	var good []sparkpostRecipient
	wrong := []any{}
	for _, r := range m.Recipients {
		if e := r.wrong(); e != nil {
			wrong = append(wrong, e)
		} else {
			good = append(good, r)
		}
	}
	if len(good) == 0 {
		a := sparkpostError(400, "5002", "at least one valid recipient is required", "")
		a.body.(object)["results"] = object{"rcpt_to_errors": wrong,
			"total_rejected_recipients": len(wrong), "total_accepted_recipients": 0}
		return a
	}
	if _, no := c.o.inactive(good[0].Address.Email); no && len(m.Recipients) == 1 {
		return sparkpostError(400, "1902", "Message generation rejected",
			"recipient address suppressed due to customer policy")
	}
	id := fmt.Sprint(11668787484950529 + c.serial())
	for _, r := range good {
		c.sparkpostTake(m, r, from, id)
	}
	results := object{"id": id, "total_rejected_recipients": len(wrong), "total_accepted_recipients": len(good)}
	body := object{"results": results}
	if len(wrong) > 0 {
		body["errors"] = []any{object{"message": "transmission created, but with validation errors",
			"code": "2000"}}
		if most, _ := strconv.Atoi(c.r.URL.Query().Get("num_rcpt_errors")); most > 0 {
			results["rcpt_to_errors"] = wrong[:min(most, len(wrong))]
		}
	}
	return answer{200, nil, body}
}

// sparkpostRefuses returns what is wrong with a whole transmission.
func (c *call) sparkpostRefuses(m sparkpostMessage, from string) (refusal answer, ok bool) {
	wrong := func(status int, code, text, description string) (answer, bool) {
		return sparkpostError(status, code, text, description), true
	}
	_, domain, _ := strings.Cut(from, "@")
	switch {
	case len(m.Recipients) == 0:
		return wrong(422, "1400", "required field is missing", "recipients or list_id required")
	case m.Content.RFC822 == "" && (m.Content.Subject == "" || m.Content.Text == "" && m.Content.HTML == ""):
		return wrong(422, "1400", "required field is missing", "content is missing a required field")
	case domain == "":
		return wrong(422, "1300", "invalid data format/type", "content.from isn't an address")
	case len(c.body) > 20<<20:
		return wrong(422, "1301", "content is too large", "content can have 20 MB")
	case len(m.Campaign) > 64:
		return wrong(422, "1300", "invalid data format/type", "campaign_id can have 64 bytes")
	case m.Options.Sandbox: // the domain of the sandbox takes stored templates only, five times in all
		return wrong(420, "2103", "Exceed Sandbox Limit", "")
	case !c.o.sender(from):
		return wrong(400, "7001", "Invalid domain", "Unconfigured Sending Domain <"+domain+">")
	}
	for _, f := range append(m.Content.Attachments, m.Content.Inline...) {
		if _, ok := decoded(f.Data); !ok || f.Name == "" || f.Type == "" {
			return wrong(422, "1300", "invalid data format/type", "an attachment isn't valid")
		}
	}
	return answer{}, false
}

// wrong says what is wrong with a recipient. It does not name the recipient.
func (r sparkpostRecipient) wrong() object {
	size := 0
	for name, value := range r.Metadata {
		size += len(name) + len(value)
	}
	switch {
	case r.Address.Email == "":
		return object{"message": "required field is missing", "code": "1400",
			"description": "address.email is required for each recipient"}
	case address(r.Address.Email) == "":
		return object{"message": "invalid data format/type", "code": "1300",
			"description": "Error validating syntax of the recipient's address"}
	case size > 1000:
		return object{"message": "invalid data format/type", "code": "1300",
			"description": "metadata can have 1000 bytes"}
	}
	return nil
}

// from returns the sender as a value of the header field.
func (m sparkpostMessage) from() string {
	if m.Content.RFC822 != "" {
		parsed, err := mail.ReadMessage(strings.NewReader(m.Content.RFC822))
		if err != nil {
			return ""
		}
		return parsed.Header.Get("From")
	}
	var text string
	if json.Unmarshal(m.Content.From, &text) == nil {
		return text
	}
	var p person
	_ = json.Unmarshal(m.Content.From, &p) // an address that is empty is refused
	return p.String()
}

func (c *call) sparkpostTake(m sparkpostMessage, r sparkpostRecipient, from, id string) {
	text, html := strings.NewReplacer(), strings.NewReplacer()
	if m.Options.Substitute == nil || *m.Options.Substitute {
		text, html = handlebars(r.Values, false), handlebars(r.Values, true)
	}
	d := Delivery{From: address(from), ID: id, Tags: r.Tags, Metadata: merged(m.Metadata, r.Metadata),
		Sandbox: strings.HasSuffix(r.Address.Email, ".sink.sparkpostmail.com")}
	if m.Campaign != "" {
		d.Tags = append(d.Tags, m.Campaign)
	}
	if m.Content.RFC822 != "" {
		d.MIME = []byte(text.Replace(m.Content.RFC822))
		c.later(d, r.Address.Email)
		return
	}
	headers := map[string]string{}
	for name, value := range m.Content.Headers {
		if !strings.EqualFold(name, "List-Unsubscribe") { // it is ignored
			headers[name] = text.Replace(value)
		}
	}
	out := content{from: from, subject: text.Replace(m.Content.Subject), text: text.Replace(m.Content.Text),
		html: html.Replace(m.Content.HTML), to: []string{r.Address.person.String()}, headers: pairs(headers)}
	if r.Address.HeaderTo != "" {
		out.to[0] = r.Address.HeaderTo
	}
	if m.Content.ReplyTo != "" {
		out.replyTo = []string{m.Content.ReplyTo}
	}
	for _, f := range m.Content.Attachments {
		out.attach(f.Type, f.Name, "", f.Data)
	}
	for _, f := range m.Content.Inline {
		out.attach(f.Type, f.Name, f.Name, f.Data)
	}
	d.MIME = out.join(id, c.now)
	c.later(d, r.Address.Email)
}
