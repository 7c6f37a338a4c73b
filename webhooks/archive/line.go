package archive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/redisdb"
)

// line is an event in the archive. The fields that are queried most are on top, the whole is JSON in data.
// The names are the webhooks' names.
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
	Data      string     `json:"data"` // the webhook's, as JSON
}

// about is the part of an event's data that has fields of a line.
type about struct {
	event.Message
	event.Later
	Recipient string `json:"recipient"`
	Code      *int   `json:"smtpResponseCode"`
	Reason    string `json:"reason"`
}

// lines writes events or entries, one per line. It logs and skips unreadable ones.
func (a *Archive) lines(entries []redisdb.Entry, read func(string) (line, error)) ([]byte, int) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	n := 0
	for _, entry := range entries {
		l, err := read(entry.Text(field))
		if err == nil {
			err = enc.Encode(l)
		}
		if err != nil {
			a.log.Error("event not archived", "event_id", l.EventID, "entry", entry.ID, "error", err)
			continue
		}
		n++
	}
	return b.Bytes(), n
}

// audited is the event of a line with an entry of the audit log. Its data is the text that the entry's hash
// is made of.
const audited event.Type = "audit"

func auditLine(text string) (line, error) {
	var e api.AuditEntry
	err := json.Unmarshal([]byte(text), &e)
	l := line{EventID: fmt.Sprintf("audit-%d", e.Seq), Event: audited, Account: e.Who.Account,
		Date: e.Time.UTC().Format(dates), MS: e.Time.UnixMilli(), To: []string{}, Tags: []string{},
		Source: e.Who.Kind, Status: string(e.Result), Reason: e.Reason, Data: text}
	if e.Object != nil && e.Object.Account != "" {
		l.Account = e.Object.Account
	}
	return l, err
}

func eventLine(text string) (line, error) {
	e, err := event.Parse([]byte(text))
	if err != nil {
		return line{EventID: e.ID}, err
	}
	return lineOf(e), nil
}

// dates is the format of a line's date.
const dates = "2006-01-02T15:04:05.000Z"

func lineOf(e event.Event) line {
	var d about
	_ = json.Unmarshal(e.Data, &d) // events about no message lack most of it
	l := line{
		EventID: e.ID, Event: e.Type, Account: e.Account, Date: e.Time.UTC().Format(dates),
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
