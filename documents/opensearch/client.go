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

// requestTimeout bounds one try of one request.
const requestTimeout = 30 * time.Second

// tries is how often a request is made again, at another node where there is one, when a node is away. Jobs are repeated anyway.
const tries = 2

// maxAnswer bounds what is read of an answer: a page of documents with their texts.
const maxAnswer = 256 << 20

// newClient makes a client for the nodes of a cluster. Its requests are plain, so that Elasticsearch takes them as well.
func newClient(ctx context.Context, addresses string) (*client.Client, error) {
	c := client.Config{
		MaxRetries: tries, RequestTimeout: requestTimeout, Context: ctx,
		HealthCheckMaxRetries: -1, MaxRetryClusterHealth: -1, // these ask what only OpenSearch answers
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

// reply is what a request was answered with.
type reply struct {
	status int
	body   []byte
	wait   time.Duration // how long to leave it alone; zero: it does not say
}

// read reads the answer's JSON.
func (r reply) read(into any) error {
	if err := json.Unmarshal(r.body, into); err != nil {
		return fmt.Errorf("read the answer of the search cluster: %w", err)
	}
	return nil
}

// refusal is an answer that is none.
type refusal struct {
	Status int
	Type   string // such as index_not_found_exception
	Reason string
}

// Error tells what the cluster said.
func (r *refusal) Error() string {
	return fmt.Sprintf("the search cluster answers %d %s: %s", r.Status, r.Type, r.Reason)
}

// isMissing reports whether what was asked for is not there.
func isMissing(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.Status == http.StatusNotFound
}

// do makes a request whose body is JSON, or nothing.
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

// send makes a request.
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

// away is an error of the way to the cluster.
func (s *Store) away(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fault.Wrap(err, fault.Unavailable, "SearchFailed", "The search cluster does not answer; try again shortly")
}

// judge turns an answer that is none into an error.
func (r reply) judge() error {
	if r.status < 300 {
		return nil
	}
	var said struct {
		Error json.RawMessage `json:"error"`
	}
	why := &refusal{Status: r.status}
	if json.Unmarshal(r.body, &said) == nil && json.Unmarshal(said.Error, why) != nil {
		why.Reason = string(said.Error) // a text, where an alias is missing
	}
	if r.status != http.StatusTooManyRequests && r.status < 500 {
		return why
	}
	f := fault.Wrap(why, fault.Unavailable, "SearchFailed", "The search cluster has too much to do, or does not work; try again shortly")
	f.RetryAfter = r.wait
	return f
}

// retryAfter reads how long to wait, in seconds. The other form of it, a date, clusters don't send.
func retryAfter(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 3600 {
		return 0
	}
	return time.Duration(n) * time.Second
}
