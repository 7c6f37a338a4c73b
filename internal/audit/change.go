package audit

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

// System is the kind of actor for what Postroom does automatically, or an operator at its machine. The others
// are Token, Session, Person, SMTP and Anonymous.
const (
	System    = "system"
	Token     = "token"
	Session   = "session"
	SMTP      = "smtp"
	Person    = "person"
	Anonymous = "anonymous"
)

// resultTimeout bounds the writing of a result. The client may be gone by then.
const resultTimeout = 5 * time.Second

// Look returns an object's record as it may be shown: its secrets masked. It returns nil if there is none, or
// if the kind has no records. Package server has one.
type Look func(ctx context.Context, o api.AuditObject) (any, error)

// Change is a change that is about to be made.
type Change struct {
	Who     api.AuditActor
	Action  string          // method and route
	Object  api.AuditObject // ID may be empty if the answer has it, as after a creation
	Request string          // id of the request
	Asked   any             // what the request says; its secrets are masked here
	Look    Look            // nil means no kind has records
}

// Do makes a change that has an entry afterwards. It stores the intent before, and doesn't make the change if
// it can't. A refused change is only counted, so that no one can fill the log. change returns the answer to
// the client; its error is why the change was refused or failed.
func (l *Log) Do(ctx context.Context, c Change, change func(context.Context) (any, error)) error {
	wanted := flat(c.Asked)
	if c.Object.ID == "" { // for an object that is created under the client's id
		c.Object.ID = clip(wanted[c.Object.Kind])
	}
	if c.Object.Account == "" && c.Object.Kind != "account" {
		c.Object.Account = clip(wanted["account"])
	}
	var before any
	if c.Look != nil {
		var err error
		if before, err = c.Look(ctx, c.Object); err != nil && fault.Is(err, fault.Unavailable) {
			return err
		}
	}
	e := api.AuditEntry{Result: api.AuditBegun, Action: c.Action, Who: c.Who, Object: new(c.Object),
		Request: c.Request, Time: l.opts.Now().UTC()}
	intent, err := l.intend(ctx, e)
	if err != nil {
		return err
	}
	answer, failed := change(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resultTimeout)
	defer cancel()
	if e.Result, e.Reason = resultOf(failed); e.Result == api.AuditRefused {
		l.Note(e)
		err = l.store.client.HDel(ctx, intentsKey(), intent).Err()
	} else {
		if e.Object.ID == "" && failed == nil {
			e.Object.ID = idIn(answer)
		}
		e.Changes = l.changes(ctx, c, e.Object, before)
		_, err = l.append(ctx, e, intent)
	}
	if err != nil {
		l.log.ErrorContext(ctx, "result of a change not written to the audit log", "action", c.Action, "request_id",
			c.Request, "result", e.Result, "error", err)
	}
	return failed
}

// intend stores that a change is about to be made, until its result is written. It returns the intent's name.
func (l *Log) intend(ctx context.Context, e api.AuditEntry) (string, error) {
	name := rand.Text()
	text, err := json.Marshal(e)
	if err == nil {
		err = l.store.client.HSet(ctx, intentsKey(), name, text).Err()
	}
	if err != nil {
		l.metrics.failed.Inc()
	}
	return name, redisdb.Failed(err, "audit: write an entry")
}

// changes returns the fields of the record that differ now. If there is no single record, it returns the
// request.
func (l *Log) changes(ctx context.Context, c Change, o *api.AuditObject, before any) []api.AuditChange {
	var after any
	if c.Look != nil {
		var err error
		if after, err = c.Look(ctx, *o); err != nil {
			l.log.WarnContext(ctx, "audit log: the record after a change can't be read", "kind", o.Kind, "id", o.ID,
				"error", err)
			return asked(c.Asked)
		}
	}
	if before == nil && after == nil {
		return asked(c.Asked)
	}
	if o.Account == "" && o.Kind != "account" {
		o.Account = cmp.Or(flat(before)["account"], flat(after)["account"])
	}
	return diff(before, after, c.Asked)
}

// resultOf returns what an error means for a change.
func resultOf(err error) (api.AuditResult, string) {
	switch fault.KindOf(err) {
	case "":
		return api.AuditDone, ""
	case fault.Internal, fault.Unavailable:
		return api.AuditFailed, "the cause is in the log of the process"
	}
	return api.AuditRefused, clip(err.Error())
}

// Login records a login or its end, which isn't a change of a record.
func (l *Log) Login(ctx context.Context, who api.AuditActor, action, request string) error {
	_, err := l.Append(ctx, api.AuditEntry{Result: api.AuditDone, Action: action, Who: who, Request: request})
	return err
}

// idIn returns the id of what an answer says was made.
func idIn(answer any) string {
	text, err := json.Marshal(answer)
	if err != nil {
		return ""
	}
	var made struct{ ID, ListID, Segment, Campaign, Account, Gateway string }
	if json.Unmarshal(text, &made) != nil {
		return ""
	}
	for _, id := range []string{made.ID, made.ListID, made.Segment, made.Campaign, made.Account, made.Gateway} {
		if id != "" {
			return clip(id)
		}
	}
	return ""
}
