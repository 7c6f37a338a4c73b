package outbox

import (
	"context"
	"time"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/smtpsend"
)

// Mail of an account whose login, token, certificate or sender is refused is not at fault. Where the account
// is set to hold, its messages wait, each marked as held, and no attempt is spent. One message at a time is
// tried when a check is due; when the trouble is over, the sweeper wakes the rest.

// gatewayAgain is when a message is tried again that names a gateway which refuses the login, where the
// account is set to hold. It waits by itself: mail that takes other ways is not concerned.
const gatewayAgain = 5 * time.Minute

// holdAtMost is when a held message is looked at again even if nobody wakes it.
const holdAtMost = time.Hour

// heldBack says whether a message must wait for its account, and asks for a trial when a check is due.
func (d *Delivery) heldBack(ctx context.Context, c *claim, account accounts.Sender) (bool, error) {
	if account.Held == nil || c.urgent || c.gateway != "" {
		return false, nil
	}
	ok, err := d.Accounts.Trial(ctx, account.ID)
	return !ok, err
}

// onHold is the decision about a message that waits for its account without having been tried.
func onHold(account accounts.Sender, now time.Time) decision {
	return decision{outcome: held, at: now, due: now.Add(holdAtMost), reason: heldReason(account.Held.Reason)}
}

func heldReason(why string) string { return "the account is held: " + why }

// troubled says whether a failure is the account's: nothing about the message or its recipients was judged.
func troubled(se *smtpsend.Error) bool { return se != nil && se.Verdict == smtpsend.Auth }

// release wakes held messages: all of an account that is no longer held, and one of an account whose check is
// due.
func (s *sweeper) release(ctx context.Context, p int, now time.Time) error {
	ids, err := s.d.DB.Client().SMembers(ctx, s.d.keys.held(p)).Result()
	if err != nil {
		return err
	}
	for _, id := range ids {
		n, err := s.releasable(ctx, id, now)
		if err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		rows, err := sweepRun(ctx, s.d.store, unholdScript, p, unholdArgs{Account: id, Now: now, Most: n})
		if err != nil {
			return err
		}
		woken := make([]wakeup, len(rows))
		for i, r := range rows {
			woken[i] = wakeup{id: r.ID, lane: r.Lane, epoch: r.Epoch}
		}
		s.d.enqueue(ctx, woken...)
		for _, w := range woken {
			s.d.forget(ctx, w.former(p))
		}
		if len(woken) > 1 {
			s.d.log.InfoContext(ctx, "held messages released", "account", id, "count", len(woken))
		}
	}
	return nil
}

// releasable is how many held messages of an account may go at once.
func (s *sweeper) releasable(ctx context.Context, account string, now time.Time) (int, error) {
	a, err := s.d.Accounts.Resolve(ctx, account)
	switch {
	case fault.Is(err, fault.NotFound): // they fail, which is better than waiting for nothing
		return sweepBatch, nil
	case err != nil:
		return 0, err
	case a.Held == nil:
		return sweepBatch, nil
	case now.Before(a.Held.Next):
		return 0, nil
	}
	return 1, nil
}
