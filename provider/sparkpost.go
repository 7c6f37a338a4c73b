package provider

import "errors"

var sparkpostNames = map[string]outcome{
	"injection":            accepted,
	"delivery":             delivered,
	"delay":                deferred,
	"bounce":               softBounce,
	"out_of_band":          softBounce,
	"policy_rejection":     dropped(ReasonOther),
	"generation_rejection": dropped(ReasonOther),
	"generation_failure":   dropped(ReasonOther),
	"spam_complaint":       complained,
	"list_unsubscribe":     unsubscribed,
	"link_unsubscribe":     unsubscribed,
	"open":                 opened,
	"initial_open":         opened,
	"amp_open":             opened,
	"amp_initial_open":     opened,
	"click":                clicked,
	"amp_click":            clicked,
	"sms_status":           ignored("sms"),
}

// sparkpostClasses are the bounce classes that differ from a soft bounce. A block says nothing about the
// address, and some classes are no bounces at all.
var sparkpostClasses = map[int]outcome{
	10:  badAddress, // no such recipient
	30:  hardBounce, // no RCPT
	24:  {kind: Bounced, bounce: Soft, reason: ReasonTimedOut},
	25:  dropped(ReasonBlocked), // 25 and 26 are SparkPost's own rules: it did not send
	26:  dropped(ReasonBlocked),
	50:  refused,
	51:  refused,
	52:  refused,
	53:  refused,
	54:  refused,
	60:  ignored("autoresponded"),
	100: ignored("autoresponded"),
	80:  ignored("resubscribed"),
	90:  unsubscribed,
}

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
	m, e := sparkpostNames[word], sparkpostEvent(o)
	switch m.kind {
	case Bounced:
		if class, ok := sparkpostClasses[code(o["bounce_class"])]; ok {
			m = class
		}
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
