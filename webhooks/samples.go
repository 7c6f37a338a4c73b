package webhooks

import (
	"encoding/json"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
)

// sampleID is the id of the message of samples. No message has it.
const sampleID = "00000000000000000000000000"

// sampleEvent returns an event of a type for a test, with data as a real one has. Its data says
// "test": true, so that a receiver does nothing for it. webhookTest names only the endpoint.
func sampleEvent(kind event.Type, t *target, now time.Time) (event.Event, error) {
	if kind == event.WebhookTest {
		return event.New(newID(), kind, endpointAccount(t.id), now, map[string]string{"endpoint": t.id})
	}
	account := "default"
	switch {
	case kind == event.AlertRaised || kind == event.AlertResolved:
		account = ""
	case endpointAccount(t.id) != "":
		account = endpointAccount(t.id)
	case len(t.accounts) > 0:
		account = t.accounts[0]
	}
	e, err := event.New(newID(), kind, account, now, sampleData(kind, now.UTC().Truncate(time.Millisecond)))
	if err != nil {
		return event.Event{}, err
	}
	e.Data = append(json.RawMessage(`{"test":true,`), e.Data[1:]...)
	return e, nil
}

// sampleData returns an example of the data of an event type.
func sampleData(kind event.Type, now time.Time) any {
	m := event.Message{QueueID: sampleID, MessageID: "<sample@example.com>", Lane: "transactional",
		Tags: []string{"sample"}, Metadata: json.RawMessage("{}"),
		Envelope: event.Envelope{From: "shop@example.com", To: []string{"ann@example.net"}}}
	refused := event.Failure{Error: "550 5.1.1 No such user", ErrorCode: "EENVELOPE",
		SMTPResponse: "550 5.1.1 No such user", SMTPResponseCode: new(550), SMTPCommand: "RCPT TO",
		Verdict: "hard"}
	switch kind {
	case event.MessageQueued:
		return event.Queued{Message: m, SendAt: now}
	case event.MessageSent:
		return event.Sent{Message: m, Response: "250 2.0.0 Ok: queued as 4XdR2s1Q", Accepted: m.Envelope.To}
	case event.MessageDeliveryError:
		return event.DeliveryError{Message: m, Failure: event.Failure{Error: "451 4.3.2 Try again later",
			ErrorCode: "EENVELOPE", SMTPResponse: "451 4.3.2 Try again later", SMTPResponseCode: new(451),
			SMTPCommand: "RCPT TO", Verdict: "soft"},
			Job: event.Job{ID: sampleID, AttemptsMade: 1, Attempts: 10, NextAttempt: new(now.Add(10 * time.Second))}}
	case event.MessageFailed:
		return event.Failed{Message: m, Failure: refused, Recipients: []event.Recipient{{Address: "ann@example.net",
			Status: "failed", Response: "550 5.1.1 No such user", Attempts: 1}},
			Job: event.Job{ID: sampleID, AttemptsMade: 1, Attempts: 10}, DeadLetter: sampleID}
	case event.MessageCancelled:
		return event.Cancelled{Message: m, Reason: "api"}
	case event.MessageSuppressed:
		return event.Cancelled{Message: m, Reason: "hard_bounce"}
	case event.MessageReplayed:
		return event.Replayed{Message: m, Attempt: 10}
	case event.AccountError:
		return event.Trouble{Failure: event.Failure{Error: "535 5.7.8 Authentication failed", ErrorCode: "EAUTH",
			SMTPResponse: "535 5.7.8 Authentication failed", SMTPResponseCode: new(535), SMTPCommand: "AUTH"},
			Since: now}
	case event.WebhookDisabled:
		return disabled{Endpoint: "sample", Host: "hooks.example.com", Reason: "it answered 410 Gone",
			FailingSince: &now}
	case event.AlertRaised, event.AlertResolved:
		a := event.Alert{Alert: "queueAge", Queue: "submit", Value: 301, Threshold: 300,
			Since: now.Add(-time.Minute),
			Text:  "The oldest of what is due in queue submit has waited for 5m1s."}
		if kind == event.AlertResolved {
			a.Resolved = &now
		}
		return a
	}
	return sampleOfOthers(kind, m)
}

// sampleOfOthers is sampleData for events that are neither a step of a message nor an error.
func sampleOfOthers(kind event.Type, m event.Message) any {
	switch kind {
	case event.CampaignStarted, event.CampaignPaused, event.CampaignHeld, event.CampaignFinished:
		state := map[event.Type]string{event.CampaignStarted: "sending", event.CampaignPaused: "paused",
			event.CampaignHeld: "held", event.CampaignFinished: "sent"}[kind]
		c := event.CampaignChange{Campaign: "sample", Name: "Spring", Run: 1, State: state,
			States: json.RawMessage(`{"sent":1}`)}
		if kind == event.CampaignHeld {
			c.Reason = "too many hard bounces"
		}
		return c
	case event.SubscriberConfirmed, event.SubscriberLeft:
		return event.SubscriptionChange{Subscriber: "sample", Email: "ann@example.net", ListID: "news",
			Reason: "form"}
	case event.ImportFinished:
		return api.SubscriberImport{ID: "sample", State: "done", Lines: 2, Added: 2, Skipped: map[string]int{}}
	case event.DigestSent, event.DigestSkipped, event.DigestFailed:
		d := event.Digest{Run: "sample", Recipient: "reader-1", Schedule: "daily", Period: "2026-11-22", Events: 3}
		switch kind {
		case event.DigestSent:
			d.QueueID, d.Groups = sampleID, 2
		case event.DigestSkipped:
			d.Reason = "empty"
		default:
			d.Returned, d.Reason = 3, "rejected"
		}
		return d
	}
	l := event.Later{Source: "sample"}
	switch kind {
	case event.MessageDelivered:
		l.Action, l.Diagnostic, l.Code = "delivered", "250 2.0.0 Ok", 250
	case event.MessageDeferred:
		l.Action, l.Status, l.Diagnostic = "delayed", "4.2.2", "452 4.2.2 Mailbox full"
	case event.MessageBounce:
		l.Action, l.BounceType, l.Status, l.Code = "failed", "hard", "5.1.1", 550
		l.Diagnostic = "550 5.1.1 No such user"
	case event.MessageComplaint:
		l.FeedbackType = "abuse"
	case event.TrackOpen, event.TrackClick:
		l.Source, l.UserAgent = "track", "Mozilla/5.0"
		if kind == event.TrackClick {
			l.URL = "https://shop.example.com/"
		}
	case event.ListUnsubscribe, event.ListSubscribe:
		l.Source, l.ListID = "unsubscribe", "news"
	case event.MessageReported:
		l.Reason = "processed"
	}
	return event.Learned{Message: m, Recipient: "ann@example.net", Later: l}
}
