package outbox

import (
	"slices"
	"time"

	"github.com/postroom/postroom/event"
)

// told is an event about a message as its record remembers it: enough to tell again what the stream has told.
// The first one, messageQueued, is not among them: the record itself says all of it.
type pastEvent struct {
	ID   string     `json:"id"`
	Type event.Type `json:"type"`
	At   int64      `json:"at"`           // Unix milliseconds
	To   []int      `json:"to,omitempty"` // recipients, as indexes into the envelope; none: all of them
	// the number of its line in the log; 0: no attempt brought it about
	Attempt int    `json:"attempt,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// changeEvents collects the events of one change, as they go to the stream and as the record remembers them.
type changeEvents struct {
	account string
	at      time.Time
	lines   []string
	past    []pastEvent
}

// tell adds an event about some recipients of a message.
func (t *changeEvents) add(kind event.Type, data any, which []int, attempt int, reason string) error {
	e, err := event.New(newEventID(t.at), kind, t.account, t.at, data)
	if err != nil {
		return err
	}
	line, err := e.Line()
	t.lines = append(t.lines, line)
	t.past = append(t.past, pastEvent{ID: e.ID, Type: kind, At: millis(t.at), To: which, Attempt: attempt,
		Reason: reason})
	return err
}

// remember is a status that has been told what was collected. A message with one recipient, or an event about
// all, needs no list of them.
func (t *changeEvents) remember(st status) status {
	st.Events = slices.Clone(st.Events)
	for _, one := range t.past {
		if len(one.To) == len(st.Recipients) {
			one.To = nil
		}
		st.Events = append(st.Events, one)
	}
	return st
}

func everybody(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
