package provider

import "strings"

func readBrevo(r *reading, q Request) error { return r.each(q.Body, brevoFact) }

func brevoFact(o object) (fact, error) {
	told := o.text("event")
	e := brevoEvent(o)
	switch told {
	case "request", "sent":
		e.Kind = Accepted
	case "delivered":
		e.Kind = Delivered
	case "deferred":
		e.Kind = Deferred
	case "hard_bounce":
		e.Kind, e.Bounce, e.Reason = Bounced, Hard, ReasonBounced
	case "soft_bounce":
		e.Kind, e.Bounce, e.Reason = Bounced, Soft, ReasonBounced
	case "invalid_email", "invalid":
		e.Kind, e.Bounce, e.Reason = Bounced, Hard, ReasonInvalid
	case "blocked":
		e.Kind, e.Reason = Dropped, ReasonBlocked
	case "error":
		e.Kind, e.Reason = Dropped, ReasonOther
	case "spam", "complaint":
		e.Kind, e.Reason = Complained, ReasonSpam
	case "unsubscribed", "unsubscribe":
		e.Kind, e.Reason = Unsubscribed, ReasonUnsubscribed
	case "opened", "unique_opened":
		e.Kind = Opened
	case "proxy_open", "unique_proxy_open":
		e.Kind, e.Machine = Opened, true
	case "click":
		e.Kind, e.URL = Clicked, o.text("link")
	case "list_addition", "contact_updated", "contact_deleted":
		return ignore("contact", told)
	case "inboundEmailProcessed":
		return ignore("inbound", told)
	default:
		return unknown(told)
	}
	return events(told, e)
}

// brevoEvent fills in what all events have. The field id is that of the webhook, and date is in the time zone of the account: neither is of
// use. The Message-ID is the one in the mail, whoever made it.
func brevoEvent(o object) Event {
	e := Event{
		ProviderMessageID: o.text("message-id"),
		MessageID:         o.text("message-id"),
		Recipient:         o.text("email"),
		Time:              firstTime(o["ts_epoch"], o["s_epoch"], o["ts_event"], o["ts"]),
		Diagnostic:        o.text("reason"),
		UserAgent:         o.text("user_agent"),
		IP:                o.text("ip"),
		Tags:              o.texts("tags"),
		Metadata:          attached("X-Mailin-custom", strings.TrimSpace(o.text("X-Mailin-custom"))),
	}
	if len(e.Tags) == 0 { // tag is one tag, a list, or the JSON of a list
		for _, tag := range o.texts("tag") {
			e.Tags = append(e.Tags, tagList(tag)...)
		}
	}
	return e
}
