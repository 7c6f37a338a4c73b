package webhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/event"
)

const (
	headSize  = 4 << 10  // kept of an answer
	drainSize = 64 << 10 // read and dropped beyond that, so that the connection can be used again
)

// body is what is posted: EmailEngine's fields in its order, and the event's id.
type body struct {
	ServiceURL *string         `json:"serviceUrl"` // null when no public address is set
	Account    *string         `json:"account"`    // null for events of the whole instance
	Date       string          `json:"date"`
	Event      event.Type      `json:"event"`
	Data       json.RawMessage `json:"data"`
	EventID    string          `json:"eventId"`
}

// writeBody gives the bytes to post for an event. They are the same for every attempt as long as the service URL is.
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

// poster makes requests. Its transport reads no proxy settings from the environment: a proxy would dial for us, past the check of the
// destination.
type poster struct {
	client  *http.Client
	timeout time.Duration
	secret  string // the instance's signing secret, for X-EE-Wh-Signature
	agent   string // "postroom/1.2.3"
	service func() string
}

// newDialer makes a dialer that looks at every address before it connects.
func newDialer(d destinations) *net.Dialer {
	return &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Control: d.control}
}

// newTransport makes the transport of a poster.
func newTransport(dialer *net.Dialer, perEndpoint int) *http.Transport {
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // the answer is only shown; a small one that unpacks to gigabytes is of no use
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    perEndpoint,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// post makes one request and says what came of it. It never follows a redirect.
func (p *poster) post(ctx context.Context, x posting, now time.Time) reply {
	payload, err := writeBody(x.event, p.service())
	if err != nil {
		return reply{err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, x.to.url, bytes.NewReader(payload))
	if err != nil {
		return reply{err: fmt.Errorf("%w: the URL can't be read", errRefused)}
	}
	p.setHeaders(req.Header, x, payload, now)
	start := time.Now()
	res, err := p.client.Do(req)
	if err != nil {
		return reply{err: p.plain(err), latency: time.Since(start)}
	}
	defer res.Body.Close()
	head := readHead(res.Body)
	return reply{
		status: res.StatusCode, retryAfter: parseRetryAfter(res.Header.Get("Retry-After"), now), head: head, latency: time.Since(start),
	}
}

// setHeaders writes the headers: the endpoint's own first, so that none of them can replace one of ours.
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
	h.Set("X-EE-Wh-Queued-Time", fmt.Sprintf("%ds", max(0, int(now.Sub(x.created).Round(time.Second).Seconds()))))
}

// plain takes the URL out of an error of net/http, for it may hold a token, and says in short what a time-out was.
func (p *poster) plain(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s: %w", p.timeout, err)
	}
	return err
}

// readHead keeps the beginning of an answer as text that can be shown anywhere: valid UTF-8 without control characters but line breaks
// and tabs. Pages escape it again for HTML.
func readHead(r io.Reader) string {
	head, _ := io.ReadAll(io.LimitReader(r, headSize)) // an answer that breaks off has still answered
	_, _ = io.Copy(io.Discard, io.LimitReader(r, drainSize))
	return shorten(printable(string(head)), headSize)
}

// printable replaces what could move a terminal's cursor or break a page.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\n' && c != '\t' || c >= 0x7f && c <= 0x9f || c == '\u2028' || c == '\u2029' {
			return '\uFFFD'
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
