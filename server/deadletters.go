package server

import (
	"context"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// deadSelection are the filters of dead letters: those of messages without the state.
type deadSelection struct {
	pageInput
	Account string `query:"account" maxLength:"256" doc:"Only dead letters of this account"`
	Lane    string `query:"lane" enum:"transactional,bulk" doc:"Only dead letters in this lane"`
	Tag     string `query:"tag" maxLength:"256" doc:"Only dead letters with this tag"`
	Search  string `query:"search" maxLength:"256" doc:"Only dead letters with this in an address or the subject; case does not matter"`
	Cursor  string `query:"cursor" maxLength:"1024" doc:"The cursor of an earlier answer: the rows after it; page is ignored"`
}

func (m messageRoutes) listDeadLetters(ctx context.Context, in *deadSelection) (api.DeadLetterPage, error) {
	q, err := selection{Account: in.Account, Lane: in.Lane, Tag: in.Tag, Search: in.Search}.query(ctx)
	if err != nil {
		return api.DeadLetterPage{}, err
	}
	q.Page, q.PageSize, q.Cursor = in.Page, in.size(), in.Cursor
	return m.box.DeadLetters(ctx, q)
}

func (m messageRoutes) getDeadLetter(ctx context.Context, in *messageInput) (api.DeadLetter, error) {
	if err := m.mine(ctx, in.QueueID); err != nil {
		return api.DeadLetter{}, err
	}
	return m.box.DeadLetter(ctx, in.QueueID)
}

type replayLetterInput struct {
	messageInput
	Body *api.Corrections
}

func (m messageRoutes) replayDeadLetter(ctx context.Context, in *replayLetterInput) (api.OutboxMessage,
	error) {
	var corrections api.Corrections
	if in.Body != nil {
		corrections = *in.Body
	}
	corrections.Bound = boundTo(ctx) != ""
	if err := staysMine(ctx, corrections); err != nil {
		return api.OutboxMessage{}, err
	}
	if err := m.mine(ctx, in.QueueID); err != nil {
		return api.OutboxMessage{}, err
	}
	return m.box.Replay(ctx, in.QueueID, corrections)
}

// staysMine refuses corrections by which a bound token would send as another account.
func staysMine(ctx context.Context, c api.Corrections) error {
	_, err := ownAccount(ctx, c.Account)
	return err
}

type replayLettersInput struct{ Body api.ReplayRequest }

// replayDeadLetters demands a filter, as cancelAll does. It refuses new recipients: nobody means the same
// ones for many messages.
func (m messageRoutes) replayDeadLetters(ctx context.Context, in *replayLettersInput) (api.ReplayAnswer,
	error) {
	req := in.Body
	if req.Account == "" && req.Code == "" && req.Tag == "" && len(req.IDs) == 0 && !req.AccountTrouble {
		return api.ReplayAnswer{}, fault.New(fault.Invalid, "",
			"Say which dead letters: account, code, tag, ids or accountTrouble")
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
	return m.box.ReplayAll(ctx, req)
}

func (m messageRoutes) deleteDeadLetter(ctx context.Context, in *messageInput) (api.DeleteAnswer, error) {
	if err := m.mine(ctx, in.QueueID); err != nil {
		return api.DeleteAnswer{}, err
	}
	return m.box.DeleteDeadLetter(ctx, in.QueueID)
}
