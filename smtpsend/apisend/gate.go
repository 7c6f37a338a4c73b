package apisend

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/postroom/postroom/smtpsend"
)

// errClosed is the error for net/http when it reads a body on after its exchange has ended.
var errClosed = errors.New("the exchange has ended")

// gate is the body of a request. It holds back the last byte until the marks are set.
type gate struct {
	ctx    context.Context //nolint:containedctx // of the exchange
	body   []byte
	marks  func(context.Context) error // nil if none
	opened func()                      // called when the last byte leaves

	read int // only by Read

	mu       sync.Mutex
	closed   bool
	released time.Time // when the last byte left; zero if it has not
	aborted  error     // why the marks failed
}

// Read implements [io.Reader].
func (g *gate) Read(p []byte) (int, error) {
	if rest := g.body[g.read:]; len(rest) > 1 {
		n := copy(p, rest[:len(rest)-1])
		g.read += n
		return n, nil
	} else if len(rest) == 0 {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	if err := g.open(); err != nil {
		return 0, err
	}
	n := copy(p, g.body[g.read:])
	g.read += n
	return n, nil
}

// open sets the marks, unless the exchange has ended. Concurrent questions about its state wait for them.
func (g *gate) open() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return errClosed
	case g.aborted != nil:
		return g.aborted
	}
	if g.marks != nil {
		if err := g.marks(g.ctx); err != nil {
			g.aborted = err
			return err
		}
	}
	g.released = time.Now()
	g.opened()
	return nil
}

// Close implements [io.Closer].
func (g *gate) Close() error { return nil }

// end ends the exchange: the last byte does not leave any more. It reports whether it has left, and why the
// marks were not set, if they failed.
func (g *gate) end() (released bool, aborted error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	return !g.released.IsZero(), g.aborted
}

// marksOf returns the function to call before the last byte of a request to some of the recipients.
func marksOf(m smtpsend.Message, to []string) func(context.Context) error {
	return func(ctx context.Context) error {
		if m.BeforeDot != nil {
			if err := m.BeforeDot(ctx, to); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if m.AtDot != nil {
			return m.AtDot()
		}
		return nil
	}
}
