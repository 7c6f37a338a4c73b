package provider

import (
	"errors"
	"fmt"
	"strconv"
)

// readGeneric reads the JSON that docs/provider-webhooks.md describes: an event, a list of them, or the
// envelope of Standard Webhooks with an event in data.
func readGeneric(r *reading, q Request) error {
	return r.each(q.Body, func(o object) (fact, error) {
		data, ok := o["data"].(object)
		if !ok {
			return genericFact(o)
		}
		inner := object{"type": o["type"], "time": o["timestamp"], "id": r.headerID(q)}
		for name, v := range data {
			inner[name] = v
		}
		return genericFact(inner)
	})
}

func genericFact(o object) (fact, error) {
	word := o.text("type")
	e := Event{
		Kind:              Kind(word),
		EventID:           o.text("id"),
		ProviderMessageID: o.text("providerMessageId"),
		MessageID:         o.text("messageId"),
		Recipient:         o.text("recipient"),
		Time:              when(o["time"]),
		Diagnostic:        o.text("diagnostic"),
		SMTPCode:          code(o["smtpCode"]),
		Enhanced:          o.text("enhanced"),
		URL:               o.text("url"),
		UserAgent:         o.text("userAgent"),
		IP:                o.text("ip"),
		Bot:               o.is("machine"),
		Tags:              o.texts("tags"),
		Metadata:          metadata(o.object("metadata")),
	}
	switch e.Kind {
	case Accepted, Delivered, Deferred, Opened, Clicked, Complained, Unsubscribed:
	case Dropped:
		e.Reason = genericReason(o.text("reason"))
	case Bounced:
		e.Bounce, e.Reason = Bounce(o.text("bounce")), genericReason(o.text("reason"))
		if e.Bounce != Hard && e.Bounce != Soft {
			return fact{}, fmt.Errorf("is a bounce that is neither hard nor soft: %s",
				strconv.Quote(clean(string(e.Bounce), 64)))
		}
	default:
		return unknown(word, e)
	}
	if e.Recipient == "" {
		return fact{}, errors.New("names no recipient")
	}
	return events(word, e)
}

func genericReason(s string) Reason {
	switch r := Reason(s); r {
	case ReasonInvalid, ReasonBounced, ReasonTimedOut, ReasonBlocked, ReasonSpam, ReasonUnsubscribed, "":
		return r
	}
	return ReasonOther
}
