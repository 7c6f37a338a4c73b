package api

import "time"

// FeedbackReceipt is the response to a provider's webhook.
type FeedbackReceipt struct {
	Accepted  int  `json:"accepted" doc:"Events taken; they are applied soon"`
	Ignored   int  `json:"ignored" doc:"Events that are understood but not needed"`
	Broken    int  `json:"broken" doc:"Events that could not be read"`
	Confirmed bool `json:"confirmed,omitempty" doc:"A subscription was confirmed"`
}

// FeedbackStatus counts the reports about sent mail by their source and their result.
type FeedbackStatus struct {
	Inbox          FeedbackInbox            `json:"inbox" doc:"Facts that wait to be applied"`
	Sources        []FeedbackSource         `json:"sources" doc:"Sources of facts, configured or seen; counted since the first fact"`
	Reconciliation []FeedbackReconciliation `json:"reconciliation" doc:"Events APIs that are read regularly for events that webhooks missed"`
}

// FeedbackInbox is the reports that wait to be applied.
type FeedbackInbox struct {
	Urgent     int64 `json:"urgent" doc:"Bounces, complaints and unsubscriptions"`
	Deliveries int64 `json:"deliveries" doc:"Deliveries and delays"`
	Hits       int64 `json:"hits" doc:"Opens and clicks"`
	Waiting    int64 `json:"waiting" doc:"Facts whose message is not known yet; they are tried again"`
	Max        int   `json:"max" doc:"Limit for each of the first three; beyond it providers are refused and repeat their requests, and the oldest opens and clicks are dropped"`
}

// FeedbackSource is a source of reports.
type FeedbackSource struct {
	Source     string     `json:"source" doc:"A provider; bounce, track or unsubscribe for Postroom's own; other"`
	Configured bool       `json:"configured" doc:"It is a provider whose webhooks are taken"`
	Received   int64      `json:"received" doc:"Facts taken in"`
	Applied    int64      `json:"applied" doc:"Facts that were new"`
	Duplicates int64      `json:"duplicates" doc:"Facts that were known"`
	Unknown    int64      `json:"unknown" doc:"Facts about unknown messages"`
	Full       int64      `json:"full" doc:"Facts about messages whose list of events is full"`
	Failed     int64      `json:"failed" doc:"Facts that could not be applied"`
	Last       *time.Time `json:"last,omitempty" doc:"When the last fact came"`
}

// FeedbackReconciliation is the progress of reading an events API.
type FeedbackReconciliation struct {
	Source   string     `json:"source" doc:"Id of the gateway; settings:mailgun for the events API in the settings"`
	Position *time.Time `json:"position,omitempty" doc:"All earlier events of the provider were read"`
	Ran      *time.Time `json:"ran,omitempty" doc:"When it was last read"`
	Events   int64      `json:"events" doc:"Events read then, those known already included"`
	Broken   int64      `json:"broken" doc:"Of these, events that could not be read"`
	Error    string     `json:"error,omitempty" doc:"Error of the last read"`
	Note     string     `json:"note,omitempty" doc:"What this events API can't report"`
}
