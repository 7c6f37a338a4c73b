package smtpsend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/postroom/postroom/api/fault"
)

// Body is the content of a message. It need not be in memory. A body of more than 32 KiB is opened again for
// each transaction and each relay, when the relay is ready. It is read once, while it is sent, and closed. A
// smaller body is read before the relay is connected.
type Body interface {
	// Size is the number of octets in it. The relay gets it in MAIL (SIZE, RFC 1870). Content with another
	// number of octets is not sent.
	Size() int64

	// Open begins to read. Reading must end with the context. If opening or reading fails, the message is not
	// delivered. It fails permanently, or temporarily if the error is an Unavailable fault.
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

// load reads a small content into memory, in wire form.
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

// readFull reads until buf is full or the reader returns an error. Unlike io.ReadFull it returns the reader's
// own error: content that breaks off (io.ErrUnexpectedEOF) differs from content that ends (io.EOF).
func readFull(content io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var m int
		m, err = content.Read(buf[n:])
		n += m
	}
	return n, err
}

// missized is the error of content that lacks octets of Body.Size, or has more.
func missized(lacks int64) error {
	switch {
	case lacks > 0:
		return fmt.Errorf("it ends %d octets early", lacks)
	case lacks < 0:
		return errors.New("it does not end where it should")
	}
	return nil
}

// contentError is the error for content that can't be read. No part of the message can have been delivered.
func (s *Sender) contentError(ctx context.Context, p Phase, err error) *Error {
	if ctx.Err() != nil {
		return s.ioError(ctx, p, "", err)
	}
	e := newError(p, Policy, ScopeMessage, nameMessage,
		fmt.Errorf("the content of the message can't be read: %w", err))
	if fault.Is(err, fault.Unavailable) {
		e.Verdict, e.name = Soft, nameConnection
	}
	return e
}
