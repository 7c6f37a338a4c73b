package provider

import (
	"encoding/json"
	"regexp"
	"strings"
)

// relayHosts are the hosts to which providers take mail by SMTP, by the end of their names. The provider whose names are in several domains
// stands there once for each.
func relayHosts() []struct {
	begins, ends string
	name         Name
} {
	return []struct {
		begins, ends string
		name         Name
	}{
		{"email-smtp", ".amazonaws.com", SES}, // of a region; Amazon has many other hosts in that domain
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
	}
}

// OfRelay says whose relay a host is: smtp.sendgrid.net is SendGrid's. It goes by the name alone; false for a host of nobody in the table.
func OfRelay(host string) (Name, bool) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, r := range relayHosts() {
		if strings.HasSuffix(host, r.ends) && strings.HasPrefix(host, r.begins) {
			return r.name, true
		}
	}
	return "", false
}

var (
	replyHead  = regexp.MustCompile(`(?i)^\s*(?:2[0-9][0-9][ -])?(?:2\.[0-9]{1,3}\.[0-9]{1,3} )?ok:? +`)
	replyQueue = regexp.MustCompile(`(?i)^queued as +(\S+)`)
	replySES   = regexp.MustCompile(`^[0-9a-f]{16}-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}-[0-9]{6}$`)
	replyUUID  = regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	replyHex   = regexp.MustCompile(`\b[0-9a-f]{18,32}\b`)
)

// AnsweredID takes the provider's id of a message out of its reply to the end of the data, with or without the code in front; "" when there
// is none that its webhooks would name. Mailgun answers "Great success" and goes by the Message-ID; Postmark answers with the queue id of
// its front, which its webhooks know nothing of, and goes by what [Echo] attaches.
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

// Reference is the name under which a provider's id of a message is remembered and looked up: "ses:0102018c…". Angle brackets around the
// id don't count, and neither does the case of a UUID. Empty when there is no id.
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

// EchoField is the name under which our id of a message is attached to it for a provider to tell us back, as metadata of its events.
const EchoField = "postroom_id"

// Echo says which header makes a provider tell our id of the message with each event about it; the id must be of letters and digits. False
// for a provider that has no such header, or needs none. The provider takes the header off before the recipient sees it.
func Echo(n Name, id string) (header, value string, ok bool) {
	inJSON := func(outer string) string {
		raw, err := json.Marshal(map[string]map[string]string{outer: {EchoField: id}})
		if err != nil {
			return "" // not reachable: strings can be written
		}
		return string(raw)
	}
	switch n {
	case SES:
		return "X-SES-MESSAGE-TAGS", EchoField + "=" + id, true
	case SendGrid:
		return "X-SMTPAPI", inJSON("unique_args"), true
	case Mailgun:
		return "X-Mailgun-Variables", `{"` + EchoField + `": "` + id + `"}`, true
	case Postmark:
		return "X-PM-Metadata-" + EchoField, id, true
	case Mailjet:
		return "X-MJ-CustomID", id, true
	case SparkPost:
		return "X-MSYS-API", inJSON("metadata"), true
	case Brevo:
		return "X-Mailin-custom", `{"` + EchoField + `": "` + id + `"}`, true
	}
	return "", "", false
}

// Echoed is our id of the message as the provider told it back, wherever it puts what was attached; "" when it didn't. Whether it is an id
// at all is for the caller to check: who may sign an event may write anything there.
func (e *Event) Echoed() string {
	if id := e.Metadata[EchoField]; id != "" {
		return id
	}
	if e.Provider == Mailjet {
		return e.Metadata["CustomID"]
	}
	return ""
}
