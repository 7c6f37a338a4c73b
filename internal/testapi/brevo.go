package testapi

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

type brevoMessage struct {
	brevoMail
	Sender     person   `json:"sender"`
	Tags       []string `json:"tags"`
	Attachment []struct {
		Name    string `json:"name"`
		Content string `json:"content"`
	} `json:"attachment"`
	Versions []brevoMail `json:"messageVersions"`
}

// brevoMail is what each version can have.
type brevoMail struct {
	To      []person          `json:"to"`
	Cc      []person          `json:"cc"`
	Bcc     []person          `json:"bcc"`
	ReplyTo *person           `json:"replyTo"`
	Subject string            `json:"subject"`
	HTML    string            `json:"htmlContent"`
	Text    string            `json:"textContent"`
	Headers map[string]string `json:"headers"`
	Params  map[string]string `json:"params"`
}

var (
	brevoUUID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	brevoFile = regexp.MustCompile(`^\.(xlsx?|ods|docx?|docm|csv|pdf|txt|gif|jpe?g|png|tiff?|rtf|bmp|cgm|css|` +
		`shtml|html?|zip|xml|pptx?|tar|ez|ics|mobi|msg|pub|eps|odt|mp[34]|m4[av]|wma|ogg|flac|wav|aif[cf]?|aiff|` +
		`avi|mov|mkv|mpe?g|wmv)$`)
)

func brevo() provider {
	return provider{
		auth: func(c *call) (answer, bool) {
			return brevoError(http.StatusUnauthorized, "unauthorized", "Key not found"),
				c.r.Header.Get("Api-Key") == c.o.Key
		},
		routes: brevoHooks.routes(
			route{"POST", "/v3/smtp/email", brevoSend},
			route{"GET", "/v3/account", func(*call) answer {
				return answer{200, nil, object{"email": "owner@example.com", "plan": []any{object{
					"type": "payAsYouGo", "creditsType": "sendLimit", "credits": 1000}}, "relay": object{
					"enabled": true}}}
			}},
			route{"GET", "/v3/senders/domains", func(c *call) answer {
				return answer{200, nil, object{"domains": objects(c.o.domains(), func(d string) any {
					return object{"id": 1, "domain_name": d, "authenticated": true, "verified": true}
				})}}
			}}),
		lost: func(_ *call, status int) answer {
			return brevoError(status, "document_not_found", "Route not found")
		},
		says: func(*call) map[Say]answer {
			throttled := brevoError(429, "too_many_requests", "Too many requests")
			throttled.header = brevoRate(0, 2)
			return map[Say]answer{Throttled: throttled,
				Spent: brevoError(http.StatusPaymentRequired, "not_enough_credits", "You do not have enough credits"),
				Down:  brevoError(500, "internal_error", "Internal server error"),
			}
		},
		key: func(c *call) string {
			var m brevoMessage
			_ = c.decode(&m, true)
			return m.Headers["idempotencyKey"]
		},
		keyLife: 15 * time.Minute,
		repeat: func(answer, repetition) answer {
			return brevoError(400, "duplicate_request", "Duplicate request")
		},
	}
}

func brevoError(status int, code, text string) answer {
	return answer{status, nil, object{"code": code, "message": text}}
}

func brevoRate(remaining, reset int) map[string]string {
	return map[string]string{"x-sib-ratelimit-limit": "1000", "x-sib-ratelimit-remaining": fmt.Sprint(remaining),
		"x-sib-ratelimit-reset": fmt.Sprint(reset)}
}

func brevoSend(c *call) answer {
	var m brevoMessage
	if !c.isJSON() || c.decode(&m, true) != nil {
		return brevoError(400, "bad_request", "Input must be a valid JSON object")
	}
	all := m.Versions
	if all == nil {
		all = []brevoMail{{}}
	}
	if len(all) > 2000 || len(all) == 0 {
		return brevoError(400, "invalid_parameter", "messageVersions can have 2000 objects")
	}
	for i := range all {
		all[i] = all[i].or(m.brevoMail)
		if a := c.brevoWrong(m, all[i]); a.status != 0 {
			return a
		}
	}
	ids := []string{}
	for i, v := range all {
		id := fmt.Sprintf("<%s.%d%d@smtp-relay.mailin.fr>", c.now.UTC().Format("200601021504"), c.serial(), i)
		c.brevoTake(m, v, id)
		ids = append(ids, id)
	}
	if m.Versions == nil {
		return answer{201, brevoRate(999, 1), object{"messageId": ids[0]}}
	}
	return answer{201, brevoRate(999, 1), object{"messageIds": ids}}
}

// or returns a version with what the message has for all.
func (v brevoMail) or(all brevoMail) brevoMail {
	if v.To == nil {
		v.To, v.Cc, v.Bcc = all.To, all.Cc, all.Bcc
	}
	if v.ReplyTo == nil {
		v.ReplyTo = all.ReplyTo
	}
	for own, shared := range map[*string]string{&v.Subject: all.Subject, &v.HTML: all.HTML, &v.Text: all.Text} {
		if *own == "" {
			*own = shared
		}
	}
	v.Headers, v.Params = merged(all.Headers, v.Headers), merged(all.Params, v.Params)
	return v
}

// brevoWrong says what is wrong with a version. Its status is 0 if nothing is.
func (c *call) brevoWrong(m brevoMessage, v brevoMail) answer {
	for i, list := range [][]person{v.To, v.Cc, v.Bcc} {
		for _, p := range list {
			if address(p.Email) == "" {
				return brevoError(400, "invalid_parameter", "email is not valid in "+[]string{"to", "cc", "bcc"}[i])
			}
		}
	}
	for name, value := range v.Headers {
		if !field(name, value) {
			return brevoError(400, "invalid_parameter", "headers are not valid")
		}
	}
	for _, a := range m.Attachment {
		if _, ok := decoded(a.Content); !ok || !brevoFile.MatchString(strings.ToLower(path.Ext(a.Name))) {
			return brevoError(400, "invalid_parameter", "Unsupported file format of attachment "+a.Name)
		}
	}
	key := v.Headers["idempotencyKey"]
	switch {
	case m.Sender.Email == "":
		return brevoError(400, "missing_parameter", "sender is missing")
	case address(m.Sender.Email) == "" || !c.o.sender(m.Sender.Email):
		return brevoError(400, "invalid_parameter", "valid sender email required")
	case len(v.To) == 0:
		return brevoError(400, "missing_parameter", "to is missing")
	case len(v.To)+len(v.Cc)+len(v.Bcc) > 99:
		return brevoError(400, "invalid_parameter", "there can be 99 recipients")
	case v.Subject == "":
		return brevoError(400, "missing_parameter", "subject is missing")
	case v.HTML == "":
		return brevoError(400, "missing_parameter", "htmlContent is missing")
	case key != "" && !brevoUUID.MatchString(key):
		return brevoError(400, "invalid_parameter", "idempotencyKey must be a UUID")
	case len(c.body) > 20<<20:
		return brevoError(400, "invalid_parameter", "the email is too large")
	}
	return answer{}
}

func (c *call) brevoTake(m brevoMessage, v brevoMail, id string) {
	d := Delivery{From: m.Sender.Email, ID: id, Tags: m.Tags, Sandbox: v.Headers["X-Sib-Sandbox"] == "drop"}
	_ = json.Unmarshal([]byte(v.Headers["X-Mailin-custom"]), &d.Metadata) // any text is allowed
	delete(v.Headers, "idempotencyKey")
	delete(v.Headers, "X-Sib-Sandbox")
	fill := strings.NewReplacer()
	if m.Versions != nil {
		fill = filler("{{params.", "}}", v.Params)
	}
	v.To, v.Cc, m.Sender = brevoNames(v.To), brevoNames(v.Cc), brevoNames([]person{m.Sender})[0]
	out := content{from: m.Sender.String(), subject: fill.Replace(v.Subject), text: fill.Replace(v.Text),
		html: fill.Replace(v.HTML), to: people(v.To), cc: people(v.Cc), headers: pairs(v.Headers), raw: true}
	if v.ReplyTo != nil {
		out.replyTo = []string{v.ReplyTo.String()}
	}
	for _, a := range m.Attachment {
		out.attach(typeByName(a.Name), a.Name, "", a.Content)
	}
	d.MIME = out.join(id, c.now)
	for _, list := range [][]person{v.To, v.Cc, v.Bcc} {
		for _, p := range list {
			c.later(d, p.Email)
		}
	}
}

// brevoNames are names as Brevo writes them: it drops those with punctuation and letters beyond ASCII, and
// lets encoded words pass.
func brevoNames(list []person) []person {
	list = slices.Clone(list)
	for i, p := range list {
		if strings.ContainsAny(p.Name, ",;:()<>@") && strings.ContainsFunc(p.Name,
			func(r rune) bool { return r > '~' }) {
			list[i].Name = ""
		}
		if decoded, err := new(mime.WordDecoder).DecodeHeader(p.Name); err == nil && decoded != p.Name {
			list[i].Name = decoded
		}
	}
	return list
}
