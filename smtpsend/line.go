package smtpsend

import (
	"context"
	"errors"
	"time"
)

// waiter is a message in line for a connection.
type waiter struct {
	d    *delivery
	t    *transaction // begun for it by the message before; nil: none
	turn chan grant   // holds one
	gone bool         // it has given up
}

// chain begins the transaction of the first in line on c, whose message is about to end: its envelope is
// queued to leave with the dot, in one write (RFC 2920 section 3.1). Nil: nobody waits, or something forbids
// it.
func (p *pool) chain(relay Relay, c *session) *waiter {
	if !c.ext.pipelining || c.worn(time.Now()) {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.relays[relay]
	if len(k.line) == 0 || k.unchained || p.closed {
		return nil
	}
	// The message waits for its turn or, having given up, for the lock: nobody else looks at it now.
	first := k.line[0]
	t := newTransaction(first.d, c)
	if first.d.fresh || !t.fitsGroup() || t.fits() != nil {
		return nil
	}
	first.t = t
	t.ahead = true
	t.together()
	return k.next()
}

// unchain ends chaining to a relay that loses what comes with a dot.
func (p *pool) unchain(relay Relay) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.relays[relay].unchained = true
}

// wait stands in line until it is w's turn or ctx ends.
func (p *pool) wait(ctx context.Context, w *waiter) (grant, error) {
	select {
	case g := <-w.turn:
		return g, nil
	case <-ctx.Done():
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

// handBack returns what nobody has used. A connection with an envelope on its way is of no use to anybody
// else.
func (p *pool) handBack(relay Relay, g grant) {
	switch {
	case g.t != nil:
		g.c.close()
		p.drop(relay, nil)
	case g.c != nil:
		p.give(relay, g.c, nil)
	default:
		p.drop(relay, nil)
	}
}

// errAlone says that there is no connection to wait for.
var errAlone = errors.New("no connection of this process is open")

// takeOpen is take for a message that was refused the opening of a connection it had the right to. It waits
// for one that is open. When there is none, those in line try for themselves, or they would wait for nothing.
func (p *pool) takeOpen(ctx context.Context, d *delivery) (grant, error) {
	p.mu.Lock()
	k := p.relays[d.relay]
	k.open--
	var stale []*session
	c := k.pop(time.Now(), &stale)
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

func (k *connections) join(d *delivery) *waiter {
	w := &waiter{d: d, turn: make(chan grant, 1)}
	k.line = append(k.line, w)
	return w
}

// next takes the first out of the line.
func (k *connections) next() *waiter {
	w := k.line[0]
	k.line[0] = nil
	k.line = k.line[1:]
	return w
}

// leave is for who gives up, in the line or with his envelope already under way.
func (k *connections) leave(w *waiter) {
	w.gone = true
	for i := range k.line {
		if k.line[i] == w {
			k.line = append(k.line[:i], k.line[i+1:]...)
			return
		}
	}
}
