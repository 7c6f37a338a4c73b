package outbox

import (
	"slices"
	"time"

	"github.com/postroom/postroom/event"
)

// told is an event about a message as its record remembers it: enough to tell again what the stream has told.
// The first one, messageQueued, is not among them: the record itself says all of it.
type told struct {
	ID   string     `json:"id"`
	Type event.Type `json:"type"`
	At   int64      `json:"at"`           // Unix milliseconds
	To   []int      `json:"to,omitempty"` // recipients, as indexes into the envelope; none: all of them
	// the number of its line in the log; 0: no attempt brought it about
	Attempt int    `json:"attempt,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// telling collects the events of one change, as they go to the stream and as the record remembers them.
type telling struct {
	account string
	at      time.Time
	lines   []string
	told    []told
}

// tell adds an event about some recipients of a message.
func (t *telling) tell(kind event.Type, data any, which []int, attempt int, reason string) error {
	e, err := event.New(newEventID(t.at), kind, t.account, t.at, data)
	if err != nil {
		return err
	}
	line, err := e.Line()
	t.lines = append(t.lines, line)
	t.told = append(t.told, told{ID: e.ID, Type: kind, At: millis(t.at), To: which, Attempt: attempt,
		Reason: reason})
	return err
}

// remember is a status that has been told what was collected. A message with one recipient, or an event about
// all, needs no list of them.
func (t *telling) remember(st status) status {
	st.Told = slices.Clone(st.Told)
	for _, one := range t.told {
		if len(one.To) == len(st.Recipients) {
			one.To = nil
		}
		st.Told = append(st.Told, one)
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
