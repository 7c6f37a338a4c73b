package server

import (
	"net/http/pprof"
	names "runtime/pprof"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// profileRoute serves the profiles of the process, in the format of go tool pprof. They show names of
// functions and sizes, and how busy each is. A profile of the processor is taken while the request lasts, so
// the route has no deadline.
func profileRoute() route { return plain("/debug/pprof/*", whole(api.ScopeAdmin), profiles) }

// profiles answers a profile by name, or lists them. It never shows the command line, which may have secrets.
func profiles(c echo.Context) error {
	serve, name := pprof.Index, c.Param("*")
	switch {
	case name == "profile":
		serve = pprof.Profile
	case name == "trace":
		serve = pprof.Trace
	case name == "symbol":
		serve = pprof.Symbol
	case name != "" && names.Lookup(name) == nil:
		return fault.New(fault.NotFound, "", "There is no profile %q. /debug/pprof/ lists all profiles", name)
	}
	liftDeadline(c)
	serve(c.Response(), c.Request())
	return nil
}
