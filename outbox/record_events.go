package outbox

import (
	"slices"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/redisdb"
)

// pastEvent is an event of a message in its record, which has enough to show the event again. The first
// event, messageQueued, is not stored, because it can be made from the record.
type pastEvent struct {
	ID   string     `json:"id"`
	Type event.Type `json:"type"`
	At   int64      `json:"at"`           // Unix milliseconds
	To   []int      `json:"to,omitempty"` // recipients, as indexes into the envelope; empty for all
	// number of the attempt in the log; 0 if the event comes from no attempt
	Attempt int    `json:"attempt,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Until   int64  `json:"until,omitempty"` // end of a wait, in Unix milliseconds; 0 if it has not ended
}

// waited is a wait for a limit, a connection, the account, or the end of a pause. No endpoint gets it. Waits
// for a pause are not in the record; see record_pauses.go.
const waited event.Type = "messageWaited"

const (
	shortestWait = time.Second // shorter waits are forgotten
	mostWaits    = 20          // a message's most; more are forgotten
)

// waits returns the status of a message that waits from a given time. An earlier wait for the same reason
// continues.
func (s status) waits(from time.Time, reason string) status {
	s.Events = slices.Clone(s.Events)
	if last := s.lastWait(); last != nil && last.Reason == reason {
		last.Until = 0
		return s
	}
	n := 0
	for _, e := range s.Events {
		if e.Type == waited {
			n++
		}
	}
	if n < mostWaits {
		s.Events = append(s.Events, pastEvent{ID: newEventID(from), Type: waited, At: redisdb.Millis(from),
			Reason: reason})
	}
	return s
}

// begins notes that an attempt begins at a time, or that the message ends then without one. It was due
// before, and waited for nothing but a worker and a queue that is not paused. The last times are kept.
func (s *status) begins(due, at time.Time) {
	s.Events = slices.Clone(s.Events)
	s.proceeds(due)
	if at.Sub(due) >= shortestWait {
		s.Ready = append(slices.Clone(s.Ready), span{redisdb.Millis(due), redisdb.Millis(at)})
		s.Ready = s.Ready[max(0, len(s.Ready)-mostWaits):]
	}
}

// endsAt returns the status of a message that ends without an attempt.
func (r row) endsAt(now time.Time) status {
	st := r.status
	if r.state != stateFailed {
		st.begins(redisdb.Time(min(r.due, redisdb.Millis(now))), now)
	}
	return st
}

// proceeds notes that a message waits no more.
func (s *status) proceeds(at time.Time) {
	last := s.lastWait()
	switch {
	case last == nil || last.Until != 0:
	case at.Sub(redisdb.Time(last.At)) < shortestWait:
		s.Events = s.Events[:len(s.Events)-1]
	default:
		last.Until = redisdb.Millis(at)
	}
}

// lastWait returns the last event if it is a wait, or nil.
func (s *status) lastWait() *pastEvent {
	if n := len(s.Events); n > 0 && s.Events[n-1].Type == waited {
		return &s.Events[n-1]
	}
	return nil
}

// changeEvents collects the events of one change, for the stream and for the record.
type changeEvents struct {
	account  string
	at       time.Time
	campaign *CampaignMail // the message's, or nil
	trace    string        // the message's, as its envelope has it
	lines    []string
	past     []pastEvent
}

// events returns an empty collection for a change of a message.
func (e envelope) events(at time.Time) changeEvents {
	return changeEvents{account: e.Account, at: at, campaign: e.Campaign, trace: e.Trace}
}

// add adds an event about some recipients of a message.
func (c *changeEvents) add(kind event.Type, data any, which []int, attempt int, reason string) error {
	e, err := event.New(newEventID(c.at), kind, c.account, c.at, data)
	if err != nil {
		return err
	}
	e.Quiet, e.Trace = c.campaign.Quiet(kind), c.trace
	line, err := e.Line()
	c.lines = append(c.lines, line)
	c.past = append(c.past, pastEvent{ID: e.ID, Type: kind, At: redisdb.Millis(c.at), To: which,
		Attempt: attempt, Reason: reason})
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

// outcomes are the names in factCounters, with the weightiest last.
var outcomes = []api.MessageStatus{api.OutcomeDelivered, api.OutcomeOpened, api.OutcomeClicked,
	api.OutcomeUnsubscribed, api.OutcomeBounced, api.OutcomeComplained}

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
	Type event.Type `json:"type"` // from MessageDelivered to ListSubscribe
	// the message's; needed only if the log may have deleted the message
	Account string `json:"account,omitempty"`
	// the message's queueId; if empty, the fact is about no message, and Account gets the event
	MessageID string `json:"messageId,omitempty"`
	Recipient string `json:"recipient,omitempty"` // address; if empty, see Index
	// the recipient's index in the envelope, if Recipient is empty; negative if unknown
	Index   int         `json:"index,omitempty"`
	At      time.Time   `json:"at,omitzero"` // when it happened; zero, or in the future: now
	Details event.Later `json:"details"`

	// the message's; nil if it has none, or if the outbox knows it
	Campaign *CampaignMail `json:"-"`
}
