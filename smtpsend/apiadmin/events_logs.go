package apiadmin

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"

	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/smtpsend/apisend"
)

// These providers list events. Mailgun, SparkPost and Postmark give them the ids that webhooks have; Brevo's
// are known by message and recipient.

// mailgunEvents reads GET /v3/<domain>/events, which keeps events for one to thirty days. It always names a
// next page, and ends with an empty one.
func (c *Client) mailgunEvents(ctx context.Context, t apisend.Target, q span) (EventPage, error) {
	at := q.cursor
	if at == "" {
		at = path("/v3/"+url.PathEscape(t.Domain)+"/events", url.Values{
			"begin": {strconv.FormatInt(q.from.Unix(), 10)}, "end": {strconv.FormatInt(q.to.Unix(), 10)},
			"ascending": {"yes"}, "limit": {"300"},
			"event": {"delivered OR failed OR rejected OR complained OR unsubscribed OR opened OR clicked"},
		})
	}
	var answer struct {
		Items  []json.RawMessage
		Paging struct{ Next string }
	}
	var page EventPage
	if err := c.call(ctx, t, apisend.Call{Path: at}, &answer); err != nil || len(answer.Items) == 0 {
		return page, err
	}
	for _, item := range answer.Items {
		var when struct{ Timestamp float64 }
		if json.Unmarshal(item, &when) == nil && when.Timestamp > 0 {
			if at := time.UnixMicro(int64(when.Timestamp * 1e6)).UTC(); at.After(page.Until) {
				page.Until = at
			}
		}
		page.add(provider.Mailgun, map[string]any{"event-data": item, "signature": struct{}{}})
	}
	var err error
	page.Next, err = following(t, answer.Paging.Next)
	return page, err
}

// sparkPostKinds are the kinds of events that are read.
const sparkPostKinds = "delivery,bounce,delay,out_of_band,policy_rejection,generation_failure," +
	"generation_rejection,spam_complaint,list_unsubscribe,link_unsubscribe,open,initial_open,click"

// sparkPostEvents reads GET /events/message, which keeps events for ten days.
func (c *Client) sparkPostEvents(ctx context.Context, t apisend.Target, q span) (EventPage, error) {
	const minute = "2006-01-02T15:04:05Z"
	at := q.cursor
	if at == "" {
		at = path("/api/v1/events/message", url.Values{"from": {q.from.Format(minute)},
			"to": {q.to.Format(minute)}, "cursor": {"initial"}, "per_page": {"1000"}, "events": {sparkPostKinds}})
	}
	var answer struct {
		Results []json.RawMessage
		Links   json.RawMessage
	}
	var page EventPage
	if err := c.call(ctx, t, apisend.Call{Path: at}, &answer); err != nil {
		return page, err
	}
	for _, item := range answer.Results {
		page.add(provider.SparkPost, map[string]any{"msys": map[string]any{"message_event": item}})
	}
	var err error
	page.Next, err = following(t, nextLink(answer.Links))
	return page, err
}

// nextLink returns the next page of SparkPost's links, which are an object or a list.
func nextLink(links json.RawMessage) string {
	var one struct{ Next string }
	if json.Unmarshal(links, &one) == nil {
		return one.Next
	}
	var all []struct{ Rel, Href string }
	if json.Unmarshal(links, &all) == nil {
		for _, l := range all {
			if l.Rel == "next" {
				return l.Href
			}
		}
	}
	return ""
}

// The most bounces that Postmark lists, newest first.
const (
	postmarkPage = 500
	postmarkMost = 10_000
)

// postmarkBounces reads GET /bounces: bounces, complaints and unsubscribes. Its dates are in Postmark's own
// time zone, so it begins a day early.
func (c *Client) postmarkBounces(ctx context.Context, t apisend.Target, q span) (EventPage, error) {
	query := url.Values{"count": {strconv.Itoa(postmarkPage)}, "offset": {strconv.Itoa(q.offset())},
		"fromdate": {q.from.Add(-late).Format(time.DateOnly)}}
	if t.Stream != "" {
		query.Set("messagestream", t.Stream)
	}
	var answer struct {
		TotalCount int
		Bounces    []map[string]json.RawMessage
	}
	var page EventPage
	if err := c.call(ctx, t, apisend.Call{Path: path("/bounces", query)}, &answer); err != nil {
		return page, err
	}
	for _, item := range answer.Bounces {
		record := "Bounce"
		if string(item["Type"]) == `"SpamComplaint"` {
			record = "SpamComplaint"
		}
		item["RecordType"] = json.RawMessage(strconv.Quote(record))
		page.add(provider.Postmark, item)
	}
	if read := q.offset() + len(answer.Bounces); len(answer.Bounces) > 0 && read < answer.TotalCount {
		page.Next = strconv.Itoa(read)
		if read >= postmarkMost {
			page.Next, page.Note = "", "Postmark lists 10,000 bounces of two days; there were more"
		}
	}
	return page, nil
}

// brevoWords are the names of events in webhooks, by their names in the events API. Other events are about
// opens, or repeat: they have no key that both share.
var brevoWords = map[string]string{"delivered": "delivered", "hardBounces": "hard_bounce",
	"softBounces": "soft_bounce", "blocked": "blocked", "spam": "spam", "invalid": "invalid_email",
	"error": "error", "unsubscribed": "unsubscribed"}

// brevoEvents reads GET /v3/smtp/statistics/events, which takes days of the account's time zone.
func (c *Client) brevoEvents(ctx context.Context, t apisend.Target, q span) (EventPage, error) {
	const most = 2500
	query := url.Values{"limit": {strconv.Itoa(most)}, "offset": {strconv.Itoa(q.offset())}, "sort": {"asc"},
		"startDate": {q.from.Add(-late).Format(time.DateOnly)}, "endDate": {q.to.Format(time.DateOnly)}}
	var answer struct {
		Events []struct{ Event, Email, MessageID, Date, Reason, Tag string }
	}
	var page EventPage
	err := c.call(ctx, t, apisend.Call{Path: path("/v3/smtp/statistics/events", query)}, &answer)
	if err != nil {
		return page, err
	}
	for _, e := range answer.Events {
		word := brevoWords[e.Event]
		if word == "" {
			page.Ignored++
			continue
		}
		page.add(provider.Brevo, map[string]any{"event": word, "email": e.Email, "message-id": e.MessageID,
			"ts_event": e.Date, "reason": e.Reason, "tag": e.Tag})
	}
	if len(answer.Events) > 0 {
		page.Next = strconv.Itoa(q.offset() + len(answer.Events))
	}
	return page, nil
}
