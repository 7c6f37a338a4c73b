package outbox

import (
	"slices"
	"time"

	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/redisdb"
)

// pastEvent is an event of a message in its record, which has enough to show the event again. The first
// event, messageQueued, is not stored, because it can be made from the record.
type pastEvent struct {
	ID   string     `json:"id"`
	Type event.Type `json:"type"`
	At   int64      `json:"at"`           // Unix milliseconds
	To   []int      `json:"to,omitempty"` // recipients, as indexes into the envelope; none: all
	// number of the attempt in the log; 0: the event comes from no attempt
	Attempt int    `json:"attempt,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// changeEvents collects the events of one change, for the stream and for the record.
type changeEvents struct {
	account string
	at      time.Time
	lines   []string
	past    []pastEvent
}

// add adds an event about some recipients of a message.
func (c *changeEvents) add(kind event.Type, data any, which []int, attempt int, reason string) error {
	e, err := event.New(newEventID(c.at), kind, c.account, c.at, data)
	if err != nil {
		return err
	}
	line, err := e.Line()
	c.lines = append(c.lines, line)
	c.past = append(c.past, pastEvent{ID: e.ID, Type: kind, At: redisdb.Millis(c.at), To: which,
		Attempt: attempt,
		Reason:  reason})
	return err
}

// remember returns a status with the events added. An event about all recipients has no list of them.
func (c *changeEvents) remember(st status) status {
	st.Events = slices.Clone(st.Events)
	for _, one := range c.past {
		if len(one.To) == len(st.Recipients) {
			one.To = nil
		}
		st.Events = append(st.Events, one)
	}
	return st
}

// everybody returns 0 to n-1: all recipients of an envelope.
func everybody(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

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
