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

// maxAnswer limits the size of a response. The largest page of the outbox is far below it.
const maxAnswer = 256 << 20

// Client talks to one Postroom, through the routes of this package: Submit.Do(ctx, client, request). It is
// safe for concurrent use. It never retries. To repeat a submit after an error without a response, set
// an idempotency key; the caller decides whether to repeat.
type Client struct {
	base  string
	token string
	http  *http.Client
}

// NewClient returns a client for the Postroom at baseURL, such as http://127.0.0.1:3000, that uses the access
// token. A nil http.Client means one with a timeout of one minute.
func NewClient(baseURL, token string, h *http.Client) *Client {
	if h == nil {
		h = &http.Client{Timeout: time.Minute}
	}
	return &Client{base: strings.TrimRight(baseURL, "/"), token: token, http: h}
}

// Base returns the URL of the Postroom that the client talks to, without a slash at its end.
func (c *Client) Base() string { return c.base }

// request is one request before it is sent.
type request struct {
	method, path string
	query        url.Values
	body         io.Reader
	kind         string // media type of the body
}

// newRequest replaces the braces of a route's path in order. A value may contain any character.
func newRequest(route string, ids []any) request {
	method, rest, _ := strings.Cut(route, " ")
	path, kind, _ := strings.Cut(rest, " ")
	steps := strings.Split(path, "/")
	for i, step := range steps {
		if strings.HasPrefix(step, "{") && len(ids) > 0 {
			steps[i], ids = url.PathEscape(fmt.Sprint(ids[0])), ids[1:]
		}
	}
	return request{method: method, path: strings.Join(steps, "/"), kind: kind}
}

// send sends a request. If the error is nil, the response is a success and the caller closes its body. An
// error response is a *Failure.
func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	address := c.base + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, r.body)
	if err != nil {
		return nil, r.failed(err)
	}
	if r.body != nil {
		req.Header.Set("Content-Type", r.kind)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the URL, which the message contains already
	}
	if err != nil {
		return nil, r.failed(err)
	}
	notReady := resp.StatusCode == http.StatusServiceUnavailable && r.path == "/ready" // no error
	if resp.StatusCode >= 200 && resp.StatusCode <= 299 || notReady {
		return resp, nil
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end, or given up
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, r.failed(err)
	}
	return nil, failure(resp, body)
}

// failed returns err with the request's method and path.
func (r request) failed(err error) error { return fmt.Errorf("%s %s: %w", r.method, r.path, err) }

// answer sends a request and decodes the response: JSON, or the raw body for []byte.
func answer[Out any](ctx context.Context, c *Client, r request) (out Out, err error) {
	resp, err := c.send(ctx, r)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end, or given up
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return out, r.failed(err)
	}
	if raw, ok := any(&out).(*[]byte); ok {
		*raw = body
	} else if err := json.Unmarshal(body, &out); err != nil {
		return out, r.failed(fmt.Errorf("read answer: %w", err))
	}
	return out, nil
}

// copy sends a request and writes the response to w while it arrives.
func (c *Client) copy(ctx context.Context, r request, w io.Writer) error {
	resp, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end, or given up
	if _, err := io.Copy(w, resp.Body); err != nil {
		return r.failed(err)
	}
	return nil
}

// failure decodes the problem of a response. A proxy may have sent another body.
func failure(resp *http.Response, body []byte) error {
	f := &Failure{}
	if err := json.Unmarshal(body, &f.Problem); err != nil || f.Problem.StatusCode == 0 {
		f.Problem = Problem{
			StatusCode: resp.StatusCode, Error: http.StatusText(resp.StatusCode),
			Message: "the answer is not one of Postroom's", RequestID: resp.Header.Get("X-Request-Id"),
		}
	}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		f.RetryAfter = time.Duration(seconds) * time.Second
	}
	return f
}

// untimed returns the client without a timeout for a whole request.
func (c *Client) untimed() *Client {
	h := *c.http
	h.Timeout = 0
	return &Client{base: c.base, token: c.token, http: &h}
}

func (r request) jsonBody(in any) (request, error) {
	text, err := json.Marshal(in)
	r.body, r.kind = bytes.NewReader(text), "application/json"
	if err != nil {
		return r, r.failed(fmt.Errorf("write request: %w", err))
	}
	return r, nil
}
