package accounts

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/relays"
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

	stateScript   = redisdb.NewScript("accounts/state", stateSource)
	trialScript   = redisdb.NewScript("accounts/trial", trialSource)
	editedScript  = redisdb.NewScript("accounts/edited", editedSource)
	recheckScript = redisdb.NewScript("accounts/recheck", recheckSource)

	troubledScript = redisdb.NewScript("accounts/troubled", troubledSource)
)

func eventsKey() string { return redisdb.Key(0, "events") } // outbox owns it; its doc says who may write

func troubledKey() string { return redisdb.Key(0, "accounts", "troubled") }

// store is what Redis keeps of accounts.
type store struct {
	client  redis.UniversalClient
	records *redisdb.Records
}

func newStore(db *redisdb.DB) store {
	return store{client: db.Client(), records: redisdb.NewRecords(db, "account", "accounts", changedSource)}
}

// put stores an account that was read as old; false when somebody changed it meanwhile.
func (s store) put(ctx context.Context, next, old *stored) (bool, error) {
	return s.write(ctx, next, old, false)
}

// reseal is put for an account that is the same as before, but for the sealing of its secrets.
func (s store) reseal(ctx context.Context, next, old *stored) (bool, error) {
	return s.write(ctx, next, old, true)
}

func (s store) write(ctx context.Context, next, old *stored, keepState bool) (bool, error) {
	record, err := next.encode()
	if err != nil {
		return false, err
	}
	read := ""
	if old != nil {
		read = old.revision
	}
	return s.records.Put(ctx, record, read, keepState)
}

// load reads an account; nil when there is none.
func (s store) load(ctx context.Context, id string) (*stored, error) {
	if !relays.ValidID(id) {
		return nil, nil // such as "a:state", which would be the key of something else
	}
	found, err := s.records.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	return decodeStored(found[0])
}

// loadWithState reads an account and its state; nil when it is not stored.
func (s store) loadWithState(ctx context.Context, id string) (*stored, state, error) {
	if !relays.ValidID(id) {
		return nil, nil, nil
	}
	pipe := s.client.Pipeline()
	record := s.records.Read(ctx, pipe, id)
	values := pipe.HGetAll(ctx, s.records.StateKey(id))
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, nil, err
	}
	found, err := readStored(record)
	return found, values.Val(), err
}

// readStored takes what was asked for in a pipeline.
func readStored(read func() (redisdb.Record, error)) (*stored, error) {
	record, err := read()
	if err != nil {
		return nil, err
	}
	return decodeStored(record)
}

// remove deletes an account and reports whether there was one.
func (s store) remove(ctx context.Context, id string) (bool, error) {
	if !relays.ValidID(id) {
		return false, nil
	}
	return s.records.Remove(ctx, id)
}

// met notes what an attempt through an account met, if it still exists, and says what became of that in the words of the script.
func (s store) met(ctx context.Context, id, of string, m met, hold bool, now time.Time) (string, error) {
	keys := []string{s.records.Key(id), s.records.StateKey(id), s.records.VersionKey(), eventsKey(), troubledKey()}
	return stateScript.Run(ctx, s.client, keys, of != "", m.state, m.text, now.UnixMilli(), m.kind, m.line, hold,
		checks[0].Milliseconds(), settling.Milliseconds(), of, id).Text()
}

// trial claims the check of a held account that is due; true also when it is not held.
func (s store) trial(ctx context.Context, id string, now time.Time) (bool, error) {
	args := []any{now.UnixMilli()}
	for _, wait := range checks {
		args = append(args, wait.Milliseconds())
	}
	may, err := trialScript.Run(ctx, s.client, []string{s.records.StateKey(id), s.records.VersionKey()}, args...).Int()
	return may == 1, err
}

// edited makes the next check of a held account from the configuration due at once, if it was held for another one.
func (s store) edited(ctx context.Context, id, of string) (bool, error) {
	done, err := editedScript.Run(ctx, s.client, []string{s.records.StateKey(id)}, of).Int()
	return done == 1, err
}

// recheck makes the next check of a held account due at once.
func (s store) recheck(ctx context.Context, id string) error {
	return recheckScript.Run(ctx, s.client, []string{s.records.StateKey(id), s.records.VersionKey()}).Err()
}

// all reads accounts as they are stored. Those that are not are left out.
func (s store) all(ctx context.Context, ids []string) ([]*stored, error) {
	records, err := s.records.Load(ctx, ids...)
	if err != nil {
		return nil, err
	}
	found := make([]*stored, 0, len(ids))
	for _, record := range records {
		switch s, err := decodeStored(record); {
		case err != nil:
			return nil, err
		case s != nil:
			found = append(found, s)
		}
	}
	return found, nil
}

// page reads ids in their order. A configured account that is not stored counts as the first of all.
func (s store) page(ctx context.Context, from, size int, configured bool) (ids []string, total int, err error) {
	if !configured {
		return s.records.Page(ctx, from, size)
	}
	pipe := s.client.Pipeline()
	count := pipe.ZCard(ctx, s.records.IndexKey())
	stored := pipe.Exists(ctx, s.records.Key(DefaultID))
	rows := pipe.ZRange(ctx, s.records.IndexKey(), int64(from), int64(from+size-1))
	shifted := pipe.ZRange(ctx, s.records.IndexKey(), int64(max(0, from-1)), int64(from+size-2))
	if _, err = pipe.Exec(ctx); err != nil || stored.Val() > 0 {
		return rows.Val(), int(count.Val()), err
	}
	ids = shifted.Val()
	if from == 0 {
		ids = []string{DefaultID}
		if size > 1 {
			ids = append(ids, shifted.Val()...)
		}
	}
	return ids, int(count.Val()) + 1, nil
}

// infos reads accounts with their states, as answers show them. Those that do not exist are left out.
func (a *Accounts) infos(ctx context.Context, ids []string) ([]api.AccountInfo, error) {
	pipe := a.store.client.Pipeline()
	records := make([]func() (redisdb.Record, error), len(ids))
	states := make([]*redis.MapStringStringCmd, len(ids))
	for i, id := range ids {
		records[i] = a.store.records.Read(ctx, pipe, id)
		states[i] = pipe.HGetAll(ctx, a.store.records.StateKey(id))
	}
	infos := make([]api.AccountInfo, 0, len(ids))
	if len(ids) == 0 {
		return infos, nil
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, away(err, "read %d accounts", len(ids))
	}
	for i, id := range ids {
		s, err := readStored(records[i])
		if err != nil {
			return nil, err
		}
		if s == nil && a.Configured(id) {
			s = &stored{Account: *a.configured, Created: a.started, Updated: a.started}
		}
		if s == nil {
			continue
		}
		info := api.AccountInfo{Account: masked(s.Account), State: stateUnset, Created: s.Created, Updated: s.Updated}
		state(states[i].Val()).show(&info, holds(s.Account, a.hold))
		infos = append(infos, info)
	}
	return infos, nil
}

// away says what was tried when Redis failed, and tells clients to come back when that is all it was.
func away(err error, format string, args ...any) error {
	return redisdb.Away(fmt.Errorf("accounts: "+format+": %w", append(args, err)...))
}
