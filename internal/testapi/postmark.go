package testapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/mail"
	"strings"
	"unicode/utf8"
)

type postmarkMessage struct {
	From, To, Cc, Bcc, ReplyTo, Subject, TextBody, HtmlBody, Tag, MessageStream, TrackLinks string

	TrackOpens  *bool
	Metadata    map[string]string
	Headers     []struct{ Name, Value string }
	Attachments []struct{ Name, Content, ContentType, ContentID string }
}

func postmark() provider {
	return provider{
		auth: func(c *call) (answer, bool) {
			token, want := c.r.Header.Get("X-Postmark-Server-Token"), c.o.Key
			if strings.HasPrefix(c.r.URL.Path, "/domains") {
				token, want = c.r.Header.Get("X-Postmark-Account-Token"), c.o.Secret
			}
			if token == "" {
				return postmarkError(http.StatusUnauthorized, 10,
					"No Account or Server API tokens were supplied in the HTTP headers."), false
			}
			return postmarkError(http.StatusUnauthorized, 10, "Request does not contain a valid Server token."),
				token == want || token == "POSTMARK_API_TEST"
		},
		routes: postmarkHooks.routes(
			route{"POST", "/email", postmarkSingle}, route{"POST", "/email/batch", postmarkBatch},
			route{"GET", "/server", postmarkServer}, route{"GET", "/domains", postmarkDomains}),
		lost: func(_ *call, status int) answer {
			return answer{status, map[string]string{"Content-Type": "text/html"}, "<h1>Not Found</h1>"}
		},
		says: func(*call) map[Say]answer {
			return map[Say]answer{
				Throttled: postmarkError(http.StatusTooManyRequests, 429, "Rate limit exceeded."),
				Spent:     postmarkError(422, 405, "You are out of email credits."),
				Down:      postmarkError(http.StatusServiceUnavailable, 100, "Maintenance"),
			}
		},
	}
}

func postmarkError(status, code int, text string) answer {
	return answer{status, nil, object{"ErrorCode": code, "Message": text}}
}

// postmarkBody reads a message or a list of them.
func postmarkBody(c *call, into any) (answer, bool) {
	if !c.isJSON() || !strings.Contains(c.r.Header.Get("Accept"), "application/json") {
		return postmarkError(422, 409, "The Accept and Content-Type headers must be application/json."), false
	}
	err := c.decode(into, false)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) || err != nil && strings.HasPrefix(err.Error(), "json: unknown field") {
		return postmarkError(422, 403, "The JSON you provided has fields of the wrong name or type: "+
			err.Error()), false
	}
	if err != nil {
		return postmarkError(422, 402, "Received invalid JSON input."), false
	}
	return answer{}, true
}

func postmarkSingle(c *call) answer {
	var m postmarkMessage
	if a, ok := postmarkBody(c, &m); !ok {
		return a
	}
	return c.postmarkSend(m)
}

func postmarkBatch(c *call) answer {
	var all []postmarkMessage
	if a, ok := postmarkBody(c, &all); !ok {
		return a
	}
	if len(all) > 500 {
		return postmarkError(422, 410, "You can only send 500 messages in one batch.")
	}
	if len(c.body) > 50<<20 {
		return postmarkError(http.StatusRequestEntityTooLarge, 0, "The payload is too large.")
	}
	results := []any{}
	for _, m := range all {
		results = append(results, c.postmarkSend(m).body)
	}
	return answer{200, nil, results}
}

// postmarkSend checks one message and accepts it.
func (c *call) postmarkSend(m postmarkMessage) answer {
	from := address(m.From)
	if from == "" {
		return postmarkError(422, 300, fmt.Sprintf("Invalid 'From' address: '%s'.", m.From))
	}
	if !c.o.sender(from) {
		return postmarkError(422, 400, "The 'From' address you supplied ("+from+
			") is not a Sender Signature on your account.")
	}
	all, text := postmarkRecipients(m)
	if text == "" {
		text = postmarkInvalid(m)
	}
	if text != "" {
		return postmarkError(422, 300, text)
	}
	if m.MessageStream != "" && m.MessageStream != "outbound" && m.MessageStream != "broadcast" {
		return postmarkError(422, 1235, "The 'MessageStream' provided does not exist on this server.")
	}
	var active, inactive []string
	for _, a := range all {
		if _, no := c.o.inactive(a); no {
			inactive = append(inactive, strings.ToLower(a))
		} else {
			active = append(active, a)
		}
	}
	const reason = ". Inactive recipients are ones that have generated a hard bounce, a spam complaint, or a " +
		"manual suppression."
	if len(active) == 0 {
		return postmarkError(422, 406, "You tried to send to recipient(s) that have been marked as inactive. "+
			"Found inactive addresses: "+strings.Join(inactive, ", ")+reason)
	}
	id := uuid()
	said := object{"To": m.To, "SubmittedAt": c.now.UTC().Format("2006-01-02T15:04:05.0000000Z"),
		"MessageID": id, "ErrorCode": 0, "Message": "OK"}
	if len(inactive) > 0 {
		said["Message"] = "Message OK, but will not deliver to these inactive addresses: " +
			strings.Join(inactive, ", ") + reason
	}
	test := c.r.Header.Get("X-Postmark-Server-Token") == "POSTMARK_API_TEST"
	if test {
		said["Message"] = "Test job accepted"
	}
	var tags []string
	if m.Tag != "" {
		tags = []string{m.Tag}
	}
	c.take(Delivery{From: from, ID: id, MIME: m.content().join(id, c.now), Tags: tags, Metadata: m.Metadata,
		Sandbox: test}, active...)
	return answer{200, nil, said}
}

// postmarkRecipients lists the recipients, or says what is wrong with them.
func postmarkRecipients(m postmarkMessage) (all []string, wrong string) {
	for i, list := range []string{m.To, m.Cc, m.Bcc} {
		field := []string{"To", "Cc", "Bcc"}[i]
		if list == "" {
			continue
		}
		parsed, err := mail.ParseAddressList(list)
		if err != nil {
			return nil, fmt.Sprintf("Error parsing '%s': Illegal email address '%s'.", field, list)
		}
		for _, p := range parsed {
			a := address(p.Address)
			if a == "" || strings.ContainsFunc(a, func(r rune) bool { return r >= utf8.RuneSelf }) {
				_, domain, _ := strings.Cut(p.Address, "@")
				return nil, fmt.Sprintf("Error parsing '%s': Illegal email domain '%s' in address '%s'.", field,
					domain, p.Address)
			}
			all = append(all, a)
		}
	}
	if m.To == "" {
		return nil, "Zero recipients specified"
	}
	if len(all) > 50 {
		return nil, "Too many recipients: 'To', 'Cc' and 'Bcc' can have 50 in all."
	}
	return all, ""
}

// postmarkInvalid says what is wrong with the content of a message.
func postmarkInvalid(m postmarkMessage) string {
	size := 0
	for _, a := range m.Attachments {
		raw, ok := decoded(a.Content)
		if a.Name == "" || a.ContentType == "" || !ok {
			return "Invalid attachment: Name, Content and ContentType are required."
		}
		size += len(raw)
	}
	for _, h := range m.Headers {
		if !field(h.Name, h.Value) {
			return fmt.Sprintf("Invalid header '%s'.", h.Name)
		}
		if reserved(h.Name, "from to cc bcc subject reply-to content-type content-transfer-encoding mime-version "+
			"date return-path sender dkim-signature") { // which ones exactly isn't documented
			return fmt.Sprintf("Header '%s' not allowed.", h.Name)
		}
	}
	for name, value := range m.Metadata {
		if utf8.RuneCountInString(name) > 20 || utf8.RuneCountInString(value) > 80 {
			return "Metadata field names can have 20 characters, values 80."
		}
	}
	if m.ReplyTo != "" {
		if _, err := mail.ParseAddressList(m.ReplyTo); err != nil {
			return fmt.Sprintf("Invalid 'ReplyTo' address: '%s'.", m.ReplyTo)
		}
	}
	switch {
	case m.TextBody == "" && m.HtmlBody == "":
		return "Provide either email TextBody or HtmlBody or both."
	case len(m.TextBody) > 5<<20 || len(m.HtmlBody) > 5<<20 || size > 10<<20:
		return "The message is too large."
	case len(m.Subject) > 2000:
		return "The Subject can have 2000 characters."
	case len(m.Tag) > 1000:
		return "The Tag can have 1000 characters."
	case len(m.Metadata) > 10:
		return "There can be 10 Metadata fields."
	case m.TrackLinks != "" && m.TrackLinks != "None" && m.TrackLinks != "HtmlAndText" &&
		m.TrackLinks != "HtmlOnly" && m.TrackLinks != "TextOnly":
		return "TrackLinks is invalid."
	}
	return ""
}

func (m postmarkMessage) content() content {
	out := content{from: m.From, subject: m.Subject, text: m.TextBody, html: m.HtmlBody}
	for value, into := range map[string]*[]string{m.To: &out.to, m.Cc: &out.cc, m.ReplyTo: &out.replyTo} {
		if value != "" {
			*into = []string{value}
		}
	}
	keep := false
	for _, h := range m.Headers {
		keep = keep || strings.EqualFold(h.Name, "X-PM-KeepID") && h.Value == "true"
	}
	for _, h := range m.Headers {
		if !strings.EqualFold(h.Name, "X-PM-KeepID") && (keep || !strings.EqualFold(h.Name, "Message-ID")) {
			out.headers = append(out.headers, [2]string{h.Name, h.Value})
		}
	}
	for _, a := range m.Attachments {
		out.attach(a.ContentType, a.Name, strings.TrimPrefix(a.ContentID, "cid:"), a.Content)
	}
	return out
}

func postmarkServer(c *call) answer {
	return answer{200, nil, object{"ID": 1, "Name": "Test", "ApiTokens": []string{c.o.Key},
		"Color": "blue", "SmtpApiActivated": true, "DeliveryType": "Live", "TrackOpens": false,
		"TrackLinks": "None"}}
}

func postmarkDomains(c *call) answer {
	list := []any{}
	for i, d := range c.o.domains() {
		list = append(list, object{"Name": d, "SPFVerified": true, "DKIMVerified": true,
			"WeakDKIM": false, "ReturnPathDomainVerified": false, "ID": i + 1})
	}
	return answer{200, nil, object{"TotalCount": len(list), "Domains": list}}
}
