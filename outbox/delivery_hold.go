package outbox

import (
	"context"
	"time"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/smtpsend"
)

// If a relay refuses the login, token, certificate or sender of an account, its messages are not at fault. If
// the account is set to hold, its messages are held and no attempt is spent. When a check is due, one message
// is tried. Once it is sent, the sweeper wakes the others.

// gatewayAgain is the wait of a message that names its gateway, after that gateway refused the login of an
// account that is set to hold. The other messages of the account do not wait.
const gatewayAgain = 5 * time.Minute

// holdAtMost is when a held message is tried again even if the sweeper did not wake it.
const holdAtMost = time.Hour

// heldBack reports whether a message must wait for its account. If a check is due, one message may go.
func (d *Delivery) heldBack(ctx context.Context, c *claim, account accounts.Sender) (bool, error) {
	if account.Held == nil || c.urgent || c.gateway != "" {
		return false, nil
	}
	ok, err := d.Accounts.Trial(ctx, account.ID)
	return !ok, err
}

func heldReason(why string) string { return "the account is held: " + why }

// troubled reports whether a relay refused the account, so that message and recipients were not judged.
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
		woken, err := sweepRun(ctx, s.d.store, unholdScript, p, unholdArgs{Account: id, Now: now, Most: n})
		if err != nil {
			return err
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

// releasable is how many held messages of an account may be sent now.
func (s *sweeper) releasable(ctx context.Context, account string, now time.Time) (int, error) {
	a, err := s.d.Accounts.Resolve(ctx, account)
	switch {
	case fault.Is(err, fault.NotFound): // let them fail
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
