package apisend

import (
	"errors"
	"net/http"
	"strings"

	"github.com/postroom/postroom/smtpsend"
)

// sparkPost is SparkPost's transmissions API. It takes MIME as a string. Its answers count accepted
// recipients but don't name them.
var sparkPost = &adapter{
	base: func(t Target) string {
		if t.Region == "eu" {
			return "https://api.eu.sparkpost.com"
		}
		return "https://api.sparkpost.com"
	},
	most: 1000, size: 20_000_000,
	lacks:   func(_ Target, m *mail) string { return m.lacksInText() },
	request: sparkPostRequest, read: sparkPostAnswer,
	check: func(t Target) request {
		return request{path: "/api/v1/sending-domains", header: sparkPostHeader(t)}
	},
	checked: func(x *exchange) *refusal {
		var said struct{ Results []struct{} }
		return unless(x.decode(&said) && said.Results != nil)
	},
	fine: func(x *exchange) bool { // the key is good, and may not list domains
		r := sparkPostAnswer(x).refusal
		return x.status == http.StatusForbidden && r != nil && r.verdict == smtpsend.Auth
	},
}

type sparkPostMail struct {
	Recipients []sparkPostRecipient `json:"recipients"`
	Content    struct {
		MIME string `json:"email_rfc822"`
	} `json:"content"`
	Options struct {
		Opens         bool   `json:"open_tracking"` // both are on by default
		Clicks        bool   `json:"click_tracking"`
		Transactional bool   `json:"transactional"`
		Substitute    bool   `json:"perform_substitutions"` // its template language
		Pool          string `json:"ip_pool,omitempty"`
	} `json:"options"`
	Campaign string `json:"campaign_id,omitempty"`
}

type sparkPostRecipient struct {
	Address struct {
		Email    string `json:"email"`
		HeaderTo string `json:"header_to"`
	} `json:"address"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// sparkPostSink makes SparkPost's sink the recipient's server, which delivers nothing. The API's own sandbox
// option is different: it names a domain to send from.
const sparkPostSink = ".sink.sparkpostmail.com"

func sparkPostRequest(t Target, m *mail, g group) (request, error) {
	var body sparkPostMail
	for _, to := range g.all() {
		r := sparkPostRecipient{Metadata: echo(m.proof())}
		r.Address.Email, r.Address.HeaderTo = to, to
		if t.Sandbox {
			r.Address.Email += sparkPostSink
		}
		body.Recipients = append(body.Recipients, r)
	}
	body.Content.MIME = string(m.raw)
	body.Options.Transactional, body.Options.Pool = !m.Labels.Bulk, t.Pool
	body.Campaign = m.firstTag(64)
	raw, err := encode(body)
	return request{path: "/api/v1/transmissions?num_rcpt_errors=1000", header: sparkPostHeader(t),
		body: raw}, err
}

func sparkPostHeader(t Target) http.Header {
	h := jsonHeader("Authorization", t.Key)
	if t.Subaccount != "" {
		h.Set("X-Msys-Subaccount", t.Subaccount)
	}
	return h
}

// sparkPostSaid is the JSON of an answer.
type sparkPostSaid struct {
	Results struct {
		ID       id               `json:"id"`
		Accepted *int             `json:"total_accepted_recipients"`
		Rejected int              `json:"total_rejected_recipients"`
		Errors   []sparkPostError `json:"rcpt_to_errors"` // in unknown order
	} `json:"results"`
	Errors []sparkPostError `json:"errors"`
}

type sparkPostError struct {
	Code        id     `json:"code"`
	Message     string `json:"message"`
	Description string `json:"description"`
}

// refuses returns the error as a refusal with a meaning.
func (e sparkPostError) refuses(m meaning) answer {
	text := e.Message
	if e.Description != "" {
		text += ": " + e.Description
	}
	return refuse(m, string(e.Code), text)
}

func sparkPostAnswer(x *exchange) answer {
	var said sparkPostSaid
	if !x.decode(&said) {
		return answer{unreadable: true}
	}
	if x.ok() {
		return said.counts(x)
	}
	if len(said.Errors) == 0 || said.Errors[0].Message == "" {
		return answer{unreadable: true}
	}
	return said.Errors[0].judge(x)
}

// counts judges the numbers of accepted and rejected recipients.
func (s sparkPostSaid) counts(x *exchange) answer {
	taken := s.Results.Accepted
	switch {
	case s.Results.ID == "" || taken == nil:
		return answer{unreadable: true}
	case *taken == len(x.to) && s.Results.Rejected == 0:
		return answer{id: string(s.Results.ID)}
	case *taken == 0 && s.Results.Rejected >= len(x.to) && len(s.Results.Errors) > 0:
		return s.Results.Errors[0].refuses(badAddress)
	}
	each := map[string]recipient{}
	for _, to := range x.to {
		each[fold(to)] = recipient{id: string(s.Results.ID), doubt: errSomeTaken}
	}
	return answer{each: each, listed: true}
}

var errSomeTaken = errors.New("SparkPost rejected some recipients and doesn't say which ones")

// judge judges the error of a whole transmission.
func (e sparkPostError) judge(x *exchange) answer {
	auth := x.status == http.StatusUnauthorized || x.status == http.StatusForbidden
	switch code := string(e.Code); code {
	case "1902": // a recipient is on the suppression list
		a := e.refuses(badAddress)
		a.unnamed = true
		return a
	case "5002": // no recipient is valid
		return e.refuses(badAddress)
	case "2101", "2102", "2105": // a limit is used up
		a := e.refuses(tooFast)
		a.refusal.wait = quotaWait
		return a
	case "2103", "7000", "7001", "1303", "1304":
		return e.refuses(badSender)
	case "1100", "1601":
		return e.refuses(badKey)
	case "1500", "1501", "1502", "1900":
		return e.refuses(broken)
	case "1200", "1300", "1301", "1305", "1400", "1401", "1901", "1910", "2002":
		return e.refuses(badMessage)
	case "":
		if auth || x.status == http.StatusBadRequest {
			return e.refuses(badKey)
		}
		return x.general("", e.Message)
	default:
		if len(code) == 4 && strings.HasPrefix(code, "3") {
			return e.refuses(badMessage)
		}
		return x.general(code, e.refuses(meaning{}).refusal.text)
	}
}
