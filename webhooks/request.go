package webhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/telemetry"
)

const (
	headSize  = 4 << 10  // bytes kept of a response
	drainSize = 64 << 10 // bytes read and dropped beyond that, so that the connection can be reused
)

// body is the request body: EmailEngine's fields in its order, and the event's id.
type body struct {
	ServiceURL *string         `json:"serviceUrl"` // null when no public address is set
	Account    *string         `json:"account"`    // null for events of the whole instance
	Date       string          `json:"date"`
	Event      event.Type      `json:"event"`
	Data       json.RawMessage `json:"data"`
	EventID    string          `json:"eventId"`
}

// writeBody returns the request body of an event. It is the same for every attempt while the service URL
// is.
func writeBody(e event.Event, serviceURL string) ([]byte, error) {
	b := body{Date: e.Time.UTC().Format("2006-01-02T15:04:05.000Z"), Event: e.Type, Data: e.Data, EventID: e.ID}
	if serviceURL != "" {
		b.ServiceURL = &serviceURL
	}
	if e.Account != "" {
		b.Account = &e.Account
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // <message@id> stays readable, as in the original
	if err := enc.Encode(b); err != nil {
		return nil, fmt.Errorf("write body of event %s: %w", e.ID, err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// posting is one request about to be made.
type posting struct {
	to       *target
	event    event.Event
	delivery string // id
	attempt  int    // from 1
	created  time.Time
}

// poster makes requests. Its client ignores the proxy settings of the environment: a proxy would dial for us
// and bypass the check of the destination.
type poster struct {
	client  *http.Client
	timeout time.Duration
	secret  string // the instance's signing secret, for X-EE-Wh-Signature
	agent   string // "postroom/1.2.3"
	service func() string
	traces  *telemetry.Tracer // nil means no traces
}

// post makes one request and returns its result. It never follows a redirect. The request carries the trace
// of its event.
func (p *poster) post(ctx context.Context, x posting, now time.Time) reply {
	ctx, span := p.traces.Child(p.traces.Continue(ctx, x.event.Trace), "webhook", telemetry.Asks)
	defer span.End()
	span.Set("postroom.event", string(x.event.Type))
	span.Set("postroom.endpoint", x.to.id)
	span.SetInt("postroom.attempt", x.attempt)
	got := p.send(ctx, x, now)
	if got.status > 0 {
		span.SetInt("http.response.status_code", got.status)
	}
	switch {
	case got.err != nil:
		span.Fail("no answer")
	case got.status >= http.StatusMultipleChoices:
		span.Fail("refused")
	}
	return got
}

func (p *poster) send(ctx context.Context, x posting, now time.Time) reply {
	payload, err := writeBody(x.event, p.service())
	if err != nil {
		return reply{err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.to.url, bytes.NewReader(payload))
	if err != nil {
		return reply{err: fmt.Errorf("%w: the URL can't be read", dialing.ErrRefused)}
	}
	req.URL.RawQuery = writtenQuery(req.URL.RawQuery)
	p.setHeaders(req.Header, x, payload, now)
	p.traces.Outgoing(ctx, req.Header)
	start := time.Now()
	res, err := p.client.Do(req)
	if err != nil {
		return reply{err: p.plain(err), latency: time.Since(start)}
	}
	defer res.Body.Close()
	head := readHead(res.Body)
	return reply{
		status: res.StatusCode, retryAfter: dialing.RetryAfter(res.Header, now), head: head,
		latency: time.Since(start),
	}
}

// setHeaders sets the headers: the endpoint's own first, so that none of them can replace one of
// Postroom's.
func (p *poster) setHeaders(h http.Header, x posting, payload []byte, now time.Time) {
	agent := p.agent
	if service := p.service(); service != "" {
		agent += " (+" + service + ")"
	}
	h.Set("User-Agent", agent)
	for name, value := range x.to.headers {
		if checkHeader(name, value) == nil {
			h.Set(name, value)
		}
	}
	h.Set("Content-Type", "application/json")
	id := webhookID(x.event.ID, x.to.id)
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
	if keys := x.to.keys(now); len(keys) > 0 {
		h.Set("Webhook-Signature", standardSignature(id, now, payload, keys))
	}
	if p.secret != "" {
		h.Set("X-EE-Wh-Signature", serviceSignature(payload, p.secret))
	}
	h.Set("X-EE-Wh-Id", x.delivery)
	h.Set("X-EE-Wh-Event-Id", x.event.ID)
	h.Set("X-EE-Wh-Attempts-Made", strconv.Itoa(x.attempt-1))
	h.Set("X-EE-Wh-Queued-Time",
		fmt.Sprintf("%ds", max(0, int(now.Sub(x.created).Round(time.Second).Seconds()))))
}

// plain removes the URL from an error of net/http, because it may hold a token, and shortens time-outs.
func (p *poster) plain(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s: %w", p.timeout, err)
	}
	return err
}

// readHead returns the beginning of a response as text that is safe to show: valid UTF-8 without control
// characters except line breaks and tabs. Pages escape it again for HTML.
func readHead(r io.Reader) string {
	head, _ := io.ReadAll(io.LimitReader(r, headSize)) // a response that breaks off is still a response
	_, _ = io.Copy(io.Discard, io.LimitReader(r, drainSize))
	return message.Clip(printable(string(head)), headSize)
}

// printable replaces characters that could move a terminal's cursor or break a page.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\n' && c != '\t' || c >= 0x7f && c <= 0x9f || c == '\u2028' || c == '\u2029' {
			return '\uFFFD'
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
