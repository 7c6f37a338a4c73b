package testapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// happened is an event of the account, as its webhook and its events API report it.
type happened struct {
	what Event
	d    Delivery
	at   time.Time
	item object // the event in the webhook
}

// Happen lets an event happen at a time, without a webhook: only the events API reports it.
func (s *Server) Happen(what Event, d Delivery, at time.Time) {
	s.record(what, d, at, events[s.Name](what, d, at))
}

// record keeps the event of a webhook for the events API.
func (s *Server) record(what Event, d Delivery, at time.Time, webhook any) {
	raw, _ := json.Marshal(webhook) // it is JSON
	if raw[0] == '[' {
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list)
		raw = list[0]
	}
	h := happened{what: what, d: d, at: at}
	_ = decode(raw, &h.item, true)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.happened = append(s.happened, h)
}

// between lists the events of a time, the oldest first.
func (c *call) between(from, to time.Time) (found []happened) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.happened {
		if !h.at.Before(from) && !h.at.After(to) {
			found = append(found, h)
		}
	}
	slices.SortStableFunc(found, func(a, b happened) int { return a.at.Compare(b.at) })
	return found
}

// page cuts the rows of a page that begins at one of them. limit is what was asked for.
func page[T any](c *call, all []T, at int, limit string, most int) (rows []T, next int) {
	if n, err := strconv.Atoi(limit); err == nil && n > 0 {
		most = min(most, n)
	}
	if c.o.PageSize > 0 {
		most = min(most, c.o.PageSize)
	}
	at = min(max(at, 0), len(all))
	rows = all[at:min(at+most, len(all))]
	if at+len(rows) < len(all) {
		next = at + len(rows)
	}
	return rows, next
}

func (c *call) ask(name string) string { return c.r.URL.Query().Get(name) }

func (c *call) askNumber(name string) int {
	n, _ := strconv.Atoi(c.ask(name))
	return n
}

// unixOf reads a time in seconds.
func unixOf(text string) time.Time {
	n, _ := strconv.ParseInt(text, 10, 64)
	return time.Unix(n, 0)
}

// dayOf reads a day; end is its last moment.
func dayOf(text string) (begin, end time.Time) {
	at, _ := time.Parse(time.DateOnly, text[:min(len(text), 10)])
	return at, at.AddDate(0, 0, 1).Add(-1)
}

// eventRoutes are the events APIs.
var eventRoutes = map[string][]route{
	"mailgun": {{"GET", "/v3/{}/events", mailgunDomain(mailgunEvents)},
		{"GET", "/v3/{}/events/{}", mailgunDomain(mailgunEvents)}},
	"sparkpost": {{"GET", "/api/v1/events/message", sparkpostEvents}},
	"postmark":  {{"GET", "/bounces", postmarkBounces}},
	"brevo":     {{"GET", "/v3/smtp/statistics/events", brevoEvents}},
	"mailjet":   {{"GET", "/v3/REST/message", mailjetMessages}},
	"resend":    {{"GET", "/emails", resendEmails}},
	"mandrill":  {{"POST", "/api/1.0/messages/search.json", mandrillSearch}},
	"sendgrid":  {{"GET", "/v3/messages", sendgridMessages}, {"GET", "/v3/messages/{}", sendgridDetails}},
}

// mailgunEvents always has a next page, which may be empty.
func mailgunEvents(c *call) any {
	at, q := 0, c.r.URL.Query()
	if len(c.args) > 1 {
		at, _ = strconv.Atoi(c.args[1])
	}
	all := c.between(unixOf(q.Get("begin")), unixOf(q.Get("end")))
	rows, _ := page(c, all, at, q.Get("limit"), 300)
	next := fmt.Sprintf("%s/v3/%s/events/%d?%s", c.URL, c.args[0], at+len(rows), q.Encode())
	return object{"paging": object{"next": next}, "items": objects(rows, func(h happened) any {
		return h.item["event-data"]
	})}
}

func sparkpostEvents(c *call) answer {
	q := c.r.URL.Query()
	from, err := time.Parse(time.RFC3339, q.Get("from"))
	to, wrong := time.Parse(time.RFC3339, q.Get("to"))
	if err != nil || wrong != nil || q.Get("cursor") == "" {
		return sparkpostError(400, "1300", "invalid data format/type", "from, to and cursor")
	}
	rows, next := page(c, c.between(from, to), c.askNumber("cursor"), q.Get("per_page"), 10000)
	links := object{}
	if next > 0 {
		q.Set("cursor", strconv.Itoa(next))
		links["next"] = "/api/v1/events/message?" + q.Encode()
	}
	return answer{200, nil, object{"links": links, "total_count": len(rows), "results": objects(rows,
		func(h happened) any {
			e := h.item["msys"].(object)["message_event"].(object)
			e["timestamp"] = h.at.UTC().Format(time.RFC3339)
			return e
		})}}
}

// postmarkBounces lists the newest first.
func postmarkBounces(c *call) answer {
	if c.ask("count") == "" || c.ask("offset") == "" {
		return postmarkError(422, 900, "count and offset are required")
	}
	from, _ := dayOf(c.ask("fromdate"))
	var all []happened
	for _, h := range c.between(from, c.now) {
		if h.what == Bounced {
			all = append(all, h)
		}
	}
	slices.Reverse(all)
	rows, _ := page(c, all, c.askNumber("offset"), c.ask("count"), 500)
	return answer{200, nil, object{"TotalCount": len(all), "Bounces": objects(rows, func(h happened) any {
		e := object{"Name": "Hard bounce", "DumpAvailable": true, "CanActivate": true, "Subject": "…"}
		for name, value := range h.item {
			if name != "RecordType" && name != "Metadata" {
				e[name] = value
			}
		}
		return e
	})}}
}

func brevoEvents(c *call) answer {
	from, _ := dayOf(c.ask("startDate"))
	_, to := dayOf(c.ask("endDate"))
	if c.askNumber("limit") > 5000 || c.ask("startDate") == "" || to.Before(from) {
		return brevoError(400, "out_of_range", "Limit exceeds max value, or a date is wrong")
	}
	rows, _ := page(c, c.between(from, to), c.askNumber("offset"), c.ask("limit"), 5000)
	return answer{200, nil, object{"events": objects(rows, func(h happened) any {
		e := object{"email": h.d.To, "messageId": h.d.ID, "event": "delivered", "from": h.d.From, "subject": "…",
			"date": h.at.In(time.FixedZone("", 2*3600)).Format("2006-01-02T15:04:05.000-07:00")}
		if h.what == Bounced {
			e["event"], e["reason"] = "hardBounces", unknown
		}
		return e
	})}}
}

func mailjetMessages(c *call) answer {
	rows, _ := page(c, c.between(unixOf(c.ask("FromTS")), unixOf(c.ask("ToTS"))), c.askNumber("Offset"),
		c.ask("Limit"), 1000)
	return answer{200, nil, mailjetList(objects(rows, func(h happened) any {
		m := object{"ID": json.Number(h.d.ID), "UUID": uuid(), "Status": "sent",
			"StatePermanent": h.what == Bounced, "ArrivedAt": h.at.UTC().Format(time.RFC3339)}
		if h.what == Bounced {
			m["Status"] = "hardbounced"
		}
		if c.ask("ShowContactAlt") == "true" {
			m["ContactAlt"] = h.d.To
		}
		if c.ask("ShowCustomID") == "true" {
			m["CustomID"] = h.d.Metadata["postroom_id"]
		}
		return m
	}))}
}

// resendEmails lists the newest first.
func resendEmails(c *call) answer {
	all := c.between(time.Time{}, c.now)
	slices.Reverse(all)
	at := 0
	if after := c.ask("after"); after != "" {
		at = 1 + slices.IndexFunc(all, func(h happened) bool { return h.d.ID == after })
		if at == 0 {
			return resendError(422, "validation_error", "The `after` id was not found")
		}
	}
	rows, next := page(c, all, at, c.ask("limit"), 100)
	return answer{200, nil, object{"object": "list", "has_more": next > 0, "data": objects(rows,
		func(h happened) any {
			return object{"id": h.d.ID, "to": []string{h.d.To}, "cc": nil, "bcc": nil, "from": h.d.From,
				"created_at": h.at.UTC().Format("2006-01-02 15:04:05.000000-07"), "last_event": h.what}
		})}}
}

func mandrillSearch(c *call) answer {
	var q struct {
		Query string
		From  string `json:"date_from"`
		To    string `json:"date_to"`
		Limit int
	}
	if c.decode(&q, true) != nil || q.Limit > 1000 {
		return mandrillError(-2, "ValidationError", "Validation error: {\"limit\":\"at most 1000\"}")
	}
	from, _ := dayOf(q.From)
	_, to := dayOf(q.To)
	state, found := strings.TrimPrefix(q.Query, "state:"), []happened{}
	for _, h := range c.between(from, to) {
		if state == map[Event]string{Delivered: "sent", Bounced: "bounced"}[h.what] {
			found = append(found, h)
		}
	}
	rows, _ := page(c, found, 0, "", cmp.Or(q.Limit, 100))
	return answer{200, nil, objects(rows, func(h happened) any {
		return object{"ts": h.at.Unix(), "_id": h.d.ID, "sender": h.d.From, "email": h.d.To, "tags": []string{},
			"state": state, "metadata": h.d.Metadata, "opens": 0, "clicks": 0, "smtp_events": []any{object{
				"ts": h.at.Unix(), "type": state, "diag": unknown}}}
	})}
}

// sendgridQuery is the only form of a query that is understood here.
var sendgridQuery = regexp.MustCompile(`^status="(delivered|not_delivered)" AND last_event_time BETWEEN ` +
	`TIMESTAMP "([^"]+)" AND TIMESTAMP "([^"]+)"$`)

// sendgridSold reports whether the account has the add-on.
func sendgridSold(c *call) (answer, bool) {
	return sendgridError(http.StatusForbidden, "authorization required"), !c.o.Restricted
}

// sendgridMessages lists the newest first. It has no further pages.
func sendgridMessages(c *call) answer {
	if no, ok := sendgridSold(c); !ok {
		return no
	}
	q := sendgridQuery.FindStringSubmatch(c.ask("query"))
	if q == nil {
		return sendgridError(400, "invalid query")
	}
	from, _ := time.Parse(time.RFC3339, q[2])
	to, _ := time.Parse(time.RFC3339, q[3])
	var found []happened
	for _, h := range c.between(from, to) {
		if (q[1] == "delivered") == (h.what == Delivered) {
			found = append(found, h)
		}
	}
	slices.Reverse(found)
	rows, _ := page(c, found, 0, c.ask("limit"), 1000)
	return answer{200, nil, object{"messages": objects(rows, func(h happened) any {
		return sendgridRow(h, q[1])
	})}}
}

func sendgridRow(h happened, status string) object {
	return object{"msg_id": h.item["sg_message_id"], "to_email": h.d.To, "from_email": h.d.From, "subject": "…",
		"status": status, "opens_count": 0, "clicks_count": 0, "last_event_time": h.at.UTC().Format(time.RFC3339)}
}

// sendgridDetails is one message with its events.
func sendgridDetails(c *call) answer {
	if no, ok := sendgridSold(c); !ok {
		return no
	}
	for _, h := range c.between(time.Time{}, c.now) {
		if h.item["sg_message_id"] == c.args[0] {
			m := sendgridRow(h, "not_delivered")
			at := h.at.UTC().Format(time.RFC3339)
			m["events"] = []any{object{"event_name": "processed", "processed": at},
				object{"event_name": "bounced", "processed": at, "reason": unknown, "bounce_type": "hard"}}
			return answer{200, nil, m}
		}
	}
	return sendgridError(404, "not found")
}
