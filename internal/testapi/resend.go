package testapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"strings"
	"time"
)

type resendMessage struct {
	From        string            `json:"from"`
	To          oneOrMore         `json:"to"`
	Cc          oneOrMore         `json:"cc"`
	Bcc         oneOrMore         `json:"bcc"`
	ReplyTo     oneOrMore         `json:"reply_to"`
	Subject     string            `json:"subject"`
	Text        string            `json:"text"`
	HTML        string            `json:"html"`
	Headers     map[string]string `json:"headers"`
	Attachments []struct {
		Filename    string `json:"filename"`
		Content     string `json:"content"`
		ContentType string `json:"content_type"`
		ContentID   string `json:"content_id"`
	} `json:"attachments"`
	Tags []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"tags"`
}

// oneOrMore is a text or a list of texts.
type oneOrMore []string

// UnmarshalJSON reads both forms.
func (o *oneOrMore) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		*o = make([]string, 1)
		return json.Unmarshal(raw, &(*o)[0])
	}
	return json.Unmarshal(raw, (*[]string)(o))
}

func resend() provider {
	return provider{
		auth: func(c *call) (answer, bool) {
			key, sends := c.bearer("Bearer"), strings.HasPrefix(c.r.URL.Path, "/emails")
			switch {
			case key == "":
				return resendError(401, "missing_api_key", "Missing API Key"), false
			case key != c.o.Key && sends:
				return resendError(401, "validation_error", "API key is invalid"), false
			case key != c.o.Key:
				return resendError(400, "validation_error", "API key is invalid"), false
			}
			return resendError(401, "restricted_api_key", "This API key is restricted to only send emails"),
				sends || !c.o.Restricted
		},
		routes: resendHooks.routes(
			route{"POST", "/emails", resendSingle}, route{"POST", "/emails/batch", resendBatch},
			route{"GET", "/webhooks/{}", resendHook}, route{"GET", "/domains", resendDomains}),
		lost: func(_ *call, status int) answer {
			if status == http.StatusMethodNotAllowed {
				return resendError(status, "method_not_allowed", "This endpoint does not support this method")
			}
			return resendError(status, "not_found", "The requested endpoint does not exist")
		},
		says: func(*call) map[Say]answer {
			return map[Say]answer{
				Throttled: resendError(429, "rate_limit_exceeded",
					"Too many requests. You can only make 2 requests per second.").with("Retry-After", "1"),
				Spent: resendError(429, "daily_quota_exceeded", "You have reached your daily email sending quota."),
				Down:  resendError(500, "internal_server_error", "An unexpected error occurred."),
			}
		},
		key: func(c *call) string {
			if !strings.HasPrefix(c.r.URL.Path, "/emails") {
				return ""
			}
			return c.r.Header.Get("Idempotency-Key")
		},
		keyLife: 24 * time.Hour,
		repeat: func(first answer, what repetition) answer {
			switch what {
			case inFlight:
				return resendError(409, "concurrent_idempotent_requests",
					"Same idempotency key used while original request is still in progress.")
			case otherBytes:
				return resendError(409, "invalid_idempotent_request",
					"Same idempotency key used with a different request payload.")
			}
			return first
		},
	}
}

func resendError(status int, name, text string) answer {
	return answer{status, nil, object{"statusCode": status, "name": name, "message": text}}
}

// resendBody reads a message or a list of them.
func resendBody(c *call, into any) (answer, bool) {
	if len(c.r.Header.Get("Idempotency-Key")) > 256 {
		return resendError(400, "invalid_idempotency_key", "The key must be between 1-256 chars."), false
	}
	if !c.isJSON() {
		return resendError(http.StatusUnprocessableEntity, "missing_required_field", "Missing `from` field."), false
	}
	if err := c.decode(into, true); err != nil {
		return resendError(http.StatusUnprocessableEntity, "validation_error", "Invalid JSON: "+err.Error()), false
	}
	return answer{}, true
}

// resendOK is an answer with the headers of the rate limit.
func resendOK(body any) answer {
	return answer{200, map[string]string{"Ratelimit-Limit": "2", "Ratelimit-Remaining": "1",
		"Ratelimit-Reset": "1"}, body}
}

func resendSingle(c *call) answer {
	var m resendMessage
	if a, ok := resendBody(c, &m); !ok {
		return a
	}
	if a := c.resendWrong(m, false); a.status != 0 {
		return a
	}
	return resendOK(object{"id": c.resendTake(m)})
}

func resendBatch(c *call) answer {
	var all []resendMessage
	if a, ok := resendBody(c, &all); !ok {
		return a
	}
	if len(all) == 0 || len(all) > 100 {
		return resendError(422, "validation_error", "The batch must have between 1 and 100 emails.")
	}
	permissive := c.r.Header.Get("X-Batch-Validation") == "permissive"
	var good []resendMessage
	wrong := []any{}
	for i, m := range all {
		a := c.resendWrong(m, true)
		if a.status != 0 && (!permissive || a.status == http.StatusForbidden) {
			return a
		}
		if a.status != 0 {
			wrong = append(wrong, object{"index": i, "message": a.body.(object)["message"]})
			continue
		}
		good = append(good, m)
	}
	data := []any{}
	for _, m := range good {
		data = append(data, object{"id": c.resendTake(m)})
	}
	body := object{"data": data}
	if permissive {
		body["errors"] = wrong
	}
	return resendOK(body)
}

var resendTag = regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)

// resendWrong says what is wrong with a message. Its status is 0 if nothing is.
func (c *call) resendWrong(m resendMessage, batch bool) answer {
	refuse := func(name, text string) answer { return resendError(422, name, text) }
	from := address(m.From)
	for _, list := range []struct {
		name string
		all  []string
	}{{"to", m.To}, {"cc", m.Cc}, {"bcc", m.Bcc}, {"reply_to", m.ReplyTo}} {
		if _, _, ok := addresses(list.all); !ok {
			return refuse("validation_error", "Invalid `"+list.name+"` field.")
		}
		if len(list.all) > 50 {
			return refuse("validation_error", "The `"+list.name+"` field can have 50 addresses.")
		}
	}
	for name, value := range m.Headers {
		if !field(name, value) {
			return refuse("validation_error", "Invalid `headers` field.")
		}
	}
	for _, t := range m.Tags {
		if !resendTag.MatchString(t.Name) || !resendTag.MatchString(t.Value) {
			return refuse("validation_error",
				"Tags should only contain ASCII letters, numbers, underscores, or dashes.")
		}
	}
	size := 0
	for _, a := range m.Attachments {
		raw, ok := decoded(a.Content)
		if !ok || a.Filename == "" {
			return refuse("invalid_attachment", "Attachment must have either a `content` or `path`.")
		}
		size += len(raw)
	}
	switch {
	case m.From == "":
		return refuse("missing_required_field", "Missing `from` field.")
	case from == "":
		return refuse("invalid_from_address", "Invalid `from` field. The email address needs to follow the "+
			"`email@example.com` or `Name <email@example.com>` format.")
	case len(m.To) == 0:
		return refuse("missing_required_field", "Missing `to` field.")
	case m.Subject == "":
		return refuse("missing_required_field", "Missing `subject` field.")
	case m.Text == "" && m.HTML == "":
		return refuse("missing_required_field", "Missing `html` or `text` field.")
	case batch && len(m.Attachments) > 0:
		return refuse("validation_error", "The `attachments` field is not supported in a batch.")
	case size > 40<<20:
		return refuse("validation_error", "The email is larger than 40MB.")
	case !c.o.sender(from):
		_, domain, _ := strings.Cut(from, "@")
		return resendError(http.StatusForbidden, "validation_error", "The "+domain+
			" domain is not verified. Please, add and verify your domain.")
	}
	return answer{}
}

// resendTake accepts a message and returns its id. It drops, without a word, a message with an attachment
// whose type and name disagree, and one for recipients who are suppressed.
func (c *call) resendTake(m resendMessage) string {
	id := uuid()
	out := content{from: m.From, subject: m.Subject, text: m.Text, html: m.HTML, to: m.To, cc: m.Cc,
		replyTo: m.ReplyTo}
	for name, value := range m.Headers {
		out.headers = append(out.headers, [2]string{name, value})
	}
	lost := false
	for _, a := range m.Attachments {
		kind := typeByName(a.Filename)
		lost = lost || a.ContentType != "" && kind != "" && !strings.HasPrefix(a.ContentType, kind)
		if a.ContentType != "" {
			kind = a.ContentType
		}
		out.attach(kind, a.Filename, a.ContentID, a.Content)
	}
	metadata := map[string]string{}
	for _, t := range m.Tags {
		metadata[t.Name] = t.Value
	}
	if lost {
		return id
	}
	mime := out.join(id, c.now)
	for _, list := range [][]string{m.To, m.Cc, m.Bcc} {
		all, _, _ := addresses(list)
		for _, a := range all {
			if _, no := c.o.inactive(a); !no {
				c.take(Delivery{From: address(m.From), ID: id, MIME: mime, Metadata: metadata,
					Sandbox: strings.HasSuffix(a, "@resend.dev")}, a)
			}
		}
	}
	return id
}

// typeByName returns the type that a name's extension stands for, or an empty text.
func typeByName(name string) string {
	return map[string]string{".pdf": "application/pdf", ".png": "image/png", ".jpg": "image/jpeg",
		".jpeg": "image/jpeg", ".gif": "image/gif", ".txt": "text/plain", ".csv": "text/csv", ".html": "text/html",
		".zip": "application/zip"}[strings.ToLower(path.Ext(name))]
}

func resendDomains(c *call) answer {
	list := []any{}
	for i, d := range c.o.domains() {
		list = append(list, object{"id": fmt.Sprint("domain-", i+1), "name": d, "status": "verified",
			"region": "us-east-1", "created_at": c.now.UTC().Format(time.RFC3339)})
	}
	return answer{200, nil, object{"object": "list", "has_more": false, "data": list}}
}
