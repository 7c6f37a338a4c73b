package server

import (
	"context"
	"net/http"
	"net/netip"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/server/access"
)

// grantKey is under which the caller's grant stands in a request's context.
type grantKey struct{}

// grantOf is what the caller of a guarded route may do.
func grantOf(ctx context.Context) *access.Grant {
	g, ok := ctx.Value(grantKey{}).(*access.Grant)
	if !ok {
		return &access.Grant{} // a public route: nothing is allowed
	}
	return g
}

// boundTo is the account that the caller is confined to; empty: none.
func boundTo(ctx context.Context) string { return grantOf(ctx).Account }

// guard admits callers that hold a token with the right to a route, or, for reading, a session.
func (s *Server) guard(r right) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		if r.public {
			return next
		}
		return func(c echo.Context) error {
			grant, err := s.authenticate(c)
			if err != nil {
				return err
			}
			if grant.Rate != nil {
				setRateHeaders(c.Response().Header(), *grant.Rate)
			}
			if err := r.admits(grant); err != nil {
				return err
			}
			c.SetRequest(c.Request().WithContext(context.WithValue(c.Request().Context(), grantKey{}, grant)))
			return next(c)
		}
	}
}

// admits returns an error if a caller may not use a route.
func (r right) admits(g *access.Grant) error {
	need := r.scope
	if g.Account != "" && r.bound != "" {
		need = r.bound
	}
	switch {
	case r.whole && !g.CanSee(""):
		return fault.New(fault.Forbidden, "", "Unauthorized account")
	case !g.Allows(need):
		return fault.New(fault.Forbidden, "", "Unauthorized scope")
	}
	return nil
}

// authenticate finds out who is calling. A token counts before a session. A browser sends a session's cookie
// along with requests that any site provokes, so it is enough for GET and HEAD only; the pages of the ui,
// which change things with it, have checks of their own.
func (s *Server) authenticate(c echo.Context) (*access.Grant, error) {
	r := c.Request()
	remote, _ := netip.ParseAddr(c.RealIP()) // invalid: access takes it as an address that no restriction names
	if token := tokenOf(r); token != "" {
		return s.parts.Access.Authenticate(r.Context(), token, remote, s.opts.Now())
	}
	cookie, err := r.Cookie(s.opts.SessionCookie)
	if err != nil {
		return s.parts.Access.Authenticate(r.Context(), "", remote, s.opts.Now())
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil, fault.New(fault.Unauthorized, "", "Missing authentication")
	}
	return s.parts.Access.Session(r.Context(), cookie.Value, remote, s.opts.Now())
}

// tokenOf is the access token that a request presents: as Bearer (RFC 6750), or in the query as EmailEngine's
// clients may.
func tokenOf(r *http.Request) string {
	if scheme, token, ok := strings.Cut(r.Header.Get(echo.HeaderAuthorization), " "); ok &&
		strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	if !strings.Contains(r.URL.RawQuery, "access_token") {
		return ""
	}
	return r.URL.Query().Get("access_token")
}
