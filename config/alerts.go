package config

import "time"

// Alerts is from where on the team is alerted.
type Alerts struct {
	Every       time.Duration `key:"every" default:"15s" min:"1s" max:"1m" doc:"How often each process looks whether anything is wrong. An alert is resolved when nothing was wrong for four looks."`
	QueueAge    time.Duration `key:"queueAge" default:"5m" min:"0" doc:"How long transactional mail and webhooks that are due may wait before there is an alert; the queue being paused does not count. 0: for ever."`
	BulkAge     time.Duration `key:"bulkAge" default:"6h" min:"0" doc:"The same for bulk mail, of which a large mailing rightly takes its time. 0: for ever."`
	Paused      time.Duration `key:"paused" default:"1h" min:"0" doc:"How long a queue may be paused before there is an alert. 0: for ever."`
	DeadLetters int           `key:"deadLetters" default:"100" min:"0" doc:"Messages that may fail for good within an hour before there is an alert. 0: any number."`
	FailedShare float64       `key:"failedShare" default:"0.5" min:"0" max:"1" doc:"Share of the messages that ended within an hour which may have failed before there is an alert, where 10 or more failed. 0: any share."`
}
