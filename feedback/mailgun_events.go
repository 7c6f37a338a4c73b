package feedback

import (
	"cmp"
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

	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/internal/redisdb"
)

type MailgunOptions struct {
	APIKey string // of the account or the domain; needed
	Domain string // needed
	// empty: https://api.mailgun.net; for domains in the EU https://api.eu.mailgun.net
	BaseURL   string
	Transport http.RoundTripper // nil: any address but those never dialed, through the proxy of the environment
	// Wait waits before a request is repeated, until ctx ends; nil: by the clock.
	Wait func(ctx context.Context, d time.Duration)
}

// Mailgun is the events API of Mailgun (GET /v3/<domain>/events), which keeps events for one to thirty days.
type Mailgun struct {
	base   *url.URL
	path   string
	key    string
	client *http.Client
	wait   func(ctx context.Context, d time.Duration)
}

const (
	mailgunBase    = "https://api.mailgun.net"
	mailgunLimit   = 300 // events of a page; the most that Mailgun allows
	mailgunAnswer  = 16 << 20
	mailgunTimeout = 30 * time.Second
	mailgunTries   = 3                // repeats of a request that Mailgun refused for now
	mailgunPause   = 10 * time.Second // before a repeat, if Mailgun names no other
	mailgunLongest = 2 * time.Minute  // bounds the wait before each
)

// NewMailgun returns a Mailgun. It does no I/O.
func NewMailgun(o MailgunOptions) (*Mailgun, error) {
	o.BaseURL = cmp.Or(o.BaseURL, mailgunBase)
	base, err := url.Parse(o.BaseURL)
	switch {
	case err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" ||
		base.RawQuery != "" || base.User != nil:
		return nil, errors.New("the base URL of Mailgun's API must be an address such as https://api.mailgun.net")
	case o.APIKey == "":
		return nil, errors.New("the events API of Mailgun needs a key")
	case o.Domain == "" || strings.ContainsAny(o.Domain, "/?#% "):
		return nil, errors.New("the events API of Mailgun needs the name of a domain")
	}
	if o.Wait == nil {
		o.Wait = func(ctx context.Context, d time.Duration) { redisdb.Pause(ctx, d) }
	}
	// no redirect is followed: the key must not go to another host
	client := dialing.New(dialing.Options{AllowPrivate: true}).Client(dialing.HTTP{Timeout: mailgunTimeout,
		Environment: true})
	client.Transport = cmp.Or(o.Transport, client.Transport)
	return &Mailgun{
		base: base, path: strings.TrimSuffix(base.Path, "/") + "/v3/" + o.Domain + "/events", key: o.APIKey,
		wait:   o.Wait,
		client: client,
	}, nil
}

// Events returns one page of the events between two times, oldest first. page is empty for the first page,
// then Page.Next of the page before, a URL. An empty Page.Next ends the list: Mailgun always gives a next
// URL, and ends the list with an empty page.
func (m *Mailgun) Events(ctx context.Context, from, to time.Time, page string) (Page, error) {
	address, err := m.address(from, to, page)
	if err != nil {
		return Page{}, err
	}
	raw, err := m.ask(ctx, address)
	if err != nil {
		return Page{}, err
	}
	var answer struct {
		Items  []json.RawMessage `json:"items"`
		Paging struct {
			Next string `json:"next"`
		} `json:"paging"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return Page{}, fmt.Errorf("read the answer: %w", err)
	}
	var out Page
	for _, item := range answer.Items {
		out.add(item)
	}
	if len(answer.Items) > 0 {
		out.Next = answer.Paging.Next
	}
	return out, nil
}

// add reads one event, which has the form of event-data in a webhook. An unreadable one is skipped.
func (p *Page) add(item json.RawMessage) {
	var when struct {
		Timestamp float64 `json:"timestamp"`
	}
	if json.Unmarshal(item, &when) == nil && when.Timestamp > 0 {
		if at := time.UnixMicro(int64(when.Timestamp * 1e6)).UTC(); at.After(p.Until) {
			p.Until = at
		}
	}
	body, err := json.Marshal(map[string]any{"event-data": item, "signature": struct{}{}})
	if err != nil {
		p.Broken++
		return
	}
	batch, err := provider.Read(provider.Mailgun, provider.Request{Body: body})
	if err != nil {
		p.Broken++
		return
	}
	p.Events = append(p.Events, batch.Events...)
	p.Ignored += len(batch.Ignored)
	p.Broken += len(batch.Broken)
}

// address returns the URL to request. The URL of a page came from outside: it must have the host of the first
// one, because the key is sent with it.
func (m *Mailgun) address(from, to time.Time, page string) (string, error) {
	if page == "" {
		u := *m.base
		u.Path = m.path
		u.RawQuery = url.Values{
			"begin": {seconds(from)}, "end": {seconds(to)}, "ascending": {"yes"},
			"limit": {strconv.Itoa(mailgunLimit)},
			"event": {"delivered OR failed OR rejected OR complained OR unsubscribed OR opened OR clicked"},
		}.Encode()
		return u.String(), nil
	}
	u, err := url.Parse(page)
	if err != nil || u.Scheme != m.base.Scheme || u.Host != m.base.Host || u.User != nil ||
		!strings.HasPrefix(u.Path, m.path+"/") || strings.Contains(u.Path, "..") {
		return "", errors.New("the address of the next page does not lead to the events of the domain")
	}
	return page, nil
}

// seconds returns a time in Mailgun's format.
func seconds(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

// ask makes a request, and repeats it while Mailgun refuses it for now.
func (m *Mailgun) ask(ctx context.Context, address string) ([]byte, error) {
	for try := 0; ; try++ {
		raw, after, err := m.once(ctx, address)
		if err == nil || after == 0 || try == mailgunTries {
			return raw, err
		}
		m.wait(ctx, min(after, mailgunLongest))
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// once makes one request. after is the time to wait before a repeat; zero: a repeat is no use.
func (m *Mailgun) once(ctx context.Context, address string) (raw []byte, after time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, 0, err
	}
	request.SetBasicAuth("api", m.key)
	answer, err := m.client.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode == http.StatusTooManyRequests:
		pause := cmp.Or(dialing.RetryAfter(answer.Header, time.Now()), mailgunPause)
		return nil, pause, errors.New("too many requests")
	case answer.StatusCode != http.StatusOK:
		return nil, 0, fmt.Errorf("status %d", answer.StatusCode)
	}
	raw, err = io.ReadAll(io.LimitReader(answer.Body, mailgunAnswer+1))
	if err == nil && len(raw) > mailgunAnswer {
		err = errors.New("the answer is too large")
	}
	return raw, 0, err
}
