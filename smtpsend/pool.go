package smtpsend

import (
	"context"
	"sync"
	"time"
)

// pool keeps the connections of each relay: at most Relay.Connections open, the most recently used one first,
// so that the others can fall idle. Who finds all of them busy waits in line. There the message before may
// take his envelope along (chain).
type pool struct {
	mu     sync.Mutex
	relays map[Relay]*connections
	closed bool
}

// connections is what the pool holds for one relay.
type connections struct {
	open      int // idle ones, those in use, and rights to open one
	idle      []*session
	line      []*waiter
	unchained bool // the relay has lost an envelope that came with a dot: no more of those
}

// grant is what a message gets: a connection, or the right to open one. Either must come back, by give or by
// drop.
type grant struct {
	c *session     // nil: open one
	t *transaction // on c, with its envelope under way; nil: none was begun
}

func newPool() *pool { return &pool{relays: map[Relay]*connections{}} }

// take gives an idle connection, or the right to open one, or waits for either.
func (p *pool) take(ctx context.Context, d *delivery) (grant, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return grant{}, errClosed
	}
	k := p.relays[d.relay]
	if k == nil {
		k = &connections{}
		p.relays[d.relay] = k
	}
	var stale []*session
	c := k.pop(time.Now(), &stale)
	granted := c != nil
	if c == nil && k.open < d.relay.Connections {
		k.open++
		granted = true
	}
	var w *waiter
	if !granted {
		w = k.join(d)
	}
	p.mu.Unlock()
	quitAll(stale)
	if granted {
		return grant{c: c}, nil
	}
	return p.wait(ctx, w)
}

// give returns a connection that may be used again. Next is the one whose envelope is under way on it, if
// any.
func (p *pool) give(relay Relay, c *session, next *waiter) {
	c.idleSince = time.Now()
	p.mu.Lock()
	k := p.relays[relay]
	kept := true
	switch {
	case next != nil:
		if kept = !next.gone; kept {
			next.turn <- grant{c: c, t: next.t}
		}
	case c.worn(c.idleSince):
		kept = false
	case len(k.line) > 0:
		k.next().turn <- grant{c: c}
	case p.closed:
		kept = false
	default:
		k.idle = append(k.idle, c)
	}
	p.mu.Unlock()
	if kept {
		return
	}
	if next != nil {
		c.close()
	} else {
		c.quit(false)
	}
	p.drop(relay, nil)
}

// drop gives the right to a connection back, after one was closed or could not be opened. The one whose
// envelope was lost with it comes before those in line.
func (p *pool) drop(relay Relay, next *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.relays[relay]
	switch {
	case next != nil && !next.gone:
		next.turn <- grant{}
	case len(k.line) > 0:
		k.next().turn <- grant{}
	default:
		k.open--
	}
}

// forget closes the relay's idle connections: one of them turned out dead, and they tend to die together.
func (p *pool) forget(relay Relay) {
	var dead []*session
	p.mu.Lock()
	if k := p.relays[relay]; k != nil { // it may have been reaped meanwhile
		dead, k.idle = k.idle, nil
	}
	p.mu.Unlock()
	for _, c := range dead {
		c.close()
		p.drop(relay, nil)
	}
}

// reap closes idle connections that are past use, or all of them, and forgets relays nobody uses.
func (p *pool) reap(now time.Time, all bool) {
	var old []*session
	p.mu.Lock()
	for relay, k := range p.relays {
		kept := k.idle[:0]
		for _, c := range k.idle {
			if all || c.idleTooLong(now) {
				old = append(old, c)
				k.open--
			} else {
				kept = append(kept, c)
			}
		}
		clear(k.idle[len(kept):])
		k.idle = kept
		if k.open == 0 && len(k.line) == 0 {
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

// pop takes the youngest usable idle connection and moves those that are past use to stale.
func (k *connections) pop(now time.Time, stale *[]*session) *session {
	for len(k.idle) > 0 {
		last := len(k.idle) - 1
		c := k.idle[last]
		k.idle[last] = nil
		k.idle = k.idle[:last]
		if !c.idleTooLong(now) {
			return c
		}
		k.open--
		*stale = append(*stale, c)
	}
	return nil
}

// quitAll closes connections that are no longer the pool's.
func quitAll(cs []*session) {
	for _, c := range cs {
		c.quit(false)
	}
}
