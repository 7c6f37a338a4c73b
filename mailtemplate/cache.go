package mailtemplate

import (
	"container/list"
	"sync"
)

// Cache keeps the templates that were used last, so that a campaign's is read once and not for each recipient. Its methods may be called
// by any number of goroutines.
type Cache struct {
	most  int
	mu    sync.Mutex
	order *list.List // of *cached, the one used last in front
	byKey map[string]*list.Element
}

type cached struct {
	key      string
	template *Template
}

// NewCache makes a cache for so many templates; 0: 256.
func NewCache(most int) *Cache {
	if most <= 0 {
		most = 256
	}
	return &Cache{most: most, order: list.New(), byKey: map[string]*list.Element{}}
}

// Get gives the template of a key, which names a source with its options: a hash of them, or an id with its version. One that isn't there
// is read; what can't be read isn't kept.
func (c *Cache) Get(key string, read func() (*Template, error)) (*Template, error) {
	c.mu.Lock()
	if e, ok := c.byKey[key]; ok {
		c.order.MoveToFront(e)
		c.mu.Unlock()
		return e.Value.(*cached).template, nil
	}
	c.mu.Unlock()
	t, err := read() // perhaps by two at once, which does no harm
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[key]; ok {
		return e.Value.(*cached).template, nil
	}
	c.byKey[key] = c.order.PushFront(&cached{key, t})
	if c.order.Len() > c.most {
		oldest := c.order.Back()
		c.order.Remove(oldest)
		delete(c.byKey, oldest.Value.(*cached).key)
	}
	return t, nil
}
