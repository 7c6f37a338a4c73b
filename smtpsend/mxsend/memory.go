package mxsend

import (
	"context"
	"sync"
	"time"
)

// memory keeps values by name until they expire. If it is full, any other one goes.
type memory[V any] struct {
	mu   sync.Mutex
	kept map[string]remembered[V]
	most int
}

type remembered[V any] struct {
	value V
	until time.Time
}

func newMemory[V any](most int) *memory[V] {
	return &memory[V]{kept: map[string]remembered[V]{}, most: most}
}

// get returns a value that hasn't expired.
func (m *memory[V]) get(name string, now time.Time) (value V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.kept[name]
	if !ok || !now.Before(r.until) {
		delete(m.kept, name)
		return value, false
	}
	return r.value, true
}

// put keeps a value.
func (m *memory[V]) put(name string, value V, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for other := range m.kept {
		if len(m.kept) < m.most {
			break
		}
		delete(m.kept, other)
	}
	m.kept[name] = remembered[V]{value, until}
}

// forget removes a value.
func (m *memory[V]) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.kept, name)
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
