package api

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/postroom/postroom/api/fault"
)

// Problem is the body of every error response.
type Problem struct {
	StatusCode int            `json:"statusCode"`
	Error      string         `json:"error" doc:"Text of the HTTP status" example:"Bad Request"`
	Message    string         `json:"message"`
	Code       string         `json:"code,omitempty" doc:"Stable name of the error, such as IdempotencyKeyReused"`
	Fields     []ProblemField `json:"fields,omitempty" doc:"All invalid fields of the request"`
	Details    map[string]any `json:"details,omitempty"`
	TTL        int            `json:"ttl,omitempty" doc:"Seconds until the next request is allowed. Only for status 429"`
	RequestID  string         `json:"requestId,omitempty" doc:"ID of this request in the log"`
}

// ProblemField is one invalid field.
type ProblemField struct {
	Message string `json:"message"`
	Key     string `json:"key"`
}

// Failure is a Problem as an error, returned by the client.
type Failure struct {
	Problem    Problem
	RetryAfter time.Duration // Retry-After of the server; zero: none
}

// Error returns the status, the message and the invalid fields.
func (f *Failure) Error() string {
	s := fmt.Sprintf("%d %s: %s", f.Problem.StatusCode, f.Problem.Error, f.Problem.Message)
	for _, field := range f.Problem.Fields {
		s += fmt.Sprintf("; %s: %s", field.Key, field.Message)
	}
	return s
}

// StatusOf returns the HTTP status of a kind of fault, for the API and the pages.
func StatusOf(kind fault.Kind) int { return cmp.Or(statuses[kind], http.StatusInternalServerError) }

var statuses = map[fault.Kind]int{
	fault.Invalid:       http.StatusBadRequest,
	fault.Unauthorized:  http.StatusUnauthorized,
	fault.Forbidden:     http.StatusForbidden,
	fault.NotFound:      http.StatusNotFound,
	fault.Conflict:      http.StatusConflict,
	fault.TooLarge:      http.StatusRequestEntityTooLarge,
	fault.Unprocessable: http.StatusUnprocessableEntity,
	fault.Limited:       http.StatusTooManyRequests,
	fault.Unavailable:   http.StatusServiceUnavailable,
}
