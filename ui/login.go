package ui

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/audit"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/peers"
	"github.com/postroom/postroom/server/people"
)

type loginView struct {
	Next   string
	Ended  bool // the session ended before a form was sent
	Error  string
	Name   string // that was typed
	People bool   // there are persons, who log in with a name
	SignOn string // name of the server at which persons log in; empty: there is none
}

func (u *UI) loginPage(w http.ResponseWriter, r *http.Request) error {
	next := local(r.URL.Query().Get("next"))
	if grant, err := u.authenticate(r); err == nil && admitsBound(grant, r) == nil {
		return redirect(w, r, next)
	}
	return u.showLogin(w, r, http.StatusOK, loginView{Next: next, Ended: r.URL.Query().Has("ended")})
}

// showLogin shows the form. Without Redis nobody can log in.
func (u *UI) showLogin(w http.ResponseWriter, r *http.Request, status int, v loginView) error {
	n, err := u.People.Count(r.Context())
	if err != nil {
		return err
	}
	v.People = n > 0
	if u.opts.SignOn != nil {
		v.SignOn = u.opts.SignOn.Name
	}
	return u.show(w, r, status, "login", "Log in", v)
}

// login opens a session with a name and a password, or with an access token.
func (u *UI) login(w http.ResponseWriter, r *http.Request) error {
	if err := u.ownPage(r); err != nil {
		return err
	}
	if err := parseForm(w, r); err != nil {
		return err
	}
	next := local(r.PostForm.Get("next"))
	cookie, who, err := u.openSession(r)
	if err != nil {
		return u.loginRefused(w, r, next, err)
	}
	return u.enter(w, r, cookie, next, u.Audit.Login(r.Context(), who, "login", requestID(w)))
}

// enter shows a page to somebody whose session was opened. unnoted says why the audit log lacks the login:
// then the session ends.
func (u *UI) enter(w http.ResponseWriter, r *http.Request, cookie, page string, unnoted error) error {
	if unnoted != nil {
		return errors.Join(unnoted, u.Access.Logout(r.Context(), cookie))
	}
	http.SetCookie(w, u.sessionCookie(r, cookie, int(access.SessionTTL.Seconds())))
	return redirect(w, r, page)
}

// openSession opens a session for who fills in the form of the login, and returns its cookie. A token that
// could not see the pages opens none.
func (u *UI) openSession(r *http.Request) (cookie string, who api.AuditActor, err error) {
	form, by := r.PostForm, access.Client{Addr: peers.Of(r).Addr, Agent: r.UserAgent()}
	if form.Has("name") {
		cookie, grant, err := u.Access.LoginPerson(r.Context(), access.Password{Name: form.Get("name"),
			Password: form.Get("password"), Code: form.Get("code")}, by, time.Now())
		if err != nil {
			return "", who, err
		}
		return cookie, grant.Actor(peers.Of(r).String()), nil
	}
	token := strings.TrimSpace(form.Get("token"))
	grant, err := u.Access.Authenticate(r.Context(), token, by.Addr, time.Now())
	if err == nil {
		err = admits(grant, r)
	}
	if err == nil {
		cookie, err = u.Access.Login(r.Context(), token, by, time.Now())
	}
	if err != nil {
		return "", who, err
	}
	who = grant.Actor(peers.Of(r).String())
	who.Kind, who.Session = audit.Session, access.SessionID(cookie)
	return cookie, who, nil
}

// loginRefused shows the form with the reason. It returns errors that are not about who logs in.
func (u *UI) loginRefused(w http.ResponseWriter, r *http.Request, next string, err error) error {
	who := (*access.Grant)(nil).Actor(peers.Of(r).String())
	if wrong, ok := errors.AsType[*people.WrongLogin](err); ok {
		who.Name = wrong.Person
	}
	u.Audit.Note(api.AuditEntry{Who: who, Result: api.AuditRefused, Action: "login",
		Reason:  wordsOf(err).Message,
		Request: requestID(w)})
	view := loginView{Next: next, Name: r.PostForm.Get("name")}
	status := api.StatusOf(fault.KindOf(err))
	switch f := wordsOf(err); f.Kind {
	case fault.Unauthorized:
		view.Error = "That token is not known here. Check that all of it was copied."
		switch f.Code {
		case "TokenExpired":
			view.Error = "That token has expired."
		case "WrongLogin":
			view.Error = f.Message + ". A code is needed if you set up an app for it, and works once."
		case "LoginUnknown", "LoginRefused":
			view.Error = f.Message + "."
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
	return u.showLogin(w, r, status, view)
}
