package accounts

import (
	"context"
	"strconv"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
)

// checks are the waits between checks of a held account; the last one repeats. Many providers lock an account
// with too many failed logins.
var checks = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour}

// Held is the hold of an account that was refused: its mail waits.
type Held struct {
	Since  time.Time
	Next   time.Time // when one message is tried; zero means immediately, because the account was edited
	Reason string    // reply of the relay or the token server, in one line
	Code   string    // EAUTH, ETLS, EOAUTH2…
}

// holds reports whether the mail of an account waits while the account itself is refused.
func holds(account api.Account, byDefault bool) bool {
	return account.AccountTrouble == "hold" || account.AccountTrouble == "" && byDefault
}

// Trial reports whether one message of an account may be tried now, or returns NotFound. For a held account
// it claims the check that is due: one of all processes gets true, and the next check is later. For other
// accounts it is true. It asks Redis only if a check is due.
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
	waits := make([]int64, len(checks))
	for i, wait := range checks {
		waits[i] = wait.Milliseconds()
	}
	may, err := trialScript.Run(ctx, a.client, a.holdKeys(e.sender.ID), trialArgs{Now: now, Waits: waits})
	if err != nil {
		return false, redisdb.Failed(err, "accounts: claim a check of account %s", id)
	}
	a.senders.Clear() // the next check is later, or the hold has ended
	return may, nil
}

// noticeEdit makes the next check due immediately if the hold is about another account of the configuration
// than the present one.
func (a *Accounts) noticeEdit(ctx context.Context, s state) error {
	if s["state"] != stateHeld || s["of"] == a.is {
		return nil
	}
	done, err := editedScript.Run(ctx, a.client, []string{a.store.StateKey(DefaultID)}, editedArgs{a.is})
	if err != nil {
		return redisdb.Failed(err, "accounts: recheck account %s", DefaultID)
	}
	if done {
		s["next"] = "0"
	}
	return nil
}

// state is an account's state in Redis: state, connectedAt, lastError, lastErrorAt, and that error's code,
// reply and command; a refusal's kinds (since mail got through), seen (the last kind), seenAt; a hold's
// since, next (check), step (number of checks), checking (a check is under way), of (fingerprint of the
// configured account).
type state map[string]string

// hold returns the hold of the account; nil if it is not held.
func (s state) hold() *Held {
	if s["state"] != stateHeld {
		return nil
	}
	return &Held{Since: redisdb.ParseTime(s["since"]), Next: redisdb.ParseTime(s["next"]),
		Reason: s["lastError"], Code: s["seen"]}
}

// show copies the state into an answer. A hold that the account no longer wants is shown as an error.
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
	switch at := redisdb.ParseTime(s["connectedAt"]); {
	case info.LastErrorAt != nil:
		reply, _ := strconv.Atoi(s["reply"])
		info.SMTPStatus = &api.SMTPStatus{Created: *info.LastErrorAt, Status: "error", Description: info.LastError,
			ResponseCode: reply, Code: s["code"], Command: s["command"]}
	case info.State == stateConnected && !at.IsZero():
		info.SMTPStatus = &api.SMTPStatus{Created: at, Status: "ok"}
	}
}
