package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
)

// Adopt makes a message of the outbox of one that a relay put off: it is tried again from a time on, with the
// attempt that was made counted. A message that was adopted before stays as it is, so that Adopt may be
// repeated.
func (l *Letter) Adopt(ctx context.Context, a Addressee, due time.Time) error {
	s := l.letters
	e, err := l.envelope(a)
	if err != nil {
		return err
	}
	if _, _, err := l.write(ctx, a, &e); err != nil {
		return err
	}
	personal := a.personal()
	if personal.Params, err = json.Marshal(a.Params); err != nil {
		return fmt.Errorf("store the params of message %s: %w", a.ID, err)
	}
	content, err := s.shared.prepare(ctx, l.Content())
	if err != nil {
		return err
	}
	q, err := s.Accounts.Quota(ctx, e.Account)
	if err != nil {
		return err
	}
	m := &newMessage{counted: true, quotas: quotasOf(e.Account, q, l.shared.Token, l.shared.TokenQuota),
		id: a.ID, partition: s.partition(a.ID), envelope: e, shared: content,
		personal: personal, lane: api.Bulk, gateway: l.shared.Gateway, window: s.windowOf(l.account), size: e.Size,
		attempts: l.attempts(), made: 1, due: redisdb.Millis(due)}
	if err := s.intake.encode(m); err != nil {
		return err
	}
	m.unlook() // they were asked for this mail, and are again before the next attempt
	s.intake.enter(ctx, []*newMessage{m})
	return m.result.Err
}

// Turn makes a message that was adopted go as the letter says now, to an addressee.
func (l *Letter) Turn(a Addressee) Turn {
	e, write := l.mailing(a)
	return Turn{envelope: e, gateway: l.shared.Gateway, write: write}
}
