package archive

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/redisdb"
)

// line is an event in the archive. The fields that are queried most are on top, the whole is JSON in data.
// The names are those of webhooks.
type line struct {
	EventID   string     `json:"eventId"`
	Event     event.Type `json:"event"`
	Account   string     `json:"account"`
	Date      string     `json:"date"` // ISO 8601, UTC, milliseconds
	MS        int64      `json:"ms"`   // the same in milliseconds since 1970
	QueueID   string     `json:"queueId"`
	MessageID string     `json:"messageId"`
	Recipient string     `json:"recipient"` // the only or known recipient
	To        []string   `json:"to"`
	Lane      string     `json:"lane"`
	Gateway   string     `json:"gateway"`
	Tags      []string   `json:"tags"`
	Source    string     `json:"source"`
	Bounce    string     `json:"bounceType"`
	Status    string     `json:"status"`
	Code      int        `json:"smtpResponseCode"`
	Reason    string     `json:"reason"`
	URL       string     `json:"url"`
	UserAgent string     `json:"userAgent"`
	ListID    string     `json:"listId"`
	Bot       int        `json:"bot"`  // 1: by a bot
	Data      string     `json:"data"` // of the webhook, as JSON
}

// about is the part of an event's data that has fields of a line.
type about struct {
	event.Message
	event.Later
	Recipient string `json:"recipient"`
	Code      *int   `json:"smtpResponseCode"`
	Reason    string `json:"reason"`
}

// lines writes events, one a line. An entry that is no event is logged and skipped.
func (a *Archive) lines(entries []redisdb.Entry) ([]byte, int) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	n := 0
	for _, entry := range entries {
		e, err := event.Parse([]byte(entry.Text(field)))
		if err == nil {
			err = enc.Encode(lineOf(e))
		}
		if err != nil {
			a.log.Error("event not archived", "event_id", e.ID, "error", err)
			continue
		}
		n++
	}
	return b.Bytes(), n
}

func lineOf(e event.Event) line {
	var d about
	_ = json.Unmarshal(e.Data, &d) // events about no message lack most of it
	l := line{
		EventID: e.ID, Event: e.Type, Account: e.Account, Date: e.Time.UTC().Format("2006-01-02T15:04:05.000Z"),
		MS:      e.Time.UnixMilli(),
		QueueID: d.QueueID, MessageID: d.MessageID, Recipient: d.Recipient, To: d.Envelope.To, Lane: d.Lane,
		Gateway: d.Gateway, Tags: d.Tags,
		Source: d.Source, Bounce: d.BounceType, Status: d.Status, Reason: d.Reason, URL: d.URL,
		UserAgent: d.UserAgent, ListID: d.ListID,
		Data: string(e.Data),
	}
	if l.Recipient == "" && len(l.To) == 1 {
		l.Recipient = l.To[0]
	}
	if l.To == nil {
		l.To = []string{}
	}
	if l.Tags == nil {
		l.Tags = []string{}
	}
	if d.Code != nil {
		l.Code = *d.Code
	}
	if d.Bot {
		l.Bot = 1
	}
	return l
}

// dayOf returns the name of the file of a time.
func dayOf(now time.Time) string { return "events-" + now.UTC().Format("2006-01-02") + ".ndjson" }
