package peers

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// ErrTooMany means that an owner, or all together, have too many bodies under way.
var ErrTooMany = errors.New("too many bodies at once")

// Shares are the bounds of a pool.
type Shares struct {
	Size int64 // bytes of all bodies together
	// First is the part of Size in bytes that is kept for one body at a time, the first that waits. If it is the
	// size of the largest body, some body can always be completed: bodies that are half in memory do not wait
	// for each other forever.
	First    int64
	Bodies   int // maximum under way; 0 means no limit
	PerOwner int // the same of one owner
}

// Pool is the memory that bodies share while they arrive and are worked on. It is safe for concurrent use.
//
// An owner may hold at most as much as is free: one alone gets half, two get a third each, and so on. So
// something is left for an owner that holds nothing yet (the dynamic threshold of shared switch buffers,
// Choudhury and Hahne 1998).
type Pool struct {
	shares Shares

	mu      sync.Mutex
	free    int64
	bodies  int
	first   *Body // has what is kept for the first; may be nil
	owners  map[string]*owner
	waiting list.List // elements are *wait, in the order of their coming
}

type owner struct {
	held   int64
	bodies int
}

// wait is a Take that waits.
type wait struct {
	body  *Body
	bytes int64
	ready chan struct{}
}

// Body is the memory of one body. Only one goroutine uses it.
type Body struct {
	pool  *Pool
	name  string // its owner's
	held  int64  // from the shared memory
	ended bool
}

// NewPool returns an empty pool.
func NewPool(s Shares) *Pool {
	s.First = min(s.First, s.Size)
	return &Pool{shares: s, free: s.Size - s.First, owners: map[string]*owner{}}
}

// Begin begins a body of an owner. The error is ErrTooMany. The caller calls Release.
func (p *Pool) Begin(name string) (*Body, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.owners[name]
	if o == nil {
		o = new(owner)
	}
	if p.shares.Bodies > 0 && p.bodies >= p.shares.Bodies ||
		p.shares.PerOwner > 0 && o.bodies >= p.shares.PerOwner {
		return nil, ErrTooMany
	}
	p.owners[name] = o
	o.bodies++
	p.bodies++
	return &Body{pool: p, name: name}, nil
}

// Take takes memory, and waits for it until ctx ends. waited reports whether it had to.
func (b *Body) Take(ctx context.Context, bytes int64) (waited bool, err error) {
	p := b.pool
	p.mu.Lock()
	if p.grant(b, bytes) {
		p.mu.Unlock()
		return false, nil
	}
	w := &wait{body: b, bytes: bytes, ready: make(chan struct{})}
	e := p.waiting.PushBack(w)
	p.mu.Unlock()
	select {
	case <-w.ready:
		return true, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-w.ready: // granted in between; Release gives it back
		return true, nil
	default:
		p.waiting.Remove(e)
		return true, ctx.Err()
	}
}

// TryTake is Take without waiting.
func (b *Body) TryTake(bytes int64) bool {
	b.pool.mu.Lock()
	defer b.pool.mu.Unlock()
	return b.pool.grant(b, bytes)
}

// grant gives memory to a body if it may have it.
func (p *Pool) grant(b *Body, bytes int64) bool {
	o := p.owners[b.name]
	switch {
	case p.first == b:
		return true
	case o.held+bytes <= p.free-bytes:
		p.free -= bytes
		o.held += bytes
		b.held += bytes
		return true
	case p.first == nil && p.shares.First > 0:
		p.first = b
		return true
	}
	return false
}

// Release gives the memory back. It may be called more than once, and on nil.
func (b *Body) Release() {
	if b == nil || b.ended {
		return
	}
	b.ended = true
	p := b.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first == b {
		p.first = nil
	}
	o := p.owners[b.name]
	p.free += b.held
	p.bodies--
	o.held -= b.held
	if o.bodies--; o.bodies == 0 {
		delete(p.owners, b.name)
	}
	for e := p.waiting.Front(); e != nil; {
		next, w := e.Next(), e.Value.(*wait)
		if p.grant(w.body, w.bytes) {
			p.waiting.Remove(e)
			close(w.ready)
		}
		e = next
	}
}

// Free returns the bytes that are left for all.
func (p *Pool) Free() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.free
}
