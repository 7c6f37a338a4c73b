package api

import "time"

// FeedbackReceipt is the response to a provider's webhook.
type FeedbackReceipt struct {
	Accepted  int  `json:"accepted" doc:"Number of accepted events. Postroom applies them soon"`
	Ignored   int  `json:"ignored" doc:"Number of valid events that Postroom doesn't need"`
	Broken    int  `json:"broken" doc:"Number of events that Postroom couldn't read"`
	Confirmed bool `json:"confirmed,omitempty" doc:"Whether a subscription was confirmed"`
}

// FeedbackStatus counts the reports about sent mail by their source and their result.
type FeedbackStatus struct {
	Inbox          FeedbackInbox            `json:"inbox" doc:"Reports that wait to be applied"`
	Sources        []FeedbackSource         `json:"sources" doc:"Sources of reports, configured or seen"`
	Reconciliation []FeedbackReconciliation `json:"reconciliation" doc:"Providers' events APIs that Postroom reads regularly, for events that webhooks missed"`
}

// FeedbackInbox is the reports that wait to be applied.
type FeedbackInbox struct {
	Urgent     int64 `json:"urgent" doc:"Number of bounces, complaints and unsubscribes"`
	Deliveries int64 `json:"deliveries" doc:"Number of deliveries and delays"`
	Hits       int64 `json:"hits" doc:"Number of opens and clicks"`
	Waiting    int64 `json:"waiting" doc:"Number of reports about unknown messages. Postroom retries them"`
	Max        int   `json:"max" doc:"Limit for each of the first three numbers. Beyond it, Postroom refuses providers' requests, which they repeat, and drops the oldest opens and clicks"`
}

// FeedbackSource is a source of reports.
type FeedbackSource struct {
	Source     string     `json:"source" doc:"Name of a provider, bounce, track or unsubscribe for Postroom's own sources, or other"`
	Configured bool       `json:"configured" doc:"Whether Postroom accepts webhooks from this provider"`
	Received   int64      `json:"received" doc:"Number of reports received"`
	Applied    int64      `json:"applied" doc:"Number of new reports applied"`
	Duplicates int64      `json:"duplicates" doc:"Number of reports that were already known"`
	Unknown    int64      `json:"unknown" doc:"Number of reports about unknown messages"`
	Full       int64      `json:"full" doc:"Number of reports about messages with too many events"`
	Failed     int64      `json:"failed" doc:"Number of reports that couldn't be applied"`
	Last       *time.Time `json:"last,omitempty" doc:"When the last report arrived"`
}

// FeedbackReconciliation is the progress of reading an events API.
type FeedbackReconciliation struct {
	Source   string     `json:"source" doc:"ID of the gateway, or settings:mailgun for the events API in the settings"`
	Position *time.Time `json:"position,omitempty" doc:"Time up to which the provider's events have been read"`
	Ran      *time.Time `json:"ran,omitempty" doc:"When it was last read"`
	Events   int64      `json:"events" doc:"Number of events in the last read, including known ones"`
	Broken   int64      `json:"broken" doc:"Number of these events that couldn't be read"`
	Error    string     `json:"error,omitempty" doc:"Error of the last read"`
	Note     string     `json:"note,omitempty" doc:"Limitations of this events API"`
}
