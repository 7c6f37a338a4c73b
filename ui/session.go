package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/audit"
	"github.com/postroom/postroom/server/proxies"
	"github.com/postroom/postroom/server/strangers"
)

// grantKey is the key of the viewer's grant in a request's context.
type grantKey struct{}

// guard admits callers with rights for the whole instance. Others get an error, which redirects a browser to
// the login.
func (u *UI) guard(next handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		grant, err := u.authenticate(r)
		if err == nil {
			err = admits(grant)
		}
		if err == nil {
			strangers.Prove(r.Context())
			err = next(w, r.WithContext(context.WithValue(r.Context(), grantKey{}, grant)))
		}
		audits{u}.noteRefusal(w, r, grant, err)
		return err
	}
}

// authenticate returns the grant of a request. Another site cannot use a program's bearer token. With a
// session, a change must come from our own pages.
func (u *UI) authenticate(r *http.Request) (*access.Grant, error) {
	if token := bearer(r); token != "" {
		return u.Access.Authenticate(r.Context(), token, proxies.Of(r).Addr, time.Now())
	}
	cookie, err := r.Cookie(access.SessionCookie)
	if err != nil {
		return nil, fault.New(fault.Unauthorized, "NoSession", "Please log in")
	}
	if err := u.ownPage(r); err != nil {
		return nil, err
	}
	return u.Access.Session(r.Context(), cookie.Value, proxies.Of(r).Addr, time.Now())
}

// ownPage refuses a change from another site's page.
func (u *UI) ownPage(r *http.Request) error {
	if err := u.csrf.Check(r); err != nil {
		return fault.Wrap(err, fault.Forbidden, "CrossOrigin",
			"The request came from another site, so nothing was changed")
	}
	return nil
}

// admits returns why the bearer of a token may not see the pages, if so.
func admits(g *access.Grant) error {
	switch {
	case !g.CanSee(""):
		return fault.New(fault.Forbidden, "BoundToken",
			"This token is bound to the account %s; the pages show the whole instance", g.Account)
	case !g.Allows(api.ScopeAPI):
		return fault.New(fault.Forbidden, "ScopeMissing", "The pages need a token with the scope api or admin")
	}
	return nil
}

// forAdmins admits only callers with the right to change settings.
func forAdmins(next handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if g, ok := r.Context().Value(grantKey{}).(*access.Grant); !ok || !g.Allows(api.ScopeAdmin) {
			return fault.New(fault.Forbidden, "ScopeMissing", "This page needs a token with the scope admin")
		}
		return next(w, r)
	}
}

// loginView is the data of the login page.
type loginView struct {
	Next  string
	Error string
}

func (u *UI) loginPage(w http.ResponseWriter, r *http.Request) error {
	next := local(r.URL.Query().Get("next"))
	if grant, err := u.authenticate(r); err == nil && admits(grant) == nil {
		return redirect(w, r, next)
	}
	return u.show(w, r, http.StatusOK, "login", "Log in", loginView{Next: next})
}

// login opens a session with an access token. A token that could not see the pages opens none.
func (u *UI) login(w http.ResponseWriter, r *http.Request) error {
	if err := u.ownPage(r); err != nil {
		return err
	}
	if err := parseForm(w, r); err != nil {
		return err
	}
	next, token := local(r.PostForm.Get("next")), strings.TrimSpace(r.PostForm.Get("token"))
	grant, err := u.Access.Authenticate(r.Context(), token, proxies.Of(r).Addr, time.Now())
	if err == nil {
		err = admits(grant)
	}
	var cookie string
	if err == nil {
		cookie, err = u.Access.Login(r.Context(), token, proxies.Of(r).Addr, time.Now())
	}
	if err != nil {
		return u.loginRefused(w, r, next, err)
	}
	who := grant.Actor(proxies.Of(r).String())
	who.Kind, who.Session = audit.Session, access.SessionID(cookie)
	if err := u.Audit.Login(r.Context(), who, "login", requestID(w)); err != nil {
		return errors.Join(err, u.Access.Logout(r.Context(), cookie))
	}
	http.SetCookie(w, u.sessionCookie(r, cookie, int(access.SessionLife.Seconds())))
	return redirect(w, r, next)
}

// loginRefused shows the form with the reason. It returns errors that are not about the token.
func (u *UI) loginRefused(w http.ResponseWriter, r *http.Request, next string, err error) error {
	u.Audit.Note((*access.Grant)(nil).Actor(proxies.Of(r).String()), api.AuditRefused, "login",
		wordsOf(err).Message,
		requestID(w))
	view := loginView{Next: next}
	status := api.StatusOf(fault.KindOf(err))
	switch f := wordsOf(err); f.Kind {
	case fault.Unauthorized:
		view.Error = "That token is not known here. Check that all of it was copied."
		if f.Code == "TokenExpired" {
			view.Error = "That token has expired."
		}
	case fault.Limited:
		wait := max(1, int(f.RetryAfter.Seconds()))
		w.Header().Set("Retry-After", strconv.Itoa(wait))
		view.Error = fmt.Sprintf("%s. Wait %d seconds and try again.", f.Message, wait)
	case fault.Forbidden:
		view.Error = f.Message + "."
	default:
		return err
	}
	return u.show(w, r, status, "login", "Log in", view)
}

// logout ends the session. It deletes the cookie even if Redis is unreachable.
func (u *UI) logout(w http.ResponseWriter, r *http.Request) error {
	if err := u.ownPage(r); err != nil {
		return err
	}
	if cookie, err := r.Cookie(access.SessionCookie); err == nil {
		http.SetCookie(w, u.sessionCookie(r, "", -1))
		audits{u}.noteLogout(w, r, cookie.Value)
		if err := u.Access.Logout(r.Context(), cookie.Value); err != nil {
			return err
		}
	}
	return redirect(w, r, "/login")
}

// sessionCookie returns the cookie of a session. It is Lax, not Strict, so that links in other sites lead to
// their page. ownPage protects changes.
func (u *UI) sessionCookie(r *http.Request, value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: access.SessionCookie, Value: value, Path: "/", MaxAge: age, HttpOnly: true,
		Secure:   proxies.Of(r).TLS,
		SameSite: http.SameSiteLaxMode,
	}
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

func parseForm(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, formLimit)
	if err := r.ParseForm(); err != nil {
		return fault.Wrap(err, fault.Invalid, "", "The form could not be read")
	}
	return nil
}
