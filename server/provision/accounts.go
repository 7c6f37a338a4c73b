package provision

import (
	"context"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// CreateAccount stores an account, or replaces it.
func (p *Provisioner) CreateAccount(ctx context.Context, account api.Account) (api.AccountCreated, error) {
	_, err := p.Accounts.Get(ctx, account.Account)
	if fault.Is(err, fault.NotFound) { // late events of an earlier account with this id may have been counted
		err = p.Outbox.Counts.ForgetEvents(ctx, account.Account)
	}
	if err != nil {
		return api.AccountCreated{}, err
	}
	return p.Accounts.Create(ctx, account)
}

// DeleteAccount deletes an account, cancels its messages, deletes its tokens, templates and counts of events,
// and takes it from its people. The account goes first, so that nothing is added in between. If the rest
// fails, the same request again completes it. An account of the configuration stays, with all of these.
func (p *Provisioner) DeleteAccount(ctx context.Context, id string) (api.AccountDeleted, error) {
	answer := api.AccountDeleted{Account: id, Deleted: true}
	unknown := p.Accounts.Delete(ctx, id)
	if unknown == nil {
		unknown = p.OAuth.Forget(ctx, "account:"+id)
	}
	if unknown != nil && !fault.Is(unknown, fault.NotFound) {
		return api.AccountDeleted{}, unknown
	}
	if p.Accounts.Configured(id) {
		return answer, unknown
	}
	cancelled, err := p.Outbox.Operations.CancelAll(ctx, api.OutboxQuery{Account: id}, "account deleted")
	if err != nil {
		return api.AccountDeleted{}, err
	}
	if err := p.Outbox.Counts.ForgetEvents(ctx, id); err != nil {
		return api.AccountDeleted{}, err
	}
	if _, err := p.Tokens.DeleteAccount(ctx, id); err != nil {
		return api.AccountDeleted{}, err
	}
	if _, err := p.People.ForgetAccount(ctx, id, time.Now()); err != nil {
		return api.AccountDeleted{}, err
	}
	if _, err := p.Templates.Flush(ctx, id); err != nil {
		return api.AccountDeleted{}, err
	}
	if answer.Cancelled = cancelled.Deleted; answer.Cancelled == 0 && unknown != nil {
		return api.AccountDeleted{}, unknown
	}
	return answer, nil
}
