package provider

import "errors"

// sparkpostFact reads {"msys": {class: event}}. An empty msys is SparkPost's test of the address.
func sparkpostFact(o object) (fact, error) {
	msys, ok := o["msys"].(object)
	if !ok {
		return fact{}, errors.New("has no msys")
	}
	if len(msys) == 0 {
		return ignore("ping", "ping")
	}
	if len(msys) != 1 {
		return fact{}, errors.New("has several events in msys")
	}
	for class, v := range msys {
		event, ok := v.(object)
		if !ok {
			return fact{}, errors.New("has no event in msys")
		}
		switch class {
		case "relay_event", "ab_test_event", "ingest_event", "subaccount_event":
			return ignore(class, event.text("type"))
		}
		return sparkpostEventFact(event)
	}
	return fact{}, nil // not reachable: msys has one member
}

func sparkpostEventFact(o object) (fact, error) {
	word := o.text("type")
	m, e := SparkPost.means(word), sparkpostEvent(o)
	switch m.kind {
	case Bounced:
		m = SparkPost.means("class:"+o.text("bounce_class"), word)
	case Complained:
		e.Diagnostic = o.firstText("fbtype", "raw_reason")
	case Opened:
		e.Bot = o.is("is_prefetched")
	}
	return m.fact(word, e)
}

// sparkpostEvent reads the fields of all events. raw_rcpt_to is the recipient before SparkPost made it lower
// case. SparkPost answers a submission with transmission_id over its API and with message_id over SMTP.
func sparkpostEvent(o object) Event {
	e := Event{
		EventID:           o.text("event_id"),
		ProviderMessageID: o.firstText("transmission_id", "message_id"),
		ProviderAlias:     o.text("message_id"),
		Recipient:         o.firstText("raw_rcpt_to", "rcpt_to"),
		Time:              firstTime(o["timestamp"], o["event_time"]),
		Diagnostic:        o.firstText("raw_reason", "reason"),
		SMTPCode:          code(o["error_code"]),
		URL:               o.text("target_link_url"),
		UserAgent:         o.text("user_agent"),
		IP:                o.text("ip_address"),
		Tags:              append(o.texts("campaign_id"), o.texts("rcpt_tags")...),
		Metadata:          metadata(o.object("rcpt_meta")),
	}
	if e.ProviderMessageID == "0" {
		e.ProviderMessageID, e.ProviderAlias = e.ProviderAlias, ""
	}
	return e
}
