package smtpsend

import (
	"context"
	"slices"
	"sync"
	"time"
)

// pool keeps each relay's connections: at most Relay.Connections open. The most recently used connection is
// used first, so that the others become idle. When all are busy, a message waits in line. There the message
// before may send its envelope along (chain). Bulk mail waits behind other mail, and keeps some connections
// free for it (Reserved).
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
	unchained bool // the relay has lost an envelope that came with a dot: chain no more
}

// grant is a connection, or the right to open one. It is returned by give or drop.
type grant struct {
	c *session     // nil to open one
	t *transaction // on c, with its envelope sent; nil if none was begun
}

func newPool() *pool { return &pool{relays: map[Relay]*connections{}} }

// take returns an idle connection or the right to open one, or waits for either.
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
	var w *waiter
	var c *session
	var stale []*session
	if k.admits(d) {
		c, stale = k.pop(time.Now())
	}
	switch {
	case c != nil:
	case k.admits(d) && k.open < d.relay.Connections:
		k.open++
	default:
		w = k.join(d)
	}
	p.mu.Unlock()
	quitAll(stale)
	if w != nil {
		return p.wait(ctx, w)
	}
	return grant{c: c}, nil
}

// admits reports whether a message may use a further connection.
func (k *connections) admits(d *delivery) bool {
	return k.open-len(k.idle) < d.share().Connections
}

// give returns a connection that may be used again. next is the message whose envelope was sent on it, if
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
	case k.hasNext():
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

// drop returns the right to a connection, after one was closed or could not be opened. next, whose envelope
// was lost with it, comes before those in line.
func (p *pool) drop(relay Relay, next *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.relays[relay]
	switch {
	case next != nil && !next.gone:
		next.turn <- grant{}
	case k.hasNext():
		k.next().turn <- grant{}
	default:
		k.open--
	}
}

// forget closes the relay's idle connections: one of them was dead, and they tend to die together.
func (p *pool) forget(relay Relay) {
	var dead []*session
	p.mu.Lock()
	if k := p.relays[relay]; k != nil { // it may have been reaped since
		dead, k.idle = k.idle, nil
	}
	p.mu.Unlock()
	for _, c := range dead {
		c.close()
		p.drop(relay, nil)
	}
}

// reap closes idle connections that are too old, or all of them, and removes relays that are not in use.
func (p *pool) reap(now time.Time, all bool) {
	var old []*session
	p.mu.Lock()
	for relay, k := range p.relays {
		k.idle = slices.DeleteFunc(k.idle, func(c *session) bool {
			if !all && !c.idleTooLong(now) {
				return false
			}
			old = append(old, c)
			k.open--
			return true
		})
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

// pop takes the most recently used idle connection. It also takes out the ones that are too old: stale.
func (k *connections) pop(now time.Time) (c *session, stale []*session) {
	for last := len(k.idle) - 1; last >= 0; last-- {
		c := k.idle[last]
		k.idle[last] = nil
		k.idle = k.idle[:last]
		if !c.idleTooLong(now) {
			return c, stale
		}
		k.open--
		stale = append(stale, c)
	}
	return nil, stale
}

// quitAll closes connections that are no longer the pool's.
func quitAll(cs []*session) {
	for _, c := range cs {
		c.quit(false)
	}
}
