package provider

// readMailjet reads one event, or a list of them when events are grouped (version 2 of the callback).
func readMailjet(r *reading, q Request) error { return r.each(q.Body, mailjetFact) }

func mailjetFact(o object) (fact, error) {
	told := o.text("event")
	e := mailjetEvent(o)
	switch told {
	case "sent":
		e.Kind = Delivered
	case "bounce":
		e.Kind, e.Bounce, e.Reason = Bounced, Soft, mailjetReason(o.text("error"))
		if o.is("hard_bounce") {
			e.Bounce = Hard
		} else if o.text("error") == "greylisted" {
			e.Kind, e.Bounce = Deferred, ""
		}
	case "blocked":
		e.Kind, e.Reason = Dropped, mailjetReason(o.text("error"))
	case "spam":
		e.Kind, e.Reason = Complained, ReasonSpam
	case "unsub":
		e.Kind, e.Reason = Unsubscribed, ReasonUnsubscribed
	case "open":
		e.Kind = Opened
	case "click":
		e.Kind, e.URL = Clicked, o.text("url")
	case "typofix":
		return ignore("typofix", told)
	default:
		return unknown(told)
	}
	return events(told, e)
}

func mailjetEvent(o object) Event {
	e := Event{
		ProviderMessageID: o.firstText("MessageID", "mj_message_id"),
		ProviderAlias:     o.text("Message_GUID"),
		Recipient:         o.text("email"),
		Time:              when(o["time"]),
		Diagnostic:        o.firstText("smtp_reply", "comment", "error"),
		UserAgent:         o.text("agent"),
		IP:                o.text("ip"),
		Tags:              o.texts("customcampaign"),
		Metadata:          attached("Payload", o.text("Payload")),
	}
	if id := o.text("CustomID"); id != "" {
		e.attach(map[string]string{"CustomID": id})
	}
	if e.ProviderMessageID == "0" {
		e.ProviderMessageID = ""
	}
	return e
}

// mailjetReason reads the errors that Mailjet documents.
func mailjetReason(s string) Reason {
	switch s {
	case "user unknown", "mailbox inactive", "quota exceeded", "no mail host", "relay/access denied":
		return ReasonBounced
	case "invalid domain", "typofix":
		return ReasonInvalid
	case "blacklisted", "sender blocked", "content blocked", "policy issue", "preblocked":
		return ReasonBlocked
	case "spam reporter":
		return ReasonSpam
	case "":
		return ""
	}
	return ReasonOther
}
