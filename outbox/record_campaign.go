package outbox

import (
	"slices"

	"github.com/postroom/postroom/api/event"
)

// CampaignMail says whose mail a message of a campaign is, and who hears of it.
type CampaignMail struct {
	event.Campaign
	Events  string `json:"events,omitempty"`  // which events leave Postroom: EventsNone, EventsEnds, EventsAll
	KeepLog bool   `json:"keepLog,omitempty"` // it enters the email log and the search index
}

// Which events about the mail of a campaign go to webhooks.
const (
	EventsNone = "none"
	EventsEnds = "ends" // failures, bounces, complaints, and that somebody left
	EventsAll  = "all"
)

// ends are the events of EventsEnds.
var ends = []event.Type{event.MessageFailed, event.MessageBounce, event.MessageComplaint,
	event.ListUnsubscribe,
	event.ListSubscribe}

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
