package audience

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

const (
	importKept = 7 * 24 * time.Hour // lifetime of an import's progress
	importDead = time.Minute        // without progress for this time, the process of an import has ended
	badShown   = 100                // bad lines that are reported with their error
)

// The values of api.SubscriberImport.State.
const (
	importRuns   = "running"
	importEnded  = "done"
	importBroken = "interrupted"
)

// Imports are the imports of subscribers from files.
type Imports struct{ s *Subscribers }

var importScript = redisdb.NewScript[importArgs, int]("audience/import",
	redisdb.Source(lua, "lua/import.lua"))

type importArgs struct {
	Before, After string
	Expiry        int
	Event         string
}

// importIDs matches the ids of imports.
var importIDs = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// importState is an import as it is stored. Its counts are applied.
type importState struct {
	api.SubscriberImport
	Options string `json:"options"`        // fingerprint: a continued import must have the same
	Sum     string `json:"sum"`            // SHA-256 of the bytes so far, in hex
	Holder  string `json:"holder"`         // whose run it is
	Stop    bool   `json:"stop,omitempty"` // it was asked to stop
	Doubt   doubt  `json:"doubt"`

	text string // as it is stored now; empty if not yet
}

// doubt is about the lines behind the progress that may have been applied by a batch that did not end.
type doubt struct {
	Until  int         `json:"until,omitempty"`  // the last of them, as SubscriberImport.Lines counts
	Times  []uint32    `json:"times,omitempty"`  // when the changes were made, in Unix seconds
	Places [][2]uint32 `json:"places,omitempty"` // the ordinals of new subscribers: first, and number
}

// made reports whether a subscriber is a new one of the batch.
func (d *doubt) made(ordinal uint32) bool {
	return slices.ContainsFunc(d.Places, func(p [2]uint32) bool { return ordinal-p[0] < p[1] })
}

// changed reports whether a line may be one whose change the batch made.
func (d *doubt) changed(r *row) bool {
	return r.n <= d.Until && r.old != nil && slices.Contains(d.Times, r.old.updated)
}

func importKey(account, id string) string {
	return redisdb.Key(0, "subscriber-import", account, id)
}

// importsKey is the sorted set of an account's imports by the time when they began.
func importsKey(account string) string { return redisdb.Key(0, "subscriber-imports", account) }

func importNotFound() error {
	return fault.New(fault.NotFound, "ImportNotFound",
		"This account has no such import in the last week")
}

// load returns the stored state of an import, nil if there is none. One that makes no progress is
// interrupted.
func (m *Imports) load(ctx context.Context, account, id string) (*importState, error) {
	text, err := m.s.db.Client().Get(ctx, importKey(account, id)).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, redisdb.Failed(err, "read import %s", id)
	}
	return m.decode(text)
}

func (m *Imports) decode(text string) (*importState, error) {
	state := &importState{text: text}
	if err := json.Unmarshal([]byte(text), state); err != nil {
		return nil, redisdb.Failed(err, "decode an import")
	}
	if state.State == importRuns && m.s.now().Sub(state.Updated) > importDead {
		state.State, state.Error = importBroken, "The process that ran it has ended"
	}
	return state, nil
}

// store stores a state, if it is still as it was read or stored before.
func (m *Imports) store(ctx context.Context, account string, state *importState) (bool, error) {
	after, err := json.Marshal(state)
	if err != nil {
		return false, redisdb.Failed(err, "encode an import")
	}
	line, err := m.finished(account, state)
	if err != nil {
		return false, redisdb.Failed(err, "write the event of import %s", state.ID)
	}
	done, err := importScript.RunReplicated(ctx, m.s.db, []string{importKey(account, state.ID),
		redisdb.Key(0, stream)}, importArgs{Before: state.text, After: string(after),
		Expiry: int(importKept / time.Second), Event: line})
	if err != nil {
		return false, redisdb.Failed(err, "write down import %s", state.ID)
	}
	if done == 1 {
		state.text = string(after)
	}
	return done == 1, nil
}

// finished returns the event of the end of an import; empty if it is not at its end, or a dry run.
func (m *Imports) finished(account string, state *importState) (string, error) {
	if state.State == importRuns || state.DryRun {
		return "", nil
	}
	now := m.s.now()
	id := ulid.MustNew(ulid.Timestamp(now), rand.Reader).String()
	e, err := event.New(id, event.ImportFinished, account, now, state.SubscriberImport)
	if err != nil {
		return "", err
	}
	return e.Line()
}

// enlist adds an import to its account's imports.
func (m *Imports) enlist(ctx context.Context, account string, state *importState) error {
	key, now := importsKey(account), m.s.now()
	pipe := m.s.db.Client().TxPipeline()
	pipe.ZAdd(ctx, key, redis.Z{Score: float64(state.Started.UnixMilli()), Member: state.ID})
	pipe.ZRemRangeByScore(ctx, key, "-inf", strconv.FormatInt(now.Add(-2*importKept).UnixMilli(), 10))
	pipe.Expire(ctx, key, 2*importKept)
	if _, err := pipe.Exec(ctx); err != nil {
		return redisdb.Failed(err, "write down import %s", state.ID)
	}
	return nil
}

// Get returns an import's progress, while it runs and for a week, or NotFound.
func (m *Imports) Get(ctx context.Context, bound string, of api.SubscriberAccount, id string) (
	api.SubscriberImport, error) {
	account, err := requestAccount(bound, of.Account)
	if err != nil {
		return api.SubscriberImport{}, err
	}
	state, err := m.load(ctx, account, id)
	if err == nil && state == nil {
		err = importNotFound()
	}
	if err != nil {
		return api.SubscriberImport{}, err
	}
	return state.SubscriberImport, nil
}

// importsShown bounds the imports that are listed.
const importsShown = 100

// List returns the imports of an account in the last week, the latest first, at most 100.
func (m *Imports) List(ctx context.Context, bound string, of api.SubscriberAccount) (
	api.SubscriberImports, error) {
	list := api.SubscriberImports{Imports: []api.SubscriberImport{}}
	account, err := requestAccount(bound, of.Account)
	if err != nil {
		return list, err
	}
	ids, err := m.s.db.Client().ZRevRange(ctx, importsKey(account), 0, importsShown-1).Result()
	if err != nil {
		return list, redisdb.Failed(err, "list the imports of account %s", account)
	}
	if len(ids) == 0 {
		return list, nil
	}
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = importKey(account, id)
	}
	texts, err := m.s.db.Client().MGet(ctx, keys...).Result()
	if err != nil {
		return list, redisdb.Failed(err, "list the imports of account %s", account)
	}
	for _, text := range texts {
		if text, ok := text.(string); ok {
			state, err := m.decode(text)
			if err != nil {
				return list, err
			}
			list.Imports = append(list.Imports, state.SubscriberImport)
		}
	}
	return list, nil
}

// Stop asks a running import to stop, and forgets an ended one. It reports whether there was one. A running
// import stops before its next batch of lines; its applied lines stay.
func (m *Imports) Stop(ctx context.Context, bound string, of api.SubscriberAccount, id string) (bool,
	error) {
	account, err := requestAccount(bound, of.Account)
	if err != nil {
		return false, err
	}
	for range tries {
		state, err := m.load(ctx, account, id)
		if err != nil || state == nil {
			return false, err
		}
		if state.State != importRuns {
			n, err := m.s.db.Client().Del(ctx, importKey(account, id)).Result()
			if err != nil {
				return false, redisdb.Failed(err, "forget import %s", id)
			}
			return n > 0, nil
		}
		state.Stop = true
		if done, err := m.store(ctx, account, state); done || err != nil {
			return done, err
		}
	}
	return false, fault.New(fault.Conflict, "ImportRunning", "Import %q keeps progressing. Try again", id)
}
