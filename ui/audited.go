package ui

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/audit"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/peers"
)

// outcomeKey is the key of the outcome of a change in a request's context.
type outcomeKey struct{}

// outcome is why a change was refused whose page says so; nil: it was made.
type outcome struct {
	refused error
	made    any // has the id of what was made; nil: nothing was
}

// noteOutcome says that the change of a request was refused.
func noteOutcome(r *http.Request, err error) {
	if o, ok := r.Context().Value(outcomeKey{}).(*outcome); ok {
		o.refused = err
	}
}

// noteMade tells the audit log what the change of a request made.
func noteMade(r *http.Request, made any) {
	if o, ok := r.Context().Value(outcomeKey{}).(*outcome); ok {
		o.made = made
	}
}

// requestID returns the id that package server gave the request.
func requestID(w http.ResponseWriter) string { return w.Header().Get("X-Request-Id") }

// logged has the audit log record a change.
func (u *UI) logged(action, kind string, next handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		asked := map[string]string{}
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
			limit := int64(formLimit)
			if kind == "campaign" || kind == "template" {
				limit = campaignFormLimit
			}
			if err := parseFormOf(w, r, limit); err != nil {
				return err
			}
			for name, values := range r.PostForm {
				if !strings.HasPrefix(name, "was.") {
					asked[name] = strings.Join(values, ", ")
				}
			}
		}
		object := api.AuditObject{Kind: kind, ID: r.PathValue("id"), Account: boundTo(r)}
		switch {
		case kind == "queue":
			object.ID = r.PathValue("queue")
		case strings.HasPrefix(action, "POST /me/"):
			object.ID = grantOf(r).Person
		case kind == "campaign" && strings.HasSuffix(action, "/copy"): // it is about the copy
			object.ID = ""
		case kind == "campaign" && strings.HasSuffix(action, "/test"): // the form has addresses
			asked = nil
		case kind == "digestKind":
			object.ID = cmp.Or(object.ID, asked["category"])
			object.Account = cmp.Or(r.PathValue("account"), asked["account"], object.Account,
				audience.DefaultAccount)
		case kind == "digestRecipient": // as a subscriber; its id may be an address
			object.Account = r.PathValue("account")
			asked = nil
			if strings.Contains(object.ID, "@") {
				object.ID = ""
			}
		case kind == "subscriber": // the form names a person, who may want to be forgotten
			object.Account = cmp.Or(r.PathValue("account"), asked["account"], object.Account)
			asked = nil
		}
		return u.record(w, r, action, object, asked, next)
	}
}

// record makes a change that is described, and returns what the page is to show.
func (u *UI) record(w http.ResponseWriter, r *http.Request, action string, object api.AuditObject,
	asked any,
	next handler) error {
	var shown error
	var result outcome
	begun := false
	grant, _ := r.Context().Value(grantKey{}).(*access.Grant)
	err := u.Audit.Do(r.Context(), audit.Change{
		Who: grant.Actor(peers.Of(r).String()), Action: action, Object: object, Request: requestID(w),
		Asked: asked,
		Look:  u.Look,
	}, func(ctx context.Context) (any, error) {
		begun = true
		if shown = next(w, r.WithContext(context.WithValue(ctx, outcomeKey{}, &result))); shown != nil {
			return nil, shown
		}
		return result.made, result.refused
	})
	if begun {
		return shown
	}
	return err
}

// maxAction is the size limit of the body of an action in the dashboard.
const maxAction = 1 << 20

// loggedAction is an action in the dashboard of the queues, which names tasks in its path or body.
func (u *UI) loggedAction(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAction))
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "", "The request could not be read")
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var asked any
	if len(body) > 0 && json.Unmarshal(body, &asked) != nil {
		return fault.New(fault.Invalid, "", "The request body isn't valid JSON")
	}
	path := strings.TrimPrefix(r.URL.Path, DashboardPath+"/api/queues/")
	name, _, _ := strings.Cut(path, "/")
	name, _, _ = strings.Cut(name, ":")
	object := api.AuditObject{Kind: "queue", ID: name}
	return u.record(w, r, r.Method+" "+DashboardPath+"/"+path, object, asked,
		func(w http.ResponseWriter, r *http.Request) error {
			answered := &statusWriter{ResponseWriter: w}
			u.Dashboard.ServeHTTP(answered, r)
			if answered.status >= http.StatusBadRequest {
				noteOutcome(r, fault.New(fault.Conflict, "", "the dashboard answered %d", answered.status))
			}
			return nil
		})
}

// statusWriter remembers the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (s *statusWriter) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (s *statusWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// noteRefusal counts a request that was refused for its caller. A browser that is not logged in is sent to
// the login, which is no refusal.
func (u *UI) noteRefusal(w http.ResponseWriter, r *http.Request, grant *access.Grant, err error) {
	f := wordsOf(err)
	if err == nil || f.Kind != fault.Forbidden && f.Code != "TooManyFailures" &&
		(f.Kind != fault.Unauthorized || bearer(r) == "") {
		return
	}
	action := r.Pattern
	if !strings.Contains(action, " ") {
		action = r.Method + " " + action
	}
	u.Audit.Note(api.AuditEntry{Who: grant.Actor(peers.Of(r).String()), Result: api.AuditRefused,
		Action: action, Reason: f.Message, Request: requestID(w)})
}

// noteLogout records the end of a session, if there is one. It does not keep anybody from logging out.
func (u *UI) noteLogout(w http.ResponseWriter, r *http.Request, cookie string) {
	grant, err := u.Access.Session(r.Context(), cookie, peers.Of(r).Addr, time.Now())
	if err != nil {
		return
	}
	if err := u.Audit.Login(r.Context(), grant.Actor(peers.Of(r).String()), "logout",
		requestID(w)); err != nil {
		u.log.WarnContext(r.Context(), "logout not written to the audit log", "token_id", grant.TokenID, "error",
			err)
	}
}
