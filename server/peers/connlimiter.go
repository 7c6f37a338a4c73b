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

// settled is the age from which a stranger's connection makes room for a new one of its network. Younger ones
// may be about to prove themselves, so the new one is refused.
const settled = 10 * time.Second

// quietFor is the least time between two lines of log.
const quietFor = time.Minute

// GateLimits are the limits of a gate. Zero values mean none.
type GateLimits struct {
	Connections int // at once
	PerNetwork  int // at once of strangers of one network
	// Count counts connections by result: served, evicted, refused; nil: nothing is counted
	Count *prometheus.CounterVec
	// Setting is the name of the setting of Connections, for the log
	Setting string
	Logger  *slog.Logger // nil: nothing is logged
}

// Gate admits connections. It is safe for concurrent use.
type Gate struct {
	limits GateLimits

	mu        sync.Mutex
	open      int
	strangers list.List // of *Pass, oldest first
	networks  map[netip.Prefix]*network
	closed    int       // connections that were refused or evicted since the last line of log
	logged    time.Time // the last line
}

// network is what a gate keeps of a network with connections.
type network struct {
	strangers, proven list.List // of *Pass, oldest first
}

// Pass is one admitted connection.
type Pass struct {
	gate    *Gate
	cut     func()
	entered time.Time
	// all below: guarded by gate.mu
	network        netip.Prefix // invalid: not known, or not counted
	inAll, inOwn   *list.Element
	proven, closed bool
}

// NewGate returns a gate.
func NewGate(l GateLimits) *Gate {
	l.Logger = cmp.Or(l.Logger, slog.New(slog.DiscardHandler))
	return &Gate{limits: l, networks: map[netip.Prefix]*network{}}
}

// Network returns the unit by which strangers are counted: an IPv4 address, or the /64 in which an IPv6 host
// can choose any address. It is invalid for an invalid address.
func Network(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := 64
	if addr.Is4() {
		bits = 32
	}
	prefix, _ := addr.Prefix(bits)
	return prefix
}

// Enter admits a connection, or returns nil. An invalid address is not counted by network: it is that of a
// proxy, or not known yet. cut closes the connection. It is called without locks if the connection must make
// room. The caller calls Leave in any case.
func (g *Gate) Enter(addr netip.Addr, cut func(), now time.Time) *Pass {
	p := &Pass{gate: g, cut: cut, entered: now}
	g.mu.Lock()
	old, ok := g.admit(p, Network(addr), true)
	g.note(old, ok, p, now)
	g.mu.Unlock()
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
	g := p.gate
	g.mu.Lock()
	if p.closed || p.network.IsValid() {
		defer g.mu.Unlock()
		return !p.closed
	}
	g.remove(p)
	p.closed = false
	old, ok := g.admit(p, Network(addr), false)
	p.closed = !ok
	g.note(old, ok, p, now)
	g.mu.Unlock()
	if old != nil {
		old.cut()
	}
	return ok
}

// admit adds p to the lists. It returns the pass that was removed to make room, if any, and false if there is
// no room.
func (g *Gate) admit(p *Pass, from netip.Prefix, first bool) (old *Pass, ok bool) {
	if most := g.limits.PerNetwork; most > 0 && from.IsValid() && g.networks[from] != nil &&
		g.networks[from].strangers.Len() >= most {
		oldest := g.networks[from].strangers.Front().Value.(*Pass)
		if p.entered.Sub(oldest.entered) < settled {
			return nil, false
		}
		old = oldest
	} else if most := g.limits.Connections; first && most > 0 && g.open >= most {
		if old = g.oldest(from); old == nil {
			return nil, false
		}
	}
	if old != nil {
		g.remove(old)
		old.closed = true
	}
	g.add(p, from)
	return old, true
}

// oldest returns the connection that makes room for one of a network: the oldest of a stranger, or the oldest
// of another network that holds more than half of all; nil: none.
func (g *Gate) oldest(from netip.Prefix) *Pass {
	if front := g.strangers.Front(); front != nil {
		return front.Value.(*Pass)
	}
	for prefix, own := range g.networks {
		if prefix != from && own.proven.Len() > g.limits.Connections/2 {
			return own.proven.Front().Value.(*Pass)
		}
	}
	return nil
}

// add puts p into the lists as a stranger.
func (g *Gate) add(p *Pass, from netip.Prefix) {
	g.open++
	p.network, p.inAll = from, g.strangers.PushBack(p)
	if !from.IsValid() {
		return
	}
	if g.networks[from] == nil {
		g.networks[from] = new(network)
	}
	p.inOwn = g.networks[from].strangers.PushBack(p)
}

// remove takes p out of all lists. It counts no more.
func (g *Gate) remove(p *Pass) {
	g.open--
	own := g.networks[p.network]
	switch {
	case !p.proven:
		g.strangers.Remove(p.inAll)
		if own != nil {
			own.strangers.Remove(p.inOwn)
		}
	case own != nil:
		own.proven.Remove(p.inOwn)
	}
	if own != nil && own.strangers.Len() == 0 && own.proven.Len() == 0 {
		delete(g.networks, p.network)
	}
}

// Prove says that the client has proven who it is. Its connection no longer makes room for others, unless its
// network holds more than half of all. It may be called often, and on nil.
func (p *Pass) Prove() {
	if p == nil {
		return
	}
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	own := g.networks[p.network]
	if p.proven || p.closed {
		return
	}
	g.strangers.Remove(p.inAll)
	if own != nil {
		own.strangers.Remove(p.inOwn)
		p.inOwn = own.proven.PushBack(p)
	}
	p.proven = true
}

// Leave ends a connection. It may be called more than once, and on nil.
func (p *Pass) Leave() {
	if p == nil {
		return
	}
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	if !p.closed {
		p.closed = true
		p.gate.remove(p)
	}
}

// Open returns the number of connections.
func (g *Gate) Open() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// note counts what became of p and of the pass that made room for it, and logs at most once in quiet.
func (g *Gate) note(old *Pass, ok bool, p *Pass, now time.Time) {
	result, from := "served", p.network
	if !ok {
		result = "refused"
	}
	if g.limits.Count != nil {
		g.limits.Count.WithLabelValues(result).Inc()
		if old != nil {
			g.limits.Count.WithLabelValues("evicted").Inc()
		}
	}
	if ok && old == nil {
		return
	}
	if old != nil {
		from = old.network
	}
	if g.closed++; now.Sub(g.logged) < quietFor {
		return
	}
	g.limits.Logger.Warn("too many connections: those of clients that have proven nothing are closed", "setting",
		g.limits.Setting, "closed", g.closed, "open", g.open, "last_network", from.String())
	g.logged, g.closed = now, 0
}
