package provider

import (
	"regexp"
	"strings"
)

// relayHosts are the domains of the providers' SMTP hosts.
var relayHosts = []struct {
	begins, ends string
	name         Name
}{
	{"email-smtp", ".amazonaws.com", SES}, // a region's; Amazon has many other hosts in that domain
	{"email-smtp", ".amazonaws.com.cn", SES},
	{"", ".sendgrid.net", SendGrid},
	{"", ".mailgun.org", Mailgun},
	{"", ".mailgun.net", Mailgun},
	{"", ".postmarkapp.com", Postmark},
	{"", ".mailjet.com", Mailjet},
	{"", ".sparkpostmail.com", SparkPost},
	{"", ".sparkpost.com", SparkPost},
	{"", ".brevo.com", Brevo},
	{"", ".sendinblue.com", Brevo},
	{"", ".resend.com", Resend},
	{"", ".mandrillapp.com", Mandrill},
}

// OfRelay returns the provider of an SMTP host by its name: SendGrid for smtp.sendgrid.net. It returns false
// for other hosts.
func OfRelay(host string) (Name, bool) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, r := range relayHosts {
		if strings.HasSuffix(host, r.ends) && strings.HasPrefix(host, r.begins) {
			return r.name, true
		}
	}
	return "", false
}

var (
	replyHead  = regexp.MustCompile(`(?i)^\s*(?:2[0-9][0-9][ -])?(?:2\.[0-9]{1,3}\.[0-9]{1,3} )?ok:? +`)
	replyQueue = regexp.MustCompile(`(?i)^queued as +(\S+)`)
	replySES   = regexp.MustCompile(
		`^[0-9a-f]{16}-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}-[0-9]{6}$`)
	replyUUID = regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	replyHex  = regexp.MustCompile(`\b[0-9a-f]{18,32}\b`)
)

// AnsweredID returns the provider's id of a message from its reply to the end of the data, with or without
// the reply code. It returns "" if there is no id that its webhooks use. Mailgun's reply has no id: its
// webhooks have the Message-ID. Postmark's reply has a queue id that its webhooks do not have: they have what
// [Echo] attaches.
func AnsweredID(n Name, reply string) string {
	reply = strings.TrimSpace(reply)
	if len(reply) > 1000 {
		return ""
	}
	head := replyHead.FindString(reply)
	rest := reply[len(head):]
	queued := ""
	if m := replyQueue.FindStringSubmatch(rest); head != "" && m != nil {
		queued = strings.Trim(m[1], "<>.,;")
	}
	switch n {
	case SES: // 250 Ok 0102018c8e1b7f3a-…-000000
		if id := strings.TrimSpace(rest); head != "" && replySES.MatchString(id) {
			return id
		}
	case SendGrid, Brevo, Generic: // 250 Ok: queued as nhIMmON9SFOPcT0ii4nt2A; with Brevo it is the Message-ID
		return clean(queued, maxID)
	case Mailjet: // 250 OK queued as a08b7f37-ed61-423a-ba75-38ed2fd4b54c: the Message_GUID
		return strings.ToLower(replyUUID.FindString(queued))
	case Postmark, Resend:
		return strings.ToLower(replyUUID.FindString(reply))
	case SparkPost:
		return replyHex.FindString(reply)
	}
	return ""
}

// Reference returns the key under which a provider's id of a message is stored: "ses:0102018c…". It ignores
// angle brackets and the case of a UUID. It returns "" if there is no id.
func Reference(n Name, id string) string {
	id = strings.Trim(strings.TrimSpace(id), "<>")
	if id == "" {
		return ""
	}
	if replyUUID.MatchString(id) && len(id) == 36 {
		id = strings.ToLower(id)
	}
	return string(n) + ":" + id
}

// EchoField is the metadata field with our id of a message, which a provider repeats in its events.
const EchoField = "postroom_id"

// Echo returns the header that makes a provider repeat our id of the message in its events. The id must
// consist of letters, digits and hyphens; Postmark accepts 80 characters. ok is false for a provider that has
// no such header or needs none. The provider removes the header before delivery.
func Echo(n Name, id string) (header, value string, ok bool) {
	e, ok := echoes[n]
	return e.header, strings.ReplaceAll(e.value, "ID", id), ok
}

var echoes = map[Name]struct{ header, value string }{
	SES:       {"X-SES-MESSAGE-TAGS", EchoField + "=ID"},
	SendGrid:  {"X-SMTPAPI", `{"unique_args":{"` + EchoField + `":"ID"}}`},
	Mailgun:   {"X-Mailgun-Variables", `{"` + EchoField + `": "ID"}`},
	Postmark:  {"X-PM-Metadata-" + EchoField, "ID"},
	Mailjet:   {"X-MJ-CustomID", "ID"},
	SparkPost: {"X-MSYS-API", `{"metadata":{"` + EchoField + `":"ID"}}`},
	Brevo:     {"X-Mailin-custom", `{"` + EchoField + `": "ID"}`},
	Mandrill:  {"X-MC-Metadata", `{"` + EchoField + `": "ID"}`},
}

// Echoed returns our id of the message as the provider repeated it, or "". The caller must check it: the
// sender of an event may write anything there.
func (e *Event) Echoed() string {
	if id := e.Metadata[EchoField]; id != "" {
		return id
	}
	if e.Provider == Mailjet {
		return e.Metadata["CustomID"]
	}
	return ""
}
