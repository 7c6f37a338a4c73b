package outbox

import (
	"context"

	"github.com/postroom/postroom/internal/redisdb"
)

// Room is what a letter has taken of the quotas of a day, of its account and of the token that started it.
type Room struct {
	Messages int // that may be sent
	day      string
	owners   []string // of the counts
}

// Reserve counts messages before they are sent, as many as the quotas have room for, and most at most.
// Limited, with the time to come back: there is no room. Messages that wait in the outbox take room, too.
func (l *Letter) Reserve(ctx context.Context, most int) (Room, error) {
	s, token := l.letters.store, ""
	q, err := s.Accounts.Quota(ctx, l.account.ID)
	if err != nil {
		return Room{}, err
	}
	check, err := newQuotaCheck(ctx, s, quotasOf(l.account.ID, q, l.shared.Token, l.shared.TokenQuota))
	if err != nil {
		return Room{}, err
	}
	room := Room{day: s.keys.quotaDay(0, check.now), owners: []string{l.account.ID}}
	if token = tokenOf(check.quotas); token != "" {
		room.owners = append(room.owners, quota{token: token}.owner())
	}
	args := reserveArgs{Account: l.account.ID, Token: token, Day: check.now.UTC().Format(dayForm), Most: most}
	args.Quotas, args.Partitions = check.args(0)
	got, err := reserveScript.RunReplicated(ctx, s.DB, []string{room.day}, args)
	switch {
	case err != nil:
		return Room{}, redisError(err, "reserve room in the quotas of "+l.account.ID)
	case got.Word == "OVER":
		return Room{}, check.exceeded(ctx, s.Accounts, 0, 1, got.First)
	}
	room.Messages = got.Messages
	return room, nil
}

// Unreserve gives back the room of messages that were not sent.
func (l *Letter) Unreserve(ctx context.Context, r Room, unsent int) error {
	pipe := l.letters.DB.Client().Pipeline()
	for _, owner := range r.owners {
		pipe.HIncrBy(ctx, r.day, owner, int64(-unsent))
	}
	_, err := pipe.Exec(ctx)
	return redisdb.Failed(err, "give back room in the quotas of %s", l.account.ID)
}
