package outbox

import (
	"slices"
	"time"

	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/redisdb"
)

// pastEvent is an event of a message in its record, which has enough to show the event again. The first event,
// messageQueued, is not stored, because it can be made from the record.
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
	c.past = append(c.past, pastEvent{ID: e.ID, Type: kind, At: redisdb.Millis(c.at), To: which, Attempt: attempt,
		Reason: reason})
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
