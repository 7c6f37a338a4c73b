package smtpd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime/debug"
	"time"
)

// refuseTimeout is how long writing a refusal to a connection too many may take.
const refuseTimeout = 2 * time.Second

// accept takes connections until the listener is closed. A failure to accept one (out of file descriptors) is no reason to stop.
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
		i.log.notAccepted(err, pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// temporary tells errors of accept(2) about one connection or a lack of resources from those about the listener itself.
func temporary(err error) bool {
	var e interface{ Temporary() bool }
	return errors.As(err, &e) && e.Temporary()
}

// admit serves a connection in a goroutine of its own, if there is room for it.
func (i *Inlet) admit(ctx context.Context, conn net.Conn, l listener) {
	w := newWire(conn, i.opts.IdleTimeout)
	if !i.enter(w) {
		i.metrics.connections.WithLabelValues("refused").Inc()
		go refuse(conn, l.implicit)
		return
	}
	i.metrics.connections.WithLabelValues("served").Inc()
	go func() {
		defer i.leave(w)
		s := &session{Inlet: i, wire: w, remote: addressOf(conn), began: time.Now(), lmtp: l.lmtp}
		defer s.recover(ctx)
		s.serve(ctx, l.implicit)
	}()
}

// enter registers a connection, unless there are too many or no more are wanted.
func (i *Inlet) enter(w *wire) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopping || len(i.open) >= i.opts.MaxConnections {
		return false
	}
	i.open[w] = true
	i.serving.Add(1)
	i.metrics.open.Inc()
	return true
}

func (i *Inlet) leave(w *wire) {
	w.close()
	i.mu.Lock()
	delete(i.open, w)
	i.mu.Unlock()
	i.metrics.open.Dec()
	i.serving.Done()
}

// refuse tells a client to come back. One that expects TLS would not understand, so it is only cut.
func refuse(conn net.Conn, implicit bool) {
	defer conn.Close()
	if implicit || conn.SetWriteDeadline(time.Now().Add(refuseTimeout)) != nil {
		return
	}
	fmt.Fprintf(conn, "%s\r\n", tooBusy.lines()) // a client that is gone needs no answer
}

// recover keeps a fault in one conversation from ending the others.
func (s *session) recover(ctx context.Context) {
	if p := recover(); p != nil {
		s.log.panicked(ctx, s.remote, p, debug.Stack())
		s.wire.reply(internalError)
		s.wire.flush()
	}
}

func addressOf(conn net.Conn) netip.Addr {
	ap, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{} // access takes it as an address that no restriction names
	}
	return ap.Addr().Unmap()
}
