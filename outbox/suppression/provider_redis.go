package suppression

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

const providerKept = 90 * 24 * time.Hour // lifetime of a provider import's result

func providerOwnerKey() string { return redisdb.Key(0, "suppression", "provider", "owner") }

// providerRunningKey is the set of gateways whose import is running.
func providerRunningKey() string { return redisdb.Key(0, "suppression", "provider", "running") }

func providerKey(gateway string) string {
	return redisdb.Key(0, "suppression", "provider", "import", gateway)
}

// providerSeenKey has the digests of the addresses on a provider's list, 8 bytes each: from the running
// import, or from the last complete one.
func providerSeenKey(gateway, which string) string {
	return redisdb.Key(0, "suppression", "provider", which, gateway)
}

// providerState is an import as it is stored.
type providerState struct {
	api.ProviderImport
	Cursor string    `json:"cursor,omitempty"` // the page to read
	Next   time.Time `json:"next,omitzero"`    // not before; zero means now
	Tries  int       `json:"tries,omitempty"`  // failures of this page
	Pages  int       `json:"pages,omitempty"`  // read so far

	listed bool // the list has addresses; known when it was read to its end
}

func (s providerState) text() ([]byte, error) {
	text, err := json.Marshal(s)
	return text, redisdb.Failed(err, "suppression: write down an import from a provider")
}

// begin stores a new import, and lists it as running.
func (p *Providers) begin(ctx context.Context, state providerState) error {
	text, err := state.text()
	if err != nil {
		return err
	}
	pipe := p.s.db.Client().TxPipeline()
	pipe.Set(ctx, providerKey(state.Gateway), text, providerKept)
	pipe.Del(ctx, providerSeenKey(state.Gateway, "seen"))
	pipe.SAdd(ctx, providerRunningKey(), state.Gateway)
	_, err = pipe.Exec(ctx)
	return redisdb.Failed(err, "suppression: begin an import from a provider")
}

// save stores the progress. An import that has ended is not listed any more. What a complete one saw replaces
// what the one before it saw.
func (p *Providers) save(ctx context.Context, state *providerState) error {
	text, err := state.text()
	if err != nil {
		return err
	}
	pipe := p.s.db.Client().TxPipeline()
	pipe.Set(ctx, providerKey(state.Gateway), text, providerKept)
	switch last := providerSeenKey(state.Gateway, "last"); {
	case state.State == "done" && state.listed:
		pipe.Rename(ctx, providerSeenKey(state.Gateway, "seen"), last)
	case state.State == "done":
		pipe.Del(ctx, last)
	}
	if state.State != "running" {
		pipe.SRem(ctx, providerRunningKey(), state.Gateway)
	}
	_, err = pipe.Exec(ctx)
	return redisdb.Failed(err, "suppression: write down an import from a provider")
}

// over takes a gateway off the list of running imports.
func (p *Providers) over(ctx context.Context, gateway string) error {
	err := p.s.db.Client().SRem(ctx, providerRunningKey(), gateway).Err()
	return redisdb.Failed(err, "suppression: end an import from a provider")
}

func (p *Providers) running(ctx context.Context) ([]string, error) {
	all, err := p.s.db.Client().SMembers(ctx, providerRunningKey()).Result()
	slices.Sort(all)
	return all, redisdb.Failed(err, "suppression: list imports from providers")
}

func (p *Providers) load(ctx context.Context, gateway string) (state providerState, err error) {
	text, err := p.s.db.Client().Get(ctx, providerKey(gateway)).Bytes()
	if errors.Is(err, redis.Nil) {
		return state, fault.New(fault.NotFound, "ImportNotFound",
			"The suppression list of this gateway's provider wasn't imported in the last 90 days; start with POST")
	}
	if err != nil {
		return state, redisdb.Failed(err, "suppression: read an import from a provider")
	}
	if err := json.Unmarshal(text, &state); err != nil {
		return state, redisdb.Failed(err, "suppression: decode an import from a provider")
	}
	return state, nil
}

// see notes that addresses are on the provider's list. A page that is read twice is noted twice, which does
// no harm.
func (p *Providers) see(ctx context.Context, state *providerState, entries []Entry) error {
	if len(entries) == 0 {
		return nil
	}
	secret, err := p.s.secret(ctx) // without it no one can tell whose digest a hash is
	if err != nil {
		return err
	}
	var digests []byte
	for i := range entries {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(entries[i].subject()))
		digests = append(digests, mac.Sum(nil)[:8]...)
	}
	key := providerSeenKey(state.Gateway, "seen")
	pipe := p.s.db.Client().TxPipeline()
	pipe.Append(ctx, key, string(digests))
	pipe.Expire(ctx, key, providerKept)
	_, err = pipe.Exec(ctx)
	return redisdb.Failed(err, "suppression: note what a provider lists")
}

// left counts the addresses that were on the list in the last complete import and are no longer.
func (p *Providers) left(ctx context.Context, state *providerState) (int, error) {
	now, err := p.digests(ctx, providerSeenKey(state.Gateway, "seen"))
	if err != nil {
		return 0, err
	}
	before, err := p.digests(ctx, providerSeenKey(state.Gateway, "last"))
	if err != nil {
		return 0, err
	}
	gone := 0
	for _, digest := range before {
		if _, there := slices.BinarySearch(now, digest); !there {
			gone++
		}
	}
	state.listed = len(now) > 0
	return gone, nil
}

// digests reads digests, sorted, each once.
func (p *Providers) digests(ctx context.Context, key string) ([]uint64, error) {
	text, err := p.s.db.Client().Get(ctx, key).Bytes()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, redisdb.Failed(err, "suppression: read what a provider listed")
	}
	all := make([]uint64, 0, len(text)/8)
	for one := range slices.Chunk(text, 8) {
		if len(one) == 8 {
			all = append(all, binary.BigEndian.Uint64(one))
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
