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

// requestBody bounds the body of a request: a form of three short fields, or the form of RFC 8058 section
// 3.2. The token may take most of it.
const requestBody = 4 << 10

// unsubscribeRoutes are the public pages of recipients. They stand outside the API: no token of ours, no
// cookie, and no redirect, which RFC 8058 section 3.1 forbids.
type unsubscribeRoutes struct {
	requests        *unsubscribe.Service
	pages           *publicPages
	getUnsubscribes bool // following a link is enough
	log             *slog.Logger
}

func plainPost(path string, h echo.HandlerFunc) route {
	return route{method: http.MethodPost, path: path, right: public(),
		bind: func(*Server, route) echo.HandlerFunc { return h }}
}

// unsubscribeRequest is a form that a recipient or their mail client sends.
type unsubscribeRequest struct {
	token    string
	oneClick bool   // a mail client asks, not a page of ours
	action   string // leave or return; empty: none
	from     unsubscribe.Scope
}

// askUnsubscribe shows the page with one button. It changes nothing, because scanners of links, previews and
// prefetching browsers follow every link of a mail: one that unsubscribes by GET unsubscribes whole
// companies. The setting unsubscribe.getUnsubscribes has it act.
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
		return u.unsubscribe(c, p, from, unsubscribe.Link)
	}
	standing, err := u.requests.Standing(c.Request().Context(), *p.visit)
	if err == nil && standing.Unsubscribed(from) {
		return u.showLeft(c, p, mainScope(standing, from))
	}
	return u.showAsk(c, p, from) // the button is worth showing, whatever stands in the way of knowing
}

// postUnsubscribe does what a mail client asks for, or the button of the page.
func (u unsubscribeRoutes) postUnsubscribe(c echo.Context) error {
	w, err := readRequest(c)
	if err != nil {
		return u.refuse(c, err)
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
		return u.resubscribe(c, p, w.from, unsubscribe.Page)
	}
	return u.unsubscribe(c, p, w.from, unsubscribe.Page)
}

// oneClick answers a mail client in a word: the same to the first request, to a repeated one, and to one of
// somebody who had left before.
func (u unsubscribeRoutes) oneClick(c echo.Context, w unsubscribeRequest) error {
	v, err := u.requests.Read(w.token)
	if err == nil {
		err = u.requests.Unsubscribe(c.Request().Context(), v, v.Scope(), unsubscribe.OneClick)
	}
	if err != nil {
		return u.refuse(c, err)
	}
	return c.String(http.StatusOK, "Unsubscribed\n")
}

// unsubscribe carries out a request to unsubscribe, and shows the page with the button that undoes it.
func (u unsubscribeRoutes) unsubscribe(c echo.Context, p publicVisit, from unsubscribe.Scope,
	via unsubscribe.Via) error {
	if from == "" {
		from = p.visit.Scope()
	}
	if err := u.requests.Unsubscribe(c.Request().Context(), *p.visit, from, via); err != nil {
		return u.showFailed(c, p, pageButton{To: "unsubscribe", Action: "leave", From: from}, err)
	}
	return u.showLeft(c, p, from)
}

// resubscribe carries out a request to resubscribe, and shows the page that says so.
func (u unsubscribeRoutes) resubscribe(c echo.Context, p publicVisit, from unsubscribe.Scope,
	via unsubscribe.Via) error {
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
	w, err := readRequest(c)
	if err != nil {
		return u.refuse(c, err)
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

// errNoRequest refuses a POST that asks for nothing.
var errNoRequest = fault.New(fault.Invalid, "",
	"The body must be a form with List-Unsubscribe=One-Click (RFC 8058)")

// readRequest reads a form: that of a mail client, in either encoding, or that of our pages. The token stands
// in the address or in the form.
func readRequest(c echo.Context) (w unsubscribeRequest, err error) {
	r := c.Request()
	r.Body = http.MaxBytesReader(c.Response(), r.Body, requestBody)
	media, _, _ := mime.ParseMediaType(r.Header.Get(echo.HeaderContentType))
	w.token, w.oneClick = c.QueryParam("t"), true // until our own form shows: who asks without it is a program
	if media == "multipart/form-data" {
		err = r.ParseMultipartForm(requestBody)
	} else {
		err = r.ParseForm()
	}
	if err != nil {
		if _, tooMuch := errors.AsType[*http.MaxBytesError](err); tooMuch {
			return w, tooLarge(requestBody)
		}
		return w, errNoRequest
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
		return w, errNoRequest
	}
	return w, nil
}

// refuse answers a mail client with one line of text, and Retry-After where a retry can help.
func (u unsubscribeRoutes) refuse(c echo.Context, err error) error {
	status, text := http.StatusInternalServerError, "Not unsubscribed: an internal error\n"
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind != fault.Internal {
		status, text = api.StatusOf(f.Kind), f.Message+"\n"
	}
	if status >= http.StatusInternalServerError {
		u.log.Error("unsubscribe request failed", "request_id", requestID(c), "error", err)
		c.Response().Header().Set("Retry-After", "60")
	}
	return c.String(status, text)
}

// mainScope is what a visitor has to come back to in order to get mail again.
func mainScope(standing unsubscribe.Standing, from unsubscribe.Scope) unsubscribe.Scope {
	if standing.All {
		return unsubscribe.All
	}
	return from
}
