package server

import (
	"context"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

type createAccountInput struct{ Body api.Account }

func (s *Server) createAccount(ctx context.Context, in *createAccountInput) (api.AccountCreated, error) {
	return s.Accounts.Create(ctx, in.Body)
}

func (s *Server) listAccounts(ctx context.Context, in *pageInput) (api.AccountPage, error) {
	page, err := s.Accounts.List(ctx, in.Page, in.size())
	page.Accounts = rows(page.Accounts)
	return page, err
}

type accountInput struct {
	Account string `path:"account" maxLength:"256" doc:"Id of the account"`
}

func (s *Server) getAccount(ctx context.Context, in *accountInput) (api.AccountInfo, error) {
	if !grantOf(ctx).CanSee(in.Account) {
		return api.AccountInfo{}, fault.New(fault.Forbidden, "", "Unauthorized account")
	}
	return s.Accounts.Get(ctx, in.Account)
}

type updateAccountInput struct {
	accountInput
	Body api.AccountPatch
}

func (s *Server) updateAccount(ctx context.Context, in *updateAccountInput) (api.AccountInfo, error) {
	return s.Accounts.Update(ctx, in.Account, in.Body)
}

// deleteAccount takes back what the account had queued, ends its tokens and deletes its templates. The account goes first, so that nothing is added meanwhile;
// a deletion that broke off there is finished by asking again. One from the configuration stays, and so does its mail.
func (s *Server) deleteAccount(ctx context.Context, in *accountInput) (api.AccountDeleted, error) {
	answer := api.AccountDeleted{Account: in.Account, Deleted: true}
	unknown := s.Accounts.Delete(ctx, in.Account)
	if unknown != nil && !fault.Is(unknown, fault.NotFound) {
		return api.AccountDeleted{}, unknown
	}
	if s.Accounts.Configured(in.Account) {
		return answer, unknown
	}
	cancelled, err := s.Outbox.CancelAll(ctx, api.OutboxQuery{Account: in.Account}, "account deleted")
	if err != nil {
		return api.AccountDeleted{}, err
	}
	if _, err := s.Access.DeleteAccount(ctx, in.Account); err != nil {
		return api.AccountDeleted{}, err
	}
	if _, err := s.Templates.Flush(ctx, in.Account); err != nil {
		return api.AccountDeleted{}, err
	}
	if answer.Cancelled = cancelled.Deleted; answer.Cancelled == 0 && unknown != nil {
		return api.AccountDeleted{}, unknown
	}
	return answer, nil
}

type verifyAccountInput struct{ Body api.VerifyRequest }

// verifyTimeout is how long somebody who waits for an answer waits for a relay; delivery is more patient.
const verifyTimeout = time.Minute

func (s *Server) verifyAccount(ctx context.Context, in *verifyAccountInput) (api.VerifyAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	return s.Verifier.Verify(ctx, in.Body)
}
