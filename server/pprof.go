package server

import (
	"net/http"
	"net/http/pprof"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/api"
)

// profileRoute serves the profiles of the process, in the format of go tool pprof. They show names of functions
// and sizes, and how busy each is. A profile of the processor is taken while the request lasts, so the route has
// no deadline.
func profileRoute() route { return plain("/debug/pprof/*", whole(api.ScopeAdmin), profiles) }

// profiles answers a profile by name, or lists them. It never shows the command line, which may have secrets.
func profiles(c echo.Context) error {
	serve := pprof.Index
	switch c.Param("*") {
	case "profile":
		serve = pprof.Profile
	case "trace":
		serve = pprof.Trace
	case "symbol":
		serve = pprof.Symbol
	case "cmdline":
		serve = http.NotFound
	}
	liftDeadline(c)
	serve(c.Response(), c.Request())
	return nil
}
