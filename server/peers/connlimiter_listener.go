package peers

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// Listen returns a listener that admits connections through the limiter. The given proxies count only in
// total: their connections don't distinguish clients. With the PROXY protocol, the client's address counts as
// soon as it is known.
func (c *ConnLimiter) Listen(l net.Listener, trusted *Proxies) net.Listener {
	return &limitedListener{Listener: l, limiter: c, trusted: trusted}
}

type limitedListener struct {
	net.Listener
	limiter *ConnLimiter
	trusted *Proxies
}

// Accept implements net.Listener. It closes connections for which there is no room.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &admitted{Conn: conn}
		cut := func() {
			c.cut.Store(true)
			_ = conn.Close()
		}
		if c.pass = l.limiter.Enter(l.address(conn), cut, time.Now()); c.pass == nil {
			cut() // nothing was read
			continue
		}
		WhenKnown(conn, func(client Client) {
			if !c.pass.Identify(client.Addr, time.Now()) {
				cut()
			}
		})
		return c, nil
	}
}

// address returns the address that a connection counts for. It is invalid if the connection counts only in
// total, or if its client is not known yet.
func (l *limitedListener) address(conn net.Conn) netip.Addr {
	if Waits(conn) {
		return netip.Addr{}
	}
	client, err := OfConn(conn)
	if err != nil || l.trusted.trusts(client.Addr) {
		return netip.Addr{}
	}
	return client.Addr
}

// admitted is a connection that counts.
type admitted struct {
	net.Conn
	pass *Pass
	cut  atomic.Bool
}

// Read implements net.Conn. Data that came in before the connection was cut, behind the PROXY header for
// example, is not read.
func (c *admitted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.cut.Load() {
		return 0, net.ErrClosed
	}
	return n, err
}

// Close implements net.Conn.
func (c *admitted) Close() error {
	c.pass.Leave()
	return c.Conn.Close()
}

// NetConn returns the connection below, as tls.Conn's method does.
func (c *admitted) NetConn() net.Conn { return c.Conn }

// CloseWrite implements the half-close of TCP, if the connection has it.
func (c *admitted) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// passKey is the key of the Pass in the context of a connection.
type passKey struct{}

// PassContext keeps the pass of a connection for Prove. It is for http.Server.
func PassContext(ctx context.Context, conn net.Conn) context.Context {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	if c, ok := conn.(*admitted); ok {
		return context.WithValue(ctx, passKey{}, c.pass)
	}
	return ctx
}

// Prove says that the client of a request has proven who it is.
func Prove(ctx context.Context) {
	p, _ := ctx.Value(passKey{}).(*Pass)
	p.Prove()
}
