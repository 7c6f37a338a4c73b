package outbox

import (
	"time"

	"github.com/postroom/postroom/event"
)

// factCounters are what facts count as in the counters of the hour. Those of programs count apart: a fifth of
// all opens are theirs and more.
var factCounters = map[event.Type]string{
	event.MessageDelivered: "delivered", event.MessageBounce: "bounced", event.MessageComplaint: "complained",
	event.TrackOpen: "opened", event.TrackClick: "clicked", event.ListUnsubscribe: "unsubscribed",
}

// storedFact is a fact as it is remembered beside its message.
type storedFact struct {
	ID      string      `json:"id"`
	Type    event.Type  `json:"type"`
	At      int64       `json:"at"` // Unix milliseconds
	To      []string    `json:"to,omitempty"`
	Details event.Later `json:"details,omitzero"`
}

// Fact is something that became known about a message after a relay took it: by a provider's webhook, a mail
// that came back, a hit.
type Fact struct {
	// the same each time the fact is told, so that it is told on once
	Key  string     `json:"key"`
	Type event.Type `json:"type"` // one of those from MessageDelivered to ListSubscribe
	// whose message it is; needed only where the log may have forgotten it
	Account string `json:"account,omitempty"`
	// Postroom's id of it, the queueId; empty: no message brought it about, and Account says who is told
	MessageID string `json:"messageId,omitempty"`
	Recipient string `json:"recipient,omitempty"` // address; empty: see Index
	// of the recipient in the envelope, where Recipient is empty; negative: not known which
	Index   int         `json:"index,omitempty"`
	At      time.Time   `json:"at,omitzero"` // when it happened; zero, or in the future: now
	Details event.Later `json:"details"`
}
