package smtpd

import (
	"context"
	"net"
	"net/netip"
	"time"
)

// ServeFrom serves a connection as if it came from an address.
func (i *Inlet) ServeFrom(conn net.Conn, remote netip.Addr) {
	w := newWire(conn, i.pace())
	pass, ok := i.enter(w, listener{limiter: i.newLimiter("test")}, remote)
	if !ok {
		panic("no room for a connection")
	}
	go func() {
		defer i.leave(w, pass)
		(&session{Inlet: i, wire: w, remote: remote, began: time.Now()}).serve(context.Background(), false)
	}()
}

// Converse holds a whole conversation on a connection, with a client that is logged in already.
func (i *Inlet) Converse(conn net.Conn, token string) {
	w := newWire(conn, i.pace())
	s := &session{Inlet: i, wire: w, remote: netip.IPv6Loopback(), began: time.Now(), greeted: true}
	s.login = &login{token: token, checked: time.Now()}
	s.serve(context.Background(), false)
	w.close()
}

// ConverseBounces holds a whole conversation with a server that brings mail back.
func (i *Inlet) ConverseBounces(conn net.Conn, lmtp bool) {
	w := newWire(conn, i.pace())
	(&session{Inlet: i, wire: w, remote: netip.IPv6Loopback(), began: time.Now(), lmtp: lmtp}).serve(
		context.Background(), false)
	w.close()
}
