package access

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/postroom/postroom/api"
)

const (
	// freshFor is how long the last look at the version of the tokens holds: the longest a deleted token is let in.
	freshFor = time.Second
	// lookTimeout ends a look-up that several requests wait for, whose own deadlines may differ.
	lookTimeout = 3 * time.Second
	// maxCached bounds the memory of the cache; beyond it the cache starts over.
	maxCached = 10_000
)

// cache holds the tokens seen since the last deletion of any. A deletion raises the version in Redis; whoever finds it raised forgets all.
type cache struct {
	mu         sync.Mutex
	version    string
	checked    time.Time
	generation uint64 // counts clears, so that a load begun before one is not kept after it
	tokens     map[string]*token
}

// get gives a cached token, and whether the cache may be trusted at this time.
func (c *cache) get(id string, now time.Time) (t *token, generation uint64, fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	age := now.Sub(c.checked)
	return c.tokens[id], c.generation, age < freshFor && age > -freshFor
}

// confirm takes in the version that Redis had when asked at the given time.
func (c *cache) confirm(version string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if version != c.version {
		c.reset()
	}
	c.version, c.checked = version, now
}

// keep adds a token that was loaded in the given generation.
func (c *cache) keep(t *token, generation uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if generation != c.generation {
		return
	}
	if len(c.tokens) >= maxCached {
		c.reset()
	}
	if c.tokens == nil {
		c.tokens = map[string]*token{}
	}
	c.tokens[t.info.ID] = t
}

func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reset()
}

func (c *cache) reset() {
	c.generation++
	c.tokens = nil
}

// find gives the token with this id, from memory where that is at most a second old; nil when there is none.
func (a *Access) find(ctx context.Context, id string, now time.Time) (*token, error) {
	t, generation, fresh := a.cache.get(id, now)
	if !fresh {
		if err := a.refresh(ctx, now); err != nil {
			return nil, err
		}
		t, generation, _ = a.cache.get(id, now)
	}
	if t != nil {
		return t, nil
	}
	info, ok, err := a.store.load(ctx, id)
	if err != nil {
		return nil, away(err, "look up a token")
	}
	if !ok {
		return nil, nil
	}
	if t, err = newToken(info); err != nil {
		return nil, err
	}
	a.cache.keep(t, generation)
	return t, nil
}

// refresh asks Redis whether any token was deleted. Of the requests that find the cache too old at once, one asks and all wait.
func (a *Access) refresh(ctx context.Context, now time.Time) error {
	_, err, _ := a.loads.Do("version", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
		defer cancel()
		version, err := a.store.version(ctx)
		if err != nil {
			return nil, away(err, "look up the version of the tokens")
		}
		a.cache.confirm(version, now)
		return nil, nil
	})
	return err
}

// newToken prepares a stored token for use.
func newToken(info api.TokenInfo) (*token, error) {
	t := &token{info: info}
	if info.LastUsed != nil {
		t.usedMinute.Store(info.LastUsed.Unix() / 60)
	}
	if info.Restrictions == nil || len(info.Restrictions.Addresses) == 0 {
		return t, nil
	}
	t.addresses = make([]netip.Prefix, 0, len(info.Restrictions.Addresses))
	for _, s := range info.Restrictions.Addresses {
		p, err := parsePrefix(s)
		if err != nil {
			return nil, fmt.Errorf("read the restrictions of token %s: %w", info.ID, err)
		}
		t.addresses = append(t.addresses, p)
	}
	return t, nil
}

// decode reads a stored record, and the minute of the last use beside it.
func decode(record string, usedMinute int64) (info api.TokenInfo, err error) {
	if err := json.Unmarshal([]byte(record), &info); err != nil {
		return info, fmt.Errorf("read the record of a token: %w", err)
	}
	if usedMinute > 0 {
		used := time.Unix(usedMinute*60, 0).UTC()
		info.LastUsed = &used
	}
	return info, nil
}
