package server

import (
	"context"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/senders"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/server/provision"
)

type accountRoutes struct {
	provision *provision.Provisioner
	senders   *senders.Proofs
	accounts  *accounts.Accounts
	box       *outbox.Outbox
}

func (a accountRoutes) listAccounts(ctx context.Context, in *api.PageQuery) (api.AccountPage, error) {
	page, err := a.accounts.List(ctx, in.Page, pageSize(*in))
	if err == nil {
		err = a.box.Counts.CountEvents(ctx, page.Accounts)
	}
	return page, err
}

type accountInput struct {
	Account string `path:"account" maxLength:"256" doc:"ID of the account"`
}

func (in accountInput) id() string { return in.Account }

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
	all, err := a.box.Reader.Usage(ctx, in.Account)
	if err != nil {
		return api.Usage{}, err
	}
	return all[0], nil
}

type accountDNSInput struct {
	accountInput
	api.AccountDNSQuery
}

func (a accountRoutes) getAccountDNS(ctx context.Context, in *accountDNSInput) (api.AccountDNS, error) {
	id, err := ownAccount(ctx, in.Account)
	if err != nil {
		return api.AccountDNS{}, err
	}
	return a.provision.AccountDNS(ctx, id, in.Check != "false")
}

// counted adds the counts of events to an account, unless there is an error.
func (a accountRoutes) counted(ctx context.Context, info api.AccountInfo, err error) (api.AccountInfo,
	error) {
	if err != nil {
		return info, err
	}
	one := []api.AccountInfo{info}
	err = a.box.Counts.CountEvents(ctx, one)
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
