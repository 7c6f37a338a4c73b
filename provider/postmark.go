package provider

import "strings"

func readPostmark(r *reading, q Request) error { return r.each(q.Body, postmarkFact) }

func postmarkFact(o object) (fact, error) {
	told := o.text("RecordType")
	e := postmarkEvent(o)
	switch told {
	case "Delivery":
		e.Kind = Delivered
	case "Bounce":
		return postmarkBounce(o, e)
	case "SpamComplaint":
		e.Kind, e.Reason = Complained, ReasonSpam
	case "Open":
		e.Kind = Opened
	case "Click":
		e.Kind, e.URL = Clicked, o.text("OriginalLink")
	case "SubscriptionChange":
		return postmarkSubscription(told, o, e)
	case "Inbound":
		return ignore("inbound", told)
	default:
		return unknown(told)
	}
	return events(told, e)
}

// postmarkEvent fills in what all records have. Each sort of record has names of its own for the recipient and the time. Only bounces and
// complaints have an id.
func postmarkEvent(o object) Event {
	e := Event{
		EventID:           o.text("ID"),
		ProviderMessageID: o.text("MessageID"),
		Recipient:         o.firstText("Recipient", "Email"),
		Time:              firstTime(o["DeliveredAt"], o["BouncedAt"], o["ReceivedAt"], o["ChangedAt"]),
		Diagnostic:        o.firstText("Details", "Description"),
		UserAgent:         o.text("UserAgent"),
		IP:                o.object("Geo").text("IP"),
		Tags:              o.texts("Tag"),
		Metadata:          metadata(o.object("Metadata")),
	}
	if e.EventID == "0" {
		e.EventID = ""
	}
	if e.EventID != "" { // a bounce and a complaint are numbered alike
		e.Key = e.EventID + "@" + o.text("RecordType")
	}
	if strings.Trim(e.ProviderMessageID, "0-") == "" { // a change that somebody made by hand is about no message
		e.ProviderMessageID = ""
	}
	return e
}

// postmarkBounce tells apart what Postmark all calls bounces, by their Type; some of them aren't any.
func postmarkBounce(o object, e Event) (fact, error) {
	told := o.text("Type")
	e.Kind, e.Reason = Bounced, ReasonBounced
	switch told {
	case "HardBounce":
		e.Bounce = Hard
	case "BadEmailAddress":
		e.Bounce, e.Reason = Hard, ReasonInvalid
	case "SoftBounce", "Unknown":
		e.Bounce = Soft
	case "Transient", "DnsError":
		e.Kind, e.Reason = Deferred, ""
	case "SpamNotification", "Blocked", "VirusNotification", "DMARCPolicy":
		e.Bounce, e.Reason = Soft, ReasonBlocked
	case "SpamComplaint":
		e.Kind, e.Reason = Complained, ReasonSpam
	case "Unsubscribe":
		e.Kind, e.Reason = Unsubscribed, ReasonUnsubscribed
	case "ManuallyDeactivated", "Unconfirmed", "TemplateRenderingFailed", "SMTPApiError":
		e.Kind, e.Reason = Dropped, ReasonOther
	case "AutoResponder", "ChallengeVerification":
		return ignore("autoresponded", told)
	case "Subscribe":
		return ignore("resubscribed", told)
	case "AddressChange":
		return ignore("address_change", told)
	case "InboundError", "OpenRelayTest":
		return ignore("inbound", told)
	default:
		return unknown(told)
	}
	return events(told, e)
}

// postmarkSubscription reads a change of Postmark's suppression list. A change after a bounce or a complaint tells that fact once more.
func postmarkSubscription(told string, o object, e Event) (fact, error) {
	if !o.is("SuppressSending") {
		return ignore("resubscribed", told)
	}
	switch o.text("SuppressionReason") {
	case "HardBounce":
		e.Kind, e.Bounce, e.Reason = Bounced, Hard, ReasonBounced
	case "SpamComplaint":
		e.Kind, e.Reason = Complained, ReasonSpam
	default:
		e.Kind, e.Reason = Unsubscribed, ReasonUnsubscribed
	}
	return events(told, e)
}
