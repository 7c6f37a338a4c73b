package provider

func mailjetFact(o object) (fact, error) {
	word, mistake := o.text("event"), o.text("error")
	m := Mailjet.means(word)
	if m.kind == Bounced || m.kind == Dropped {
		m.reason = Mailjet.means("error:" + mistake).reason
		if m.reason == "" && mistake != "" {
			m.reason = ReasonOther
		}
	}
	switch {
	case m.kind == Bounced && o.is("hard_bounce"):
		m.bounce = Hard
	case m.kind == Bounced && mistake == "greylisted":
		m.kind, m.bounce = Deferred, ""
	}
	return m.fact(word, mailjetEvent(o))
}

func mailjetEvent(o object) Event {
	e := Event{
		ProviderMessageID: o.firstText("MessageID", "mj_message_id"),
		ProviderAlias:     o.text("Message_GUID"),
		Recipient:         o.text("email"),
		Time:              when(o["time"]),
		Diagnostic:        o.firstText("smtp_reply", "comment", "error"),
		URL:               o.text("url"),
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
