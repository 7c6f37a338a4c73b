package smtpd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime/debug"
	"time"

	"github.com/postroom/postroom/server/peers"
)

// refuseTimeout bounds the writing of a refusal to a connection beyond the limit.
const refuseTimeout = 2 * time.Second

// accept accepts connections until the listener is closed. It continues after a temporary failure, such as a
// lack of file descriptors.
func (i *Inlet) accept(ctx, sessions context.Context, l listener) error {
	var pause time.Duration
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			i.admit(sessions, conn, l)
			continue
		case errors.Is(err, net.ErrClosed):
			return nil
		case !temporary(err):
			return fmt.Errorf("accept SMTP connections on %s: %w", l.Addr(), err)
		}
		pause = min(max(2*pause, 10*time.Millisecond), time.Second)
		i.log.Warn("smtp connection not accepted", "error", err, "pause", pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// temporary reports whether an error of accept(2) is about one connection or a lack of resources, not the
// listener.
func temporary(err error) bool {
	var e interface{ Temporary() bool }
	return errors.As(err, &e) && e.Temporary()
}

// admit serves a connection in a new goroutine, unless there is no room for it.
func (i *Inlet) admit(ctx context.Context, conn net.Conn, l listener) {
	w := newWire(conn, i.pace())
	var client peers.Client // not known before the PROXY header
	if !peers.Waits(conn) && !l.lmtp {
		client, _ = peers.OfConn(conn) // fails for a PROXY header only
	}
	pass, ok := i.enter(w, l, client.Addr)
	if !ok {
		go refuse(conn, l.implicit)
		return
	}
	go func() {
		defer i.leave(w, pass)
		client, err := peers.OfConn(conn)
		if err != nil || !l.lmtp && !pass.Identify(client.Addr, time.Now()) {
			return
		}
		s := &session{Inlet: i, wire: w, remote: client.Addr, proxyTLS: client.TLS, began: time.Now(),
			lmtp: l.lmtp, pass: pass}
		defer s.recover(ctx)
		s.serve(ctx, l.implicit)
	}()
}

// enter registers a connection. It returns false if the limiter has no room, and while the inlet stops. The
// address is invalid if it is not counted.
func (i *Inlet) enter(w *wire, l listener, remote netip.Addr) (*peers.Pass, bool) {
	pass := l.limiter.Enter(remote, w.cut, time.Now())
	if pass == nil {
		return nil, false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopping {
		pass.Leave()
		return nil, false
	}
	i.open[w] = true
	i.serving.Add(1)
	i.metrics.open.Inc()
	return pass, true
}

func (i *Inlet) leave(w *wire, pass *peers.Pass) {
	w.close()
	pass.Leave()
	i.mu.Lock()
	delete(i.open, w)
	i.mu.Unlock()
	i.metrics.open.Dec()
	i.serving.Done()
}

// refuse sends 421. A client that expects TLS would not understand it, so its connection is only closed.
func refuse(conn net.Conn, implicit bool) {
	defer conn.Close()
	if implicit || conn.SetWriteDeadline(time.Now().Add(refuseTimeout)) != nil {
		return
	}
	fmt.Fprintf(conn, "%s\r\n", tooBusy.lines()) // an error means that the client is gone
}

// recover keeps a panic in one conversation from ending the others.
func (s *session) recover(ctx context.Context) {
	if p := recover(); p != nil {
		s.log.ErrorContext(ctx, "smtp conversation failed", "remote_addr", s.remote, "panic", p, "stack",
			string(debug.Stack()))
		s.wire.reply(internalError)
		s.wire.flush()
	}
}
