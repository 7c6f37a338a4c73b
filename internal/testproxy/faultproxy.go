package testproxy

import (
	"bytes"
	"errors"
	"net"
	"strings"
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
	conns   map[net.Conn]*link
	down    bool
	hung    bool
	mute    bool
	closed  bool
	snap    int // bytes after which a connection breaks; 0 means never
	delay   time.Duration
	shunned map[string]bool // words whose clients are held back
	serving sync.WaitGroup
}

// link is a client's connection, with that to the server.
type link struct{ greeting string } // the first bytes that the client said

// greetingSize is how many bytes of a client's first words are looked at.
const greetingSize = 512

// New starts a proxy in front of a server, given as "tcp" and host:port or as "unix" and a path, and ends it
// with the test.
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
	p := &Proxy{network: network, server: server, listener: l, conns: make(map[net.Conn]*link),
		shunned: make(map[string]bool)}
	p.changed = sync.NewCond(&p.mu)
	p.serving.Go(p.accept)
	return p, nil
}

// Addr is the host:port clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Lead takes new connections to another server, as when one came back at another port. Those there are stay.
func (p *Proxy) Lead(server string) { p.set(func() { p.server = server }) }

// Cut breaks every connection there is, once; new ones work.
func (p *Proxy) Cut() { p.set(func() { p.cut() }) }

// Down breaks every connection and refuses new ones until Up.
func (p *Proxy) Down() { p.set(func() { p.down = true; p.cut() }) }

// Hang keeps connections open, and accepts new ones, but passes nothing on until Up.
func (p *Proxy) Hang() { p.set(func() { p.hung = true }) }

// Mute passes on what clients say and holds back what the server answers until Up. Followed by Cut, the
// server has done what the client will never hear of.
func (p *Proxy) Mute() { p.set(func() { p.mute = true }) }

// Snap breaks each connection made from now on once its client has said so many bytes, in the middle of a
// word if need be. Zero if none.
func (p *Proxy) Snap(bytes int) { p.set(func() { p.snap = bytes }) }

// Delay lets every piece of data, in either direction, arrive d later, as a long line does: pieces that leave
// one behind the other arrive one behind the other. Zero means no delay.
func (p *Proxy) Delay(d time.Duration) { p.set(func() { p.delay = d }) }

// HangOn is Hang for those clients alone who said word within the first 512 bytes that arrived together, as
// the name with which they log in. It ends with CutOff of the same word, or with Up. Several words may be
// held back at a time.
func (p *Proxy) HangOn(word string) { p.set(func() { p.shunned[word] = true }) }

// CutOff breaks the connections of clients who said word in their first bytes, and ends its HangOn. Data that
// was held back never arrives. New connections from these clients work.
func (p *Proxy) CutOff(word string) {
	p.set(func() {
		delete(p.shunned, word)
		for c, l := range p.conns {
			if strings.Contains(l.greeting, word) {
				reset(c)
			}
		}
	})
}

// Up makes everything work again; what was held back by Hang, HangOn and Mute is passed on. A connection that
// Snap has in hand still breaks.
func (p *Proxy) Up() {
	p.set(func() {
		p.down, p.hung, p.mute, p.snap, p.delay = false, false, false, 0, 0
		clear(p.shunned)
	})
}

func (p *Proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.changed.Broadcast()
}

// cut resets the connections rather than ending them politely, as a dying machine or firewall would.
func (p *Proxy) cut() {
	for c := range p.conns {
		reset(c) // its pipe notices
	}
}

func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
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
	l := &link{}
	if !p.track(client, l) {
		return
	}
	defer p.forget(client)
	address, snap := p.goal()
	server, err := net.Dial(p.network, address)
	if err != nil {
		return
	}
	if !p.track(server, l) {
		return
	}
	defer p.forget(server)
	var both sync.WaitGroup
	both.Go(func() {
		p.pipe(wire{link: l, to: server, from: client, left: snap, snaps: snap > 0})
		_ = server.Close()
	})
	both.Go(func() { p.pipe(wire{link: l, to: client, from: server, answers: true}); _ = client.Close() })
	both.Wait()
}

// goal is where a new connection goes, and after how many bytes it breaks.
func (p *Proxy) goal() (server string, snap int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.server, p.snap
}

// track notes a connection, or closes it when the proxy is down.
func (p *Proxy) track(c net.Conn, l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down || p.closed {
		_ = c.Close()
		return false
	}
	p.conns[c] = l
	return true
}

func (p *Proxy) forget(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	_ = c.Close()
}

// wire is one direction of a connection.
type wire struct {
	link     *link
	to, from net.Conn
	answers  bool // it carries what the server says
	snaps    bool // it breaks after left more bytes
	left     int
}

// piece is data on its way.
type piece struct {
	data []byte
	due  time.Time
}

// pipe copies until either side ends. What was read before the end still arrives.
func (p *Proxy) pipe(w wire) {
	line := make(chan piece, 1024)
	var arriving sync.WaitGroup
	arriving.Go(func() { p.deliver(w, line) })
	buf := make([]byte, 32<<10)
	for {
		n, err := w.from.Read(buf)
		if n > 0 {
			line <- piece{bytes.Clone(buf[:n]), time.Now().Add(p.hear(w, buf[:n]))}
		}
		if err != nil {
			break
		}
	}
	close(line)
	arriving.Wait()
}

// deliver writes each piece when it is due. When it cannot, it ends the reading.
func (p *Proxy) deliver(w wire, line <-chan piece) {
	failed := false
	for next := range line {
		p.obstruct(next.due, w)
		if failed {
			continue
		}
		if err := w.write(next.data); err != nil {
			failed = true
			_ = w.from.Close()
		}
	}
}

// errSnapped ends a connection that Snap has in hand.
var errSnapped = errors.New("snapped")

// write passes data on, up to the byte at which the connection breaks. What came before that byte has time to
// arrive.
func (w *wire) write(data []byte) error {
	if !w.snaps || len(data) < w.left {
		w.left -= len(data)
		_, err := w.to.Write(data)
		return err
	}
	_, _ = w.to.Write(data[:w.left]) // it breaks one way or the other
	_ = w.to.Close()
	reset(w.from)
	return errSnapped
}

// hear notes what a client says first, and returns how long the data is on its way.
func (p *Proxy) hear(w wire, data []byte) (delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !w.answers && w.link.greeting == "" {
		w.link.greeting = string(data[:min(len(data), greetingSize)])
	}
	return p.delay
}

// shuns reports whether a link is held back by HangOn.
func (p *Proxy) shuns(l *link) bool {
	for word := range p.shunned {
		if strings.Contains(l.greeting, word) {
			return true
		}
	}
	return false
}

// obstruct applies the requested failure to a piece of data. It waits while the proxy hangs, or holds this
// client or all answers back, then until it is due.
func (p *Proxy) obstruct(due time.Time, w wire) {
	p.mu.Lock()
	for (p.hung || p.mute && w.answers || p.shuns(w.link)) && !p.closed {
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
