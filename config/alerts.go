package config

import "time"

// Alerts is from where on the team is alerted.
type Alerts struct {
	Every          time.Duration `key:"every" default:"15s" min:"1s" max:"1m" doc:"How often each process checks the conditions of the alerts. An alert is resolved after four checks without its condition."`
	QueueAge       time.Duration `key:"queueAge" default:"5m" min:"0" doc:"How long due transactional mail and webhooks may wait before an alert is raised. The time of a pause does not count. 0: no alert."`
	BulkAge        time.Duration `key:"bulkAge" default:"6h" min:"0" doc:"The same for bulk mail; a large mailing may take long. 0: no alert."`
	Paused         time.Duration `key:"paused" default:"1h" min:"0" doc:"How long a queue may be paused before an alert is raised. 0: no alert."`
	RelayAway      time.Duration `key:"relayAway" default:"2m" min:"0" doc:"How long a relay with mail may not answer before an alert is raised: it can't be reached, or is silent. 0: no alert."`
	DigestsLate    time.Duration `key:"digestsLate" default:"10m" min:"0" doc:"How late a digest may be before an alert is raised. The time of a pause does not count. 0: no alert."`
	WebhookFailing time.Duration `key:"webhookFailing" default:"10m" min:"0" doc:"How long a webhook endpoint may take no event, from its first failed attempt to its last, before an alert is raised. 0: no alert."`
	DeadLetters    int           `key:"deadLetters" default:"100" min:"0" doc:"Number of messages that may fail permanently within an hour before an alert is raised. 0: no alert."`
	FailedShare    float64       `key:"failedShare" default:"0.5" min:"0" max:"1" doc:"Share of the messages finished within an hour that may have failed before an alert is raised, if 10 or more failed. 0: no alert."`
	BounceRate     float64       `key:"bounceRate" default:"0.05" min:"0" max:"1" doc:"Share of the recipients mailed through a gateway within 24 hours whose address may be dead before an alert is raised, if it is 10 or more. Amazon SES reviews senders from 5 %, and pauses them from 10 %. 0: no alert."`
	ComplaintRate  float64       `key:"complaintRate" default:"0.001" min:"0" max:"1" doc:"The same for complaints, if there are 3 or more. Gmail asks for less than 0.1 %, and blocks from 0.3 %; SES reviews from 0.1 %. 0: no alert."`
}
