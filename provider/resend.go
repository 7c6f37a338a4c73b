package provider

import "strings"

func readResend(r *reading, q Request) error {
	return r.each(q.Body, func(o object) (fact, error) { return resendFact(o, r.headerID(q)) })
}

func resendFact(o object, id string) (fact, error) {
	told := o.text("type")
	data := o.object("data")
	e := resendEvent(o, data, id)
	everyone := false
	switch told {
	case "email.sent":
		e.Kind, everyone = Accepted, true
	case "email.delivered":
		e.Kind = Delivered
	case "email.delivery_delayed":
		e.Kind = Deferred
	case "email.bounced":
		e.resendBounce(data.object("bounce"))
	case "email.complained":
		e.Kind, e.Reason = Complained, ReasonSpam
	case "email.failed":
		e.Kind, e.Reason, e.Diagnostic, everyone = Dropped, ReasonOther, data.object("failed").text("reason"), true
	case "email.suppressed": // after a bounce or a complaint; it doesn't say which
		e.Kind, e.Reason, e.Diagnostic = Dropped, ReasonOther, data.object("suppressed").firstText("message", "type")
	case "email.opened":
		e.Kind = Opened
		e.resendHit(data.object("open"))
	case "email.clicked":
		e.Kind, e.URL = Clicked, data.object("click").text("link")
		e.resendHit(data.object("click"))
	case "email.scheduled":
		return ignore("scheduled", told)
	case "email.received":
		return ignore("inbound", told)
	default:
		if strings.HasPrefix(told, "contact.") || strings.HasPrefix(told, "domain.") {
			return ignore("account", told)
		}
		return unknown(told)
	}
	recipients := append(data.texts("to"), append(data.texts("cc"), data.texts("bcc")...)...)
	if everyone {
		return forAll(told, e, recipients)
	}
	e.of(recipients)
	return events(told, e)
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

// resendBounce reads a bounce. Resend sends email.bounced for those that are permanent, and says so in type only since 2025; a temporary
// one has another type.
func (e *Event) resendBounce(b object) {
	e.Kind, e.Bounce, e.Reason, e.Diagnostic = Bounced, Hard, ReasonBounced, b.text("message")
	for _, line := range b.texts("diagnosticCode") {
		e.Diagnostic = line
		break
	}
	switch b.text("type") {
	case "Transient", "Temporary", "Undetermined":
		e.Bounce = Soft
	}
	switch b.text("subType") {
	case "Suppressed", "OnAccountSuppressionList":
		e.Kind, e.Bounce = Dropped, ""
	case "ContentRejected", "AttachmentRejected":
		e.Reason = ReasonBlocked
	}
}

func (e *Event) resendHit(hit object) {
	e.UserAgent, e.IP = hit.text("userAgent"), hit.text("ipAddress")
	if at := when(hit["timestamp"]); !at.IsZero() {
		e.Time = at
	}
}
