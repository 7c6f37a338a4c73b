package faultproxy

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

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
func New(t testing.TB, network, server string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{network: network, server: server, listener: l, conns: make(map[net.Conn]bool)}
	p.changed = sync.NewCond(&p.mu)
	p.serving.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr is the host:port clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut breaks every connection there is, once; new ones work.
func (p *Proxy) Cut() { p.set(func() { p.cut() }) }

// Down breaks every connection and refuses new ones until Up.
func (p *Proxy) Down() { p.set(func() { p.down = true; p.cut() }) }

// Hang keeps connections open, and accepts new ones, but passes nothing on until Up.
func (p *Proxy) Hang() { p.set(func() { p.hung = true }) }

// Delay holds back every piece of data for d; zero: not at all.
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

// pipe copies, waiting before each piece as long as the proxy hangs or delays.
func (p *Proxy) pipe(to io.Writer, from io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		p.obstruct()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// obstruct is where a piece of data meets the trouble that was asked for: it waits while the proxy hangs, then for the delay.
func (p *Proxy) obstruct() {
	p.mu.Lock()
	for p.hung && !p.closed {
		p.changed.Wait()
	}
	delay := p.delay
	p.mu.Unlock()
	time.Sleep(delay)
}

func (p *Proxy) close() {
	p.set(func() { p.closed = true; p.cut() })
	_ = p.listener.Close()
	p.serving.Wait()
}
