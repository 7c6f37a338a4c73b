package server

import (
	"cmp"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/telemetry"
)

// traced calls a route's handler within a span of the trace that the request names. A caller that isn't
// admitted can't create traces. A read begins no new trace: pages and monitors ask all the time.
func (s *Server) traced(c echo.Context, r route, next echo.HandlerFunc) error {
	t, req := s.opts.Traces, c.Request()
	if t == nil {
		return next(c)
	}
	ctx, begin := t.Incoming(req.Context(), req.Header), t.Root
	if r.method == http.MethodGet {
		begin = t.Child
	}
	ctx, span := begin(ctx, r.method+" "+r.path, telemetry.Serves)
	defer span.End()
	span.Set("http.request.method", r.method)
	span.Set("http.route", r.path)
	span.Set("postroom.request_id", requestID(c))
	c.SetRequest(req.WithContext(ctx))
	err := next(c)
	if err != nil {
		span.Fail(cmp.Or(fault.CodeOf(err), "error"))
	}
	return err
}
