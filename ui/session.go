package ui

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/peers"
)

// grantKey is the key of the viewer's grant in a request's context. It is empty until guard knows the viewer.
type grantKey struct{}

// guard admits callers with the rights that a page needs. Others get an error, which redirects a browser to
// the login.
func (u *UI) guard(admits func(*access.Grant, *http.Request) error, next handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		grant, err := u.authenticate(r)
		if err == nil {
			*grantOf(r) = *grant // for the page of an error, too
			err = admits(grant, r)
		}
		if err == nil {
			peers.Prove(r.Context())
			err = next(w, r)
		}
		u.noteRefusal(w, r, grant, err)
		return err
	}
}

// known shows a page to everybody, with the grant of who is logged in, if anybody is.
func (t table) known(next handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		grant, err := t.authenticate(r)
		if err == nil {
			err = admitsBound(grant, r)
		}
		if err != nil {
			r = r.Clone(r.Context())
			r.Header.Del("Cookie")
			return next(w, r)
		}
		*grantOf(r) = *grant
		return next(w, r)
	}
}

// authenticate returns the grant of a request. Another site cannot use a program's bearer token. With a
// session, a change must come from our own pages.
func (u *UI) authenticate(r *http.Request) (*access.Grant, error) {
	if token := bearer(r); token != "" {
		return u.Access.Authenticate(r.Context(), token, peers.Of(r).Addr, time.Now())
	}
	cookie, err := sessionCookieOf(r)
	if err != nil {
		return nil, fault.New(fault.Unauthorized, "NoSession", "Please log in")
	}
	if err := u.ownPage(r); err != nil {
		return nil, err
	}
	return u.Access.Session(r.Context(), cookie.Value, peers.Of(r).Addr, time.Now())
}

// ownPage refuses a change from another site's page.
func (u *UI) ownPage(r *http.Request) error {
	if err := u.csrf.Check(r); err != nil {
		return fault.Wrap(err, fault.Forbidden, "CrossOrigin",
			"The request came from another site, so nothing was changed")
	}
	return nil
}

// admits returns why somebody may not see or use a page about the whole instance, if so.
func admits(g *access.Grant, r *http.Request) error {
	if err := admitsBound(g, r); err != nil || g.Account == "" {
		return err
	}
	return fault.New(fault.Forbidden, "BoundPerson",
		"You act for the account %s; this page is about the whole instance", g.Account)
}

// admitsBound returns why somebody may not see or use a page that shows persons with accounts the part of
// theirs, if so. Those who may change nothing may only look.
func admitsBound(g *access.Grant, r *http.Request) error {
	switch {
	case g.ReadOnly && (r.Method != http.MethodGet && r.Method != http.MethodHead || isForm(r.Pattern)):
		return fault.New(fault.Forbidden, "ReadOnly",
			"You are a viewer, so you can’t make changes. Ask an admin for access")
	case g.Person == "" && g.Account != "":
		return fault.New(fault.Forbidden, "BoundToken",
			"This token is bound to the account %s; the pages show the whole instance", g.Account)
	case !g.Allows(api.ScopeAPI):
		return fault.New(fault.Forbidden, "ScopeMissing", "The pages need a token with the scope api or admin")
	}
	return nil
}

// boundTo returns the account that the caller is restricted to; empty: none.
func boundTo(r *http.Request) string { return grantOf(r).Account }

// ownAccount returns the account to show, given the one that was asked for; empty: all. For who is bound to
// an account it is that one, and any other is refused.
func ownAccount(r *http.Request, asked string) (string, error) {
	bound := boundTo(r)
	if bound == "" || asked == "" || asked == bound {
		return cmp.Or(bound, asked), nil
	}
	return "", fault.New(fault.Forbidden, "", "You act for the account %s, and not for %s", bound, asked)
}

// isForm reports whether a page has nothing but a form, or a question.
func isForm(pattern string) bool {
	return strings.HasSuffix(pattern, "/new") || strings.HasSuffix(pattern, "/edit") || pattern == "GET /cancel"
}

// admitsPerson returns why somebody may not see the pages of persons about themselves, if so.
func admitsPerson(g *access.Grant, _ *http.Request) error {
	if g.Person == "" {
		return fault.New(fault.Forbidden, "NoPerson", "This page is for those who logged in with a name")
	}
	return nil
}

// admitsOwn admits persons, to what is theirs, and admins.
func admitsOwn(g *access.Grant, r *http.Request) error {
	if g.Allows(api.ScopeAdmin) {
		return admits(g, r)
	}
	return admitsPerson(g, r)
}

// forAdmins admits only callers with the right to change settings.
func forAdmins(next handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if !grantOf(r).Allows(api.ScopeAdmin) {
			return fault.New(fault.Forbidden, "ScopeMissing",
				"This page needs a token with the scope admin, or a person who is an admin")
		}
		return next(w, r)
	}
}

// logout ends the session. It deletes the cookie even if Redis is unreachable.
func (u *UI) logout(w http.ResponseWriter, r *http.Request) error {
	if err := u.ownPage(r); err != nil {
		return err
	}
	if cookie, err := sessionCookieOf(r); err == nil {
		http.SetCookie(w, u.sessionCookie(r, "", -1))
		u.noteLogout(w, r, cookie.Value)
		if err := u.Access.Logout(r.Context(), cookie.Value); err != nil {
			return err
		}
	}
	return redirect(w, r, "/login")
}

func (u *UI) sessionCookie(r *http.Request, value string, age int) *http.Cookie {
	return newCookie(r, access.SessionCookie(peers.Of(r).TLS), value, age)
}

// newCookie returns a cookie for age seconds; -1 deletes it. It is Lax, not Strict, so that links in other
// sites lead to their page. ownPage protects changes.
func newCookie(r *http.Request, name, value string, age int) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: age, HttpOnly: true,
		Secure: peers.Of(r).TLS, SameSite: http.SameSiteLaxMode}
}

func sessionCookieOf(r *http.Request) (*http.Cookie, error) {
	return r.Cookie(access.SessionCookie(peers.Of(r).TLS))
}

// bearer returns the Bearer token of a request (RFC 6750), or "".
func bearer(r *http.Request) string {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// local returns next if it is a path on this site, otherwise "/". Anybody can write a link with next=.
func local(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" ||
		!strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsFunc(next, unsafeInPath) {
		return "/"
	}
	if p := u.Path; strings.HasPrefix(p, "//") || strings.ContainsFunc(p, unsafeInPath) || p == "/login" ||
		p == "/logout" {
		return "/"
	}
	return u.RequestURI()
}

// unsafeInPath reports whether browsers treat a character specially: a backslash is a slash to them, and tabs
// and line breaks are dropped.
func unsafeInPath(c rune) bool { return c == '\\' || c < ' ' || c == 0x7f }

func redirect(w http.ResponseWriter, r *http.Request, to string) error {
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// formLimit is the size limit of forms in bytes.
const formLimit = 64 << 10

func parseForm(w http.ResponseWriter, r *http.Request) error { return parseFormOf(w, r, formLimit) }

// parseFormOf is parseForm for a form that may be larger.
func parseFormOf(w http.ResponseWriter, r *http.Request, limit int64) error {
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	if err := r.ParseForm(); err != nil {
		return fault.Wrap(err, fault.Invalid, "", "The form could not be read")
	}
	return nil
}
