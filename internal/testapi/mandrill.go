package testapi

import (
	"encoding/json"
	"net/mail"
	"strings"
)

type mandrillMessage struct {
	Key              string   `json:"key"`
	Raw              string   `json:"raw_message"`
	From             string   `json:"from_email"`
	To               []string `json:"to"`
	Async            bool     `json:"async"`
	Pool             string   `json:"ip_pool"`
	ReturnPathDomain string   `json:"return_path_domain"`
}

func mandrill() provider {
	return provider{
		auth: func(c *call) (answer, bool) {
			var m struct{ Key string }
			if c.decode(&m, true) != nil {
				return mandrillError(-2, "ValidationError", "You must specify a key value"), false
			}
			return mandrillError(-1, "Invalid_Key", "Invalid API key"),
				strings.TrimSuffix(m.Key, "-test") == c.o.Key
		},
		routes: mandrillHooks.routes(
			route{"POST", "/api/1.0/messages/send-raw.json", mandrillSend},
			route{"POST", "/api/1.0/webhooks/list.json", mandrillListHooks},
			route{"POST", "/api/1.0/webhooks/update.json", mandrillChangeHook},
			route{"POST", "/api/1.0/users/ping2.json", func(*call) answer {
				return answer{200, nil, object{"PING": "PONG!"}}
			}},
			route{"POST", "/api/1.0/users/info.json", func(*call) answer {
				return answer{200, nil, object{"username": "owner", "reputation": 90, "hourly_quota": 500,
					"backlog": 0}}
			}},
			route{"POST", "/api/1.0/senders/domains.json", func(c *call) answer {
				ok := object{"valid": true, "error": nil}
				return answer{200, nil, objects(c.o.domains(), func(d string) any {
					return object{"domain": d, "spf": ok, "dkim": ok, "valid_signing": true}
				})}
			}}),
		lost: func(_ *call, status int) answer {
			return mandrillError(-1, "Unknown_Method", "Unknown method")
		},
		says: func(*call) map[Say]answer {
			throttled := mandrillError(-1, "GeneralError", "Too many requests")
			throttled.status = 429
			return map[Say]answer{Throttled: throttled,
				Spent: mandrillError(-1, "PaymentRequired", "The requested feature requires payment."),
				Down:  mandrillError(-1, "ServiceUnavailable", "The server is unavailable"),
			}
		},
	}
}

// mandrillError has status 500 whatever the error is.
func mandrillError(code int, name, text string) answer {
	return answer{500, nil, object{"status": "error", "code": code, "name": name, "message": text}}
}

func mandrillSend(c *call) answer {
	var m mandrillMessage
	if err := c.decode(&m, true); err != nil {
		return mandrillError(-2, "ValidationError", "Validation error: "+err.Error())
	}
	if m.Raw == "" {
		return mandrillError(-2, "ValidationError", "You must specify a raw_message value")
	}
	parsed, err := mail.ReadMessage(strings.NewReader(m.Raw))
	if err != nil || len(c.body) > 25<<20 {
		return mandrillError(-2, "ValidationError", "The raw_message isn't a message of at most 25 MB")
	}
	if m.From == "" {
		m.From = address(parsed.Header.Get("From"))
	}
	if m.To == nil {
		list, _ := parsed.Header.AddressList("To")
		for _, a := range list {
			m.To = append(m.To, a.Address)
		}
	}
	raw := []byte(m.Raw)
	d := Delivery{From: m.From, Sandbox: strings.HasSuffix(m.Key, "-test")}
	if tags := parsed.Header.Get("X-Mc-Tags"); tags != "" {
		d.Tags = strings.Split(tags, ",")
	}
	_ = json.Unmarshal([]byte(parsed.Header.Get("X-Mc-Metadata")), &d.Metadata) // what it can't read it ignores
	for name := range parsed.Header {
		if strings.HasPrefix(name, "X-Mc-") {
			raw = withHeader(raw, name, "")
		}
	}
	d.MIME = raw
	results := []any{}
	for _, to := range m.To {
		results = append(results, c.mandrillTake(d, to, m.Async || len(m.To) > 10))
	}
	return answer{200, nil, results}
}

// mandrillTake accepts a message for one recipient, or says why not.
func (c *call) mandrillTake(d Delivery, to string, queued bool) object {
	d.ID = strings.ReplaceAll(uuid(), "-", "")
	result := object{"email": to, "status": "sent", "_id": d.ID, "reject_reason": nil}
	reason, no := c.o.inactive(to)
	switch {
	case queued:
		result["status"] = "queued"
		if address(to) != "" && c.o.sender(d.From) {
			c.later(d, to)
		}
	case address(to) == "":
		result["status"] = "invalid"
	case address(d.From) == "":
		result["status"], result["reject_reason"] = "rejected", "invalid-sender"
	case !c.o.sender(d.From):
		result["status"], result["reject_reason"] = "rejected", "unsigned"
	case no && reason == "":
		result["status"], result["reject_reason"] = "rejected", "hard-bounce"
	case no:
		result["status"], result["reject_reason"] = "rejected", reason
	default:
		c.take(d, to)
	}
	return result
}
