package outbox

import "context"

// quotaOf prepares the quota of an account for messages that begin to wait again.
func (d *Operations) quotaOf(ctx context.Context, account string) (*quotaCheck, error) {
	q, err := d.Accounts.Quota(ctx, account)
	if err != nil {
		return nil, err
	}
	q.PerDay = 0 // it was counted when it was accepted
	return newQuotaCheck(ctx, d.store, quotasOf(account, q, "", nil))
}

// overQuota returns the error for a message that can't wait again, after the answer OVER.
func (d *Operations) overQuota(ctx context.Context, account string, r row, first string) error {
	check, err := d.quotaOf(ctx, account)
	if err != nil {
		return err
	}
	return check.exceeded(ctx, d.Accounts, r.partition, r.size, first)
}
