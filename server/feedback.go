package server

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/feedback"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/server/settings"
)

// feedbackRoutes accept reports about mail that a relay has accepted.
type feedbackRoutes struct {
	feedback *feedback.Feedback
	bounces  *feedback.Bounces
	bodies   *bodyMemory
	proofs   *wrongProofs
	settings *settings.Settings
}

// providerHook handles the webhook of the provider in the path; without one, of the generic provider. With a
// gateway in the path it is that gateway's. It is authenticated by the provider's signature, which covers the
// bytes of the body. So these are passed on unchanged.
func (f feedbackRoutes) providerHook(c echo.Context) error {
	from := feedback.Origin{Provider: cmp.Or(provider.Name(c.Param("name")), provider.Generic),
		Gateway: c.Param("gateway")}
	if err := f.feedback.Takes(c.Request().Context(), from); err != nil { // before its body is read
		c.Response().Header().Set(echo.HeaderConnection, "close")
		return err
	}
	memory, err := f.bodies.beginPublic(c, provider.MaxBody)
	if err != nil {
		return err
	}
	defer memory.release()
	body, err := rawBody(c, memory, provider.MaxBody)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	if err := memory.acquire(ctx); err != nil {
		return err
	}
	r := c.Request()
	receipt, err := f.feedback.Provider(ctx, from, provider.Request{Header: r.Header, Query: r.URL.Query(),
		Body: body, Addresses: []string{strings.TrimSuffix(f.settings.Current().ServiceURL, "/") + r.RequestURI,
			"https://" + r.Host + r.RequestURI, "http://" + r.Host + r.RequestURI}}, time.Now())
	if err != nil {
		return f.proofs.told(c, err, fault.Is(err, fault.Unauthorized))
	}
	return writeJSON(c, http.StatusOK, receipt)
}

// hookExists answers HEAD: Mandrill looks for a webhook before it says with which key it signs.
func hookExists(path string) route {
	found := plainPost(path, func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	found.method = http.MethodHead
	return found
}

// rawBody reads a body. If its declared length is beyond the limit, it is refused unread.
func rawBody(c echo.Context, m *capacity, limit int64) ([]byte, error) {
	r := c.Request()
	if r.ContentLength > limit {
		c.Response().Header().Set(echo.HeaderConnection, "close")
		return nil, tooLarge(limit)
	}
	body, err := readAll(m.arrive(c, http.MaxBytesReader(c.Response(), r.Body, limit), limit),
		make([]byte, 0, 512), r.ContentLength)
	if err != nil {
		return nil, readFault(fmt.Errorf("read the body: %w", err), limit)
	}
	return body, nil
}
