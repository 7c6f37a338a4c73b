package accounts

import (
	"context"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/redisdb"
)

// checks are the waits before a message of a held account is tried again; the last repeats. Many a provider
// locks an account whose login is tried too often.
var checks = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour}

// Held is an account whose mail waits, because the account itself was refused.
type Held struct {
	Since  time.Time
	Next   time.Time // when one message will be tried; zero: at once, the account was edited
	Reason string    // what the relay or the token server said, in one line
	Code   string    // EAUTH, ETLS, EOAUTH2…
}

// holds says whether the mail of an account waits while the account itself is refused.
func holds(account api.Account, byDefault bool) bool {
	return account.AccountTrouble == "hold" || account.AccountTrouble == "" && byDefault
}

// Trial asks whether one message of a held account may be tried now, and claims the check that is due: of all
// processes one gets true, and the next check is later. It is true for an account that is not held. It asks
// Redis only when a check is due. Unknown: NotFound.
func (a *Accounts) Trial(ctx context.Context, id string) (bool, error) {
	e, err := a.find(ctx, id)
	if err != nil {
		return false, err
	}
	now, held := a.now(), e.sender.Held
	switch {
	case held == nil:
		return true, nil
	case now.Before(held.Next):
		return false, nil
	}
	may, err := a.trial(ctx, e.sender.ID, now)
	if err != nil {
		return false, redisdb.Failed(err, "accounts: ask for a check of account %s", id)
	}
	a.senders.Clear() // the next check is another one, or there is no hold
	return may, nil
}

// noticeEdit makes the next check due at once when the account from the configuration is not the one that is
// held.
func (a *Accounts) noticeEdit(ctx context.Context, s state) error {
	if s["state"] != stateHeld || s["of"] == a.is {
		return nil
	}
	done, err := a.edited(ctx, DefaultID, a.is)
	if err != nil {
		return redisdb.Failed(err, "accounts: note the edit of account %s", DefaultID)
	}
	if done {
		s["next"] = "0"
	}
	return nil
}

// state is what Redis keeps of what an account met: state, lastError, lastErrorAt, and of trouble its kinds
// since mail got through, the last one seen and when, since when the account is held, the next check, how
// many there were, whether one is under way, and of which configured account that is.
type state map[string]string

// hold reads whether the account is held; nil: it is not.
func (s state) hold() *Held {
	if s["state"] != stateHeld {
		return nil
	}
	return &Held{Since: redisdb.ParseTime(s["since"]), Next: redisdb.ParseTime(s["next"]),
		Reason: s["lastError"], Code: s["seen"]}
}

// show puts the state into an answer. A hold that the account no longer wants is an error.
func (s state) show(info *api.AccountInfo, holds bool) {
	if s["state"] != "" {
		info.State = s["state"]
	}
	if info.State == stateHeld && !holds {
		info.State = stateError
	}
	if at := redisdb.ParseTime(s["lastErrorAt"]); !at.IsZero() {
		info.LastError, info.LastErrorAt = s["lastError"], &at
	}
}
