package outbox

import (
	"context"
	"slices"
	"time"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/smtpsend"
)

// CampaignMail says whose mail a message of a campaign is, and who hears of it.
type CampaignMail struct {
	event.Campaign
	Events  string `json:"events,omitempty"`  // which events leave Postroom: EventsNone, EventsEnds, EventsAll
	KeepLog bool   `json:"keepLog,omitempty"` // it enters the email log and the search index
}

// Turn is what a campaign says, directly before an attempt, of a message that was enqueued for it. The
// zero value means that the message goes as it is stored. See Mailing.Turn.
type Turn struct {
	Until  time.Time // it waits until then; zero: it does not
	Reason string    // why it waits, or why it must not be sent any more
	Over   bool      // it must not be sent any more

	envelope envelope // as the campaign has it now, like the gateway
	gateway  string
	write    writer // nil: it goes as it is stored
}

// writer writes a message as its mailing says, of a date and as an account that may have changed since, and
// completes its envelope. It also returns its text. It returns Internal only if the message is not at fault.
type writer func(ctx context.Context, account accounts.Sender, e *envelope, date time.Time) (smtpsend.Body,
	string, error)

// Which events about the mail of a campaign go to webhooks.
const (
	EventsNone = "none"
	EventsEnds = "ends" // failures, bounces, complaints, and that somebody left
	EventsAll  = "all"
)

// ends are the events of EventsEnds.
var ends = []event.Type{event.MessageFailed, event.MessageBounce, event.MessageComplaint,
	event.ListUnsubscribe, event.ListSubscribe}

// Quiet reports whether events of a type stay within Postroom. Those about mail of no campaign (nil) do not.
func (c *CampaignMail) Quiet(kind event.Type) bool {
	switch {
	case c == nil || c.Events == EventsAll:
		return false
	case c.Events == EventsNone:
		return true
	}
	return !slices.Contains(ends, kind)
}

// unlogged reports whether a message enters no log.
func (c *CampaignMail) unlogged() bool { return c != nil && !c.KeepLog }

// of returns what events about a message say of its campaign; nil: it is of none.
func (c *CampaignMail) of() *event.Campaign {
	if c == nil {
		return nil
	}
	return &c.Campaign
}
