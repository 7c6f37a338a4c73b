package api

import "time"

// Alert is a current problem of the instance that an operator must look at.
type Alert struct {
	Alert     string    `json:"alert" doc:"Name of the alert: queueAge, queuePaused, mailFails, accountTrouble, outboxFull, redisMemory, redisEvicts, redisForgets, redisAway, relayAway, recordsRefused, bounceRate, complaintRate, auditBroken, campaignHeld, digestsLate, webhookFailing or webhookOff"`
	Queue     string    `json:"queue,omitempty" doc:"The alert's object. For queueAge and queuePaused, the queue: submit, bulk or notify, and digests if paused. For bounceRate and complaintRate, the gateway. For relayAway, gateway:ID or relay:ACCOUNT"`
	Text      string    `json:"text" doc:"The problem and how to fix it"`
	Value     float64   `json:"value" doc:"Measured value: seconds, messages or a share"`
	Threshold float64   `json:"threshold" doc:"Value at which the alert is raised"`
	Since     time.Time `json:"since"`
}
