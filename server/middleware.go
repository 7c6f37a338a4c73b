package server

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/server/peers"
)

// identify gives each request an id, for its answer and the log. The X-Request-Id of a proxy is kept if it is
// well-formed.
func (s *Server) identify(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id := c.Request().Header.Get(echo.HeaderXRequestID)
		if !saneID(id) {
			id = rand.Text()
		}
		c.Response().Header().Set(echo.HeaderXRequestID, id)
		c.SetRequest(c.Request().WithContext(redisdb.Hurried(c.Request().Context())))
		if c.Request().TransferEncoding != nil {
			// RFC 9112, section 6.1: it may have come with a Content-Length, which net/http removes
			c.Response().Header().Set(echo.HeaderConnection, "close")
		}
		return next(c)
	}
}

func requestID(c echo.Context) string { return c.Response().Header().Get(echo.HeaderXRequestID) }

func saneID(id string) bool {
	return id != "" && len(id) <= 64 &&
		strings.Trim(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._:-") == ""
}

// observe counts and logs each request after its answer was written.
func (s *Server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := time.Now()
		s.metrics.inFlight.Inc()
		err := next(c)
		if err != nil {
			s.answerError(err, c)
		}
		s.metrics.inFlight.Dec()
		took := time.Since(start)
		s.metrics.observe(c.Request().Method, c.Path(), c.Response().Status, took)
		if s.log.Enabled(c.Request().Context(), slog.LevelDebug) {
			s.log.Debug("request", "request_id", requestID(c), "method", c.Request().Method, "path",
				c.Request().URL.Path,
				"query", maskQuery(c.Request().URL.RawQuery), "status", c.Response().Status, "bytes", c.Response().Size,
				"duration", took, "remote_addr", c.RealIP())
		}
		return nil
	}
}

// secretQueries are parameters that grant access: a token of the API, a token of a link in an email, and the
// secret of a provider's webhook.
var secretQueries = [...]string{"access_token", "t", "token"}

// maskQuery replaces the values of secretQueries.
func maskQuery(raw string) string {
	if !strings.Contains(raw, "%") && !strings.Contains(raw, "t=") && !strings.Contains(raw, "token") &&
		!strings.Contains(raw, "code=") {
		return raw
	}
	query, err := url.ParseQuery(raw)
	if err != nil {
		return "(unreadable)"
	}
	for _, name := range secretQueries {
		if query.Has(name) {
			query.Set(name, "***")
		}
	}
	if query.Has("code") && query.Has("state") { // after a login at another issuer
		query.Set("code", "***")
	}
	return query.Encode()
}

// protect sets security headers for browsers. Pages have a looser Content-Security-Policy.
func (s *Server) protect(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer") // a URL may hold an access token
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set(echo.HeaderCacheControl, "no-store")
		if s.opts.HSTS > 0 && peers.Of(c.Request()).TLS { // RFC 6797 section 7.2: never without TLS
			h.Set(echo.HeaderStrictTransportSecurity, fmt.Sprintf("max-age=%d", int(s.opts.HSTS.Seconds())))
		}
		return next(c)
	}
}

// recover turns a panic into an error, which is counted, logged and answered.
func (s *Server) recover(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			switch p := recover(); p {
			case nil:
			case http.ErrAbortHandler:
				panic(p)
			default:
				s.log.Error("panic", "request_id", requestID(c), "route", c.Path(), "panic", p, "stack",
					string(debug.Stack()))
				cause, _ := p.(error)
				err = errors.Join(fmt.Errorf("panic: %v", p), cause)
			}
		}()
		return next(c)
	}
}

// compress compresses lists and documents. The short answer of a submit is not worth the CPU.
func compress() echo.MiddlewareFunc {
	return middleware.GzipWithConfig(middleware.GzipConfig{
		Level:     4,
		MinLength: 1400, // a shorter answer fits one packet
		Skipper: func(c echo.Context) bool {
			path := c.Request().URL.Path
			return c.Request().Method != http.MethodGet || strings.HasSuffix(path, "/live") ||
				!strings.HasPrefix(path, "/v1/") && !strings.HasPrefix(path, "/openapi.")
		},
	})
}
