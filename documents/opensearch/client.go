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

	"github.com/postroom/postroom/fault"
)

// requestTimeout is the timeout of one attempt of a request.
const requestTimeout = 30 * time.Second

// tries is the number of retries, at another node if there is one, if a node is unreachable. Tasks are
// retried anyway.
const tries = 2

// maxAnswer is the maximum size of a response: a page of documents with their texts.
const maxAnswer = 256 << 20

// newClient returns a client for the nodes of a cluster. Its requests are basic, so that Elasticsearch
// accepts them.
func newClient(ctx context.Context, addresses string) (*client.Client, error) {
	c := client.Config{
		MaxRetries: tries, RequestTimeout: requestTimeout, Context: ctx,
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

// reply is the response to a request.
type reply struct {
	status int
	body   []byte
	wait   time.Duration // Retry-After; zero: none
}

// read decodes the JSON of the response.
func (r reply) read(into any) error {
	if err := json.Unmarshal(r.body, into); err != nil {
		return fmt.Errorf("read the answer of the search cluster: %w", err)
	}
	return nil
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

// do sends a request with a JSON body, or none.
func (s *Store) do(ctx context.Context, method, path string, body any) (reply, error) {
	if body == nil {
		return s.send(ctx, method, path, "", nil)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return reply{}, fmt.Errorf("write a request to the search cluster: %w", err)
	}
	return s.send(ctx, method, path, "application/json", raw)
}

// send sends a request.
func (s *Store) send(ctx context.Context, method, path, contentType string, body []byte) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
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
		return reply{}, s.away(ctx, err)
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	r := reply{status: res.StatusCode, wait: retryAfter(res.Header.Get("Retry-After"))}
	if r.body, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer)); err != nil {
		return r, s.away(ctx, err)
	}
	return r, r.judge()
}

// away returns the fault of a connection error.
func (s *Store) away(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fault.Wrap(err, fault.Unavailable, "SearchFailed",
		"The search cluster does not answer; try again shortly")
}

// judge returns the error of an error response.
func (r reply) judge() error {
	if r.status < 300 {
		return nil
	}
	var said struct {
		Error json.RawMessage `json:"error"`
	}
	why := &refusal{Status: r.status}
	if json.Unmarshal(r.body, &said) == nil && json.Unmarshal(said.Error, why) != nil {
		why.Reason = string(said.Error) // a plain text for a missing alias
	}
	if r.status != http.StatusTooManyRequests && r.status < 500 {
		return why
	}
	f := fault.Wrap(why, fault.Unavailable, "SearchFailed",
		"The search cluster has too much to do, or does not work; try again shortly")
	f.RetryAfter = r.wait
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
