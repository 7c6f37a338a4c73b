package server

import (
	"context"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/audit"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/peers"
)

// audited is a route's part of the audit log. Every route except GET has one.
type audited struct {
	kind  string // kind of objects that it changes, see api.AuditObject; empty if the route is not in the log
	param string // path parameter with the object's id; empty if request or answer have it, or none does
	why   string // the route is not in the log
}

// changes routes are in the audit log.
func changes(kind, param string) audited { return audited{kind: kind, param: param} }

// unlogged routes are not in the audit log, for a reason.
func unlogged(why string) audited { return audited{why: why} }

// recorded calls the handler of a route, and has the audit log record it if it is a change.
func recorded[I, O any](s *Server, c echo.Context, r route, in *I, h handler[I, O]) (out O, err error) {
	ctx := c.Request().Context()
	if r.audited.kind == "" {
		return h(ctx, in)
	}
	err = s.parts.Audit.Do(ctx, s.change(c, r, in), func(ctx context.Context) (any, error) {
		var err error
		out, err = h(ctx, in)
		return out, err
	})
	return out, err
}

// change describes what a request is about to do.
func (s *Server) change(c echo.Context, r route, in any) audit.Change {
	grant := grantOf(c.Request().Context())
	ch := audit.Change{Who: grant.Actor(peers.Of(c.Request()).String()), Action: r.method + " " + r.path,
		Request: requestID(c), Asked: in, Look: Look(*s.parts),
		Object: api.AuditObject{Kind: r.audited.kind, Account: grant.Account}}
	if _, ok := in.(namesPeople); ok {
		ch.Asked = nil
	}
	if of, ok := in.(inAccount); ok {
		ch.Object.ID, ch.Object.Account = of.object(grant.Account)
		if r.audited.kind == "subscriber" { // the log gets the changed subscriber's id: its entries can't be erased
			ch.Asked = nil
			ch.Object.ID = subscriberID(c.Request().Context(), s.parts.Audience, ch.Object.Account, ch.Object.ID)
		}
		return ch
	}
	switch {
	case r.audited.param != "":
		ch.Object.ID = pathParam(c, r.audited.param)
	case r.right.self:
		ch.Object.ID = grant.Person
	}
	return ch
}

// inAccount are the inputs for objects that are unique in an account only.
type inAccount interface {
	object(bound string) (id, account string)
}

// namesPeople are the inputs whose addresses are not for the audit log: its entries can't be erased.
type namesPeople interface{ namesPeople() }

// noteRefusal counts a request that was refused for its caller. An unauthenticated client has no grant.
func (s *Server) noteRefusal(c echo.Context, r route, grant *access.Grant, err error) {
	if s.parts.Audit == nil { // it is a monitor
		return
	}
	kind := fault.KindOf(err)
	if kind == fault.Unauthorized || kind == fault.Forbidden || fault.CodeOf(err) == "TooManyFailures" {
		s.parts.Audit.Note(api.AuditEntry{Who: grant.Actor(peers.Of(c.Request()).String()),
			Result: api.AuditRefused, Action: r.method + " " + r.path, Reason: err.Error(), Request: requestID(c)})
	}
}

// Look returns how the audit log looks at records: as the API shows them, with secrets masked.
func Look(p Parts) audit.Look {
	return func(ctx context.Context, o api.AuditObject) (any, error) {
		if o.ID == "" && o.Kind != "settings" {
			return nil, nil
		}
		switch o.Kind {
		case "account":
			return found(p.Accounts.Get(ctx, o.ID))
		case "gateway":
			return found(p.Gateways.Get(ctx, o.ID))
		case "dkim":
			return found(p.DomainKeys.Get(ctx, o.ID))
		case "list":
			return found(p.Audience.Lists.Get(ctx, "", o.ID))
		case "segment":
			return found(p.Audience.Segments.Get(ctx, "", o.ID))
		case "campaign":
			return campaignSeen(ctx, p.Campaigns, o.ID)
		case "digestKind", "digestRecipient", "digestRun":
			return digestSeen(ctx, p.Digests, o)
		case "subscriber":
			return subscriberSeen(ctx, p.Audience, o)
		case "template":
			return found(p.Templates.Get(ctx, "", o.ID))
		case "person":
			return found(p.People.Get(ctx, o.ID))
		case "token":
			return found(p.Access.Get(ctx, o.ID))
		case "endpoint":
			return found(p.Webhooks.Endpoint(ctx, o.ID))
		case "settings":
			return found(p.Settings.Get(ctx))
		case "queue":
			q, err := p.Outbox.Queues.QueueStatus(ctx, o.ID)
			return found(api.QueuePaused{Queue: o.ID, Paused: q.Paused}, err)
		case "message":
			m, err := p.Outbox.Reader.Message(ctx, o.ID)
			return found(messageState{m.Account, m.Status, m.NextAttempt, m.Attempts, m.Gateway, m.Priority,
				m.Envelope}, err)
		}
		return nil, nil
	}
}

// messageState is what the audit log compares in a message: not its content.
type messageState struct {
	Account     string            `json:"account"`
	Status      api.MessageStatus `json:"status"`
	NextAttempt api.TimeOrFalse   `json:"nextAttempt"`
	Attempts    int               `json:"attempts"`
	Gateway     *string           `json:"gateway,omitempty"`
	Priority    api.Priority      `json:"priority,omitempty"`
	Envelope    api.Envelope      `json:"envelope"`
}

// found returns a record; nil if there is none.
func found[T any](record T, err error) (any, error) {
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return record, nil
}
