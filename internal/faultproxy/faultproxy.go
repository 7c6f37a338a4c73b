package faultproxy

import (
	"bytes"
	"net"
	"sync"
	"time"
)

// TB is what a test gives to New; testing.TB is one.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Proxy passes bytes between its clients and one server. It starts healthy. It is safe for concurrent use.
type Proxy struct {
	network, server string
	listener        net.Listener

	mu      sync.Mutex
	changed *sync.Cond // the state below changed
	conns   map[net.Conn]bool
	down    bool
	hung    bool
	closed  bool
	delay   time.Duration
	serving sync.WaitGroup
}

// New starts a proxy in front of a server, given as "tcp" and host:port or as "unix" and a path, and ends it with the test.
func New(t TB, network, server string) *Proxy {
	t.Helper()
	p, err := Listen(network, server)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(p.Close)
	return p
}

// Listen is New without a test. Close ends the proxy.
func Listen(network, server string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{network: network, server: server, listener: l, conns: make(map[net.Conn]bool)}
	p.changed = sync.NewCond(&p.mu)
	p.serving.Go(p.accept)
	return p, nil
}

// Addr is the host:port clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut breaks every connection there is, once; new ones work.
func (p *Proxy) Cut() { p.set(func() { p.cut() }) }

// Down breaks every connection and refuses new ones until Up.
func (p *Proxy) Down() { p.set(func() { p.down = true; p.cut() }) }

// Hang keeps connections open, and accepts new ones, but passes nothing on until Up.
func (p *Proxy) Hang() { p.set(func() { p.hung = true }) }

// Delay lets every piece of data, in either direction, arrive d later, as a long line does: pieces that leave one behind the other arrive
// one behind the other. Zero: no delay.
func (p *Proxy) Delay(d time.Duration) { p.set(func() { p.delay = d }) }

// Up makes everything work again; what was held back by Hang is passed on.
func (p *Proxy) Up() { p.set(func() { p.down, p.hung, p.delay = false, false, 0 }) }

func (p *Proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.changed.Broadcast()
}

// cut resets the connections rather than ending them politely, as a dying machine or firewall would.
func (p *Proxy) cut() {
	for c := range p.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close() // its pipe notices
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.serving.Go(func() { p.serve(client) })
	}
}

// serve connects a client with the server until either side ends.
func (p *Proxy) serve(client net.Conn) {
	if !p.track(client) {
		return
	}
	defer p.forget(client)
	server, err := net.Dial(p.network, p.server)
	if err != nil {
		return
	}
	if !p.track(server) {
		return
	}
	defer p.forget(server)
	var both sync.WaitGroup
	both.Go(func() { p.pipe(server, client); _ = server.Close() })
	both.Go(func() { p.pipe(client, server); _ = client.Close() })
	both.Wait()
}

// track notes a connection, or closes it when the proxy is down.
func (p *Proxy) track(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down || p.closed {
		_ = c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) forget(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	_ = c.Close()
}

// piece is data on its way.
type piece struct {
	data []byte
	due  time.Time
}

// pipe copies until either side ends. What was read before the end still arrives.
func (p *Proxy) pipe(to, from net.Conn) {
	line := make(chan piece, 1024)
	var arriving sync.WaitGroup
	arriving.Go(func() { p.deliver(to, from, line) })
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			line <- piece{bytes.Clone(buf[:n]), time.Now().Add(p.lag())}
		}
		if err != nil {
			break
		}
	}
	close(line)
	arriving.Wait()
}

// deliver writes each piece when it is due. When it cannot, it ends the reading.
func (p *Proxy) deliver(to, from net.Conn, line <-chan piece) {
	failed := false
	for next := range line {
		p.obstruct(next.due)
		if failed {
			continue
		}
		if _, err := to.Write(next.data); err != nil {
			failed = true
			_ = from.Close()
		}
	}
}

func (p *Proxy) lag() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delay
}

// obstruct is where a piece of data meets the trouble that was asked for: it waits while the proxy hangs, then until it is due.
func (p *Proxy) obstruct(due time.Time) {
	p.mu.Lock()
	for p.hung && !p.closed {
		p.changed.Wait()
	}
	p.mu.Unlock()
	time.Sleep(time.Until(due))
}

// Close breaks every connection, stops listening and waits until all is quiet.
func (p *Proxy) Close() {
	p.set(func() { p.closed = true; p.cut() })
	_ = p.listener.Close()
	p.serving.Wait()
}
