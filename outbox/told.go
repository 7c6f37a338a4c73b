package outbox

import (
	"slices"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/event"
)

// told is an event about a message as its record remembers it: enough to tell again what the stream has told. The first one,
// messageQueued, is not among them: the record itself says all of it.
type told struct {
	ID      string     `json:"id"`
	Type    event.Type `json:"type"`
	At      int64      `json:"at"`                // Unix milliseconds
	To      []int      `json:"to,omitempty"`      // recipients, as indexes into the envelope; none: all of them
	Attempt int        `json:"attempt,omitempty"` // the number of its line in the log; 0: no attempt brought it about
	Reason  string     `json:"reason,omitempty"`
}

// telling collects the events of one change, as they go to the stream and as the record remembers them.
type telling struct {
	account string
	at      time.Time
	lines   []any
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
	t.told = append(t.told, told{ID: e.ID, Type: kind, At: millis(t.at), To: which, Attempt: attempt, Reason: reason})
	return err
}

// remember is a status that has been told what was collected. A message with one recipient, or an event about all, needs no list of them.
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

// story is all that was told about a message, in the words of the API.
func (r row) story() []api.MessageEvent {
	all := []api.MessageEvent{{EventID: r.id, Event: string(event.MessageQueued), Date: fromMillis(r.created), Recipients: r.envelope.addresses(r.first())}}
	for _, one := range r.status.Told {
		which := one.To
		if which == nil {
			which = everybody(len(r.envelope.To))
		}
		e := api.MessageEvent{EventID: one.ID, Event: string(one.Type), Date: fromMillis(one.At), Recipients: r.envelope.addresses(which), Reason: one.Reason}
		if n := one.Attempt; n > 0 && n <= len(r.status.Log) {
			e.Attempt = &r.status.Log[n-1]
		}
		if one.Type == event.MessageSent && len(which) > 0 {
			e.Response = r.status.Recipients[which[0]].Response
		}
		all = append(all, e)
	}
	return all
}

// first are the recipients that the message was accepted for: all but those that a replay added.
func (r row) first() []int {
	return everybody(len(r.envelope.To) - r.envelope.Added)
}

func everybody(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
