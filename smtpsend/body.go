package smtpsend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/postroom/postroom/fault"
)

// Body is the content of a message. It need not be in memory: one of more than 32 KiB is opened when the
// relay asks for it, anew for each transaction and each relay, is read once from start to end while it
// leaves, and is closed. A smaller one is read before the relay is asked.
type Body interface {
	// Size is how many octets reading it gives. The relay is told so (SIZE, RFC 1870), and content that proves
	// to have more or fewer is not sent.
	Size() int64

	// Open begins to read. Reading must end with the context. An error of it or of reading means that the
	// message is not delivered: it fails for good, or for now when the error is a fault of kind Unavailable.
	Open(ctx context.Context) (io.ReadCloser, error)
}

// Bytes is a Body in memory. It is read, never changed.
type Bytes []byte

// Size implements Body.
func (b Bytes) Size() int64 { return int64(len(b)) }

// Open implements Body.
func (b Bytes) Open(context.Context) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(b)), nil
}

// load takes a small content into memory, as the wire wants it.
func (d *delivery) load(ctx context.Context) *Error {
	d.size = d.m.Body.Size()
	if d.size > blockSize {
		return nil
	}
	data, here := d.m.Body.(Bytes)
	if !here {
		var err error
		if data, err = readWhole(ctx, d.m.Body); err != nil {
			return d.s.contentError(ctx, PhaseCheck, err)
		}
	}
	var doubled int
	d.whole, doubled = wireBody(data)
	d.size = int64(len(d.whole) + 2 - doubled) // doubled dots don't count, RFC 1870 section 3
	return nil
}

func readWhole(ctx context.Context, b Body) ([]byte, error) {
	content, err := b.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer content.Close() //nolint:errcheck // it was read
	data := make([]byte, b.Size()+1)
	n, err := readFull(content, data)
	if err != nil && err != io.EOF { //nolint:errorlint // readFull gives a reader's own
		return nil, err
	}
	return data[:n], missized(b.Size() - int64(n))
}

// readFull reads until buf is full or there is an error: the reader's own, so that content that breaks off is
// told from one that ends.
func readFull(content io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var m int
		m, err = content.Read(buf[n:])
		n += m
	}
	return n, err
}

// missized is content that has not the size it was said to have, by how many octets it lacks.
func missized(lacks int64) error {
	switch {
	case lacks > 0:
		return fmt.Errorf("it ends %d octets early", lacks)
	case lacks < 0:
		return errors.New("it does not end where it should")
	}
	return nil
}

// contentError is content that can't be read. It is nobody's fault but ours, and nothing of the message can
// have been delivered.
func (s *Sender) contentError(ctx context.Context, p Phase, err error) *Error {
	if ctx.Err() != nil {
		return s.ioError(ctx, p, "", err)
	}
	e := &Error{Phase: p, Verdict: Policy, Scope: ScopeMessage,
		Err: fmt.Errorf("the content of the message can't be read: %w", err), name: nameMessage}
	if fault.Is(err, fault.Unavailable) {
		e.Verdict, e.name = Soft, nameConnection
	}
	return e
}
