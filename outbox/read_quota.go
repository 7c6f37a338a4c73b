package outbox

import (
	"context"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/outbox/suppression"
)

// Usage returns what accounts use of their quotas, in their order. An account without quotas has usage too.
func (r *Reader) Usage(ctx context.Context, accounts ...string) ([]api.Usage, error) {
	quotas := make([]quota, len(accounts))
	for i, account := range accounts {
		q, err := r.Accounts.Quota(ctx, account)
		if err != nil {
			return nil, err
		}
		quotas[i] = quota{account: account, limit: used{q.Messages, q.Bytes, q.PerDay}}
	}
	all, err := r.waiting(ctx, quotas)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if err := r.kept(ctx, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// TokenUsage returns a token's quota usage. Only messages submitted with a token that has a quota are
// counted.
func (r *Reader) TokenUsage(ctx context.Context, t api.TokenInfo) (api.Usage, error) {
	q := quota{token: t.QuotaID()}
	if t.Restrictions != nil && t.Restrictions.Quota != nil {
		of := t.Restrictions.Quota
		q.limit = used{of.Messages, of.Bytes, of.PerDay}
	}
	all, err := r.waiting(ctx, []quota{q})
	if err != nil {
		return api.Usage{}, err
	}
	return all[0], nil
}

// waiting returns what of quotas of messages is used. Messages of accounts without a quota are counted from
// their events.
func (r *Reader) waiting(ctx context.Context, quotas []quota) ([]api.Usage, error) {
	if err := (&Counts{r.store}).countNew(ctx); err != nil {
		return nil, redisError(err, "count what of a quota is used")
	}
	now := r.clock.Now()
	all, err := r.usage(ctx, quotas, now)
	if err != nil {
		return nil, err
	}
	answers := make([]api.Usage, len(quotas))
	for i, q := range quotas {
		sum := total(all[i])
		answers[i] = api.Usage{Account: q.account, Token: q.token,
			Messages: api.QuotaUse{Used: sum.messages, Limit: q.limit.messages},
			Bytes:    api.QuotaUse{Used: sum.bytes, Limit: q.limit.bytes},
			PerDay:   api.QuotaUse{Used: sum.perDay, Limit: q.limit.perDay, Until: new(nextDay(now))}}
	}
	return answers, nil
}

// kept adds what an account stores in addition to its mail.
func (r *Reader) kept(ctx context.Context, u *api.Usage) error {
	q, err := r.Accounts.Quota(ctx, u.Account)
	if err != nil {
		return err
	}
	u.Templates = &api.QuotaUse{Limit: q.Templates}
	u.Suppressions = &api.QuotaUse{Limit: q.Suppressions}
	u.ImportSize = &api.QuotaUse{Limit: q.ImportSize}
	u.Subscribers = &api.QuotaUse{Limit: q.Subscribers}
	u.Events = &api.QuotaUse{Limit: q.Events}
	u.Requests = &api.QuotaUse{Limit: q.Requests}
	if r.Kept != nil {
		if u.Subscribers.Used, u.Events.Used, err = r.Kept(ctx, u.Account); err != nil {
			return err
		}
	}
	if r.Templates != nil {
		if u.Templates.Used, err = r.Templates.Count(ctx, u.Account); err != nil {
			return err
		}
	}
	if r.Suppressions != nil {
		n, err := r.Suppressions.CountOf(ctx, suppression.Filter{Account: u.Account})
		if err != nil {
			return err
		}
		u.Suppressions.Used = int(n)
	}
	return nil
}
