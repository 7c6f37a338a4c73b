package redisdb

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"
)

const (
	// freshFor is how long a look at the version holds: the longest a value is used after another process changed it.
	freshFor = time.Second
	// lookTimeout ends a look that several callers wait for, whose own deadlines may differ.
	lookTimeout = 3 * time.Second
	// maxCached bounds the memory of a Cache; beyond it the Cache starts over.
	maxCached = 10_000
)

// Cache keeps in memory what was read from Redis and seldom changes, for use at every message or request. Whoever changes any of it raises
// a version in Redis; a Cache looks at the version once a second, and forgets everything when it was raised. It is safe for concurrent use.
type Cache[V any] struct {
	client    redis.UniversalClient
	key       string
	onChange  func()
	looks     singleflight.Group
	mu        sync.RWMutex
	version   string
	checked   time.Time
	emptyings uint64 // so that a load begun before one is not kept after it
	values    map[string]V
}

// NewCache makes an empty Cache that watches the version under a key. onChange is called when it was found to be
// another one; nil: nothing is called.
func NewCache[V any](db *DB, versionKey string, onChange func()) *Cache[V] {
	if onChange == nil {
		onChange = func() {}
	}
	return &Cache[V]{client: db.Client(), key: versionKey, onChange: onChange}
}

// Get gives the value of an id: the cached one, at most about a second old, else what load finds, which is kept when it exists. The error
// is load's own, or that of looking at the version: Unavailable when Redis is away.
func (c *Cache[V]) Get(ctx context.Context, id string, now time.Time, load func(context.Context) (V, bool, error)) (V, bool, error) {
	v, emptyings, ok, fresh := c.get(id, now)
	if !fresh {
		if err := c.look(ctx, now); err != nil {
			return v, false, err
		}
		v, emptyings, ok, _ = c.get(id, now)
	}
	if ok {
		return v, true, nil
	}
	v, ok, err := load(ctx)
	if err == nil && ok {
		c.keep(id, v, emptyings)
	}
	return v, ok, err
}

// Clear forgets everything, after a change made by this process.
func (c *Cache[V]) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.empty()
}

func (c *Cache[V]) get(id string, now time.Time) (v V, emptyings uint64, ok, fresh bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	age := now.Sub(c.checked)
	v, ok = c.values[id]
	return v, c.emptyings, ok, age < freshFor && age > -freshFor
}

// look asks Redis for the version. Of those that find the cache too old at once, one asks and all wait.
func (c *Cache[V]) look(ctx context.Context, now time.Time) error {
	look := c.looks.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
		defer cancel()
		version, err := c.client.Get(ctx, c.key).Result()
		if err != nil && !errors.Is(err, redis.Nil) { // no version: nothing has been changed yet
			return nil, Failed(err, "look at %s", c.key)
		}
		if c.confirm(version, now) {
			c.onChange()
		}
		return nil, nil
	})
	select {
	case result := <-look:
		return result.Err
	case <-ctx.Done():
		return Failed(context.Cause(ctx), "look at %s", c.key)
	}
}

// confirm takes in the version that Redis had when asked at the given time, and reports whether it is another one.
func (c *Cache[V]) confirm(version string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := version != c.version
	if changed {
		c.empty()
	}
	c.version, c.checked = version, now
	return changed
}

func (c *Cache[V]) keep(id string, v V, emptyings uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if emptyings != c.emptyings {
		return
	}
	if len(c.values) >= maxCached {
		c.empty()
	}
	if c.values == nil {
		c.values = map[string]V{}
	}
	c.values[id] = v
}

func (c *Cache[V]) empty() {
	c.emptyings++
	c.values = nil
}
