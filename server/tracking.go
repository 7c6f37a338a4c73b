package server

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/feedback/tracking"
	"github.com/postroom/postroom/server/peers"
)

// trackingRoutes count opens and clicks. They never wait, and work while Redis is unreachable.
type trackingRoutes struct {
	tracking *tracking.Tracking
	pages    *publicPages
	proofs   *wrongProofs
}

// pixel is the image that counts opens: a GIF of one transparent pixel, the smallest file that every email
// program shows.
const pixel = "GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"

// trackOpen answers with the pixel, even for an invalid token: the mail's reader didn't cause it, and a
// forger learns nothing.
func (t trackingRoutes) trackOpen(c echo.Context) error {
	t.tracking.Open(hitToken(c), visitOf(c))
	h := c.Response().Header()
	h.Set(echo.HeaderCacheControl, "no-store, no-cache, must-revalidate, private, max-age=0")
	h.Set("Pragma", "no-cache")
	h.Set("Expires", "0")
	h.Set("X-Robots-Tag", "noindex")
	h.Set(echo.HeaderContentLength, strconv.Itoa(len(pixel)))
	return c.Blob(http.StatusOK, "image/gif", []byte(pixel))
}

// trackClick redirects to a link's target. The token contains it.
func (t trackingRoutes) trackClick(c echo.Context) error {
	return t.follow(c, visitOf(c))
}

// trackClickTo is trackClick for URLs that name the target next to the token. Both targets must be the same.
func (t trackingRoutes) trackClickTo(c echo.Context) error {
	v := visitOf(c)
	if v.Named = c.QueryParam("url"); v.Named == "" {
		return t.leadsNowhere(c)
	}
	return t.follow(c, v)
}

func (t trackingRoutes) follow(c echo.Context, v tracking.Visit) error {
	target, err := t.tracking.Click(hitToken(c), v)
	switch {
	case errors.Is(err, tracking.ErrPreview):
		return t.show(c, http.StatusForbidden, "preview", "previewText")
	case errors.Is(err, tracking.ErrBlocked):
		return t.show(c, http.StatusGone, "blocked", "blockedText")
	case err != nil:
		return t.leadsNowhere(c)
	}
	h := c.Response().Header()
	// the default of browsers, so that the target gets the same Referer as without Postroom
	h.Set("Referrer-Policy", "no-referrer-when-downgrade")
	h.Set("X-Robots-Tag", "noindex")
	return c.Redirect(http.StatusFound, target)
}

// leadsNowhere answers a link with an invalid token.
func (t trackingRoutes) leadsNowhere(c echo.Context) error {
	if limited := t.proofs.tooMany(c); limited != nil {
		return limited
	}
	return t.show(c, http.StatusNotFound, "unknown", "nowhereText")
}

// show answers a link that is not followed: with a page, never a redirect, and nothing from the request.
func (t trackingRoutes) show(c echo.Context, status int, title, text string) error {
	lang := t.pages.language(c.Request(), "")
	words := t.pages.words[lang]
	return t.pages.show(c, status, publicView{Lang: lang, W: words, Title: words[title],
		Text: []string{words[text]}})
}

// hitToken returns the token of a hit, from the path or the query.
func hitToken(c echo.Context) string { return cmp.Or(c.Param("token"), c.QueryParam("mid")) }

// visitOf returns the request as package tracking has it.
func visitOf(c echo.Context) tracking.Visit {
	r := c.Request()
	return tracking.Visit{Method: r.Method, Header: r.Header, Remote: peers.Of(r).Addr}
}
