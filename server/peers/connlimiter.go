package peers

import (
	"cmp"
	"container/list"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// settled is the age from which an unauthenticated client's connection makes room for a new one from its
// network. Younger connections may be about to prove themselves, so the new one is refused.
const settled = 10 * time.Second

// quietFor is the least time between two lines of log.
const quietFor = time.Minute

// ConnLimits are the limits of a limiter. Zero values mean none.
type ConnLimits struct {
	Connections int // at once
	PerNetwork  int // connections of one network's unauthenticated clients
	// Count counts connections by result: served, evicted, refused; nil if nothing is counted
	Count *prometheus.CounterVec
	// Setting is the name of the setting of Connections, for the log
	Setting string
	Logger  *slog.Logger // nil if nothing is logged
}

// ConnLimiter admits connections. It is safe for concurrent use.
type ConnLimiter struct {
	limits ConnLimits

	mu        sync.Mutex
	open      int
	anonymous list.List // of *Pass, oldest first
	networks  map[netip.Prefix]*network
	closed    int       // connections that were refused or evicted since the last line of log
	logged    time.Time // the last line
}

// network is a limiter's record of a network with connections.
type network struct {
	anonymous, proven list.List // of *Pass, oldest first
}

// Pass is one admitted connection.
type Pass struct {
	limiter *ConnLimiter
	cut     func()
	entered time.Time
	// all below: guarded by limiter.mu
	network        netip.Prefix // invalid: not known, or not counted
	inAll, inOwn   *list.Element
	proven, closed bool
}

// NewConnLimiter returns a limiter.
func NewConnLimiter(l ConnLimits) *ConnLimiter {
	l.Logger = cmp.Or(l.Logger, slog.New(slog.DiscardHandler))
	return &ConnLimiter{limits: l, networks: map[netip.Prefix]*network{}}
}

// Network returns the unit for counting unauthenticated clients: an IPv4 address, or the /64 in which an IPv6
// host can choose any address. It is invalid for an invalid address.
func Network(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := 64
	if addr.Is4() {
		bits = 32
	}
	prefix, _ := addr.Prefix(bits)
	return prefix
}

// Enter admits a connection, or returns nil. An invalid address is not counted by network: it belongs to a
// proxy, or is not known yet. cut closes the connection. It is called without locks if the connection must
// make room. The caller calls Leave in any case.
func (c *ConnLimiter) Enter(addr netip.Addr, cut func(), now time.Time) *Pass {
	p := &Pass{limiter: c, cut: cut, entered: now}
	c.mu.Lock()
	old, ok := c.admit(p, Network(addr), true)
	c.note(old, ok, p, now)
	c.mu.Unlock()
	if old != nil {
		old.cut()
	}
	if !ok {
		return nil
	}
	return p
}

// Identify sets the address of a connection that was admitted without one. It returns false if the network
// has too many; the connection has then left.
func (p *Pass) Identify(addr netip.Addr, now time.Time) bool {
	c := p.limiter
	c.mu.Lock()
	if p.closed || p.network.IsValid() {
		defer c.mu.Unlock()
		return !p.closed
	}
	c.remove(p)
	p.closed = false
	old, ok := c.admit(p, Network(addr), false)
	p.closed = !ok
	c.note(old, ok, p, now)
	c.mu.Unlock()
	if old != nil {
		old.cut()
	}
	return ok
}

// admit adds p to the lists. It returns the pass that was removed to make room, if any, and false if there is
// no room.
func (c *ConnLimiter) admit(p *Pass, from netip.Prefix, first bool) (old *Pass, ok bool) {
	if most := c.limits.PerNetwork; most > 0 && from.IsValid() && c.networks[from] != nil &&
		c.networks[from].anonymous.Len() >= most {
		oldest := c.networks[from].anonymous.Front().Value.(*Pass)
		if p.entered.Sub(oldest.entered) < settled {
			return nil, false
		}
		old = oldest
	} else if most := c.limits.Connections; first && most > 0 && c.open >= most {
		if old = c.oldest(from); old == nil {
			return nil, false
		}
	}
	if old != nil {
		c.remove(old)
		old.closed = true
	}
	c.add(p, from)
	return old, true
}

// oldest returns the connection that makes room for one from a network, or nil. That is an unauthenticated
// client's oldest, or the oldest of another network that holds more than half of all.
func (c *ConnLimiter) oldest(from netip.Prefix) *Pass {
	if front := c.anonymous.Front(); front != nil {
		return front.Value.(*Pass)
	}
	for prefix, own := range c.networks {
		if prefix != from && own.proven.Len() > c.limits.Connections/2 {
			return own.proven.Front().Value.(*Pass)
		}
	}
	return nil
}

// add puts p into the lists as an unauthenticated client's.
func (c *ConnLimiter) add(p *Pass, from netip.Prefix) {
	c.open++
	p.network, p.inAll = from, c.anonymous.PushBack(p)
	if !from.IsValid() {
		return
	}
	if c.networks[from] == nil {
		c.networks[from] = new(network)
	}
	p.inOwn = c.networks[from].anonymous.PushBack(p)
}

// remove takes p out of all lists. It counts no more.
func (c *ConnLimiter) remove(p *Pass) {
	c.open--
	own := c.networks[p.network]
	switch {
	case !p.proven:
		c.anonymous.Remove(p.inAll)
		if own != nil {
			own.anonymous.Remove(p.inOwn)
		}
	case own != nil:
		own.proven.Remove(p.inOwn)
	}
	if own != nil && own.anonymous.Len() == 0 && own.proven.Len() == 0 {
		delete(c.networks, p.network)
	}
}

// Prove says that the client has proven who it is. Its connection no longer makes room for others, unless its
// network holds more than half of all. It may be called often, and on nil.
func (p *Pass) Prove() {
	if p == nil {
		return
	}
	c := p.limiter
	c.mu.Lock()
	defer c.mu.Unlock()
	own := c.networks[p.network]
	if p.proven || p.closed {
		return
	}
	c.anonymous.Remove(p.inAll)
	if own != nil {
		own.anonymous.Remove(p.inOwn)
		p.inOwn = own.proven.PushBack(p)
	}
	p.proven = true
}

// Leave ends a connection. It may be called more than once, and on nil.
func (p *Pass) Leave() {
	if p == nil {
		return
	}
	p.limiter.mu.Lock()
	defer p.limiter.mu.Unlock()
	if !p.closed {
		p.closed = true
		p.limiter.remove(p)
	}
}

// Open returns the number of connections.
func (c *ConnLimiter) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// note counts the result of p and of the pass that made room for it, and logs at most once in quiet.
func (c *ConnLimiter) note(old *Pass, ok bool, p *Pass, now time.Time) {
	result, from := "served", p.network
	if !ok {
		result = "refused"
	}
	if c.limits.Count != nil {
		c.limits.Count.WithLabelValues(result).Inc()
		if old != nil {
			c.limits.Count.WithLabelValues("evicted").Inc()
		}
	}
	if ok && old == nil {
		return
	}
	if old != nil {
		from = old.network
	}
	if c.closed++; now.Sub(c.logged) < quietFor {
		return
	}
	c.limits.Logger.Warn("too many connections: closing unauthenticated clients", "setting",
		c.limits.Setting, "closed", c.closed, "open", c.open, "last_network", from.String())
	c.logged, c.closed = now, 0
}
