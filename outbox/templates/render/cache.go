package render

import (
	"container/list"
	"context"
	"sync"

	"golang.org/x/sync/singleflight"
)

// Cache keeps the renderers that were used last, so that a content of many messages is fetched and parsed
// once. It is safe for concurrent use.
type Cache struct {
	most   int // bytes
	mu     sync.Mutex
	used   int
	order  *list.List // *cached, the last used first
	byName map[string]*list.Element

	fetching singleflight.Group
}

type cached struct {
	name     string
	renderer *Renderer
	size     int
}

// NewCache makes a cache for contents of at most most bytes together, by default 64 MB. A larger single
// content is kept alone.
func NewCache(most int) *Cache {
	if most <= 0 {
		most = 64 << 20
	}
	return &Cache{most: most, order: list.New(), byName: map[string]*list.Element{}}
}

// Get returns the renderer of a content. A content that is not in the cache is fetched, packed by Pack.
// Concurrent calls for one name share a fetch. The fetch continues if one caller stops waiting, so fetch
// needs a time limit of its own.
func (c *Cache) Get(ctx context.Context, name string, fetch func(context.Context) ([]byte, error)) (*Renderer,
	error) {
	if r := c.find(name); r != nil {
		return r, nil
	}
	fetched := c.fetching.DoChan(name, func() (any, error) {
		packed, err := fetch(context.WithoutCancel(ctx))
		if err != nil {
			return nil, err
		}
		content, err := Unpack(packed)
		if err != nil {
			return nil, err
		}
		r, err := New(content)
		if err != nil {
			return nil, err
		}
		c.put(name, r, len(packed))
		return r, nil
	})
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case f := <-fetched:
		if f.Err != nil {
			return nil, f.Err
		}
		return f.Val.(*Renderer), nil
	}
}

// put keeps a renderer whose content has size bytes.
func (c *Cache) put(name string, r *Renderer, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byName[name]; ok {
		return
	}
	c.byName[name] = c.order.PushFront(&cached{name, r, size})
	c.used += size
	for c.used > c.most && c.order.Len() > 1 {
		oldest := c.order.Remove(c.order.Back()).(*cached)
		delete(c.byName, oldest.name)
		c.used -= oldest.size
	}
}

func (c *Cache) find(name string) *Renderer {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byName[name]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).renderer
}
