package server

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/peers"
)

// grantKey is the key of the caller's grant in a request's context.
type grantKey struct{}

// grantOf returns the rights of the caller. On a public route there are none.
func grantOf(ctx context.Context) *access.Grant {
	g, ok := ctx.Value(grantKey{}).(*access.Grant)
	if !ok {
		return &access.Grant{}
	}
	return g
}

// boundTo returns the account that the caller is restricted to; empty if none.
func boundTo(ctx context.Context) string { return grantOf(ctx).Account }

// guard admits callers whose token or session has the right to a route. A refused caller is in the audit log.
func (s *Server) guard(r route) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		if r.right.public {
			return next
		}
		return func(c echo.Context) error {
			grant, err := s.admit(c, r)
			if err == nil {
				if err = s.traced(c, r, next); r.audited.kind != "" {
					return err // the refusal of a change has an entry
				}
			}
			s.noteRefusal(c, r, grant, err)
			return err
		}
	}
}

// admit puts the rights of a caller into the context of the request, or returns an error. Its grant is nil if
// the caller is unknown.
func (s *Server) admit(c echo.Context, r route) (*access.Grant, error) {
	grant, err := s.authenticate(c)
	if err != nil {
		return nil, err
	}
	if grant.Rate != nil {
		setRateHeaders(c.Response().Header(), *grant.Rate)
	}
	if err := r.admits(grant); err != nil {
		return grant, err
	}
	if size := c.Request().ContentLength; r.grows {
		if size < 0 {
			size = r.limit
		}
		if err := s.parts.Outbox.Intake.AdmitsWrite(c.Request().Context(), size); err != nil {
			return grant, err
		}
	}
	peers.Prove(c.Request().Context())
	c.SetRequest(c.Request().WithContext(context.WithValue(c.Request().Context(), grantKey{}, grant)))
	return grant, nil
}

// admits returns an error if a grant does not include the right to a route.
func (r route) admits(g *access.Grant) error {
	need := r.right.scope
	if g.Account != "" && r.right.bound != "" {
		need = r.right.bound
	}
	switch {
	case r.right.self && g.Person != "":
		return nil
	case r.right.self && need == "":
		return fault.New(fault.Forbidden, "NoPerson", "Only users who signed in with their name can do this")
	case g.ReadOnly && r.method != http.MethodGet:
		return fault.New(fault.Forbidden, "ReadOnly", "You're a viewer, so you can't make changes. Ask an "+
			"admin for access")
	case r.right.whole && !g.CanSee(""):
		return fault.New(fault.Forbidden, "", "Unauthorized account")
	case !g.Allows(need) && (r.right.or == "" || !g.Allows(r.right.or)):
		return fault.New(fault.Forbidden, "", "Unauthorized scope")
	}
	return nil
}

// authenticate returns the rights of the caller. A token takes precedence over a session. With a session, a
// change must come from our own pages or from a program: browsers send its cookie with requests from any
// site.
func (s *Server) authenticate(c echo.Context) (*access.Grant, error) {
	r := c.Request()
	remote := peers.Of(r).Addr // invalid: no restriction of access names it
	token, inQuery := tokenOf(r)
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if inQuery && !reads {
		return nil, fault.New(fault.Unauthorized, "TokenInQuery",
			"access_token in the URL only allows reading. Send the token as Authorization: Bearer")
	}
	if token != "" {
		return s.parts.Access.Authenticate(r.Context(), token, remote, time.Now())
	}
	cookie, err := r.Cookie(access.SessionCookie(peers.Of(r).TLS))
	if err != nil {
		return s.parts.Access.Authenticate(r.Context(), "", remote, time.Now())
	}
	if err := s.csrf.Check(r); err != nil {
		return nil, fault.Wrap(err, fault.Forbidden, "CrossOrigin", "The request came from another site")
	}
	return s.parts.Access.Session(r.Context(), cookie.Value, remote, time.Now())
}

// tokenOf returns a request's access token: a Bearer token (RFC 6750), or one in the query, as with
// EmailEngine, where addresses end up in logs, histories and links.
func tokenOf(r *http.Request) (token string, inQuery bool) {
	if scheme, token, ok := strings.Cut(r.Header.Get(echo.HeaderAuthorization), " "); ok &&
		strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token), false
	}
	if !strings.Contains(r.URL.RawQuery, "access_token") {
		return "", false
	}
	token = r.URL.Query().Get("access_token")
	return token, token != ""
}
