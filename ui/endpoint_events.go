package ui

import (
	"net/url"

	"github.com/postroom/postroom/api/event"
)

// eventGroup is a part of the events that an endpoint can receive, with the meaning of each.
type eventGroup struct {
	Legend string
	Events []describedEvent
}

// describedEvent is an event with what it means, in a few words.
type describedEvent struct {
	Type  event.Type
	Means string
}

var eventGroups = []eventGroup{
	{"Mail", []describedEvent{
		{event.MessageQueued, "Postroom accepted a message"},
		{event.MessageSent, "the relay accepted it"},
		{event.MessageDeliveryError, "an attempt failed; Postroom will retry"},
		{event.MessageFailed, "it failed permanently"},
		{event.MessageCancelled, "it was cancelled before it was sent"},
		{event.MessageSuppressed, "it wasn't sent because the recipient is suppressed"},
		{event.MessageReplayed, "a failed message was queued again"},
	}},
	{"Recipients", []describedEvent{
		{event.MessageDelivered, "the recipient's server accepted the message"},
		{event.MessageDeferred, "a server on the way is still trying"},
		{event.MessageBounce, "the message came back"},
		{event.MessageComplaint, "the recipient marked it as spam"},
		{event.TrackOpen, "the recipient opened it"},
		{event.TrackClick, "the recipient clicked a link"},
		{event.MessageReported, "a provider reported something else"},
		{event.ListUnsubscribe, "the recipient unsubscribed"},
		{event.ListSubscribe, "the recipient subscribed again"},
	}},
	{"Lists", []describedEvent{
		{event.SubscriberConfirmed, "a subscription was confirmed"},
		{event.SubscriberLeft, "a subscriber unsubscribed from a list"},
		{event.ImportFinished, "an import finished or was interrupted"},
	}},
	{"Campaigns", []describedEvent{
		{event.CampaignStarted, "sending started"},
		{event.CampaignPaused, "someone paused it"},
		{event.CampaignHeld, "Postroom stopped it; the reason says why"},
		{event.CampaignFinished, "it was sent, cancelled or failed"},
	}},
	{"Digests", []describedEvent{
		{event.DigestSent, "the relay accepted the email"},
		{event.DigestSkipped, "no email was needed; the reason says why"},
		{event.DigestFailed, "Postroom gave up; its events wait for the next digest"},
	}},
	{"System", []describedEvent{
		{event.AccountError, "a relay refused an account's login, certificate or sender"},
		{event.WebhookDisabled, "Postroom switched an endpoint off"},
		{event.WebhookTest, "someone requested a test"},
		{event.AlertRaised, "an operator must act"},
		{event.AlertResolved, "the problem is over"},
	}},
}

// failureEvents are the events of the preset "failures only".
var failureEvents = []event.Type{event.MessageFailed, event.MessageBounce, event.MessageComplaint,
	event.CampaignHeld, event.DigestFailed, event.AccountError, event.WebhookDisabled, event.AlertRaised,
	event.AlertResolved}

// preset ticks the events of the preset that the URL names.
func preset(in, form url.Values) {
	switch in.Get("preset") {
	case "all":
		form.Del("events")
	case "failures":
		form.Del("events")
		for _, t := range failureEvents {
			form.Add("events", string(t))
		}
	}
}
