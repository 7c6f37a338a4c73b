package provider

import "strings"

func brevoFact(o object) (fact, error) {
	word := o.text("event")
	return Brevo.means(word).fact(word, brevoEvent(o))
}

// brevoEvent reads the fields of all events. It skips id, which is the webhook's, and date, which is in the
// account's time zone. The Message-ID is the mail's, even if Brevo made it.
func brevoEvent(o object) Event {
	e := Event{
		ProviderMessageID: o.text("message-id"),
		MessageID:         o.text("message-id"),
		Recipient:         o.text("email"),
		Time:              firstTime(o["ts_epoch"], o["s_epoch"], o["ts_event"], o["ts"]),
		Diagnostic:        o.text("reason"),
		URL:               o.text("link"),
		UserAgent:         o.text("user_agent"),
		IP:                o.text("ip"),
		Bot:               strings.HasSuffix(o.text("event"), "proxy_open"),
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
