package apiadmin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/smtpsend/apisend"
)

// These providers list messages with what last happened to them. An event is known by its message and its
// recipient. Opens and clicks repeat and have no such key: they come by webhook alone, and show here that the
// message was delivered.

// mailjetWords are the events that a status of Mailjet stands for.
var mailjetWords = map[string]string{"sent": "sent", "opened": "sent", "clicked": "sent", "bounce": "bounce",
	"softbounced": "bounce", "hardbounced": "bounce", "blocked": "blocked", "spam": "spam", "unsub": "unsub"}

// mailjetMessages reads GET /v3/REST/message.
func (c *Client) mailjetMessages(ctx context.Context, t apisend.Target, q span) (EventPage, error) {
	const most = 1000
	query := url.Values{"Limit": {strconv.Itoa(most)}, "Offset": {strconv.Itoa(q.offset())},
		"FromTS": {strconv.FormatInt(q.from.Add(-late).Unix(), 10)},
		"ToTS":   {strconv.FormatInt(q.to.Unix(), 10)}, "ShowContactAlt": {"true"}, "ShowCustomID": {"true"}}
	var answer struct {
		Data []struct {
			ID                                 json.Number
			UUID, ContactAlt, CustomID, Status string
		}
	}
	var page EventPage
	if err := c.call(ctx, t, apisend.Call{Path: path("/v3/REST/message", query)}, &answer); err != nil {
		return page, err
	}
	for _, m := range answer.Data {
		word := mailjetWords[m.Status]
		if word == "" {
			page.Ignored++
			continue
		}
		page.add(provider.Mailjet, map[string]any{"event": word, "MessageID": m.ID, "Message_GUID": m.UUID,
			"email": m.ContactAlt, "CustomID": m.CustomID, "hard_bounce": m.Status == "hardbounced"})
	}
	if len(answer.Data) > 0 {
		page.Next = strconv.Itoa(q.offset() + len(answer.Data))
	}
	return page, nil
}

// resendWords are the events that a last event of Resend stands for. Why a message bounced isn't listed, so
// it counts as one that may pass.
var resendWords = map[string]string{"delivered": "delivered", "opened": "delivered", "clicked": "delivered",
	"bounced": "bounced", "complained": "complained", "failed": "failed", "suppressed": "suppressed"}

// resendEmails reads GET /emails, newest first, down to the day before.
func (c *Client) resendEmails(ctx context.Context, t apisend.Target, q span) (EventPage, error) {
	query := url.Values{"limit": {"100"}}
	if q.cursor != "" {
		query.Set("after", q.cursor)
	}
	var answer struct {
		HasMore bool `json:"has_more"`
		Data    []struct {
			ID          string
			To, Cc, Bcc []string
			Created     string `json:"created_at"`
			Last        string `json:"last_event"`
		}
	}
	var page EventPage
	if err := c.call(ctx, t, apisend.Call{Path: path("/emails", query)}, &answer); err != nil {
		return page, err
	}
	for _, m := range answer.Data {
		if at := moment(m.Created); !at.IsZero() && at.Before(q.from.Add(-late)) {
			return page, nil
		}
		to := append(append(m.To, m.Cc...), m.Bcc...)
		if word := resendWords[m.Last]; word != "" && len(to) == 1 { // of several, which one is unknown
			page.add(provider.Resend, map[string]any{"type": "email." + word, "data": map[string]any{
				"email_id": m.ID, "to": to, "bounce": map[string]any{"type": "Undetermined"}}})
		} else {
			page.Ignored++
		}
		page.Next = m.ID
	}
	if !answer.HasMore {
		page.Next = ""
	}
	return page, nil
}

// moment reads a time as providers write it; zero if it isn't valid.
func moment(text string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999-07", time.DateTime,
		time.RFC1123, time.RFC1123Z} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC()
		}
	}
	return time.Time{}
}

// mandrillStates are the states that are searched, with the events that they stand for.
var mandrillStates = [][2]string{{"bounced", "hard_bounce"}, {"soft-bounced", "soft_bounce"},
	{"rejected", "reject"}, {"spam", "spam"}, {"unsub", "unsub"}}

// mandrillMost is how many messages a search of Mandrill finds.
const mandrillMost = 1000

// mandrillMessages reads /messages/search. It finds days, and at most 1,000 messages: each page is one day
// and one state. Only what failed is looked for.
func (c *Client) mandrillMessages(ctx context.Context, t apisend.Target, q span) (EventPage, error) {
	parts := words(q.cursor, 2)
	day, state := parts[0], number(parts[1])%len(mandrillStates)
	if day == "" {
		day = q.from.Add(-late).Format(time.DateOnly)
	}
	var found []struct {
		ID    string `json:"_id"`
		Email string
		TS    json.Number
		Tags  []string
		Meta  json.RawMessage `json:"metadata"`
		SMTP  []struct {
			TS   json.Number
			Diag string
		} `json:"smtp_events"`
	}
	body := map[string]any{"key": t.Key, "query": "state:" + mandrillStates[state][0], "date_from": day,
		"date_to": day, "limit": mandrillMost}
	var page EventPage
	err := c.call(ctx, t, apisend.Call{Path: "/api/1.0/messages/search.json", Body: body}, &found)
	if err != nil {
		return page, err
	}
	for _, m := range found {
		msg := map[string]any{"_id": m.ID, "email": m.Email, "tags": m.Tags, "metadata": m.Meta}
		at := m.TS
		if n := len(m.SMTP); n > 0 {
			at, msg["diag"] = m.SMTP[n-1].TS, m.SMTP[n-1].Diag
		}
		event := map[string]any{"event": mandrillStates[state][1], "ts": at, "msg": msg}
		page.add(provider.Mandrill, []any{event})
	}
	if len(found) >= mandrillMost {
		page.Note = "Mandrill lists 1,000 messages of a day in one state; on " + day + " there were more"
	}
	if state++; state == len(mandrillStates) {
		next, err := time.Parse(time.DateOnly, day)
		if err != nil || !next.AddDate(0, 0, 1).Before(q.to) {
			return page, nil
		}
		day, state = next.AddDate(0, 0, 1).Format(time.DateOnly), 0
	}
	page.Next = fmt.Sprintf("%s|%d", day, state)
	return page, nil
}

// sendGridMost is how many messages SendGrid lists. It lists no further page: the next request ends where
// this one began.
const sendGridMost = 1000

// sendGridMessages reads GET /v3/messages, an add-on. A cursor is the status that is listed, the end of the
// time, and the messages whose details are still to be read: only those say why a message failed.
func (c *Client) sendGridMessages(ctx context.Context, t apisend.Target, q span) (EventPage, error) {
	parts := words(q.cursor, 3)
	status, until, open := parts[0], parts[1], strings.Fields(parts[2])
	if len(open) > 0 {
		return c.sendGridDetails(ctx, t, status, until, open)
	}
	if status == "" {
		status, until = "delivered", q.to.Format(time.RFC3339)
	}
	var answer struct {
		Messages []struct {
			ID   string `json:"msg_id"`
			To   string `json:"to_email"`
			Last string `json:"last_event_time"`
		}
	}
	query := fmt.Sprintf(`status="%s" AND last_event_time BETWEEN TIMESTAMP "%s" AND TIMESTAMP "%s"`, status,
		q.from.Format(time.RFC3339), until)
	err := c.call(ctx, t, apisend.Call{Path: path("/v3/messages", url.Values{"query": {query},
		"limit": {strconv.Itoa(sendGridMost)}})}, &answer)
	if answered(err) == http.StatusForbidden {
		return EventPage{Note: "SendGrid sells its events API as an add-on, Additional Email Activity History, " +
			"which this key can't use; webhooks are the only source"}, nil
	}
	var page EventPage
	if err != nil {
		return page, err
	}
	first := until
	for _, m := range answer.Messages {
		first = min(first, m.Last)
		if status == "delivered" {
			page.add(provider.SendGrid, []any{map[string]any{"event": "delivered", "sg_message_id": m.ID,
				"email": m.To, "timestamp": m.Last}})
		} else {
			open = append(open, m.ID)
		}
	}
	switch {
	case len(answer.Messages) >= sendGridMost && first < until:
		until = first
	case len(answer.Messages) >= sendGridMost:
		page.Note = "SendGrid lists 1,000 messages of one second; there were more"
		fallthrough
	default:
		until = ""
	}
	page.Next = sendGridNext(status, until, open, q.to)
	return page, nil
}

// sendGridNext returns the cursor after a page; empty if all was read.
func sendGridNext(status, until string, open []string, to time.Time) string {
	switch {
	case len(open) == 0 && until == "" && status == "delivered":
		return "not_delivered|" + to.Format(time.RFC3339) + "|"
	case len(open) == 0 && until == "":
		return ""
	}
	return status + "|" + until + "|" + strings.Join(open, " ")
}

// sendGridWords are the events of webhooks, by the events in a message's details.
var sendGridWords = map[string]string{"bounced": "bounce", "dropped": "dropped", "spam_report": "spamreport",
	"unsubscribe": "unsubscribe"}

// sendGridDetails reads GET /v3/messages/{id} of the first message that is open.
func (c *Client) sendGridDetails(ctx context.Context, t apisend.Target, status, until string,
	open []string) (EventPage, error) {
	var m struct {
		ID     string `json:"msg_id"`
		To     string `json:"to_email"`
		Events []struct {
			Name   string `json:"event_name"`
			At     string `json:"processed"`
			Reason string
			Bounce string `json:"bounce_type"`
		}
	}
	page := EventPage{Next: sendGridNext(status, until, open[1:], time.Time{})}
	err := c.call(ctx, t, apisend.Call{Path: "/v3/messages/" + url.PathEscape(open[0])}, &m)
	if answered(err) == http.StatusNotFound { // it is too old now
		page.Broken++
		return page, nil
	}
	if err != nil {
		return EventPage{}, err
	}
	for _, e := range m.Events {
		word := sendGridWords[e.Name]
		if word == "" {
			page.Ignored++
			continue
		}
		item := map[string]any{"event": word, "sg_message_id": m.ID, "email": m.To, "timestamp": e.At,
			"reason": e.Reason}
		if e.Bounce == "soft" {
			item["type"] = "blocked"
		}
		page.add(provider.SendGrid, []any{item})
	}
	return page, nil
}
