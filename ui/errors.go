package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/server/access"
)

// answer runs a handler and shows its error or panic as a page.
func (u *UI) answer(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(context.WithValue(redisdb.Hurried(r.Context()), grantKey{}, new(access.Grant)))
		defer func() {
			switch p := recover(); p {
			case nil:
			case http.ErrAbortHandler:
				panic(p)
			default:
				u.log.ErrorContext(r.Context(), "panic", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				u.failed(w, r, errors.New("panic"))
			}
		}()
		if err := h(w, r); err != nil {
			u.failed(w, r, err)
		}
	})
}

// failure is the data of an error page.
type failure struct {
	Status  int
	Heading string
	Message string
	Fields  []fault.Field
	Again   bool   // the same request may succeed soon
	Redis   bool   // it is what is missing
	Form    string // page of the form that was sent, and may be sent again; empty: none
	Request string // id of the request in the log; empty: none
}

// failed answers with an error page, or redirects a browser without a login to the login page.
func (u *UI) failed(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		return // the client is gone
	}
	f := wordsOf(err)
	if f.Kind == fault.Unauthorized && bearer(r) == "" && !strings.HasPrefix(r.URL.Path, DashboardPath+"/api/") {
		_ = redirect(w, r, "/login"+nextOf(r))
		return
	}
	view := failure{Status: api.StatusOf(f.Kind), Message: f.Message, Fields: f.Fields,
		Again: f.Kind == fault.Unavailable && r.Method == http.MethodGet,
		Redis: f.Code == "RedisAway", Heading: heading(f.Kind)}
	if view.Redis && !view.Again {
		view.Form = cameFrom(r)
	}
	id := w.Header().Get("X-Request-Id") // set by package server
	switch f.Kind {
	case fault.Internal:
		view.Request = id
		u.log.ErrorContext(r.Context(), "page failed", "request_id", id, "method", r.Method, "path", r.URL.Path,
			"error", err)
	case fault.Unavailable, fault.Limited:
		w.Header().Set("Retry-After", strconv.Itoa(int(max(f.RetryAfter, time.Second).Seconds())))
		u.log.WarnContext(r.Context(), "page refused", "request_id", id, "method", r.Method, "path", r.URL.Path,
			"error", err)
	case fault.Unauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if err := u.show(w, r, view.Status, "error", view.Heading, view); err != nil {
		u.log.ErrorContext(r.Context(), "error page failed", "path", r.URL.Path, "error", err)
		http.Error(w, view.Heading, view.Status)
	}
}

// nextOf returns the page to show after the login: the one of the request, or that of the form that was sent
// after the session ended.
func nextOf(r *http.Request) string {
	if r.Method != http.MethodGet {
		return "?ended=1&next=" + url.QueryEscape(cameFrom(r))
	}
	if r.URL.Path == "/" && r.URL.RawQuery == "" {
		return ""
	}
	return "?next=" + url.QueryEscape(local(r.URL.RequestURI()))
}

// cameFrom returns the page of ours that sent a form, or "/".
func cameFrom(r *http.Request) string {
	if from, err := url.Parse(r.Referer()); err == nil && from.Host == r.Host {
		return local(from.RequestURI())
	}
	return "/"
}

// wordsOf returns the public text of an error. An internal one has none.
func wordsOf(err error) *fault.Error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok && redisdb.Full(err) {
		f, ok = errors.AsType[*fault.Error](redisdb.Away(err))
	}
	if !ok || f.Kind == fault.Internal {
		return fault.New(fault.Internal, "", "Something failed. Postroom's log has the details")
	}
	return f
}

func heading(kind fault.Kind) string { return cmp.Or(headings[kind], "Something went wrong") }

var headings = map[fault.Kind]string{
	fault.Invalid:      "That can’t be read",
	fault.Unauthorized: "Not logged in",
	fault.Forbidden:    "Not allowed",
	fault.NotFound:     "Nothing here",
	fault.Conflict:     "Not at this moment",
	fault.Limited:      "Too many requests",
	fault.Unavailable:  "Postroom can’t answer right now",
}

// sentence returns the text of an error for the first line of the page after an action.
func sentence(err error) string {
	f := wordsOf(err)
	s := f.Message
	for _, field := range f.Fields {
		s += fmt.Sprintf("; %s %s", field.Key, field.Message)
	}
	return s + "."
}

func noPage(http.ResponseWriter, *http.Request) error {
	return fault.New(fault.NotFound, "", "There is no such page")
}
