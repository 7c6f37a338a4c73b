package batch

import (
	"container/list"
	"context"
	"sync"

	"golang.org/x/sync/singleflight"
)

// Cache keeps the writers that were used last, so that a letter of many messages is fetched and read once. Its methods may be called by any
// number of goroutines.
type Cache struct {
	most   int // bytes
	mu     sync.Mutex
	used   int
	order  *list.List // of *kept, the one used last in front
	byName map[string]*list.Element

	fetching singleflight.Group
}

type kept struct {
	name   string
	writer *Writer
	weight int
}

// NewCache makes a cache for letters of so many bytes in all; 0: 64 MB. A single one that is larger is kept alone.
func NewCache(most int) *Cache {
	if most <= 0 {
		most = 64 << 20
	}
	return &Cache{most: most, order: list.New(), byName: map[string]*list.Element{}}
}

// Get gives the writer of a letter, fetching the letter as Pack gave it if the cache lacks it. Those who want the same one at the same time
// share the fetching, which therefore goes on when one of them stops waiting: fetch has to end by itself.
func (c *Cache) Get(ctx context.Context, name string, fetch func(context.Context) ([]byte, error)) (*Writer, error) {
	if w := c.find(name); w != nil {
		return w, nil
	}
	fetched := c.fetching.DoChan(name, func() (any, error) {
		packed, err := fetch(context.WithoutCancel(ctx))
		if err != nil {
			return nil, err
		}
		l, err := Unpack(packed)
		if err != nil {
			return nil, err
		}
		w, err := New(l)
		if err != nil {
			return nil, err
		}
		c.Put(name, w, len(packed))
		return w, nil
	})
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case f := <-fetched:
		if f.Err != nil {
			return nil, f.Err
		}
		return f.Val.(*Writer), nil
	}
}

// Put keeps a writer whose letter takes so many bytes.
func (c *Cache) Put(name string, w *Writer, weight int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byName[name]; ok {
		return
	}
	c.byName[name] = c.order.PushFront(&kept{name, w, weight})
	c.used += weight
	for c.used > c.most && c.order.Len() > 1 {
		oldest := c.order.Remove(c.order.Back()).(*kept)
		delete(c.byName, oldest.name)
		c.used -= oldest.weight
	}
}

func (c *Cache) find(name string) *Writer {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byName[name]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*kept).writer
}
