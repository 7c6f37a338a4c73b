package mxsend

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// memory keeps values by name until they expire. If it is full, the oldest goes.
type memory[V any] struct {
	mu   sync.Mutex
	kept map[string]*list.Element // elements are remembered[V]
	ages *list.List               // the oldest first
	most int
}

type remembered[V any] struct {
	name  string
	value V
	until time.Time
}

func newMemory[V any](most int) *memory[V] {
	return &memory[V]{kept: map[string]*list.Element{}, ages: list.New(), most: most}
}

// get returns a value that hasn't expired.
func (m *memory[V]) get(name string, now time.Time) (value V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.kept[name]
	if e == nil {
		return value, false
	}
	r := e.Value.(remembered[V])
	if !now.Before(r.until) {
		m.drop(e)
		return value, false
	}
	return r.value, true
}

// put keeps a value.
func (m *memory[V]) put(name string, value V, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.kept[name]; e != nil {
		m.drop(e)
	}
	if len(m.kept) >= m.most {
		m.drop(m.ages.Front())
	}
	m.kept[name] = m.ages.PushBack(remembered[V]{name, value, until})
}

// drop removes a value. The caller holds the lock.
func (m *memory[V]) drop(e *list.Element) {
	delete(m.kept, m.ages.Remove(e).(remembered[V]).name)
}

// forget removes a value.
func (m *memory[V]) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.kept[name]; e != nil {
		m.drop(e)
	}
}

// PolicyMemory keeps policies in this process only.
type PolicyMemory struct {
	*memory[Policy]
	now func() time.Time
}

// Get implements [Policies].
func (m PolicyMemory) Get(_ context.Context, domain string) (Policy, bool, error) {
	p, ok := m.get(domain, m.now())
	return p, ok, nil
}

// Put implements [Policies].
func (m PolicyMemory) Put(_ context.Context, domain string, p Policy) error {
	m.put(domain, p, p.Expires)
	return nil
}
