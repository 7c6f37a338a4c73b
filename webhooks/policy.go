package webhooks

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// reply is what came of one request: an answer, or an error where none came.
type reply struct {
	status     int           // 0 when no answer came
	retryAfter time.Duration // what the answer asked for; 0 when it did not
	head       string        // beginning of the answer's body
	latency    time.Duration
	err        error // why no answer came
}

// outcome is what a delivery becomes after a request.
type outcome string

const (
	delivered outcome = "delivered" // a 2xx answer: over
	retrying  outcome = "retrying"  // another attempt will be made
	failed    outcome = "failed"    // over, without success
)

// decision is what to do after a request.
type decision struct {
	outcome outcome
	next    time.Time // of the next attempt; zero unless retrying
	gone    bool      // the endpoint said that it does not exist any more: switch it off
	err     error     // what went wrong; nil when delivered
}

// policy holds the numbers behind decide.
type policy struct {
	attempts      int                     // requests in all for one delivery
	delay         func(int) time.Duration // wait before attempt n, jitter included
	maxRetryAfter time.Duration           // bound on what an endpoint may ask for
}

// decide says what becomes of a delivery after its given attempt (from 1) met r.
//
// A 2xx is success. A 410 stops and switches the endpoint off. Any other 4xx stops too, for the same request will meet the same answer,
// but for 408, 425 and 429, which speak of time. A refused destination stops. Everything else is tried again: no answer, 5xx, and 3xx,
// which is never followed (Standard Webhooks 1.0) but which an operator can mend while the attempts last.
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

// ok says whether the endpoint took the event.
func (r reply) ok() bool { return r.err == nil && r.status >= 200 && r.status < 300 }

// retryable says whether the same request may meet a better answer later.
func (r reply) retryable() bool {
	if r.err != nil {
		return !errors.Is(r.err, errRefused)
	}
	switch r.status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return r.status < 400 || r.status >= 500
}

// fault says in words what was wrong with the reply.
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

// parseRetryAfter reads a Retry-After header (RFC 9110, 10.2.3): seconds, or a date. Zero when it is absent, unreadable or past.
func parseRetryAfter(value string, now time.Time) time.Duration {
	if value == "" {
		return 0
	}
	if s, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(s) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
