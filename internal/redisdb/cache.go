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
	// freshFor is how long a look at the version holds: the longest a value is used after another process
	// changed it.
	freshFor = time.Second
	// lookTimeout ends a look that several callers wait for, whose own deadlines may differ.
	lookTimeout = 3 * time.Second
	// maxCached bounds the memory of a Cache; beyond it the Cache starts over.
	maxCached = 10_000
)

// Cache caches in memory data from Redis that rarely changes, for use at every message or request. Each
// change raises a version in Redis. A Cache reads the version once a second, and drops everything if it
// changed. It is safe for concurrent use.
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

// NewCache returns an empty Cache that watches the version under a key. onChange is called when the version
// changed; nil means no call.
func NewCache[V any](db *DB, versionKey string, onChange func()) *Cache[V] {
	if onChange == nil {
		onChange = func() {}
	}
	return &Cache[V]{client: db.Client(), key: versionKey, onChange: onChange}
}

// Get returns the value of an id: the cached one, at most about a second old, otherwise the result of load,
// which is cached if it exists. The error comes from load, or from reading the version: Unavailable if Redis
// is unavailable.
func (c *Cache[V]) Get(ctx context.Context, id string, now time.Time, load func(context.Context) (V, bool,
	error)) (V, bool, error) {
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

// Clear empties the cache, after a change made by this process.
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

// look reads the version from Redis. If there are concurrent callers, one reads it and all wait.
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
	_, err := Await[any](ctx, look)
	return err
}

// confirm records the version that Redis had at the given time, and reports whether it changed.
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
