package server

import (
	"context"
	"time"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/senders"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/people"
	"github.com/postroom/postroom/templates"
)

type accountRoutes struct {
	senders   *senders.Proofs
	accounts  *accounts.Accounts
	box       *outbox.Outbox
	tokens    *access.Access
	people    *people.People
	oauth     *oauth.Tokens
	templates *templates.Templates
	verifier  Verifier
}

type createAccountInput struct{ Body api.Account }

func (a accountRoutes) createAccount(ctx context.Context, in *createAccountInput) (api.AccountCreated,
	error) {
	_, err := a.accounts.Get(ctx, in.Body.Account)
	if fault.Is(err, fault.NotFound) { // late events of a former account of this id may have been counted
		err = a.box.ForgetEvents(ctx, in.Body.Account)
	}
	if err != nil {
		return api.AccountCreated{}, err
	}
	return a.accounts.Create(ctx, in.Body)
}

func (a accountRoutes) listAccounts(ctx context.Context, in *pageInput) (api.AccountPage, error) {
	page, err := a.accounts.List(ctx, in.Page, in.size())
	if err == nil {
		err = a.box.CountEvents(ctx, page.Accounts)
	}
	return page, err
}

type accountInput struct {
	Account string `path:"account" maxLength:"256" doc:"Id of the account"`
}

func (a accountRoutes) getAccount(ctx context.Context, in *accountInput) (api.AccountInfo, error) {
	if !grantOf(ctx).CanSee(in.Account) {
		return api.AccountInfo{}, fault.New(fault.Forbidden, "", "Unauthorized account")
	}
	info, err := a.accounts.Get(ctx, in.Account)
	return a.counted(ctx, info, err)
}

func (a accountRoutes) getUsage(ctx context.Context, in *accountInput) (api.Usage, error) {
	if _, err := ownAccount(ctx, in.Account); err != nil {
		return api.Usage{}, err
	}
	if _, err := a.accounts.Get(ctx, in.Account); err != nil {
		return api.Usage{}, err
	}
	all, err := a.box.Usage(ctx, in.Account)
	if err != nil {
		return api.Usage{}, err
	}
	return all[0], nil
}

// counted adds the counts of events to an account, unless there is an error.
func (a accountRoutes) counted(ctx context.Context, info api.AccountInfo, err error) (api.AccountInfo,
	error) {
	if err != nil {
		return info, err
	}
	one := []api.AccountInfo{info}
	err = a.box.CountEvents(ctx, one)
	return one[0], err
}

type updateAccountInput struct {
	accountInput
	Body api.AccountPatch
}

func (a accountRoutes) updateAccount(ctx context.Context, in *updateAccountInput) (api.AccountInfo, error) {
	info, err := a.accounts.Update(ctx, in.Account, in.Body)
	return a.counted(ctx, info, err)
}

// deleteAccount deletes an account, cancels its messages, deletes its tokens, templates and counts of events,
// and takes it from its persons. The account goes first, so that nothing is added meanwhile. If the rest
// fails, the same request again completes it. An account of the configuration stays, with all of these.
func (a accountRoutes) deleteAccount(ctx context.Context, in *accountInput) (api.AccountDeleted, error) {
	answer := api.AccountDeleted{Account: in.Account, Deleted: true}
	unknown := a.accounts.Delete(ctx, in.Account)
	if unknown == nil {
		unknown = a.oauth.Forget(ctx, "account:"+in.Account)
	}
	if unknown != nil && !fault.Is(unknown, fault.NotFound) {
		return api.AccountDeleted{}, unknown
	}
	if a.accounts.Configured(in.Account) {
		return answer, unknown
	}
	cancelled, err := a.box.CancelAll(ctx, api.OutboxQuery{Account: in.Account}, "account deleted")
	if err != nil {
		return api.AccountDeleted{}, err
	}
	if err := a.box.ForgetEvents(ctx, in.Account); err != nil {
		return api.AccountDeleted{}, err
	}
	if _, err := a.tokens.DeleteAccount(ctx, in.Account); err != nil {
		return api.AccountDeleted{}, err
	}
	if _, err := a.people.ForgetAccount(ctx, in.Account, time.Now()); err != nil {
		return api.AccountDeleted{}, err
	}
	if _, err := a.templates.Flush(ctx, in.Account); err != nil {
		return api.AccountDeleted{}, err
	}
	if answer.Cancelled = cancelled.Deleted; answer.Cancelled == 0 && unknown != nil {
		return api.AccountDeleted{}, unknown
	}
	return answer, nil
}

type verifyAccountInput struct{ Body api.VerifyRequest }

// verifyTimeout is the timeout for a relay while the client waits. Those of delivery are longer.
const verifyTimeout = time.Minute

func (a accountRoutes) verifyAccount(ctx context.Context, in *verifyAccountInput) (api.VerifyAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	return a.verifier.Verify(ctx, in.Body)
}
