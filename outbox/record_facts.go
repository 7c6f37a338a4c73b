package outbox

import (
	"time"

	"github.com/postroom/postroom/event"
)

// factCounters are the counters of facts. Hits of bots count apart: they are a fifth of all opens and more.
var factCounters = map[event.Type]string{
	event.MessageDelivered: "delivered", event.MessageBounce: "bounced", event.MessageComplaint: "complained",
	event.TrackOpen: "opened", event.TrackClick: "clicked", event.ListUnsubscribe: "unsubscribed",
}

// storedFact is a fact in Redis.
type storedFact struct {
	ID      string      `json:"id"`
	Type    event.Type  `json:"type"`
	At      int64       `json:"at"` // Unix milliseconds
	To      []string    `json:"to,omitempty"`
	Details event.Later `json:"details,omitzero"`
}

// Fact is something that became known about a message after a relay accepted it: from a provider's webhook, a
// returned mail, a hit.
type Fact struct {
	// the same each time the fact is reported, so that it is recorded once
	Key  string     `json:"key"`
	Type event.Type `json:"type"` // one of those from MessageDelivered to ListSubscribe
	// of the message; needed only if the log may have deleted the message
	Account string `json:"account,omitempty"`
	// queueId of the message; empty: the fact is about no message, and Account gets the event
	MessageID string `json:"messageId,omitempty"`
	Recipient string `json:"recipient,omitempty"` // address; empty: see Index
	// of the recipient in the envelope, if Recipient is empty; negative: unknown
	Index   int         `json:"index,omitempty"`
	At      time.Time   `json:"at,omitzero"` // when it happened; zero, or in the future: now
	Details event.Later `json:"details"`
}
