package smtpsend

import (
	"context"
	"errors"
	"slices"
	"time"
)

// waiter is a message in line for a connection.
type waiter struct {
	d    *delivery
	t    *transaction // begun by the message before; nil if none
	turn chan grant   // holds one
	gone bool         // it has given up
}

// chain begins the transaction of the first in line on c, whose message is about to end. Its envelope leaves
// with the dot, in one write (RFC 2920 section 3.1). It returns nil if no message waits, or if it may not.
func (p *pool) chain(relay Relay, c *session) *waiter {
	if !c.ext.pipelining || c.worn(time.Now()) {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.relays[relay]
	if k.unchained || p.closed || !k.hasNext() {
		return nil
	}
	// The message's goroutine waits for its turn or, having given up, for the lock. No other uses it now.
	first := k.line[0]
	t := newTransaction(first.d, c)
	if first.d.fresh || !t.fitsGroup() || t.fits() != nil {
		return nil
	}
	first.t = t
	t.ahead = true
	first.d.record.reused(c)
	t.together()
	return k.next()
}

// unchain ends chaining to a relay that loses commands sent with a dot.
func (p *pool) unchain(relay Relay) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.relays[relay].unchained = true
}

// errNoSlot is the cause when no connection became free in time.
var errNoSlot = errors.New("all connections to the relay are busy")

// wait waits until it is w's turn, the message's patience ends, or ctx ends.
func (p *pool) wait(ctx context.Context, w *waiter) (grant, error) {
	var over <-chan time.Time
	if w.d.m.Patience > 0 {
		timer := time.NewTimer(w.d.m.Patience)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case g := <-w.turn:
		return g, nil
	case <-ctx.Done():
	case <-over:
		if p.leaveLine(w) {
			return grant{}, errNoSlot
		}
		select { // its envelope is on the way, or its turn has just come
		case g := <-w.turn:
			return g, nil
		case <-ctx.Done():
		}
	}
	p.mu.Lock()
	p.relays[w.d.relay].leave(w)
	p.mu.Unlock()
	select {
	case g := <-w.turn: // it was granted in the same moment: pass it on
		p.handBack(w.d.relay, g)
	default:
	}
	return grant{}, context.Cause(ctx)
}

// leaveLine takes a message out of the line. It reports false if it is no longer there.
func (p *pool) leaveLine(w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.relays[w.d.relay]
	if !slices.Contains(k.line, w) {
		return false
	}
	k.leave(w)
	return true
}

// handBack returns a grant that was not used. A connection with an envelope on it is closed.
func (p *pool) handBack(relay Relay, g grant) {
	if g.c != nil && g.t == nil {
		p.give(relay, g.c, nil)
		return
	}
	if g.c != nil {
		g.c.close()
	}
	p.drop(relay, nil)
}

// errAlone is the cause when there is no connection to wait for.
var errAlone = errors.New("no connection of this process is open")

// takeOpen is take for a message whose new connection Options.Admit refused. It waits for an open one. When
// there is none, the first in line tries to open one, because nothing else would wake it.
func (p *pool) takeOpen(ctx context.Context, d *delivery) (grant, error) {
	p.mu.Lock()
	k := p.relays[d.relay]
	k.open--
	var c *session
	var stale []*session
	if k.admits(d) {
		c, stale = k.pop(time.Now())
	}
	var w *waiter
	switch {
	case c != nil:
	case k.open > 0:
		w = k.join(d)
	case len(k.line) > 0:
		k.open++
		k.next().turn <- grant{}
	}
	p.mu.Unlock()
	quitAll(stale)
	switch {
	case c != nil:
		return grant{c: c}, nil
	case w != nil:
		return p.wait(ctx, w)
	}
	return grant{}, errAlone
}

// join puts a message in line: bulk mail at the end, other mail before it.
func (k *connections) join(d *delivery) *waiter {
	w := &waiter{d: d, turn: make(chan grant, 1)}
	at := slices.IndexFunc(k.line, func(other *waiter) bool { return other.d.m.Bulk && !d.m.Bulk })
	if at < 0 {
		at = len(k.line)
	}
	k.line = slices.Insert(k.line, at, w)
	return w
}

// hasNext reports whether a connection in use, which its message is about to return, goes to the first in
// line.
func (k *connections) hasNext() bool {
	if len(k.line) == 0 {
		return false
	}
	return k.open-len(k.idle)-1 < k.line[0].d.share().Connections
}

// next takes the first out of the line.
func (k *connections) next() *waiter {
	w := k.line[0]
	k.line[0] = nil
	k.line = k.line[1:]
	return w
}

// leave is for a message that gives up, in line or with its envelope already sent.
func (k *connections) leave(w *waiter) {
	w.gone = true
	k.line = slices.DeleteFunc(k.line, func(other *waiter) bool { return other == w })
}
