package server

import (
	"context"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/smtpsend/replies"
)

// knownReason refuses a reason that no explanation has. Empty if none was given.
func knownReason(reason string) error {
	if reason != "" && !replies.Known(reason) {
		return invalid("reason", "is not known; GET /v1/dead-letters/reasons lists the reasons of the dead letters")
	}
	return nil
}

// deadLetters returns the outbox query for dead letters. A bound token sees its account's.
func deadLetters(ctx context.Context, in api.DeadLetterFilter) (api.OutboxQuery, error) {
	account, err := ownAccount(ctx, in.Account)
	return api.OutboxQuery{Account: account, Lane: in.Lane, Tag: in.Tag, Search: in.Search}, err
}

func (m messageRoutes) listDeadLetters(ctx context.Context, in *api.DeadLetterQuery) (api.DeadLetterPage,
	error) {
	if err := knownReason(in.Reason); err != nil {
		return api.DeadLetterPage{}, err
	}
	q, err := deadLetters(ctx, in.DeadLetterFilter)
	if err != nil {
		return api.DeadLetterPage{}, err
	}
	q.Page, q.PageSize, q.Cursor, q.Reason = in.Page, in.PageSize, in.Cursor, in.Reason
	return m.box.Reader.DeadLetters(ctx, q)
}

func (m messageRoutes) listDeadLetterReasons(ctx context.Context, in *api.DeadLetterFilter) (
	api.DeadLetterReasons, error) {
	q, err := deadLetters(ctx, *in)
	if err != nil {
		return api.DeadLetterReasons{}, err
	}
	return m.box.Reader.DeadLetterReasons(ctx, q)
}

// explainReply reads nothing: it is the same for all tokens.
func (m messageRoutes) explainReply(_ context.Context, in *api.ReplyQuery) (api.Explanation, error) {
	return replies.Explain(in.Reply), nil
}

type replayLetterInput struct {
	messageInput
	optionalBody[api.Corrections]
}

func (m messageRoutes) replayDeadLetter(ctx context.Context, in *replayLetterInput) (api.OutboxMessage,
	error) {
	corrections := in.content()
	corrections.Bound = boundTo(ctx) != ""
	if err := staysMine(ctx, corrections); err != nil {
		return api.OutboxMessage{}, err
	}
	if err := m.mine(ctx, in.QueueID); err != nil {
		return api.OutboxMessage{}, err
	}
	return m.box.Operations.Replay(ctx, in.QueueID, corrections)
}

// staysMine refuses corrections that would make a bound token send as another account.
func staysMine(ctx context.Context, c api.Corrections) error {
	_, err := ownAccount(ctx, c.Account)
	return err
}

// replayDeadLetters demands a filter, as cancelAll does. It refuses new recipients: no one means the same
// recipients for many messages.
func (m messageRoutes) replayDeadLetters(ctx context.Context, in *body[api.ReplayRequest]) (
	api.ReplayAnswer, error) {
	req := in.Body
	if req.Account == "" && req.Code == "" && req.Tag == "" && len(req.IDs) == 0 && !req.AccountTrouble &&
		req.Reason == "" {
		return api.ReplayAnswer{}, fault.New(fault.Invalid, "",
			"Select dead letters with account, code, reason, tag, ids or accountTrouble")
	}
	if err := knownReason(req.Reason); err != nil {
		return api.ReplayAnswer{}, err
	}
	if c := req.Corrections; c != nil {
		if len(c.To) > 0 {
			return api.ReplayAnswer{}, invalid("corrections.to", "is for the replay of one dead letter")
		}
		if err := staysMine(ctx, *c); err != nil {
			return api.ReplayAnswer{}, err
		}
	}
	var err error
	if req.Account, err = ownAccount(ctx, req.Account); err != nil {
		return api.ReplayAnswer{}, err
	}
	req.Bound = boundTo(ctx) != ""
	return m.box.Operations.ReplayAll(ctx, req)
}
