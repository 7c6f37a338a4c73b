package accounts

import (
	"context"

	"github.com/postroom/postroom/redisdb"
)

// troubledAtMost bounds what Troubled lists, and thereby how long its script takes.
const troubledAtMost = 1000

// Troubled lists the accounts whose own login, token, certificate or sender was refused, the oldest trouble
// first, 1000 at most: those whose mail is held, and those whose mail fails. An account leaves the list when
// mail got through, and one whose mail fails also when it was edited.
func (a *Accounts) Troubled(ctx context.Context) ([]string, error) {
	ids, err := troubledScript.Run(ctx, a.client, []string{troubledKey()}, redisdb.Key(0, "account", ""),
		troubledAtMost).StringSlice()
	if err != nil {
		return nil, redisdb.Failed(err, "accounts: list accounts in trouble")
	}
	return ids, nil
}
