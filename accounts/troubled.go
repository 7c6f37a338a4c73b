package accounts

import (
	"context"

	"github.com/postroom/postroom/internal/redisdb"
)

// troubledAtMost bounds the list of Troubled, and so the time of its script.
const troubledAtMost = 1000

// Troubled returns the accounts whose own login, token, certificate or sender was refused: their mail is
// held, or fails. There are at most 1000, longest refused first. An account leaves the list when mail gets
// through. An account whose mail fails also leaves it when it is edited.
func (a *Accounts) Troubled(ctx context.Context) ([]string, error) {
	ids, err := troubledScript.Run(ctx, a.client, []string{troubledKey()},
		troubledArgs{Prefix: redisdb.Key(0, "account", ""), Limit: troubledAtMost})
	if err != nil {
		return nil, redisdb.Failed(err, "accounts: list accounts with problems")
	}
	return ids, nil
}
