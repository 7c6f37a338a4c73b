package apiadmin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/apisend"
)

// EventPage is one answer of an events API, as the events of the provider's webhooks.
type EventPage struct {
	Events  []provider.Event
	Ignored int // understood, but not needed
	Broken  int // unreadable, skipped
	// time up to which all events are on this page and those before; zero if unknown until the last page
	Until time.Time
	Next  string // cursor of the next page; empty on the last
	Note  string // what the API can't report, for the operator, if anything
}

// eventAPI is how a provider's events are read. One call makes one request.
type eventAPI struct {
	name provider.Name
	gap  time.Duration // between two requests
	page func(c *Client, ctx context.Context, t apisend.Target, q span) (EventPage, error)
}

// span is the part of the events that a page is requested for.
type span struct {
	from, to time.Time
	cursor   string // empty for the first page
}

// eventAPIs has the providers with an events API. Amazon SES has none.
var eventAPIs = map[api.GatewayType]eventAPI{
	api.GatewayMailgun:   {provider.Mailgun, gap, (*Client).mailgunEvents},
	api.GatewaySparkPost: {provider.SparkPost, gap, (*Client).sparkPostEvents},
	api.GatewayPostmark:  {provider.Postmark, gap, (*Client).postmarkBounces},
	api.GatewayBrevo:     {provider.Brevo, gap, (*Client).brevoEvents},
	api.GatewayMailjet:   {provider.Mailjet, gap, (*Client).mailjetMessages},
	api.GatewayResend:    {provider.Resend, gap, (*Client).resendEmails},
	api.GatewayMandrill:  {provider.Mandrill, 3 * gap, (*Client).mandrillMessages},  // 20 searches a minute
	api.GatewaySendGrid:  {provider.SendGrid, 10 * gap, (*Client).sendGridMessages}, // 6 requests a minute
}

// gap is the shortest time between two requests for one gateway: reading must not cost sending.
const gap = time.Second

// late is how long after a message its events are looked for, where the API selects messages or whole days.
const late = 24 * time.Hour

// HasEvents reports whether a provider has an events API that Events reads.
func HasEvents(t api.GatewayType) bool { return eventAPIs[t].page != nil }

// Events reads one page of what happened between two times to the messages of a target. cursor is empty for
// the first page, then Next of the page before. Each event has the key that it has in a webhook. Before the
// request it waits until the gateway's turn.
func (c *Client) Events(ctx context.Context, t apisend.Target, from, to time.Time, cursor string) (EventPage,
	error) {
	a := eventAPIs[t.Type]
	if a.page == nil {
		return EventPage{}, ErrLacking
	}
	if err := c.turn(ctx, t, a.gap); err != nil {
		return EventPage{}, err
	}
	page, err := a.page(c, ctx, t, span{from.UTC(), to.UTC(), cursor})
	if err == nil && cursor != "" && page.Next == cursor {
		err = strange("the list of events has no end: a page leads to itself")
	}
	return page, err
}

// turn waits until the next request for a gateway may leave.
func (c *Client) turn(ctx context.Context, t apisend.Target, gap time.Duration) error {
	c.mu.Lock()
	now, id := time.Now(), t.ID+" "+t.Base()+" "+t.Domain
	wait := max(c.turns[id].Sub(now), 0)
	if c.turns == nil {
		c.turns = map[string]time.Time{}
	}
	c.turns[id] = now.Add(wait + gap)
	c.mu.Unlock()
	if wait == 0 {
		return ctx.Err()
	}
	if c.Wait != nil {
		return c.Wait(ctx, wait)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}

// add reads an item in the form that the provider's webhook gives it.
func (p *EventPage) add(name provider.Name, webhook any) {
	body, err := json.Marshal(webhook)
	q := provider.Request{Header: http.Header{}, Body: body}
	if name == provider.Mandrill {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		q.Body = []byte(url.Values{"mandrill_events": {string(body)}}.Encode())
	}
	var batch provider.Batch
	if err == nil {
		batch, err = provider.Read(name, q)
	}
	if err != nil {
		p.Broken++
		return
	}
	p.Events = append(p.Events, batch.Events...)
	p.Ignored += len(batch.Ignored)
	p.Broken += len(batch.Broken)
}

// following is after, and an error for a page elsewhere: without it the list would seem to end there.
func following(t apisend.Target, next string) (string, error) {
	path := after(t, next)
	if path == "" && next != "" {
		return "", strange("the next page is at another host; it isn't read, because the key would go there")
	}
	return path, nil
}

// answered returns the HTTP status of an error; 0 if there was no answer.
func answered(err error) int {
	if e, ok := errors.AsType[*smtpsend.Error](err); ok {
		return e.Status
	}
	return 0
}

// offset reads a cursor that is a number of rows.
func (q span) offset() int { return number(q.cursor) }

// number returns a number in a cursor; other text is 0.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// path joins a path and its query.
func path(p string, query url.Values) string { return p + "?" + query.Encode() }

// words splits a cursor at bars, into at least n parts.
func words(cursor string, n int) []string {
	parts := strings.Split(cursor, "|")
	for len(parts) < n {
		parts = append(parts, "")
	}
	return parts
}
