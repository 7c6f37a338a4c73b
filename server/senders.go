package server

import (
	"context"

	"github.com/postroom/postroom/accounts/senders"
	"github.com/postroom/postroom/api"
)

func (a accountRoutes) listSenders(ctx context.Context, in *accountInput) (api.Senders, error) {
	if _, err := ownAccount(ctx, in.Account); err != nil {
		return api.Senders{}, err
	}
	return a.accounts.Senders(ctx, in.Account)
}

type addSenderInput struct {
	accountInput
	Body api.NewSender
}

// addSender makes a sender pending if a bound token adds it: only the DNS shows that it is the account's.
func (a accountRoutes) addSender(ctx context.Context, in *addSenderInput) (api.SenderInfo, error) {
	if _, err := ownAccount(ctx, in.Account); err != nil {
		return api.SenderInfo{}, err
	}
	return a.accounts.AddSender(ctx, in.Account, in.Body.Sender, boundTo(ctx) == "" && !in.Body.Verify)
}

type senderInput struct {
	accountInput
	Sender string `path:"sender" maxLength:"320" doc:"Address or domain"`
}

func (a accountRoutes) verifySender(ctx context.Context, in *senderInput) (api.SenderInfo, error) {
	if _, err := ownAccount(ctx, in.Account); err != nil {
		return api.SenderInfo{}, err
	}
	return a.accounts.VerifySender(ctx, in.Account, in.Sender)
}

// mailSender asks the owner of an address. Bound tokens may: only the answer shows that it is the account's.
func (a accountRoutes) mailSender(ctx context.Context, in *senderInput) (api.SenderInfo, error) {
	if _, err := ownAccount(ctx, in.Account); err != nil {
		return api.SenderInfo{}, err
	}
	return a.senders.Ask(ctx, in.Account, in.Sender)
}

func (a accountRoutes) removeSender(ctx context.Context, in *senderInput) (api.Deleted, error) {
	if _, err := ownAccount(ctx, in.Account); err != nil {
		return api.Deleted{}, err
	}
	err := a.accounts.RemoveSender(ctx, in.Account, in.Sender)
	return api.Deleted{Deleted: err == nil}, err
}

// senderPages are the pages that the link in an email to a sender leads to.
func (s *Server) senderPages() group {
	p := s.parts
	pages := senderPages{proofs: p.Senders, wrong: s.proofs, pages: s.pages, audit: p.Audit, look: Look(*p),
		log: s.log}
	confirm := plainPost(senders.Path, pages.confirm)
	confirm.audited = unlogged("its handler writes the entries, which name the account of the link")
	return group{"Senders", "The pages for owners of addresses.", []route{
		plain(senders.Path, public(), pages.ask), confirm,
	}}
}
