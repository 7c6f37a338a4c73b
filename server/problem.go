package server

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/server/access"
)

// clientGone is nginx's status for a client that left before its answer. Only the log and the metrics get it.
const clientGone = 499

// answerError is echo's error handler. It writes every answer that is not a success.
func (s *Server) answerError(err error, c echo.Context) {
	if c.Response().Committed {
		s.log.Error("answer broken off", "request_id", requestID(c), "route", c.Path(), "error", err)
		return
	}
	if errors.Is(err, context.Canceled) && c.Request().Context().Err() != nil {
		c.Response().Status = clientGone
		c.Response().Committed = true
		return
	}
	p := s.problemOf(err, c)
	s.metrics.refused(c.Path(), p.StatusCode, fault.KindOf(err))
	if c.Request().Method == http.MethodHead {
		c.Response().WriteHeader(p.StatusCode)
		return
	}
	if err := writeJSON(c, p.StatusCode, p); err != nil {
		s.log.Debug("error not delivered", "request_id", requestID(c), "error", err)
	}
}

// problemOf returns the answer of an error, and sets its headers. An internal error is logged here, and only
// here; the client does not get its text.
func (s *Server) problemOf(err error, c echo.Context) api.Problem {
	p := api.Problem{RequestID: requestID(c)}
	if redisdb.Full(err) && fault.KindOf(err) == fault.Internal {
		err = redisdb.Away(err)
	}
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Kind != fault.Internal {
		p.StatusCode, p.Message, p.Code, p.Details = api.StatusOf(e.Kind), e.Message, e.Code, e.Details
		for _, f := range e.Fields {
			p.Fields = append(p.Fields, api.ProblemField{Message: labelled(f), Key: f.Key})
		}
		s.setFaultHeaders(c, e, err, &p)
		if e.Kind == fault.Unavailable {
			s.log.Warn("request refused", "request_id", p.RequestID, "route", c.Path(), "error", err)
		}
	} else if e, ok := errors.AsType[*echo.HTTPError](err); ok && e.Code < http.StatusInternalServerError {
		p.StatusCode = e.Code
		p.Message, _ = e.Message.(string)
	} else {
		p.StatusCode, p.Message = http.StatusInternalServerError, "An internal server error occurred"
		s.log.Error("request failed", "request_id", p.RequestID, "method", c.Request().Method, "route", c.Path(),
			"error", err)
	}
	p.Error = http.StatusText(p.StatusCode)
	p.Message = cmp.Or(p.Message, p.Error)
	return p
}

// labelled returns an error's text as EmailEngine has it: the field in quotes, then what it must be. A
// message that is a sentence stays as it is.
func labelled(f fault.Field) string {
	if first, _ := utf8.DecodeRuneInString(f.Message); f.Key == "" || first == '"' || unicode.IsUpper(first) {
		return f.Message
	}
	return `"` + f.Key + `" ` + f.Message
}

// setFaultHeaders sets WWW-Authenticate (RFC 6750) and Retry-After (RFC 9110 section 10.2.3).
func (s *Server) setFaultHeaders(c echo.Context, e *fault.Error, err error, p *api.Problem) {
	h := c.Response().Header()
	switch e.Kind {
	case fault.Unauthorized:
		challenge := "Bearer"
		if token, _ := tokenOf(c.Request()); token != "" {
			challenge = `Bearer error="` + e.Message + `"`
		}
		h.Set(echo.HeaderWWWAuthenticate, challenge)
	case fault.Limited:
		if p.TTL = seconds(e.RetryAfter); p.TTL > 0 { // otherwise the time is unknown
			h.Set(echo.HeaderRetryAfter, strconv.Itoa(p.TTL))
		}
		if r, ok := errors.AsType[*access.RateExceeded](err); ok {
			setRateHeaders(h, r.Rate)
		}
	case fault.Unavailable:
		h.Set(echo.HeaderRetryAfter, strconv.Itoa(seconds(max(e.RetryAfter, time.Second))))
	}
}

func setRateHeaders(h http.Header, r access.Rate) {
	h.Set("X-RateLimit-Limit", strconv.Itoa(r.Limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(r.Remaining))
	h.Set("X-RateLimit-Reset", strconv.Itoa(seconds(r.Reset)))
}

// seconds rounds up, so that a client that waits so long is not early.
func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
