package smtpsend

import (
	"context"
	"sync"
	"time"
)

// pool keeps the connections of each relay: at most Relay.Connections open, the most recently used one first, so that the
// others can fall idle. Who finds all of them busy waits in line.
type pool struct {
	mu     sync.Mutex
	relays map[Relay]*connections
	closed bool
}

// connections is what the pool holds for one relay.
type connections struct {
	open    int // idle ones and those in use
	idle    []*session
	waiting []chan grant
}

// grant is what a waiter gets: a connection, or nil for the right to open one.
type grant struct{ c *session }

func newPool() *pool { return &pool{relays: map[Relay]*connections{}} }

// take gives an idle connection, or nil for the right to open one. Either must come back: by give or by drop.
func (p *pool) take(ctx context.Context, relay Relay) (*session, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed
	}
	k := p.relays[relay]
	if k == nil {
		k = &connections{}
		p.relays[relay] = k
	}
	var stale []*session
	c := k.pop(time.Now(), relay.IdleTimeout, &stale)
	granted := c != nil
	if c == nil && k.open < relay.Connections {
		k.open++
		granted = true
	}
	var line chan grant
	if !granted {
		line = make(chan grant, 1)
		k.waiting = append(k.waiting, line)
	}
	p.mu.Unlock()
	quitAll(stale)
	if granted {
		return c, nil
	}
	return p.wait(ctx, relay, line)
}

func (p *pool) wait(ctx context.Context, relay Relay, line chan grant) (*session, error) {
	select {
	case g := <-line:
		return g.c, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	k := p.relays[relay]
	for i, w := range k.waiting {
		if w == line {
			k.waiting = append(k.waiting[:i], k.waiting[i+1:]...)
			break
		}
	}
	p.mu.Unlock()
	select {
	case g := <-line: // it was granted in the same moment: pass it on
		if g.c != nil {
			p.give(relay, g.c)
		} else {
			p.drop(relay)
		}
	default:
	}
	return nil, context.Cause(ctx)
}

// pop takes the youngest usable idle connection and counts those that are past use into stale.
func (k *connections) pop(now time.Time, idleTimeout time.Duration, stale *[]*session) *session {
	for len(k.idle) > 0 {
		last := len(k.idle) - 1
		c := k.idle[last]
		k.idle[last] = nil
		k.idle = k.idle[:last]
		if now.Sub(c.idleSince) <= idleTimeout && now.Before(c.expires) {
			return c
		}
		k.open--
		*stale = append(*stale, c)
	}
	return nil
}

// give returns a connection that may be used again.
func (p *pool) give(relay Relay, c *session) {
	c.idleSince = time.Now()
	if c.served >= relay.MessagesPerConnection || !c.idleSince.Before(c.expires) {
		p.drop(relay)
		c.quit(false)
		return
	}
	p.mu.Lock()
	k := p.relays[relay]
	switch {
	case p.closed:
		k.open--
		p.mu.Unlock()
		c.quit(false)
		return
	case len(k.waiting) > 0:
		k.next() <- grant{c}
	default:
		k.idle = append(k.idle, c)
	}
	p.mu.Unlock()
}

// drop gives the right to a connection back, after one was closed or could not be opened.
func (p *pool) drop(relay Relay) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.relays[relay]
	if len(k.waiting) > 0 {
		k.next() <- grant{}
		return
	}
	k.open--
}

// next takes the first waiter out of the line.
func (k *connections) next() chan grant {
	w := k.waiting[0]
	k.waiting = k.waiting[1:]
	return w
}

// forget closes the relay's idle connections: one of them turned out dead, and they tend to die together.
func (p *pool) forget(relay Relay) {
	p.mu.Lock()
	k := p.relays[relay]
	dead := k.idle
	k.idle = nil
	k.open -= len(dead)
	for range dead {
		if len(k.waiting) > 0 {
			k.open++
			k.next() <- grant{}
		}
	}
	p.mu.Unlock()
	for _, c := range dead {
		c.close()
	}
}

// reap closes idle connections that are past use, or all of them, and forgets relays nobody uses.
func (p *pool) reap(now time.Time, all bool) {
	var old []*session
	p.mu.Lock()
	for relay, k := range p.relays {
		kept := k.idle[:0]
		for _, c := range k.idle {
			if all || now.Sub(c.idleSince) > relay.IdleTimeout || !now.Before(c.expires) {
				old = append(old, c)
				k.open--
			} else {
				kept = append(kept, c)
			}
		}
		clear(k.idle[len(kept):])
		k.idle = kept
		if k.open == 0 && len(k.waiting) == 0 {
			delete(p.relays, relay)
		}
	}
	p.mu.Unlock()
	quitAll(old)
}

func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.reap(time.Now(), true)
}

// quitAll closes connections that are no longer the pool's.
func quitAll(cs []*session) {
	for _, c := range cs {
		c.quit(false)
	}
}
