package provider

import "strings"

func postmarkFact(o object) (fact, error) {
	word := o.text("RecordType")
	m := Postmark.means(word)
	switch word {
	case "Bounce":
		word = o.text("Type")
		m = Postmark.means("bounce:" + word)
	case "SubscriptionChange":
		m = postmarkSubscription(o)
	}
	return m.fact(word, postmarkEvent(o))
}

// postmarkEvent reads the fields of all records. Each type of record has its own names for the recipient and
// the time. Only bounces and complaints have an id.
func postmarkEvent(o object) Event {
	e := Event{
		EventID:           o.text("ID"),
		ProviderMessageID: o.text("MessageID"),
		Recipient:         o.firstText("Recipient", "Email"),
		Time:              firstTime(o["DeliveredAt"], o["BouncedAt"], o["ReceivedAt"], o["ChangedAt"]),
		Diagnostic:        o.firstText("Details", "Description"),
		URL:               o.text("OriginalLink"),
		UserAgent:         o.text("UserAgent"),
		IP:                o.object("Geo").text("IP"),
		Tags:              o.texts("Tag"),
		Metadata:          metadata(o.object("Metadata")),
	}
	if e.EventID == "0" {
		e.EventID = ""
	}
	if e.EventID != "" { // a bounce and a complaint may have the same number
		e.Key = e.EventID + "@" + o.text("RecordType")
	}
	if strings.Trim(e.ProviderMessageID, "0-") == "" { // a change made by hand has no message
		e.ProviderMessageID = ""
	}
	return e
}

// postmarkSubscription reads a change of Postmark's suppression list. A change after a bounce or a complaint
// repeats that fact.
func postmarkSubscription(o object) outcome {
	if !o.is("SuppressSending") {
		return ignored("resubscribed")
	}
	return Postmark.means("bounce:"+o.text("SuppressionReason"), "bounce:Unsubscribe")
}
