package event

import "time"

// Alert is the data of AlertRaised and AlertResolved: trouble of the whole instance, noticed by package
// watch. Even with many processes, one problem raises one alert, and resolves it once when it is over.
type Alert struct {
	Alert string `json:"alert"`           // its name: queueAge, mailFails, redisForgets…
	Queue string `json:"queue,omitempty"` // submit, bulk or notify, of alerts about a queue
	Text  string `json:"text"`            // what is wrong, and what to do
	// what was measured when the event was written: seconds, messages, a share
	Value     float64    `json:"value"`
	Threshold float64    `json:"threshold"` // the value from which on it is wrong
	Since     time.Time  `json:"since"`     // when it was raised
	Resolved  *time.Time `json:"resolved,omitempty"`
}
