package opensearch

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

	client "github.com/opensearch-project/opensearch-go/v4"

	"github.com/postroom/postroom/api/fault"
)

// requestTimeout is the timeout of one request attempt.
const requestTimeout = 30 * time.Second

// tries is the number of retries, at another node if there is one, if a node is unreachable. Tasks are
// retried anyway.
const tries = 2

// maxAnswer is the maximum size of a response: a page of documents with their texts.
const maxAnswer = 256 << 20

// newClient returns a client for the nodes of a cluster. Its requests are basic, so that Elasticsearch
// accepts them.
func newClient(ctx context.Context, addresses string, over http.RoundTripper) (*client.Client, error) {
	c := client.Config{
		MaxRetries: tries, RequestTimeout: requestTimeout, Context: ctx,
		Transport:             over,
		HealthCheckMaxRetries: -1, MaxRetryClusterHealth: -1, // only OpenSearch answers these
	}
	for _, node := range strings.Split(addresses, ",") {
		u, err := url.Parse(strings.TrimSpace(node))
		if err != nil {
			return nil, errors.New("the address of the search index is not one") // it may hold a password
		}
		if u.User != nil {
			c.Username = u.User.Username()
			c.Password, _ = u.User.Password()
			u.User = nil
		}
		c.Addresses = append(c.Addresses, u.String())
	}
	return client.NewClient(c)
}

// refusal is an error response.
type refusal struct {
	Status int
	Type   string // such as index_not_found_exception
	Reason string
}

// Error returns the cluster's error.
func (r *refusal) Error() string {
	return fmt.Sprintf("the search cluster answers %d %s: %s", r.Status, r.Type, r.Reason)
}

// isMissing reports whether err means that the requested object does not exist.
func isMissing(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.Status == http.StatusNotFound
}

// do sends a request with a JSON body (nil: none), and decodes the JSON of the response (nil: ignores it).
func (s *Store) do(ctx context.Context, method, path string, body, into any) error {
	var raw []byte
	contentType := ""
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return fmt.Errorf("write a request to the search cluster: %w", err)
		}
		contentType = "application/json"
	}
	_, err := s.send(ctx, method, path, contentType, raw, into)
	return err
}

// send sends a request, and decodes the response. wait is the delay that the cluster requests, or zero.
func (s *Store) send(ctx context.Context, method, path, contentType string, body []byte, into any) (
	wait time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	if body == nil {
		req.Body, req.ContentLength = nil, 0
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	req.Header.Set("Accept", "application/json")
	res, err := s.client.Stream(req)
	if res == nil {
		return 0, s.away(ctx, err)
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	wait = retryAfter(res.Header.Get("Retry-After"))
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case err != nil:
		return wait, s.away(ctx, err)
	case res.StatusCode >= 300:
		return wait, refused(res.StatusCode, answer, wait)
	case into == nil:
		return wait, nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return wait, fmt.Errorf("read the answer of the search cluster: %w", err)
	}
	return wait, nil
}

// away returns the error for a failed connection.
func (s *Store) away(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fault.Wrap(err, fault.Unavailable, "SearchFailed",
		"The search cluster doesn't respond. Try again shortly")
}

// refused returns the error of an error response.
func refused(status int, answer []byte, wait time.Duration) error {
	var body struct {
		Error json.RawMessage `json:"error"`
	}
	why := &refusal{Status: status}
	if json.Unmarshal(answer, &body) == nil && json.Unmarshal(body.Error, why) != nil {
		why.Reason = string(body.Error) // a plain text for a missing alias
	}
	if status != http.StatusTooManyRequests && status < 500 {
		return why
	}
	f := fault.Wrap(why, fault.Unavailable, "SearchFailed",
		"The search cluster is overloaded or not working. Try again shortly")
	f.RetryAfter = wait
	return f
}

// retryAfter parses a delay in seconds. Clusters do not send the date form.
func retryAfter(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 3600 {
		return 0
	}
	return time.Duration(n) * time.Second
}
