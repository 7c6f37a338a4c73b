package testapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"
)

type sendgridMessage struct {
	Personalizations []sendgridEntry `json:"personalizations"`
	From             person          `json:"from"`
	ReplyTo          *person         `json:"reply_to"`
	ReplyToList      []person        `json:"reply_to_list"`
	Subject          string          `json:"subject"`
	Content          []struct {
		Type  string `json:"type"`
		Value string `json:"value"`
	} `json:"content"`
	Attachments []struct {
		Content     string `json:"content"`
		Type        string `json:"type"`
		Filename    string `json:"filename"`
		Disposition string `json:"disposition"`
		ContentID   string `json:"content_id"`
	} `json:"attachments"`
	Headers    map[string]string `json:"headers"`
	Categories []string          `json:"categories"`
	CustomArgs map[string]string `json:"custom_args"`
	Pool       string            `json:"ip_pool_name"`
	Tracking   json.RawMessage   `json:"tracking_settings"`
	Settings   map[string]struct {
		Enable bool `json:"enable"`
	} `json:"mail_settings"`
	Asm    json.RawMessage `json:"asm"`
	SendAt int64           `json:"send_at"`
	Batch  string          `json:"batch_id"`
}

type sendgridEntry struct {
	To            []person          `json:"to"`
	Cc            []person          `json:"cc"`
	Bcc           []person          `json:"bcc"`
	Subject       string            `json:"subject"`
	Headers       map[string]string `json:"headers"`
	Substitutions map[string]string `json:"substitutions"`
	CustomArgs    map[string]string `json:"custom_args"`
}

// sendgridErrors collects what is wrong with a request.
type sendgridErrors []any

func (e *sendgridErrors) add(field, text string) {
	*e = append(*e, object{"message": text, "field": field,
		"help": "http://sendgrid.com/docs/API_Reference/Web_API_v3/Mail/errors.html"})
}

func sendgrid() provider {
	return provider{
		auth: func(c *call) (answer, bool) {
			return sendgridError(http.StatusUnauthorized,
				"The provided authorization grant is invalid, expired, or revoked"), c.bearer("Bearer") == c.o.Key
		},
		routes: sendgridHooks.routes(
			route{"POST", "/v3/mail/send", sendgridSend},
			route{"PATCH", "/v3/user/webhooks/event/settings/signed/{}", sendgridSigned},
			route{"GET", "/v3/scopes", func(*call) answer {
				return answer{200, nil, object{"scopes": []string{"mail.send", "mail.batch.create"}}}
			}},
			route{"GET", "/v3/whitelabel/domains", func(c *call) answer {
				return answer{200, nil, objects(c.o.domains(), func(d string) any {
					return object{"id": 1, "domain": d, "valid": true, "legacy": false, "dns": object{}}
				})}
			}},
		),
		lost: func(_ *call, status int) answer {
			return sendgridError(status, strings.ToLower(http.StatusText(status)))
		},
		says: func(c *call) map[Say]answer {
			return map[Say]answer{
				Throttled: {429, map[string]string{"X-RateLimit-Limit": "500", "X-RateLimit-Remaining": "0",
					"X-RateLimit-Reset": fmt.Sprint(c.now.Unix() + 30)}, object{"errors": []any{
					object{"field": nil, "message": "too many requests"}}}},
				Spent: sendgridError(http.StatusUnauthorized, "Maximum credits exceeded"),
				Down:  sendgridError(http.StatusInternalServerError, "internal error"),
			}
		},
	}
}

func sendgridError(status int, text string) answer {
	return answer{status, nil, object{"errors": []any{
		object{"message": text, "field": nil, "help": nil}}}}
}

func sendgridSend(c *call) answer {
	var m sendgridMessage
	if !c.isJSON() {
		return sendgridError(http.StatusUnsupportedMediaType, "Content-Type should be application/json.")
	}
	if c.decode(&m, false) != nil {
		return sendgridError(400, "Bad Request")
	}
	if len(c.body) > 30<<20 {
		return sendgridError(http.StatusRequestEntityTooLarge, "The JSON payload you have provided is too large.")
	}
	var wrong sendgridErrors
	wrong.recipients(m.Personalizations)
	wrong.content(m)
	if address(m.From.Email) == "" {
		wrong.add("from.email", "The from email does not contain a valid address.")
	}
	if len(wrong) > 0 {
		return answer{400, nil, object{"errors": wrong}}
	}
	if !c.o.sender(m.From.Email) {
		wrong.add("from", "The from address does not match a verified Sender Identity. Mail cannot be sent until "+
			"this error is resolved.")
		return answer{http.StatusForbidden, nil, object{"errors": wrong}}
	}
	id := strings.ReplaceAll(uuid(), "-", "")[:22]
	for _, p := range m.Personalizations {
		c.sendgridTake(m, p, id)
	}
	if m.Settings["sandbox_mode"].Enable {
		return answer{200, nil, ""}
	}
	return answer{http.StatusAccepted, map[string]string{"X-Message-Id": id}, ""}
}

func (e *sendgridErrors) recipients(entries []sendgridEntry) {
	if len(entries) == 0 || len(entries) > 1000 {
		e.add("personalizations", "The personalization block is limited to 1000 personalizations per API request.")
	}
	seen := map[string]bool{}
	for i, p := range entries {
		at := fmt.Sprint("personalizations.", i)
		if len(p.To) == 0 {
			e.add(at+".to", "The to array is required for all personalization objects.")
		}
		size := 0
		for name, value := range p.Substitutions {
			size += len(name) + len(value)
		}
		if size > 10_000 {
			e.add(at+".substitutions", "Substitutions are limited to 10000 bytes per personalization object.")
		}
		for k, list := range [][]person{p.To, p.Cc, p.Bcc} {
			for j, who := range list {
				field := fmt.Sprintf("%s.%s.%d.email", at, []string{"to", "cc", "bcc"}[k], j)
				addr := strings.ToLower(address(who.Email))
				if addr == "" {
					e.add(field, "Does not contain a valid address.")
				} else if seen[addr] {
					e.add(at, "Each unique email address in the personalizations array should only be included once. "+
						"You have included ["+who.Email+"] more than once.")
				}
				seen[addr] = true
			}
		}
	}
	if len(seen) > 1000 {
		e.add("personalizations", "There is a limit of 1000 total recipients (to + cc + bcc) per request.")
	}
}

func (e *sendgridErrors) content(m sendgridMessage) {
	if len(m.Content) == 0 {
		e.add("content", "Unless a valid template_id is provided, the content parameter is required.")
	}
	rank := map[string]int{"text/plain": 1, "text/html": 2}
	last := 0
	for i, part := range m.Content {
		now, ok := rank[part.Type]
		if !ok {
			now = 3
		}
		if part.Value == "" {
			e.add(fmt.Sprintf("content.%d.value", i), "The content value must be a string at least one character in "+
				"length.")
		}
		if strings.ContainsAny(part.Type, ";,\r\n") {
			e.add(fmt.Sprintf("content.%d.type", i), "Cannot contain ';', or CRLF characters.")
		}
		if now < last || part.Type == "" {
			e.add("content", "If present, text/plain must be first, followed by text/html, followed by any other.")
		}
		last = now
	}
	for i, p := range m.Personalizations {
		if m.Subject == "" && p.Subject == "" {
			e.add("subject", "The subject is required.")
		}
		e.headers(fmt.Sprintf("personalizations.%d.headers", i), p.Headers)
	}
	e.headers("headers", m.Headers)
	for i, a := range m.Attachments {
		if _, ok := decoded(a.Content); !ok || a.Filename == "" {
			e.add(fmt.Sprintf("attachments.%d.content", i), "The attachment content must be base64 encoded.")
		}
		if strings.ContainsAny(a.Type, ";,\r\n") {
			e.add(fmt.Sprintf("attachments.%d.type", i), "The type cannot contain ';', or CRLF characters.")
		}
	}
	seen := map[string]bool{}
	for _, name := range m.Categories {
		if seen[name] || len(name) > 255 || len(m.Categories) > 10 {
			e.add("categories", "There can be 10 unique categories of 255 characters.")
		}
		seen[name] = true
	}
}

func (e *sendgridErrors) headers(at string, headers map[string]string) {
	for name, value := range headers {
		if reserved(name, "x-sg-id x-sg-eid received dkim-signature content-transfer-encoding content-type to "+
			"from subject reply-to cc bcc") {
			e.add(at, "The following headers are reserved and cannot be used: "+name)
		}
		if !field(name, value) {
			e.add(at, "Headers must be strings.")
		}
	}
}

// sendgridTake accepts the message of one personalization.
func (c *call) sendgridTake(m sendgridMessage, p sendgridEntry, id string) {
	fill := filler("", "", p.Substitutions)
	if p.Subject == "" {
		p.Subject = m.Subject
	}
	out := content{from: m.From.String(), subject: fill.Replace(p.Subject), to: people(p.To), cc: people(p.Cc),
		replyTo: people(m.ReplyToList), headers: pairs(merged(m.Headers, p.Headers))}
	if m.ReplyTo != nil {
		out.replyTo = []string{m.ReplyTo.String()}
	}
	for _, part := range m.Content {
		text := fill.Replace(part.Value)
		switch part.Type {
		case "text/plain":
			out.text = text
		case "text/html":
			out.html = text
		default:
			out.more = append(out.more, file{kind: part.Type, data: []byte(text)})
		}
	}
	for _, a := range m.Attachments {
		if a.Disposition != "inline" {
			a.ContentID = ""
		}
		name := strings.Map(func(r rune) rune { // it garbles other names
			if r >= utf8.RuneSelf {
				return '?'
			}
			return r
		}, a.Filename)
		out.attach(a.Type, name, a.ContentID, a.Content)
	}
	d := Delivery{From: m.From.Email, ID: id, MIME: out.join(id, c.now), Tags: m.Categories,
		Metadata: merged(m.CustomArgs, p.CustomArgs), Sandbox: m.Settings["sandbox_mode"].Enable}
	for _, list := range [][]person{p.To, p.Cc, p.Bcc} {
		for _, who := range list {
			c.later(d, who.Email)
		}
	}
}
