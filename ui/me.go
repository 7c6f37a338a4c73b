package ui

import (
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/boombuler/barcode/qr"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/people"
)

// meView is the data of the page of the person who is logged in.
type meView struct {
	Person    api.PersonInfo
	Enrolling api.TOTPSecret // a second factor that waits for its first code
	Codes     []string       // new recovery codes, which are shown once
	Sessions  []api.SessionInfo
	Least     int // characters of a password
}

// grantOf returns the rights of the caller; none on a public page.
func grantOf(r *http.Request) *access.Grant {
	if g, ok := r.Context().Value(grantKey{}).(*access.Grant); ok {
		return g
	}
	return &access.Grant{}
}

func (u *UI) me(w http.ResponseWriter, r *http.Request) error { return u.showMe(w, r, nil) }

func (u *UI) showMe(w http.ResponseWriter, r *http.Request, codes []string) error {
	g := grantOf(r)
	person, err := u.People.Get(r.Context(), g.Person)
	if err != nil {
		return err
	}
	v := meView{Person: person, Codes: codes, Least: people.MinPassword}
	if v.Enrolling, err = u.People.Enrolling(r.Context(), g.Person); err != nil {
		return err
	}
	if v.Sessions, err = u.Access.Sessions(r.Context(), g.Person, g, time.Now()); err != nil {
		return err
	}
	return u.show(w, r, http.StatusOK, "me", g.Person, v)
}

// changed keeps the session of the request after a change that ended those of its person, and shows the
// result.
func (u *UI) changed(w http.ResponseWriter, r *http.Request, err error, said string) error {
	if err == nil {
		err = u.Access.Renew(r.Context(), grantOf(r), time.Now())
	}
	return told(w, r, "/me", "/me", err, "%s", said)
}

func (u *UI) changePassword(w http.ResponseWriter, r *http.Request) error {
	password, err := newPassword(r)
	if err == nil {
		err = u.People.ChangePassword(r.Context(), grantOf(r).Person, api.PasswordChange{
			Password: r.PostForm.Get("password"), NewPassword: password}, time.Now())
	}
	return u.changed(w, r, err, "Your password is changed. Your other sessions have ended.")
}

// chooseAccount makes the session act for another account of its person.
func (u *UI) chooseAccount(w http.ResponseWriter, r *http.Request) error {
	account := r.PostForm.Get("account")
	if err := u.Access.SwitchAccount(r.Context(), grantOf(r), account, time.Now()); err != nil {
		return err
	}
	return done(w, r, "/", "You act for the account %s now.", account)
}

func (u *UI) enrolTOTP(w http.ResponseWriter, r *http.Request) error {
	_, err := u.People.Enrol(r.Context(), grantOf(r).Person, r.PostForm.Get("password"), time.Now())
	if err != nil {
		return undone(w, r, "/me", err)
	}
	return redirect(w, r, "/me")
}

// confirmTOTP shows the recovery codes in the answer itself: they must be nowhere else.
func (u *UI) confirmTOTP(w http.ResponseWriter, r *http.Request) error {
	codes, err := u.People.Confirm(r.Context(), grantOf(r).Person, r.PostForm.Get("code"), time.Now())
	if err == nil {
		err = u.Access.Renew(r.Context(), grantOf(r), time.Now())
	}
	if err != nil {
		return undone(w, r, "/me", err)
	}
	return u.showMe(w, r, codes.RecoveryCodes)
}

func (u *UI) removeTOTP(w http.ResponseWriter, r *http.Request) error {
	err := u.People.RemoveTOTP(r.Context(), grantOf(r).Person, r.PostForm.Get("password"), time.Now())
	return u.changed(w, r, err, "Logins need no code any more. Your other sessions have ended.")
}

type sessionsView struct{ Sessions []api.SessionInfo }

// sessions shows all sessions to admins.
func (u *UI) sessions(w http.ResponseWriter, r *http.Request) error {
	all, err := u.Access.Sessions(r.Context(), "", grantOf(r), time.Now())
	if err != nil {
		return err
	}
	return u.show(w, r, http.StatusOK, "sessions", "Sessions", sessionsView{all})
}

// endSession ends a session: any for admins, else one of the person.
func (u *UI) endSession(w http.ResponseWriter, r *http.Request) error {
	g, back, of := grantOf(r), "/me", ""
	if r.PostForm.Get("back") == "/sessions" {
		back = "/sessions"
	}
	if !g.Allows(api.ScopeAdmin) {
		of = g.Person
	}
	ended, err := u.Access.EndSession(r.Context(), r.PathValue("id"), of)
	switch {
	case err != nil:
		return err
	case !ended:
		return undone(w, r, back, fault.New(fault.NotFound, "", "That session had ended already"))
	}
	return done(w, r, back, "The session has ended.")
}

// qrCode returns a text as a QR code in SVG, of one path: no style, no script, no image from elsewhere.
func qrCode(text string) (template.HTML, error) {
	code, err := qr.Encode(text, qr.M, qr.Auto)
	if err != nil {
		return "", err
	}
	const quiet = 4 // modules around the code, ISO/IEC 18004
	size := code.Bounds().Dx()
	var path strings.Builder
	for y := range size {
		for x := range size {
			if red, _, _, _ := code.At(x, y).RGBA(); red == 0 {
				path.WriteString("M" + strconv.Itoa(x+quiet) + " " + strconv.Itoa(y+quiet) + "h1v1h-1z")
			}
		}
	}
	side := strconv.Itoa(size + 2*quiet)
	return template.HTML(`<svg class="qr" viewBox="0 0 ` + side + " " + side + //nolint:gosec // numbers only
		`" role="img" aria-label="QR code of the secret below"><rect width="` + side + `" height="` + side +
		`" fill="#fff"></rect><path d="` + path.String() + `" fill="#000"></path></svg>`), nil
}
