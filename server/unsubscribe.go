package server

import (
	"errors"
	"log/slog"
	"mime"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/feedback/unsubscribe"
)

// wishBody bounds the body of a wish: a form of three short fields, or the one that RFC 8058 section 3.2 has mail clients send. The token of
// the form may take most of it.
const wishBody = 4 << 10

// unsubscribeRoutes are the public pages of recipients. They stand outside the API: no token of ours, no cookie, and no redirect, which
// RFC 8058 section 3.1 forbids.
type unsubscribeRoutes struct {
	requests        *unsubscribe.Service
	pages           *publicPages
	getUnsubscribes bool // following a link is enough
	log             *slog.Logger
}

func plainPost(path string, h echo.HandlerFunc) route {
	return route{method: http.MethodPost, path: path, right: public(), bind: func(*Server, route) echo.HandlerFunc { return h }}
}

// wish is what a recipient sends.
type wish struct {
	token    string
	oneClick bool   // a mail client asks, not a page of ours
	action   string // leave or return; empty: none
	from     unsubscribe.Scope
}

// askUnsubscribe shows the page with one button. It changes nothing, because scanners of links, previews and prefetching browsers follow
// every link of a mail: one that unsubscribes by GET unsubscribes whole companies. The setting unsubscribe.getUnsubscribes has it act.
func (u unsubscribeRoutes) askUnsubscribe(c echo.Context) error {
	p, err := u.visit(c, c.QueryParam("t"))
	if err != nil {
		return err
	}
	if p.visit == nil {
		return u.showUnknown(c, p)
	}
	from := p.visit.Scope()
	if u.getUnsubscribes && c.Request().Method == http.MethodGet { // and not at HEAD
		return u.leave(c, p, from, unsubscribe.Link)
	}
	standing, err := u.requests.Standing(c.Request().Context(), *p.visit)
	if err == nil && standing.Unsubscribed(from) {
		return u.showLeft(c, p, reallyLeft(standing, from))
	}
	return u.showAsk(c, p, from) // the button is worth showing, whatever stands in the way of knowing
}

// postUnsubscribe does what a mail client asks for, or the button of the page.
func (u unsubscribeRoutes) postUnsubscribe(c echo.Context) error {
	w, err := readWish(c)
	if err != nil {
		return u.refuseWish(c, err)
	}
	if w.oneClick {
		return u.oneClick(c, w)
	}
	p, err := u.visit(c, w.token)
	if err != nil {
		return err
	}
	if p.visit == nil {
		return u.showUnknown(c, p)
	}
	if w.action == "return" {
		return u.comeBack(c, p, w.from, unsubscribe.Page)
	}
	return u.leave(c, p, w.from, unsubscribe.Page)
}

// oneClick answers a mail client in a word: the same to the first request, to a repeated one, and to one of somebody who had left before.
func (u unsubscribeRoutes) oneClick(c echo.Context, w wish) error {
	v, err := u.requests.Read(w.token)
	if err == nil {
		err = u.requests.Unsubscribe(c.Request().Context(), v, v.Scope(), unsubscribe.OneClick)
	}
	if err != nil {
		return u.refuseWish(c, err)
	}
	return c.String(http.StatusOK, "Unsubscribed\n")
}

// leave takes a visitor off, and shows that with the button that undoes it.
func (u unsubscribeRoutes) leave(c echo.Context, p publicVisit, from unsubscribe.Scope, via unsubscribe.Via) error {
	if from == "" {
		from = p.visit.Scope()
	}
	if err := u.requests.Unsubscribe(c.Request().Context(), *p.visit, from, via); err != nil {
		return u.showFailed(c, p, pageButton{To: "unsubscribe", Action: "leave", From: from}, err)
	}
	return u.showLeft(c, p, from)
}

// comeBack puts a visitor back.
func (u unsubscribeRoutes) comeBack(c echo.Context, p publicVisit, from unsubscribe.Scope, via unsubscribe.Via) error {
	if from == "" {
		from = p.visit.Scope()
	}
	if err := u.requests.Resubscribe(c.Request().Context(), *p.visit, from, via); err != nil {
		return u.showFailed(c, p, pageButton{To: "unsubscribe", Action: "return", From: from}, err)
	}
	return u.showReturned(c, p, from)
}

// showPreferences shows what the visitor gets of this sender, and what not.
func (u unsubscribeRoutes) showPreferences(c echo.Context) error {
	p, err := u.visit(c, c.QueryParam("t"))
	if err != nil {
		return err
	}
	if p.visit == nil {
		return u.showUnknown(c, p)
	}
	return u.showStanding(c, p, false)
}

// postPreferences changes one of them and shows them again.
func (u unsubscribeRoutes) postPreferences(c echo.Context) error {
	w, err := readWish(c)
	if err != nil {
		return u.refuseWish(c, err)
	}
	p, err := u.visit(c, w.token)
	if err != nil {
		return err
	}
	if p.visit == nil {
		return u.showUnknown(c, p)
	}
	ctx, change := c.Request().Context(), u.requests.Unsubscribe
	if w.action == "return" {
		change = u.requests.Resubscribe
	}
	if w.from == "" {
		w.from = p.visit.Scope()
	}
	if err := change(ctx, *p.visit, w.from, unsubscribe.Preferences); err != nil {
		return u.showFailed(c, p, pageButton{To: "preferences", Action: w.action, From: w.from}, err)
	}
	return u.showStanding(c, p, true)
}

// errNoWish is a POST that asks for nothing.
var errNoWish = fault.New(fault.Invalid, "", "The body must be a form with List-Unsubscribe=One-Click (RFC 8058)")

// readWish reads a form: that of a mail client, in either encoding, or that of our pages. The token stands in the address or in the form.
func readWish(c echo.Context) (w wish, err error) {
	r := c.Request()
	r.Body = http.MaxBytesReader(c.Response(), r.Body, wishBody)
	media, _, _ := mime.ParseMediaType(r.Header.Get(echo.HeaderContentType))
	w.token, w.oneClick = c.QueryParam("t"), true // until our own form shows: who asks without it is a program
	if media == "multipart/form-data" {
		err = r.ParseMultipartForm(wishBody)
	} else {
		err = r.ParseForm()
	}
	if err != nil {
		if _, tooMuch := errors.AsType[*http.MaxBytesError](err); tooMuch {
			return w, tooLarge(wishBody)
		}
		return w, errNoWish
	}
	if w.token == "" {
		w.token = r.PostForm.Get("t")
	}
	switch from := unsubscribe.Scope(r.PostForm.Get("from")); from {
	case unsubscribe.List, unsubscribe.All:
		w.from = from
	}
	switch action := r.PostForm.Get("action"); {
	case action == "leave", action == "return":
		w.action, w.oneClick = action, false
	case !strings.EqualFold(strings.TrimSpace(r.PostForm.Get("List-Unsubscribe")), "One-Click"):
		return w, errNoWish
	}
	return w, nil
}

// refuseWish tells a program in a line why its wish was not heeded. What passes says when to come back.
func (u unsubscribeRoutes) refuseWish(c echo.Context, err error) error {
	status, text := http.StatusInternalServerError, "Not unsubscribed: an internal error\n"
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind != fault.Internal {
		status, text = api.StatusOf(f.Kind), f.Message+"\n"
	}
	if status >= http.StatusInternalServerError {
		u.log.Error("a wish to unsubscribe could not be heeded", "request_id", requestID(c), "error", err)
		c.Response().Header().Set("Retry-After", "60")
	}
	return c.String(status, text)
}

// reallyLeft is what a visitor has to come back to in order to get mail again.
func reallyLeft(standing unsubscribe.Standing, from unsubscribe.Scope) unsubscribe.Scope {
	if standing.All {
		return unsubscribe.All
	}
	return from
}
