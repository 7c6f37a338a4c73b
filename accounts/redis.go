package accounts

import (
	"embed"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/internal/redisdb/seal"
)

//go:embed *.lua
var lua embed.FS

var (
	stateScript = redisdb.NewScript[stateArgs, string]("accounts/state", redisdb.Source(lua, "state.lua"))
	trialScript = redisdb.NewScript[trialArgs, bool]("accounts/trial", redisdb.Source(lua, "trial.lua"))

	editedScript   = redisdb.NewScript[editedArgs, bool]("accounts/edited", redisdb.Source(lua, "edited.lua"))
	recheckScript  = redisdb.NewScript[struct{}, bool]("accounts/recheck", redisdb.Source(lua, "recheck.lua"))
	troubledScript = redisdb.NewScript[troubledArgs, []string]("accounts/troubled",
		redisdb.Source(lua, "troubled.lua"))
)

type stateArgs struct {
	ID         string
	Result     string
	ErrorText  string
	Code       string
	Reply      int
	Command    string
	Now        time.Time
	Kind       string
	Event      string
	Hold       bool
	FirstCheck int64 // ms
	Settling   int64 // ms
	Configured string
}

type trialArgs struct {
	Now   time.Time
	Waits []int64 // ms
}

type editedArgs struct{ Configured string }

type troubledArgs struct {
	Prefix string
	Limit  int
}

func eventsKey() string { return redisdb.Key(0, "events") } // outbox owns it; its doc lists the writers

func troubledKey() string { return redisdb.Key(0, "accounts", "troubled") }

func newStore(db *redisdb.DB, ring *seal.Ring, o records.Options[api.Account]) *records.Store[api.Account] {
	return records.New(db, ring, records.Kind[api.Account]{
		Key: "account", Index: "accounts", Name: "account", Code: "AccountChanged", Missing: notFound,
		Changed: redisdb.Source(lua, "changed.lua"), Secrets: secrets,
	}, o)
}

// holdKeys returns the keys of the scripts that claim or advance a check.
func (a *Accounts) holdKeys(id string) []string {
	return []string{a.store.StateKey(id), a.store.VersionKey()}
}
