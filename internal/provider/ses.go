package provider

import (
	"errors"
	"strings"
)

// readSES reads the envelope of SNS and its event of SES. There are two dialects: eventType (of a
// configuration set) and notificationType (of the feedback settings of an identity).
func readSES(r *reading, q Request) error {
	envelope, err := parseObject(q.Body)
	if err != nil {
		return wrongBody("The body is not an SNS message")
	}
	switch envelope.text("Type") {
	case "Notification":
	case "SubscriptionConfirmation":
		r.batch.Confirm, err = confirmation(envelope)
		return err
	case "UnsubscribeConfirmation": // its SubscribeURL would subscribe again: an operator decides that
		r.batch.Ignored = []Ignored{{Name: "unsubscribe_confirmation", Word: "UnsubscribeConfirmation"}}
		return nil
	default:
		return wrongBody("The body is not an SNS message")
	}
	text := envelope.text("Message")
	if strings.HasPrefix(text, "Successfully validated SNS topic") { // SES sends this when the topic is chosen
		r.batch.Ignored = []Ignored{{Name: "topic_validated", Word: "Successfully validated SNS topic"}}
		return nil
	}
	o, err := parseObject([]byte(text))
	if err != nil {
		r.broken(err)
		return nil
	}
	return r.one(o, func(o object) (fact, error) { return sesFact(o, envelope) })
}

func sesFact(o, envelope object) (fact, error) {
	word := o.firstText("eventType", "notificationType")
	switch word {
	case "Send":
		return forAll(word, sesEvent(o, envelope, "send", Accepted), o.object("mail").texts("destination"))
	case "Delivery":
		e := sesEvent(o, envelope, "delivery", Delivered)
		e.Diagnostic = o.object("delivery").text("smtpResponse")
		return forAll(word, e, o.object("delivery").texts("recipients"))
	case "DeliveryDelay":
		return sesEach(word, sesEvent(o, envelope, "deliveryDelay", Deferred),
			o.object("deliveryDelay").objects("delayedRecipients"))
	case "Bounce":
		return sesBounce(word, o, envelope)
	case "Complaint":
		return sesComplaint(word, o, envelope)
	case "Reject", "Rendering Failure":
		e := sesEvent(o, envelope, "reject", Dropped)
		e.Reason = ReasonOther
		e.Diagnostic = o.object("reject").text("reason")
		if word == "Rendering Failure" {
			e.Diagnostic = o.object("failure").text("errorMessage")
		}
		return forAll(word, e, o.object("mail").texts("destination"))
	case "Open", "Click":
		return events(word, sesHit(word, o, envelope))
	case "Subscription":
		return sesSubscription(word, o, envelope)
	case "Received":
		return ignore("received", word)
	}
	return unknown(word, sesEvent(o, envelope, "", Other))
}

// sesEvent reads the fields of all events. The time is the event section's, or else the envelope's.
func sesEvent(o, envelope object, section string, kind Kind) Event {
	m := o.object("mail")
	e := Event{
		Kind:              kind,
		EventID:           envelope.text("MessageId"),
		ProviderMessageID: m.text("messageId"),
		MessageID:         m.object("commonHeaders").text("messageId"),
		Time:              firstTime(o.object(section)["timestamp"], envelope["Timestamp"]),
	}
	headers := m.objects("headers")
	if e.MessageID == "" {
		for _, h := range headers {
			if strings.EqualFold(h.text("name"), "Message-ID") {
				e.MessageID = h.text("value")
			}
		}
	}
	e.headerTags(headers)
	for name, v := range m.object("tags") {
		if !strings.HasPrefix(name, "ses:") { // those are SES's own
			e.attach(map[string]string{name: strings.Join(object{"": v}.texts(""), ",")})
		}
	}
	return e
}

// sesEach makes an event for each recipient of a section. It never falls back to the recipients of the mail:
// a bounce of one must not count against the others.
func sesEach(word string, e Event, recipients []object) (fact, error) {
	if len(recipients) == 0 {
		return fact{}, errors.New("names no recipient")
	}
	var all []Event
	for _, r := range recipients {
		one := e
		one.Recipient = r.text("emailAddress")
		one.Enhanced = r.text("status")
		if diagnostic := r.text("diagnosticCode"); diagnostic != "" {
			one.Diagnostic = diagnostic
		}
		all = append(all, one)
	}
	return events(word, all...)
}

func sesBounce(word string, o, envelope object) (fact, error) {
	b := o.object("bounce")
	e := sesEvent(o, envelope, "bounce", Bounced)
	e.Bounce, e.Reason = Soft, ReasonBounced
	e.Diagnostic = strings.Trim(b.text("bounceType")+": "+b.text("bounceSubType"), ": ")
	switch b.text("bounceSubType") {
	case "Suppressed", "OnAccountSuppressionList":
		e.Kind, e.Bounce = Dropped, "" // SES didn't try
	case "ContentRejected", "AttachmentRejected":
		e.Reason = ReasonBlocked
	}
	if b.text("bounceType") == "Permanent" && e.Kind == Bounced {
		e.Bounce = Hard
	}
	return sesEach(word, e, b.objects("bouncedRecipients"))
}

func sesComplaint(word string, o, envelope object) (fact, error) {
	c := o.object("complaint")
	feedback := c.text("complaintFeedbackType")
	if feedback == "not-spam" { // RFC 6430: the recipient took it out of the spam folder
		return ignore("not_spam", feedback, sesEvent(o, envelope, "complaint", Other))
	}
	e := sesEvent(o, envelope, "complaint", Complained)
	e.Reason, e.Diagnostic, e.UserAgent = ReasonSpam, feedback, c.text("userAgent")
	if c.text("complaintSubType") == "OnAccountSuppressionList" {
		e.Kind = Dropped
	}
	return sesEach(word, e, c.objects("complainedRecipients"))
}

// sesHit reads an open or a click. SES counts by message, so of several recipients the visitor is unknown.
func sesHit(word string, o, envelope object) Event {
	section, kind := "open", Opened
	if word == "Click" {
		section, kind = "click", Clicked
	}
	e := sesEvent(o, envelope, section, kind)
	e.of(o.object("mail").texts("destination"))
	s := o.object(section)
	e.URL, e.UserAgent, e.IP = s.text("link"), s.text("userAgent"), s.text("ipAddress")
	return e
}

// sesSubscription reads a change of preferences in a contact list: a contact left all topics, or one of them.
func sesSubscription(word string, o, envelope object) (fact, error) {
	s := o.object("subscription")
	before := map[string]string{}
	for _, t := range s.object("oldTopicPreferences").objects("topicSubscriptionStatus") {
		before[t.text("topicName")] = t.text("subscriptionStatus")
	}
	left := s.object("newTopicPreferences").is("unsubscribeAll")
	for _, t := range s.object("newTopicPreferences").objects("topicSubscriptionStatus") {
		left = left || strings.EqualFold(t.text("subscriptionStatus"), "OptOut") &&
			!strings.EqualFold(before[t.text("topicName")], "OptOut")
	}
	if !left {
		return ignore("resubscribed", word, sesEvent(o, envelope, "subscription", Other))
	}
	e := sesEvent(o, envelope, "subscription", Unsubscribed)
	e.Reason = ReasonUnsubscribed
	e.of(o.object("mail").texts("destination"))
	return events(word, e)
}
