package server

import (
	"context"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// deadSelection is what dead letters can be chosen by: all that messages can, but their state.
type deadSelection struct {
	pageInput
	Account string `query:"account" maxLength:"256" doc:"Only dead letters of this account"`
	Lane    string `query:"lane" enum:"transactional,bulk" doc:"Only dead letters in this lane"`
	Tag     string `query:"tag" maxLength:"256" doc:"Only dead letters with this tag"`
	Search  string `query:"search" maxLength:"256" doc:"Only dead letters with this in an address or the subject, whatever the case"`
	Cursor  string `query:"cursor" maxLength:"1024" doc:"The cursor of an earlier answer: the rows after it, whatever the page"`
}

func (s *Server) listDeadLetters(ctx context.Context, in *deadSelection) (api.DeadLetterPage, error) {
	q, err := selection{Account: in.Account, Lane: in.Lane, Tag: in.Tag, Search: in.Search}.query(ctx)
	if err != nil {
		return api.DeadLetterPage{}, err
	}
	q.Page, q.PageSize, q.Cursor = in.Page, in.size(), in.Cursor
	page, err := s.Outbox.DeadLetters(ctx, q)
	page.DeadLetters = rows(page.DeadLetters)
	return page, err
}

func (s *Server) getDeadLetter(ctx context.Context, in *messageInput) (api.DeadLetter, error) {
	if err := s.mine(ctx, in.QueueID); err != nil {
		return api.DeadLetter{}, err
	}
	return s.Outbox.DeadLetter(ctx, in.QueueID)
}

func (s *Server) replayDeadLetter(ctx context.Context, in *messageInput) (api.OutboxMessage, error) {
	if err := s.mine(ctx, in.QueueID); err != nil {
		return api.OutboxMessage{}, err
	}
	return s.Outbox.Replay(ctx, in.QueueID)
}

type replayLettersInput struct{ Body api.ReplayRequest }

func (s *Server) replayDeadLetters(ctx context.Context, in *replayLettersInput) (api.ReplayAnswer, error) {
	req := in.Body
	if req.Account == "" && req.Code == "" && req.Tag == "" && len(req.IDs) == 0 && !req.AccountTrouble {
		return api.ReplayAnswer{}, fault.New(fault.Invalid, "", "Say which dead letters: account, code, tag, ids or accountTrouble")
	}
	if bound := boundTo(ctx); bound != "" {
		if req.Account != "" && req.Account != bound {
			return api.ReplayAnswer{}, fault.New(fault.Forbidden, "", "Unauthorized account")
		}
		req.Account = bound
	}
	return s.Outbox.ReplayAll(ctx, req)
}

func (s *Server) deleteDeadLetter(ctx context.Context, in *messageInput) (api.DeleteAnswer, error) {
	if err := s.mine(ctx, in.QueueID); err != nil {
		return api.DeleteAnswer{}, err
	}
	return s.Outbox.DeleteDeadLetter(ctx, in.QueueID)
}
