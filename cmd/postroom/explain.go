package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/config"
)

// usageError is a mistake in the command line that a command found.
type usageError struct{ message string }

// Error returns what is wrong and what to write instead.
func (e *usageError) Error() string { return e.message }

func usage(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// errReported fails a command that has already printed its error.
var errReported = errors.New("reported already")

// finish prints an error, if there is one, and returns the exit code.
func (c *console) finish(ctx context.Context, err error) int {
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errReported):
		return exitFailed
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(c.err, "postroom: interrupted")
		return exitInterrupted
	}
	fmt.Fprintln(c.err, "postroom:", explain(err))
	if e, ok := errors.AsType[*mailerError](err); ok {
		return e.code
	}
	if wrong, _ := errors.AsType[*usageError](err); wrong != nil {
		return exitUsage
	}
	if invalid, _ := errors.AsType[*config.Invalid](err); invalid != nil {
		return exitUsage
	}
	return exitFailed
}

// explain returns what went wrong and, if known, what to do.
func explain(err error) string {
	if f, ok := errors.AsType[*api.Failure](err); ok {
		listing := ""
		if u, ok := errors.AsType[*unfound](err); ok {
			listing = u.listing
		}
		return explainFailure(f, listing)
	}
	if u, ok := errors.AsType[*unreachable](err); ok {
		return explainUnreachable(u)
	}
	if text := err.Error(); !strings.Contains(text, "is not a setting (") {
		return text
	}
	return err.Error() + "; postroom config lists all settings"
}

// unfound is an error about something that is not there, with the command that lists what is.
type unfound struct {
	error
	listing string
}

func (u *unfound) Unwrap() error { return u.error }

func explainFailure(f *api.Failure, listing string) string {
	message := inCommands(strings.TrimSuffix(clean(f.Problem.Message), "."))
	if !strings.Contains(message, "postroom ") {
		message += listing
	}
	switch f.Problem.StatusCode {
	case http.StatusUnauthorized:
		return message + " (401); give an access token with --token or POSTROOM_TOKEN, such as the admin token in the file token of the data directory"
	case http.StatusForbidden:
		return message + " (403); use a token with that scope, see: postroom token add --help"
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		if f.RetryAfter > 0 {
			message += fmt.Sprintf("; try again in %s", span(f.RetryAfter))
		}
	}
	for _, field := range f.Problem.Fields {
		text := inCommands(clean(field.Message))
		if !strings.HasPrefix(text, `"`+field.Key+`" `) { // which names it already
			text = field.Key + ": " + text
		}
		message += "; " + text
	}
	if f.Problem.StatusCode >= 500 && f.Problem.RequestID != "" {
		message += "; the log of Postroom has more at request_id " + f.Problem.RequestID
	}
	return fmt.Sprintf("%s (%d)", message, f.Problem.StatusCode)
}

// explainUnreachable explains a request without a response.
func explainUnreachable(u *unreachable) string {
	const other = "for another address give --url or POSTROOM_URL"
	if wrong, ok := errors.AsType[*tls.CertificateVerificationError](u.err); ok {
		return fmt.Sprintf("the certificate of %s is not good for it: %v; use the name that stands in the certificate with --url", u.base, wrong.Err)
	}
	switch {
	case errors.Is(u.err, syscall.ECONNREFUSED):
		return fmt.Sprintf("nothing listens at %s: is `postroom serve` running there? %s", u.base, other)
	case errors.Is(u.err, context.DeadlineExceeded):
		return fmt.Sprintf("%s did not answer in time: is it Postroom, and is it well? See its /ready; %s", u.base,
			other)
	case strings.Contains(u.err.Error(), "HTTP response to HTTPS client"):
		return fmt.Sprintf("%s speaks HTTP, not HTTPS: write http:// in --url or POSTROOM_URL", u.base)
	}
	return fmt.Sprintf("can't reach Postroom at %s: %v; %s", u.base, u.err, other)
}

// refusal returns why Postroom refused to change one message, or "" for an error that affects all messages.
func refusal(err error) string {
	f, ok := errors.AsType[*api.Failure](err)
	if ok && (f.Problem.StatusCode == http.StatusNotFound || f.Problem.StatusCode == http.StatusConflict) {
		return inCommands(clean(f.Problem.Message))
	}
	return ""
}
