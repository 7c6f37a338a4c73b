package outbox

import "github.com/postroom/postroom/event"

// laterNames are what facts count as in the counters of the hour. Those of programs count apart: a fifth of all opens are theirs and more.
var laterNames = map[event.Type]string{
	event.MessageDelivered: "delivered", event.MessageBounce: "bounced", event.MessageComplaint: "complained",
	event.TrackOpen: "opened", event.TrackClick: "clicked", event.ListUnsubscribe: "unsubscribed",
}

// laterFact is a fact as it is remembered beside its message.
type laterFact struct {
	ID   string      `json:"id"`
	Type event.Type  `json:"type"`
	At   int64       `json:"at"` // Unix milliseconds
	To   []string    `json:"to,omitempty"`
	Told event.Later `json:"told,omitzero"`
}
