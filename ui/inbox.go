package ui

import (
	"crypto/subtle"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/audit"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/peers"
)

// Demo are the pages that only `postroom demo` has: the mail that its relay caught, and a link that logs in
// once.
type Demo struct {
	Secret string              // of the link, at least 16 characters; "": there is no link
	Token  string              // the access token that the link logs in with
	Mails  func() []CaughtMail // the newest first

	used atomic.Bool
}

// CaughtMail is a mail as the demo's relay received it.
type CaughtMail struct {
	ID       string    `json:"id"`
	To       []string  `json:"to"` // of the envelope
	Subject  string    `json:"subject"`
	Received time.Time `json:"received"`
	Raw      []byte    `json:"-"`
}

// DemoLink returns the path of the link with a secret.
func DemoLink(secret string) string { return "/demo?t=" + secret }

// demoRoutes are the pages of a demo. Elsewhere they are not there.
func (t table) demoRoutes() {
	if t.opts.Demo == nil {
		return
	}
	t.open("GET /demo", t.enterDemo)
	t.closed("GET /inbox", t.inbox)
	t.closed("GET /inbox/{id}", t.caughtMail)
	t.closed("GET /inbox/{id}/html", t.caughtFrame)
}

// mountedInDemo are the paths of these pages, for Mount.
var mountedInDemo = []string{"/demo", "/inbox", "/inbox/*"}

// enterDemo opens a session for who has the link, once, and shows the inbox.
func (u *UI) enterDemo(w http.ResponseWriter, r *http.Request) error {
	demo := u.opts.Demo
	given := r.URL.Query().Get("t")
	if demo.Secret == "" || subtle.ConstantTimeCompare([]byte(given), []byte(demo.Secret)) != 1 ||
		!demo.used.CompareAndSwap(false, true) {
		return fault.New(fault.NotFound, "",
			"This link does not work, or was used: it works once. Log in with the token that the demo shows")
	}
	by := access.Client{Addr: peers.Of(r).Addr, Agent: r.UserAgent()}
	cookie, err := u.Access.Login(r.Context(), demo.Token, by, time.Now())
	if err != nil {
		return err
	}
	grant, err := u.Access.Session(r.Context(), cookie, by.Addr, time.Now())
	if err != nil {
		return err
	}
	who := grant.Actor(peers.Of(r).String())
	who.Kind, who.Session = audit.Session, access.SessionID(cookie)
	return u.enter(w, r, cookie, "/inbox", u.Audit.Login(r.Context(), who, "login", requestID(w)))
}

type inboxView []CaughtMail

// inbox shows the mails that were caught.
func (u *UI) inbox(w http.ResponseWriter, r *http.Request) error {
	return u.show(w, r, http.StatusOK, "inbox", "Inbox", inboxView(u.opts.Demo.Mails()))
}

// caughtView is the data of the page of a mail.
type caughtView struct {
	CaughtMail
	Content message.Parsed
	Frame   string // URL of its html; empty: it has none
}

func (u *UI) caughtMail(w http.ResponseWriter, r *http.Request) error {
	m, err := u.caught(r)
	if err != nil {
		return err
	}
	v := caughtView{CaughtMail: m, Content: message.Parse(m.Raw)}
	if v.Content.Text("text/html") != nil {
		v.Frame = "/inbox/" + m.ID + "/html"
	}
	w.Header().Set("Content-Security-Policy", policy+"; frame-src 'self'") // the mail
	return u.show(w, r, http.StatusOK, "caught", m.Subject, v)
}

// caughtFrame answers with the html of a mail.
func (u *UI) caughtFrame(w http.ResponseWriter, r *http.Request) error {
	m, err := u.caught(r)
	if err != nil {
		return err
	}
	writeFrame(w, message.Frame(m.Raw))
	return nil
}

func (u *UI) caught(r *http.Request) (CaughtMail, error) {
	mails := u.opts.Demo.Mails()
	at := slices.IndexFunc(mails, func(m CaughtMail) bool { return m.ID == r.PathValue("id") })
	if at < 0 {
		return CaughtMail{}, fault.New(fault.NotFound, "", "There is no such mail in the inbox of the demo")
	}
	return mails[at], nil
}
