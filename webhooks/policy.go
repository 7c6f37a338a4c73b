package webhooks

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/postroom/postroom/internal/dialing"
)

// reply is the result of one request: a response, or an error if there was none.
type reply struct {
	status     int           // 0 if there was no response
	retryAfter time.Duration // requested by the response; 0 if none
	head       string        // beginning of the response's body
	latency    time.Duration
	err        error // why there was no response
}

// outcome is the state of a delivery after a request.
type outcome string

const (
	delivered outcome = "delivered" // a 2xx answer: over
	retrying  outcome = "retrying"  // another attempt will be made
	failed    outcome = "failed"    // over, without success
)

// decision is what to do after a request.
type decision struct {
	outcome outcome
	next    time.Time // the next attempt's time; zero unless retrying
	gone    bool      // the endpoint returned 410: switch it off
	err     error     // what went wrong; nil when delivered
}

// policy holds the parameters of decide.
type policy struct {
	attempts      int                     // requests in all for one delivery
	delay         func(int) time.Duration // wait before attempt n, jitter included
	maxRetryAfter time.Duration           // maximum of what an endpoint may request
}

// decide returns what follows from reply r to the given attempt (from 1) of a delivery.
// A 2xx is success. A 410 ends the delivery and switches the endpoint off. Any other 4xx ends it too,
// because a repeated request gets the same response; 408, 425 and 429 are temporary and retried. A refused
// destination ends it. Everything else is retried: no response, 5xx, and 3xx. A redirect is never followed
// (Standard Webhooks 1.0), but an operator can fix it while attempts are left.
func (p policy) decide(r reply, attempt int, now time.Time) decision {
	switch {
	case r.ok():
		return decision{outcome: delivered}
	case r.status == http.StatusGone:
		return decision{outcome: failed, gone: true, err: r.fault()}
	case !r.retryable() || attempt >= p.attempts:
		return decision{outcome: failed, err: r.fault()}
	}
	wait := max(p.delay(attempt+1), min(r.retryAfter, p.maxRetryAfter))
	return decision{outcome: retrying, next: now.Add(wait), err: r.fault()}
}

// ok reports whether the endpoint accepted the event.
func (r reply) ok() bool { return r.err == nil && r.status >= 200 && r.status < 300 }

// retryable reports whether a retry of the same request may succeed.
func (r reply) retryable() bool {
	if r.err != nil {
		return !errors.Is(r.err, dialing.ErrRefused)
	}
	switch r.status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return r.status < 400 || r.status >= 500
}

// fault returns an error that describes the reply.
func (r reply) fault() error {
	switch {
	case r.err != nil:
		return r.err
	case r.status >= 300 && r.status < 400:
		return fmt.Errorf("answered %d: redirects are not followed", r.status)
	default:
		return fmt.Errorf("answered %d %s", r.status, http.StatusText(r.status))
	}
}
