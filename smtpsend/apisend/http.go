package apisend

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// endpoint is an endpoint of the user's own, of the type http. docs/gateways.md describes its contract.
var endpoint = &adapter{
	request:   endpointRequest,
	read:      endpointAnswer,
	remembers: 24 * time.Hour,
	check: func(t Target) request {
		q, _ := endpointSigned(t, "check", endpointMail{Version: 1, To: []string{}, Check: true})
		return q
	},
}

// endpointMail is the body of a request.
type endpointMail struct {
	Version  int             `json:"version"`
	ID       string          `json:"id"`
	Account  string          `json:"account,omitempty"`
	Lane     string          `json:"lane,omitempty"` // bulk, or absent for transactional
	From     string          `json:"from"`
	To       []string        `json:"to"`
	Raw      []byte          `json:"raw"` // base64
	Tags     []string        `json:"tags,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Sandbox  bool            `json:"sandbox,omitempty"`
	Check    bool            `json:"check,omitempty"` // nothing must be sent
}

func endpointRequest(t Target, m *mail, g group) (request, error) {
	body := endpointMail{Version: 1, ID: m.Labels.ID, Account: m.Labels.Account, From: m.From, To: g.all(),
		Raw: m.raw, Tags: m.Labels.Tags, Metadata: m.Labels.Metadata, Sandbox: t.Sandbox}
	if m.Labels.Bulk {
		body.Lane = "bulk"
	}
	return endpointSigned(t, m.key, body)
}

// endpointSigned signs a request as the Standard Webhooks do.
func endpointSigned(t Target, key string, body endpointMail) (request, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return request{}, err
	}
	signer, err := standardwebhooks.NewWebhook(t.Secret)
	if err != nil {
		return request{}, errors.New("the secret of the gateway does not sign")
	}
	now := time.Now()
	signature, err := signer.Sign(key, now, raw)
	if err != nil {
		return request{}, err
	}
	return request{body: raw, key: key, header: jsonHeader("Webhook-Id", key, "Webhook-Timestamp",
		strconv.FormatInt(now.Unix(), 10), "Webhook-Signature", signature, "Idempotency-Key", key)}, nil
}

// endpointResult is an endpoint's answer about one recipient.
type endpointResult struct {
	To         string `json:"to"`
	Status     string `json:"status"` // accepted, refused, later
	ID         id     `json:"id"`
	Reason     string `json:"reason"` // unknown, full, domain, policy, sender, suppressed
	Code       string `json:"code"`
	Message    string `json:"message"`
	RetryAfter int    `json:"retryAfter"` // seconds
}

func endpointAnswer(x *exchange) answer {
	if !x.ok() {
		var said struct{ Code, Message string }
		readable := x.decode(&said)
		m, known := byStatus(x.status, readable)
		if known {
			return refuse(m, said.Code, said.Message)
		}
		return answer{unreadable: true}
	}
	if len(x.body) == 0 {
		return answer{}
	}
	var said struct {
		Results []endpointResult `json:"results"`
	}
	if !x.decode(&said) || said.Results == nil {
		return answer{unreadable: true}
	}
	out := answer{listed: true, each: map[string]recipient{}}
	for _, r := range said.Results {
		one, known := r.recipient()
		if before, named := out.each[fold(r.To)]; !named || before.refusal != nil || before.doubt != nil {
			out.each[fold(r.To)] = one // accepted wins over what else is said of one recipient
		}
		if !known {
			one.doubt = errors.New("unknown status " + strconv.Quote(r.Status))
			out.each[fold(r.To)] = one
		}
	}
	return out
}

// recipient returns what a result means, or false if its status is not known.
func (r endpointResult) recipient() (recipient, bool) {
	said := refusal{reason: r.Reason, text: r.Message, wait: time.Duration(r.RetryAfter) * time.Second}
	switch {
	case r.Status == "accepted":
		return recipient{id: string(r.ID)}, true
	case r.Status == "later" && r.Reason == "full":
		said.meaning = fullMailbox
	case r.Status == "later" && r.Reason == "domain":
		said.meaning = slowDomain
	case r.Status == "later":
		said.meaning = laterAddress
	case r.Status != "refused":
		return recipient{}, false
	case r.Reason == "unknown":
		said.meaning = unknownAddress
	case r.Reason == "full":
		said.meaning = fullMailbox
	case r.Reason == "sender":
		said.meaning = badSender
	default:
		said.meaning = badAddress
	}
	return recipient{refusal: &said}, true
}
