package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"mime"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/digest"
	"github.com/postroom/postroom/feedback/unsubscribe"
)

const (
	// requestBody is the size limit of a form: three short fields, or the form of RFC 8058 section 3.2. The
	// token may take most of it.
	requestBody = 4 << 10
	// readerBody is the size limit of the digest form: several fields for each of 33 categories with long names.
	readerBody = 64 << 10
)

// unsubscribeRoutes are the public pages for recipients. They use no token of the API, no cookie, and no
// redirect, which RFC 8058 section 3.1 forbids.
type unsubscribeRoutes struct {
	requests        *unsubscribe.Service
	digests         *digest.Digests
	pages           *publicPages
	proofs          *wrongProofs
	getUnsubscribes bool // see Options.GetUnsubscribes
	log             *slog.Logger
}

func plainPost(path string, h echo.HandlerFunc) route {
	return route{method: http.MethodPost, path: path, right: public(),
		audited: unlogged("by unauthenticated clients"),
		bind:    func(*Server, route) echo.HandlerFunc { return h }}
}

// The actions of the pages' forms. They are also the keys of their buttons' texts.
const (
	actionUnsubscribe = "unsubscribe"
	actionResubscribe = "resubscribe"
)

// unsubscribeRequest is a form of a recipient or a mail client.
type unsubscribeRequest struct {
	token    string
	oneClick bool              // from a mail client, not from our pages
	action   string            // empty if none
	from     unsubscribe.Scope // empty for the email's
	digests  *digestForm       // nil if it is another form
}

// askUnsubscribe shows the page with one button. It changes nothing, because link scanners, previews and
// prefetching browsers follow every link of an email: if GET unsubscribed, they would unsubscribe whole
// companies. The setting unsubscribe.getUnsubscribes makes it act.
func (u unsubscribeRoutes) askUnsubscribe(c echo.Context) error {
	return u.visit(c, c.QueryParam("t"), func(p publicVisit) error {
		if u.getUnsubscribes && c.Request().Method == http.MethodGet { // and not at HEAD
			return u.change(c, p, unsubscribeRequest{action: actionUnsubscribe}, unsubscribe.Link)
		}
		from := p.visit.Scope()
		standing, err := u.requests.Standing(c.Request().Context(), *p.visit)
		if err == nil && standing.Unsubscribed(from) {
			return u.showUnsubscribed(c, p, mainScope(standing, from))
		}
		return u.showAsk(c, p, from) // after an error too: the button may work
	})
}

// postUnsubscribe handles the request of a mail client, or the button of a page.
func (u unsubscribeRoutes) postUnsubscribe(c echo.Context) error {
	r, err := readRequest(c, requestBody)
	switch {
	case err != nil:
		return u.refuse(c, err)
	case r.oneClick:
		return u.oneClick(c, r)
	}
	return u.visit(c, r.token, func(p publicVisit) error { return u.change(c, p, r, unsubscribe.Page) })
}

// oneClick carries out a mail client's request. A repeated request gets the same answer, and so does a
// request for a recipient who is unsubscribed already.
func (u unsubscribeRoutes) oneClick(c echo.Context, r unsubscribeRequest) error {
	v, err := u.read(c, r.token)
	if err != nil {
		if limited := u.proofs.told(c, nil, fault.Is(err, fault.NotFound)); limited != nil {
			return limited
		}
	} else {
		err = u.requests.Unsubscribe(c.Request().Context(), v, v.Scope(), unsubscribe.OneClick)
	}
	if err != nil {
		return u.refuse(c, err)
	}
	return c.String(http.StatusOK, "Unsubscribed\n")
}

// read returns the visit of a link, with the address and the program that the request came from.
func (u unsubscribeRoutes) read(c echo.Context, token string) (unsubscribe.Visit, error) {
	v, err := u.requests.Read(token)
	v.RemoteAddress, v.UserAgent = c.RealIP(), c.Request().UserAgent()
	return v, err
}

// change carries out a request, and shows the page with the button that undoes it.
func (u unsubscribeRoutes) change(c echo.Context, p publicVisit, r unsubscribeRequest,
	via unsubscribe.Via) error {
	from, err := u.apply(c.Request().Context(), p, r, via)
	switch {
	case err != nil:
		return u.showFailed(c, p, pageButton{To: "unsubscribe", Action: r.action, From: from}, err)
	case r.action == actionResubscribe:
		return u.showResubscribed(c, p, from)
	}
	return u.showUnsubscribed(c, p, from)
}

// apply carries out a request, and returns its scope.
func (u unsubscribeRoutes) apply(ctx context.Context, p publicVisit, r unsubscribeRequest,
	via unsubscribe.Via) (unsubscribe.Scope, error) {
	from, change := cmp.Or(r.from, p.visit.Scope()), u.requests.Unsubscribe
	if r.action == actionResubscribe {
		change = u.requests.Resubscribe
	}
	if err := change(ctx, *p.visit, from, via); err != nil || from != unsubscribe.List || !p.ofDigests() {
		return from, err
	}
	follow := u.digests.Leave
	if r.action == actionResubscribe {
		follow = u.digests.Return
	}
	return from, follow(ctx, p.visit.Account, p.visit.Address)
}

// showPreferences shows which mail of this sender the visitor gets.
func (u unsubscribeRoutes) showPreferences(c echo.Context) error {
	return u.visit(c, c.QueryParam("t"), func(p publicVisit) error { return u.showStanding(c, p, false) })
}

// postPreferences changes one preference, or the digest preferences that were sent, and shows all.
func (u unsubscribeRoutes) postPreferences(c echo.Context) error {
	r, err := readRequest(c, readerBody)
	if err != nil {
		return u.refuse(c, err)
	}
	return u.visit(c, r.token, func(p publicVisit) error {
		if r.digests != nil {
			return u.saveDigests(c, p, *r.digests)
		}
		if from, err := u.apply(c.Request().Context(), p, r, unsubscribe.Preferences); err != nil {
			return u.showFailed(c, p, pageButton{To: "preferences", Action: r.action, From: from}, err)
		}
		return u.showStanding(c, p, true)
	})
}

// errNoRequest refuses a form without a request.
var errNoRequest = fault.New(fault.Invalid, "",
	"The body must be a form with List-Unsubscribe=One-Click (RFC 8058)")

// readRequest reads a form of a mail client, in either encoding, or of our pages. The token is in the URL or
// in the form. A body of more than limit bytes is refused.
func readRequest(c echo.Context, limit int64) (w unsubscribeRequest, err error) {
	r := c.Request()
	r.Body = http.MaxBytesReader(c.Response(), r.Body, limit)
	media, _, _ := mime.ParseMediaType(r.Header.Get(echo.HeaderContentType))
	w.token, w.oneClick = c.QueryParam("t"), true // a form without an action is of a mail client
	if media == "multipart/form-data" {
		err = r.ParseMultipartForm(limit)
	} else {
		err = r.ParseForm()
	}
	if err != nil {
		if _, tooMuch := errors.AsType[*http.MaxBytesError](err); tooMuch {
			return w, tooLarge(limit)
		}
		return w, errNoRequest
	}
	w.token = cmp.Or(w.token, r.PostForm.Get("t"))
	switch from := unsubscribe.Scope(r.PostForm.Get("from")); from {
	case unsubscribe.List, unsubscribe.All:
		w.from = from
	}
	digests, isDigests := readDigestForm(r.PostForm)
	switch action := r.PostForm.Get("action"); {
	case action == actionUnsubscribe, action == actionResubscribe:
		w.action, w.oneClick = action, false
	case limit == readerBody && isDigests:
		w.digests, w.oneClick = &digests, false
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

// mainScope returns the scope that a visitor must resubscribe to in order to get mail again.
func mainScope(standing unsubscribe.Standing, from unsubscribe.Scope) unsubscribe.Scope {
	if standing.All {
		return unsubscribe.All
	}
	return from
}
