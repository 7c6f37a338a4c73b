package api

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
)

// maxAnswer bounds what the client reads of an answer: the largest page of the outbox is far below it.
const maxAnswer = 256 << 20

// Client talks to one Postroom. It is safe for concurrent use. It never retries: a submit that is repeated after an error without an
// answer needs an idempotency key, and whether to repeat is the caller's to decide.
type Client struct {
	base  string
	token string
	http  *http.Client
}

// NewClient makes a client for the Postroom at baseURL, such as http://127.0.0.1:3000, that presents the access token. A nil
// http.Client means one with a timeout of a minute.
func NewClient(baseURL, token string, h *http.Client) *Client {
	if h == nil {
		h = &http.Client{Timeout: time.Minute}
	}
	return &Client{base: strings.TrimRight(baseURL, "/"), token: token, http: h}
}

// call is one request: what is asked of which path, and where the answer goes.
type call struct {
	method string
	path   string
	query  url.Values
	in     any       // nil: no body, or the one below
	body   io.Reader // of the type kind, sent as it is read
	kind   string
	out    any // *[]byte: the answer as it is; nil: it is not wanted
	accept int // a further status that is an answer and not a failure
}

// do makes a request. An answer that is not a success is a *Failure.
func (c *Client) do(ctx context.Context, r call) error {
	resp, err := c.send(ctx, r)
	if err != nil {
		return fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end, or given up
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%s %s: read answer: %w", r.method, r.path, err)
	}
	if (resp.StatusCode < 200 || resp.StatusCode > 299) && resp.StatusCode != r.accept {
		return failure(resp, body)
	}
	switch out := r.out.(type) {
	case nil:
		return nil
	case *[]byte:
		*out = body
		return nil
	}
	if err := json.Unmarshal(body, r.out); err != nil {
		return fmt.Errorf("%s %s: read answer: %w", r.method, r.path, err)
	}
	return nil
}

func (c *Client) send(ctx context.Context, r call) (*http.Response, error) {
	body, kind := r.body, r.kind
	if r.in != nil {
		kind = "application/json"
		text, err := json.Marshal(r.in)
		if err != nil {
			return nil, fmt.Errorf("write request: %w", err)
		}
		body = bytes.NewReader(text)
	}
	address := c.base + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, body)
	if err != nil {
		return nil, err
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if e, ok := errors.AsType[*url.Error](err); ok {
		return nil, e.Err // without the address, which the caller's message has already
	}
	return resp, err
}

// failure reads the problem that an answer tells of. Something else than Postroom may have answered, such as a proxy.
func failure(resp *http.Response, body []byte) error {
	f := &Failure{}
	if err := json.Unmarshal(body, &f.Problem); err != nil || f.Problem.StatusCode == 0 {
		f.Problem = Problem{
			StatusCode: resp.StatusCode, Error: http.StatusText(resp.StatusCode), Message: "the answer is not one of Postroom's",
			RequestID: resp.Header.Get("X-Request-Id"),
		}
	}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		f.RetryAfter = time.Duration(seconds) * time.Second
	}
	return f
}

// at writes a path, each part of which may hold any character.
func at(parts ...string) string {
	var b strings.Builder
	for _, part := range parts {
		b.WriteString("/" + url.PathEscape(part))
	}
	return b.String()
}

// pageQuery asks for a page of a list.
func pageQuery(page, pageSize int) url.Values {
	q := url.Values{}
	if page > 0 {
		q.Set("page", strconv.Itoa(page))
	}
	if pageSize > 0 {
		q.Set("pageSize", strconv.Itoa(pageSize))
	}
	return q
}
