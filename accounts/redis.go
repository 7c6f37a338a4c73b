package accounts

import (
	"context"
	_ "embed"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/redisdb/records"
	"github.com/postroom/postroom/redisdb/seal"
)

var (
	//go:embed changed.lua
	changedSource string
	//go:embed state.lua
	stateSource string
	//go:embed trial.lua
	trialSource string
	//go:embed edited.lua
	editedSource string
	//go:embed recheck.lua
	recheckSource string
	//go:embed troubled.lua
	troubledSource string

	stateScript   = redisdb.NewRawScript("accounts/state", stateSource)
	trialScript   = redisdb.NewRawScript("accounts/trial", trialSource)
	editedScript  = redisdb.NewRawScript("accounts/edited", editedSource)
	recheckScript = redisdb.NewRawScript("accounts/recheck", recheckSource)

	troubledScript = redisdb.NewRawScript("accounts/troubled", troubledSource)
)

func eventsKey() string { return redisdb.Key(0, "events") } // outbox owns it; its doc says who may write

func troubledKey() string { return redisdb.Key(0, "accounts", "troubled") }

func newStore(db *redisdb.DB, ring *seal.Ring, o records.Options[api.Account]) *records.Store[api.Account] {
	return records.New(db, ring, records.Kind[api.Account]{
		Key: "account", Index: "accounts", Name: "account", Code: "AccountChanged", Missing: notFound,
		Changed: changedSource, Secrets: secrets,
	}, o)
}

// met notes what an attempt through an account met, if it still exists, and says what became of that in the
// words of the script.
func (a *Accounts) met(ctx context.Context, id, of string, m met, hold bool, now time.Time) (string, error) {
	keys := []string{a.store.Key(id), a.store.StateKey(id), a.store.VersionKey(), eventsKey(), troubledKey()}
	return stateScript.Run(ctx, a.client, keys, of != "", m.state, m.text, now.UnixMilli(), m.kind, m.line, hold,
		checks[0].Milliseconds(), settling.Milliseconds(), of, id).Text()
}

// trial claims the check of a held account that is due; true also when it is not held.
func (a *Accounts) trial(ctx context.Context, id string, now time.Time) (bool, error) {
	args := []any{now.UnixMilli()}
	for _, wait := range checks {
		args = append(args, wait.Milliseconds())
	}
	may, err := trialScript.Run(ctx, a.client, []string{a.store.StateKey(id), a.store.VersionKey()},
		args...).Int()
	return may == 1, err
}

// edited makes the next check of a held account from the configuration due at once, if it was held for
// another one.
func (a *Accounts) edited(ctx context.Context, id, of string) (bool, error) {
	done, err := editedScript.Run(ctx, a.client, []string{a.store.StateKey(id)}, of).Int()
	return done == 1, err
}

// recheck makes the next check of a held account due at once.
func (a *Accounts) recheck(ctx context.Context, id string) error {
	return recheckScript.Run(ctx, a.client, []string{a.store.StateKey(id), a.store.VersionKey()}).Err()
}
