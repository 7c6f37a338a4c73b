package provider

import "errors"

// readSparkPost reads a list of {"msys": {class: event}}. One with nothing in msys is SparkPost asking whether anybody is there.
func readSparkPost(r *reading, q Request) error { return r.each(q.Body, sparkpostFact) }

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
	told := o.text("type")
	e := sparkpostEvent(o)
	switch told {
	case "injection":
		e.Kind = Accepted
	case "delivery":
		e.Kind = Delivered
	case "delay":
		e.Kind = Deferred
	case "bounce", "out_of_band":
		return sparkpostBounce(told, o, e)
	case "policy_rejection", "generation_rejection", "generation_failure":
		e.Kind, e.Reason = Dropped, ReasonOther
	case "spam_complaint":
		e.Kind, e.Reason, e.Diagnostic = Complained, ReasonSpam, o.firstText("fbtype", "raw_reason")
	case "list_unsubscribe", "link_unsubscribe":
		e.Kind, e.Reason, e.URL = Unsubscribed, ReasonUnsubscribed, ""
	case "open", "initial_open", "amp_open", "amp_initial_open":
		e.Kind, e.URL, e.Machine = Opened, "", o.is("is_prefetched")
	case "click", "amp_click":
		e.Kind = Clicked
	case "sms_status":
		return ignore("sms", told)
	default:
		return unknown(told)
	}
	return events(told, e)
}

// sparkpostEvent fills in what all events have. raw_rcpt_to is the recipient before SparkPost made it lower case. transmission_id is what
// its API answers to a submission, message_id what its SMTP does.
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

// sparkpostBounce goes by SparkPost's classes. Blocks say nothing about the address, and some classes are no bounces at all.
func sparkpostBounce(told string, o object, e Event) (fact, error) {
	e.Kind, e.Bounce, e.Reason = Bounced, Soft, ReasonBounced
	switch class := code(o["bounce_class"]); class {
	case 10: // no such recipient
		e.Bounce, e.Reason = Hard, ReasonInvalid
	case 30: // no RCPT
		e.Bounce = Hard
	case 24:
		e.Reason = ReasonTimedOut
	case 25, 26: // SparkPost's own rules: it didn't send
		e.Kind, e.Bounce, e.Reason = Dropped, "", ReasonBlocked
	case 50, 51, 52, 53, 54:
		e.Reason = ReasonBlocked
	case 60, 100:
		return ignore("autoresponded", told)
	case 80:
		return ignore("resubscribed", told)
	case 90:
		e.Kind, e.Bounce, e.Reason = Unsubscribed, "", ReasonUnsubscribed
	}
	return events(told, e)
}
