package bounce

import (
	"encoding/json"
	"strings"

	"github.com/postroom/postroom/internal/message"
)

// sesNotice is a notice of Amazon SES that SNS sends by mail, in either of its dialects.
type sesNotice struct {
	NotificationType string `json:"notificationType"`
	EventType        string `json:"eventType"`
	Message          string `json:"Message"` // the notice itself, if the envelope of SNS is in the mail too
	Mail             struct {
		CommonHeaders struct {
			MessageID string `json:"messageId"`
		} `json:"commonHeaders"`
	} `json:"mail"`
	Bounce struct {
		ReportingMTA      string `json:"reportingMTA"`
		BouncedRecipients []struct {
			EmailAddress   string `json:"emailAddress"`
			Status         string `json:"status"`
			DiagnosticCode string `json:"diagnosticCode"`
		} `json:"bouncedRecipients"`
	} `json:"bounce"`
	Delivery struct {
		Recipients   []string `json:"recipients"`
		SMTPResponse string   `json:"smtpResponse"`
		ReportingMTA string   `json:"reportingMTA"`
	} `json:"delivery"`
	Complaint struct {
		UserAgent             string `json:"userAgent"`
		ComplaintFeedbackType string `json:"complaintFeedbackType"`
		ComplainedRecipients  []struct {
			EmailAddress string `json:"emailAddress"`
		} `json:"complainedRecipients"`
	} `json:"complaint"`
}

// readSES reads the notices that SNS sends by mail: JSON, and below it how to unsubscribe.
func (m *mail) readSES() (Report, bool) {
	for _, p := range m.texts {
		text := p.text()
		at := strings.IndexByte(text, '{') // gateways put warnings before it
		if at < 0 || !strings.Contains(text, "notificationType") && !strings.Contains(text, "eventType") {
			continue
		}
		var n sesNotice
		if !decodeNotice(text[at:], &n) || n.Message != "" && !decodeNotice(n.Message, &n) {
			continue
		}
		if r, ok := m.concludeSES(n); ok {
			return r, true
		}
	}
	return Report{}, false
}

// decodeNotice decodes JSON, even if a mail program folded its one long line.
func decodeNotice(text string, n *sesNotice) bool {
	return json.NewDecoder(strings.NewReader(text)).Decode(n) == nil ||
		json.NewDecoder(strings.NewReader(strings.ReplaceAll(text, "\n", ""))).Decode(n) == nil
}

func (m *mail) concludeSES(n sesNotice) (Report, bool) {
	r := Report{Form: "ses"}
	r.Original.MessageID = messageID(n.Mail.CommonHeaders.MessageID)
	var facts []fact
	switch n.NotificationType + n.EventType {
	case "Bounce":
		r.ReportingMTA = typed(n.Bounce.ReportingMTA)
		for _, b := range n.Bounce.BouncedRecipients {
			facts = append(facts, fact{
				address: recipientAddress(b.EmailAddress), action: ActionFailed,
				status:     statusPattern.FindString(b.Status),
				diagnostic: typedText(b.DiagnosticCode),
			})
		}
	case "Delivery":
		r.ReportingMTA = typed(n.Delivery.ReportingMTA)
		for _, a := range n.Delivery.Recipients {
			facts = append(facts, fact{address: recipientAddress(a), action: ActionDelivered,
				diagnostic: n.Delivery.SMTPResponse})
		}
	case "Complaint":
		var rcpt []string
		for _, c := range n.Complaint.ComplainedRecipients {
			rcpt = append(rcpt, c.EmailAddress)
		}
		f := Feedback{Type: strings.ToLower(n.Complaint.ComplaintFeedbackType),
			UserAgent: message.OneLine(n.Complaint.UserAgent, 500)}
		if !feedbackType.MatchString(f.Type) {
			f.Type = "abuse"
		}
		r.Kind, r.Feedback, r.Recipients = Complained, &f, named(limit(rcpt, m.options.MaxRecipients))
		return r, true
	}
	if len(facts) == 0 {
		return Report{}, false
	}
	if len(facts) > m.options.MaxRecipients {
		facts, r.Truncated = facts[:m.options.MaxRecipients], true
	}
	return m.conclude(r, keepNamed(facts))
}
