package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/server/peers"
)

const (
	// formBody is the size limit of a form: ten lists, an address and a name.
	formBody = 16 << 10
	// formTime is the least time of an answer to a form, which is longer than the work takes. So the time does
	// not show whether an address is known.
	formTime = 250 * time.Millisecond
)

// subscribeRoutes are the public form of lists, and the link that confirms. They use no token of the API and
// no cookie. So forms on pages of other origins may be sent here.
type subscribeRoutes struct {
	asks   *audience.Confirmations
	pages  *publicPages
	proofs *wrongProofs
	sent   *peers.Proofs // counts forms by network
	box    *outbox.Outbox
	log    *slog.Logger
}

// subscribing returns the handlers of forms and confirmations.
func (s *Server) subscribing() subscribeRoutes {
	return subscribeRoutes{asks: s.parts.OptIn, pages: s.pages, proofs: s.proofs, sent: s.forms,
		box: s.parts.Outbox, log: s.log}
}

// again asks a subscriber once more to confirm.
func (s subscribeRoutes) again(ctx context.Context, in *leaveListInput) (api.ConfirmationSent, error) {
	return s.asks.Again(ctx, boundTo(ctx), in.AccountQuery, in.Subscriber, in.ListID)
}

// form returns the form of a list, to link or to embed.
func (s subscribeRoutes) form(ctx context.Context, in *listInput) (api.ListForm, error) {
	return s.asks.Form(ctx, boundTo(ctx), in.ListID)
}

// showForm shows the form of the lists of the query.
func (s subscribeRoutes) showForm(c echo.Context) error {
	in := visitorForm{ListID: c.QueryParams()["listId"]}
	lists, err := s.asks.Public(c.Request().Context(), in.ListID)
	if err != nil {
		return s.showFailed(c, lists, in, err)
	}
	return s.showAsk(c, http.StatusOK, lists, in, "")
}

// visitorForm is a form that a visitor sent in, as fields of a form or as JSON.
type visitorForm struct {
	ListID  api.OneOrMany[string] `json:"listId"`
	Email   string                `json:"email"`
	Name    string                `json:"name"`
	Locale  string                `json:"locale"`
	TZ      string                `json:"tz"`
	Website string                `json:"website"`

	asJSON bool // so is the answer
}

var errNoForm = fault.New(fault.Invalid, "", "The body must be a form or a JSON object with listId and email")

func readForm(c echo.Context) (in visitorForm, err error) {
	r := c.Request()
	r.Body = http.MaxBytesReader(c.Response(), r.Body, formBody)
	media, _, _ := mime.ParseMediaType(r.Header.Get(echo.HeaderContentType))
	switch media {
	case echo.MIMEApplicationJSON:
		in.asJSON = true
		var raw []byte
		if raw, err = io.ReadAll(r.Body); err == nil {
			err = json.Unmarshal(raw, &in)
		}
	case echo.MIMEMultipartForm:
		err = r.ParseMultipartForm(formBody)
	default:
		err = r.ParseForm()
	}
	if err != nil {
		if _, tooMuch := errors.AsType[*http.MaxBytesError](err); tooMuch {
			return in, tooLarge(formBody)
		}
		return in, errNoForm
	}
	if !in.asJSON {
		f := r.PostForm
		in = visitorForm{ListID: f["listId"], Email: f.Get("email"), Name: f.Get("name"),
			Locale: f.Get("locale"), TZ: f.Get("tz"), Website: f.Get("website")}
	}
	return in, nil
}

// takeForm takes a form. All that it takes get one answer, after the same time.
func (s subscribeRoutes) takeForm(c echo.Context) error {
	if limited, wait := s.sent.Wrong(peers.Of(c.Request()).Addr, time.Now()); limited {
		s.asks.FormLimited()
		many := fault.New(fault.Limited, "TooManyForms", "Too many forms from your network. Try again in "+
			"a minute")
		many.RetryAfter = wait
		return s.refuse(c, nil, visitorForm{asJSON: isJSON(c)}, many)
	}
	in, err := readForm(c)
	if err != nil {
		return s.refuse(c, nil, in, err)
	}
	ctx := c.Request().Context()
	if err := s.box.Intake.AdmitsWrite(ctx, 0); err != nil {
		return s.refuse(c, nil, in, err)
	}
	lists, err := s.asks.Public(ctx, in.ListID)
	if err != nil {
		return s.refuse(c, nil, in, err)
	}
	slowest := time.NewTimer(formTime)
	defer slowest.Stop()
	err = s.asks.Ask(ctx, audience.FormRequest{ListIDs: in.ListID, Email: in.Email, Name: in.Name,
		Locale: in.Locale, TZ: in.TZ, Website: in.Website, RemoteAddress: c.RealIP()})
	if err != nil {
		return s.refuse(c, lists, in, err)
	}
	select {
	case <-slowest.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	if in.asJSON {
		return writeJSON(c, http.StatusOK, map[string]bool{"success": true})
	}
	return s.show(c, http.StatusOK, s.view(c, "thanks", "takenText"))
}

func isJSON(c echo.Context) bool {
	media, _, _ := mime.ParseMediaType(c.Request().Header.Get(echo.HeaderContentType))
	return media == echo.MIMEApplicationJSON
}

// refuse answers a form that was not taken: JSON with a problem, a form with a page.
func (s subscribeRoutes) refuse(c echo.Context, lists []*audience.List, in visitorForm, err error) error {
	if in.asJSON || isJSON(c) {
		return err
	}
	return s.showFailed(c, lists, in, err)
}

// askConfirm shows the button of a link. It changes nothing, because scanners follow every link of an email.
func (s subscribeRoutes) askConfirm(c echo.Context) error {
	token := c.QueryParam("t")
	found, err := s.asks.Read(c.Request().Context(), token)
	if err != nil {
		return s.showNoLink(c, err)
	}
	return s.showButton(c, found, token)
}

// postConfirm subscribes. The visitor agreed to the page's text.
func (s subscribeRoutes) postConfirm(c echo.Context) error {
	r := c.Request()
	r.Body = http.MaxBytesReader(c.Response(), r.Body, formBody)
	token := c.QueryParam("t")
	token = cmp.Or(token, c.FormValue("t"))
	ctx := r.Context()
	found, err := s.asks.Read(ctx, token)
	if err == nil {
		found, err = s.asks.Confirm(ctx, token, audience.Visit{RemoteAddress: c.RealIP(),
			Words: s.agreed(c, found)})
	}
	if err != nil {
		return s.showNoLink(c, err)
	}
	return s.showConfirmed(c, found)
}
