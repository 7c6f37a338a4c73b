package ui

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/peers"
	"github.com/postroom/postroom/server/people/oidc"
)

// SignOn is a server at which persons log in.
type SignOn struct {
	Issuer *oidc.Issuer
	URL    string // by which the issuer calls itself
	Name   string // for the button
}

// signOnCookie has the secret of a login that was begun, and where to go after it.
const (
	signOnCookie = "postroom_login"
	signOnLife   = 10 * time.Minute
)

// beginSignOn sends the browser to the issuer. It is a link and no form: browsers let a form lead only where
// the content security policy says, also by a redirect.
func (u *UI) beginSignOn(w http.ResponseWriter, r *http.Request) error {
	if u.opts.SignOn == nil {
		return noPage(w, r)
	}
	next := local(r.URL.Query().Get("next"))
	to, secret, err := u.opts.SignOn.Issuer.Begin(r.Context())
	if err != nil {
		return u.signOnRefused(w, r, next, err)
	}
	http.SetCookie(w, u.signOnCookie(r, secret+"."+url.QueryEscape(next), int(signOnLife.Seconds())))
	return redirect(w, r, to)
}

// finishSignOn opens a session for whom the issuer sent back.
func (u *UI) finishSignOn(w http.ResponseWriter, r *http.Request) error {
	if u.opts.SignOn == nil {
		return noPage(w, r)
	}
	var secret, next string
	if cookie, err := r.Cookie(access.CookieName(signOnCookie, peers.Of(r).TLS)); err == nil {
		secret, next, _ = strings.Cut(cookie.Value, ".")
	}
	next, err := url.QueryUnescape(next)
	if err != nil {
		next = "/"
	}
	next = local(next)
	http.SetCookie(w, u.signOnCookie(r, "", -1))
	who, err := u.opts.SignOn.Issuer.Finish(r.Context(), secret, r.URL.Query())
	if err != nil {
		return u.signOnRefused(w, r, next, err)
	}
	by := access.Client{Addr: peers.Of(r).Addr, Agent: r.UserAgent()}
	cookie, grant, err := u.Access.LoginExternal(r.Context(), who, by, time.Now())
	if err != nil {
		return u.signOnRefused(w, r, next, err)
	}
	login := api.AuditEntry{Result: api.AuditDone, Action: "login", Who: grant.Actor(peers.Of(r).String()),
		Request: requestID(w)}
	if !strings.EqualFold(strings.TrimSpace(who.Name), grant.Person) {
		login.Changes = []api.AuditChange{{Field: "alias", Before: grant.Person, After: who.Name}}
	}
	_, err = u.Audit.Append(r.Context(), login)
	return u.enter(w, r, cookie, next, err)
}

// signOnRefused shows the login page with the reason.
func (u *UI) signOnRefused(w http.ResponseWriter, r *http.Request, next string, err error) error {
	if f := wordsOf(err); f.Kind == fault.Unavailable && f.Code == "IssuerUnavailable" {
		u.log.WarnContext(r.Context(), "login at the issuer failed", "issuer", u.opts.SignOn.URL, "error", err)
		return u.showLogin(w, r, api.StatusOf(f.Kind), loginView{Next: next, Error: f.Message + "."})
	}
	return u.loginRefused(w, r, next, err)
}

// signOnCookie returns the cookie of a login that was begun. It is Lax: the issuer sends the browser back.
func (u *UI) signOnCookie(r *http.Request, value string, age int) *http.Cookie {
	return newCookie(r, access.CookieName(signOnCookie, peers.Of(r).TLS), value, age)
}
