package testapi

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/mail"
	"strconv"
	"strings"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

type httpMessage struct {
	Version  int            `json:"version"`
	ID       string         `json:"id"`
	Account  string         `json:"account"`
	Lane     string         `json:"lane"`
	From     string         `json:"from"`
	To       []string       `json:"to"`
	Raw      string         `json:"raw"`
	Tags     []string       `json:"tags"`
	Metadata map[string]any `json:"metadata"`
	Sandbox  bool           `json:"sandbox"`
	Check    bool           `json:"check"`
}

// httpAPI is an endpoint that a user wrote, at the path /mail. It verifies signatures by Standard Webhooks.
func httpAPI() provider {
	return provider{
		auth: func(c *call) (answer, bool) {
			hook, err := standard.NewWebhook(c.o.Secret)
			if err == nil {
				err = hook.VerifyIgnoringTimestamp(c.body, c.r.Header)
			}
			sent, _ := strconv.ParseInt(c.r.Header.Get("Webhook-Timestamp"), 10, 64)
			age := c.now.Sub(time.Unix(sent, 0)).Abs()
			return httpError(http.StatusUnauthorized, "signature", "the signature is wrong or old"),
				err == nil && age <= 5*time.Minute
		},
		routes: []route{{"POST", "/mail", httpSend}},
		lost: func(_ *call, status int) answer {
			return httpError(status, "path", "use POST /mail")
		},
		says: func(*call) map[Say]answer {
			return map[Say]answer{
				Throttled: httpError(429, "throttled", "too many requests").with("Retry-After", "1"),
				Spent:     httpError(429, "quota", "the quota of the day is used up").with("Retry-After", "3600"),
				Down:      httpError(503, "down", "maintenance").with("Retry-After", "1"),
			}
		},
		key: func(c *call) string { return c.r.Header.Get("Idempotency-Key") }, keyLife: 24 * time.Hour,
		repeat: func(first answer, what repetition) answer {
			switch what {
			case inFlight:
				return httpError(http.StatusConflict, "concurrent_idempotent_requests", "the first one is under way")
			case otherBytes:
				return httpError(http.StatusConflict, "invalid_idempotent_request", "this key had other bytes")
			}
			return first
		},
	}
}

func httpError(status int, code, text string) answer {
	return answer{status, nil, object{"code": code, "message": text}}
}

func httpSend(c *call) answer {
	var m httpMessage
	if !c.isJSON() {
		return httpError(http.StatusUnsupportedMediaType, "type", "the body must be application/json")
	}
	if err := c.decode(&m, false); err != nil {
		return httpError(http.StatusUnprocessableEntity, "json", err.Error())
	}
	raw, err := base64.StdEncoding.DecodeString(m.Raw)
	if err == nil {
		_, err = mail.ReadMessage(strings.NewReader(string(raw)))
	}
	header := c.r.Header
	switch {
	case m.Check && len(m.To) == 0:
		return answer{200, nil, map[string]any{}}
	case m.Version != 1:
		return httpError(http.StatusUnprocessableEntity, "version", "version must be 1")
	case m.ID == "" || m.Account == "" || address(m.From) == "" && m.From != "":
		return httpError(http.StatusUnprocessableEntity, "missing", "id, account and from are required")
	case len(m.To) == 0 || err != nil:
		return httpError(http.StatusUnprocessableEntity, "missing", "to and raw, a message in base64, are required")
	case header.Get("Idempotency-Key") == "" || header.Get("Webhook-Id") == "":
		return httpError(http.StatusBadRequest, "key", "Idempotency-Key and webhook-id are required")
	}
	results := []any{}
	for _, to := range m.To {
		results = append(results, c.httpTake(m, to, raw))
	}
	return answer{200, nil, object{"results": results}}
}

// httpTake accepts a message for one recipient, or says why not.
func (c *call) httpTake(m httpMessage, to string, raw []byte) object {
	refuse := func(reason, text string) object {
		return object{"to": to, "status": "refused", "reason": reason, "message": text}
	}
	reason, no := c.o.inactive(to)
	switch {
	case !c.o.sender(m.From):
		return refuse("sender", "this sender is not allowed")
	case address(to) == "":
		return refuse("policy", "this is not an address")
	case no && reason == "domain":
		return object{"to": to, "status": "later", "reason": reason, "retryAfter": 60}
	case no && reason == "later":
		return object{"to": to, "status": "later", "retryAfter": 60}
	case no && reason == "":
		return refuse("unknown", "no such mailbox")
	case no:
		return refuse(reason, "refused")
	}
	metadata := map[string]string{"postroom_id": m.ID}
	for k, v := range m.Metadata {
		metadata[k] = fmt.Sprint(v)
	}
	d := Delivery{From: m.From, ID: uuid(), MIME: raw, Tags: m.Tags, Metadata: metadata, Sandbox: m.Sandbox}
	c.take(d, to)
	return object{"to": to, "status": "accepted", "id": d.ID}
}
