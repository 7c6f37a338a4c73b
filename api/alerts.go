package api

import "time"

// Alert is a current problem of the instance that an operator must look at.
type Alert struct {
	Alert     string    `json:"alert" doc:"queueAge, queuePaused, mailFails, accountTrouble, outboxFull, redisMemory, redisEvicts, redisForgets, redisAway, relayAway, recordsRefused, bounceRate, complaintRate, auditBroken, campaignHeld, digestsLate, webhookFailing or webhookOff"`
	Queue     string    `json:"queue,omitempty" doc:"submit, bulk or notify, of queueAge and queuePaused, of the latter also digests; the gateway, of bounceRate and complaintRate; gateway:ID or relay:ACCOUNT, of relayAway"`
	Text      string    `json:"text" doc:"What is wrong, and what to do"`
	Value     float64   `json:"value" doc:"What is measured: seconds, messages, a share"`
	Threshold float64   `json:"threshold" doc:"From where on it is wrong"`
	Since     time.Time `json:"since"`
}
