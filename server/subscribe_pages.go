package server

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/newsletter/audience"
)

// subscribeView is the data of a page for subscribers.
type subscribeView struct {
	Lang    string
	W       map[string]string
	Title   string
	Text    []string
	NoIndex bool
	Error   string // about the form
	Form    *formView
	Confirm *confirmView
}

type formView struct {
	Lists       []formList
	Email, Name string
}

type formList struct{ ID, Name, Description string }

// confirmView is a button that confirms.
type confirmView struct{ Token, Email, Names string }

// view returns a page in a visitor's language. Search engines are kept out, except from forms.
func (s subscribeRoutes) view(c echo.Context, title string, texts ...string) subscribeView {
	lang := s.pages.language(c.Request(), "")
	w := s.pages.words[lang]
	v := subscribeView{Lang: lang, W: w, Title: w[title], NoIndex: true}
	for _, text := range texts {
		v.Text = append(v.Text, w[text])
	}
	return v
}

func (s subscribeRoutes) show(c echo.Context, status int, v subscribeView) error {
	return s.pages.write(c, status, "subscribe.html", v.NoIndex, v)
}

// showAsk shows a form for lists. wrong is the error in the submitted form.
func (s subscribeRoutes) showAsk(c echo.Context, status int, lists []*audience.List, in visitorForm,
	wrong string) error {
	v := s.view(c, "subscribe")
	v.NoIndex, v.Error = false, wrong
	v.Form = &formView{Email: in.Email, Name: in.Name}
	for _, list := range lists {
		v.Form.Lists = append(v.Form.Lists, formList{list.ListID, list.Name, list.Description})
		v.NoIndex = v.NoIndex || list.NoIndex
	}
	if len(lists) == 1 {
		v.Title += ": " + lists[0].Name
	}
	return s.show(c, status, v)
}

// showFailed shows why there is no form, or why it was not taken.
func (s subscribeRoutes) showFailed(c echo.Context, lists []*audience.List, in visitorForm, err error) error {
	switch kind := fault.KindOf(err); {
	case kind == fault.NotFound:
		return s.show(c, http.StatusNotFound, s.view(c, "noForm", "noFormText"))
	case kind == fault.Invalid && len(lists) > 0:
		return s.showAsk(c, http.StatusBadRequest, lists, in, s.view(c, "").W["wrongForm"])
	case kind == fault.Invalid, kind == fault.TooLarge:
		return s.show(c, api.StatusOf(kind), s.view(c, "failed", "wrongForm"))
	case kind == fault.Limited:
		retryAfter(c, err)
		return s.show(c, http.StatusTooManyRequests, s.view(c, "failed", "tooManyText"))
	default:
		return s.showTrouble(c, err)
	}
}

// showTrouble says that nothing was changed.
func (s subscribeRoutes) showTrouble(c echo.Context, err error) error {
	s.log.Error("subscribing failed", "request_id", requestID(c), "error", err)
	status := http.StatusServiceUnavailable
	if fault.Is(err, fault.Unprocessable) { // a setting is missing; to try again does not help
		status = http.StatusUnprocessableEntity
	} else {
		c.Response().Header().Set(echo.HeaderRetryAfter, "60")
	}
	return s.show(c, status, s.view(c, "failed", "failedText"))
}

func retryAfter(c echo.Context, err error) {
	if f, ok := errors.AsType[*fault.Error](err); ok && f.RetryAfter > 0 {
		c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(seconds(f.RetryAfter)))
	}
}

// agreed returns what the visitor agrees to with a page's button.
func (s subscribeRoutes) agreed(c echo.Context, found audience.Confirmation) string {
	return s.view(c, "agree").Title + " " + found.Names()
}

func (s subscribeRoutes) showButton(c echo.Context, found audience.Confirmation, token string) error {
	v := s.view(c, "confirmTitle")
	v.Text = []string{s.agreed(c, found)}
	v.Confirm = &confirmView{Token: token, Email: found.Masked(), Names: found.Names()}
	return s.show(c, http.StatusOK, v)
}

func (s subscribeRoutes) showConfirmed(c echo.Context, found audience.Confirmation) error {
	v := s.view(c, "confirmed")
	v.Text = []string{found.Names()}
	return s.show(c, http.StatusOK, v)
}

// showNoLink says why a link confirms nothing.
func (s subscribeRoutes) showNoLink(c echo.Context, err error) error {
	switch {
	case fault.CodeOf(err) == audience.CodeLinkTooOld:
		return s.show(c, http.StatusGone, s.view(c, "linkOld", "linkOldText"))
	case fault.Is(err, fault.NotFound):
		if limited := s.proofs.tooMany(c); limited != nil {
			return limited
		}
		return s.show(c, http.StatusNotFound, s.view(c, "unknown", "brokenText"))
	case fault.Is(err, fault.Conflict):
		return s.show(c, http.StatusConflict, s.view(c, "failed", "blockedAddress"))
	}
	return s.showTrouble(c, err)
}
