package accounts

import (
	"context"
	"sync"
	"time"
)

const (
	// freshFor is how long the last look at the version of the accounts holds: the longest a changed account is used as it was.
	freshFor = time.Second
	// lookTimeout ends a look-up that several messages wait for, whose own deadlines may differ.
	lookTimeout = 3 * time.Second
	// maxCached bounds the memory of the cache; beyond it the cache starts over.
	maxCached = 10_000
)

// cache holds the senders used since the last change of any account. A change raises the version in Redis; whoever finds it raised
// forgets all.
type cache struct {
	mu         sync.RWMutex
	version    string
	checked    time.Time
	generation uint64 // counts clears, so that a load begun before one is not kept after it
	senders    map[string]Sender
}

// get gives a cached sender, and whether the cache may be trusted at this time.
func (c *cache) get(id string, now time.Time) (s Sender, generation uint64, ok, fresh bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	age := now.Sub(c.checked)
	s, ok = c.senders[id]
	return s, c.generation, ok, age < freshFor && age > -freshFor
}

// confirm takes in the version that Redis had when asked at the given time, and reports whether it is a new one.
func (c *cache) confirm(version string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := version != c.version
	if changed {
		c.reset()
	}
	c.version, c.checked = version, now
	return changed
}

// keep adds a sender that was loaded in the given generation.
func (c *cache) keep(s Sender, generation uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if generation != c.generation {
		return
	}
	if len(c.senders) >= maxCached {
		c.reset()
	}
	if c.senders == nil {
		c.senders = map[string]Sender{}
	}
	c.senders[s.ID] = s
}

func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reset()
}

func (c *cache) reset() {
	c.generation++
	c.senders = nil
}

// refresh asks Redis whether any account was changed. Of the messages that find the cache too old at once, one asks and all wait.
func (a *Accounts) refresh(ctx context.Context, now time.Time) error {
	_, err, _ := a.loads.Do("version", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
		defer cancel()
		version, err := a.store.version(ctx)
		if err != nil {
			return nil, away(err, "look up the version of the accounts")
		}
		if a.cache.confirm(version, now) {
			a.forgetOutcomes()
		}
		return nil, nil
	})
	return err
}
