package bounce

import (
	netmail "net/mail"
	"regexp"
	"strings"

	"github.com/postroom/postroom/internal/message"
)

// readFeedback reads a feedback report (RFC 5965), and reports of old feedback loops that have only the
// message.
func (m *mail) readFeedback() (Report, bool) {
	switch {
	case m.feedback != nil:
		return m.readARF(), true
	case m.isJMRP():
		return m.complaint("jmrp", Feedback{Type: "abuse"}), true
	}
	if f, ok := findForm("optout", "body", m.notice.flat); ok {
		r := m.complaint(f.name, Feedback{Type: "opt-out"})
		r.Recipients = named(addresses(m.header.get("from"), 1))
		return r, true
	}
	return Report{}, false
}

var feedbackType = regexp.MustCompile(`^[a-z-]{1,40}$`)

func (m *mail) readARF() Report {
	var (
		f    Feedback
		r    Report
		rcpt []string
	)
	h, _ := splitHeader(m.feedback.content())
	for _, field := range h {
		switch value := message.OneLine(field.value, 500); field.name {
		case "feedback-type":
			f.Type = strings.ToLower(value)
		case "user-agent":
			f.UserAgent = value
		case "source-ip":
			f.SourceIP = strings.Trim(value, "[]")
		case "original-mail-from":
			f.MailFrom = strings.Trim(value, "<> ")
		case "original-rcpt-to", "removal-recipient", "original-recipient":
			rcpt = append(rcpt, addresses(value, m.options.MaxRecipients)...)
		case "arrival-date", "received-date":
			f.ArrivalDate, _ = netmail.ParseDate(value)
		case "reporting-mta":
			r.ReportingMTA = typed(value)
		case "original-envelope-id":
			r.Original.EnvelopeID = message.OneLine(value, 100)
		case "reported-domain":
			f.ReportedFor = append(f.ReportedFor, value)
		case "reported-uri":
			if len(f.ReportedURIs) < 20 {
				f.ReportedURIs = append(f.ReportedURIs, value)
			}
		}
	}
	if !feedbackType.MatchString(f.Type) {
		f.Type = "other" // RFC 5965 section 7.3
	}
	out := m.complaint("arf", f)
	out.ReportingMTA, out.Original = r.ReportingMTA, r.Original
	if len(rcpt) > 0 {
		out.Recipients = named(limit(rcpt, m.options.MaxRecipients))
	}
	return out
}

// complaint returns a report with the returned message's recipients: often the provider hides only the
// recipient who complained.
func (m *mail) complaint(form string, f Feedback) Report {
	h := m.returnedHeader()
	if h == nil {
		h = m.header
	}
	var rcpt []string
	for _, name := range []string{"x-hmxmroriginalrecipient", "x-envelope-to", "to"} {
		if rcpt = addresses(h.get(name), m.options.MaxRecipients); len(rcpt) > 0 {
			break
		}
	}
	return Report{Kind: Complained, Form: form, Feedback: &f, Recipients: named(rcpt)}
}

// isJMRP reports whether the mail is from Microsoft's Junk Mail Reporting Program: the message as an
// attachment, and the recipient in a separate field.
func (m *mail) isJMRP() bool {
	if m.header.get("x-hmxmroriginalrecipient") != "" {
		return true // without a report around the message
	}
	if m.returned == nil {
		return false
	}
	h, _ := splitHeader(m.returned.content())
	return h.get("x-hmxmroriginalrecipient") != "" ||
		strings.HasPrefix(m.subject(), "complaint about message from")
}

func named(found []string) []Recipient {
	var out []Recipient
	for _, a := range found {
		out = append(out, Recipient{Address: a})
	}
	return out
}

// limit drops duplicates, and items beyond max.
func limit(found []string, max int) []string {
	return addresses(strings.Join(found, ", "), max)
}
