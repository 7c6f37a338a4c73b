package provider

import "strings"

func readResend(r *reading, q Request) error {
	return r.each(q.Body, func(o object) (fact, error) { return resendFact(o, r.headerID(q)) })
}

func resendFact(o object, id string) (fact, error) {
	word, data := o.text("type"), o.object("data")
	m, e := Resend.means(word), resendEvent(o, data, id)
	switch word {
	case "email.bounced":
		m = resendBounce(&e, data.object("bounce"))
	case "email.failed":
		e.Diagnostic = data.object("failed").text("reason")
	case "email.suppressed":
		e.Diagnostic = data.object("suppressed").firstText("message", "type")
	case "email.opened":
		e.resendHit(data.object("open"))
	case "email.clicked":
		e.resendHit(data.object("click"))
	}
	if strings.HasPrefix(word, "contact.") || strings.HasPrefix(word, "domain.") {
		m = ignored("account")
	}
	recipients := append(data.texts("to"), append(data.texts("cc"), data.texts("bcc")...)...)
	if word == "email.sent" || word == "email.failed" { // these are about every recipient
		return m.fact(word, e, recipients...)
	}
	e.of(recipients)
	return m.fact(word, e)
}

func resendEvent(o, data object, id string) Event {
	e := Event{
		EventID:           id,
		ProviderMessageID: data.text("email_id"),
		MessageID:         data.text("message_id"),
		Time:              when(o["created_at"]),
	}
	headers := data.objects("headers")
	e.headerTags(headers)
	for _, h := range headers {
		if e.MessageID == "" && strings.EqualFold(h.text("name"), "Message-ID") {
			e.MessageID = h.text("value")
		}
	}
	e.attach(metadata(data.object("tags")))
	for _, tag := range data.objects("tags") { // the form in which they are submitted
		e.attach(map[string]string{tag.text("name"): tag.text("value")})
	}
	return e
}

// resendBounce reads a bounce. Resend sends email.bounced for permanent ones, and only since 2025 says so in
// type; a temporary one has another type.
func resendBounce(e *Event, b object) outcome {
	e.Diagnostic = b.text("message")
	if lines := b.texts("diagnosticCode"); len(lines) > 0 {
		e.Diagnostic = lines[0]
	}
	m := Resend.means("email.bounced")
	switch b.text("type") {
	case "Transient", "Temporary", "Undetermined":
		m.bounce = Soft
	}
	switch b.text("subType") {
	case "Suppressed", "OnAccountSuppressionList":
		m = dropped(ReasonBounced)
	case "ContentRejected", "AttachmentRejected":
		m.reason = ReasonBlocked
	}
	return m
}

func (e *Event) resendHit(hit object) {
	e.URL, e.UserAgent, e.IP = hit.text("link"), hit.text("userAgent"), hit.text("ipAddress")
	if at := when(hit["timestamp"]); !at.IsZero() {
		e.Time = at
	}
}
