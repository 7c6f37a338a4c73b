package smtpsend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// oneWrite is the largest content that leaves together with its dot. The system has room for so much, so a
// relay that reads slowly does not hold up the dot.
const oneWrite = 16 << 10

// content writes the message, calls BeforeDot, and writes the dot. A small content leaves with its dot.
func (t *transaction) content(ctx context.Context) *Error {
	begun := time.Now()
	times := &t.d.result.Timings
	t.d.record.content(t.d.size)
	var failure *Error
	var rest []byte // what leaves with the dot
	switch {
	case t.c.r.Buffered() > 0:
		failure = t.premature(ctx, errors.New("the relay answers before it was asked"))
	case t.d.whole != nil && len(t.d.whole) <= oneWrite:
		rest = t.d.whole
	default:
		failure = t.writeBody(ctx)
	}
	if failure == nil {
		failure = t.beforeDot(ctx)
	}
	times.Body += lap(&begun)
	if failure != nil {
		t.c.botched = true
		return failure
	}
	failure = t.dot(ctx, rest)
	times.Dot += lap(&begun)
	return failure
}

// writeBody writes the content, a large one in blocks, each with its own deadline. No relay delivers before
// the dot, so no failure here is in doubt.
func (t *transaction) writeBody(ctx context.Context) *Error {
	var err error
	if t.d.whole != nil {
		_, err = t.c.write(t.d.whole, t.d.s.o.Timeout)
	} else {
		err = t.stream(ctx)
	}
	if err == nil {
		return nil
	}
	if f, ours := errors.AsType[contentFault](err); ours {
		return t.d.s.contentError(ctx, PhaseBody, f.error)
	}
	return t.premature(ctx, err)
}

// stream writes a large content as it is read.
func (t *transaction) stream(ctx context.Context) error {
	body := t.d.m.Body
	content, err := body.Open(ctx)
	if err != nil {
		return contentFault{err}
	}
	defer content.Close() //nolint:errcheck // it was read, or its error is known
	buffers := t.d.s.blocks.Get().(*blocks)
	defer t.d.s.blocks.Put(buffers)
	err = t.c.writeListening(&wireReader{content: content, lacks: body.Size(), blocks: buffers}, t.d.s.o.Timeout)
	if err == nil && t.c.r.Buffered() > 0 {
		err = errInterrupted
	}
	return err
}

// premature reads the reply of a relay that gave up in the middle of the content. Without one, err is the
// failure.
func (t *transaction) premature(ctx context.Context, err error) *Error {
	if ctx.Err() == nil {
		r, readErr := t.c.read(min(lastReplyTimeout, t.d.s.o.Timeout))
		if readErr == nil {
			t.d.record.heard(r)
		}
		if readErr == nil && r.code >= 400 {
			return t.d.s.replyError(PhaseBody, "DATA", r, len(t.accepted))
		}
		if readErr == nil {
			err = fmt.Errorf("%w: %d in the middle of the content", errProtocol, r.code)
		}
	}
	return t.d.s.ioError(ctx, PhaseBody, "DATA", err)
}

func (t *transaction) beforeDot(ctx context.Context) *Error {
	if t.d.m.BeforeDot == nil {
		return nil
	}
	accepted := make([]string, len(t.accepted))
	for n, i := range t.accepted {
		accepted[n] = t.d.m.To[i]
	}
	if err := t.d.m.BeforeDot(ctx, accepted); err != nil {
		return aborted(err)
	}
	if ctx.Err() != nil {
		return t.d.s.ioError(ctx, PhaseBody, "DATA", ctx.Err())
	}
	return nil
}

// aborted is the failure of a transaction whose BeforeDot or AtDot failed.
func aborted(err error) *Error {
	e := newError(PhaseBody, Soft, ScopeMessage, nameConnection, fmt.Errorf("%w: %w", ErrAborted, err))
	e.Command = "DATA"
	return e
}

// dot writes the rest of the content and the terminator, with the envelope of the message that waits for the
// connection, and reads the reply. Once all of the terminator was written, and until a complete reply, the
// message may have been delivered.
func (t *transaction) dot(ctx context.Context, rest []byte) *Error {
	limit := t.d.s.o.Timeout
	t.c.w = append(append(t.c.w, rest...), endOfData...)
	whole := len(t.c.w)
	t.d.record.said(".")
	t.follower = t.d.s.pool.chain(t.d.relay, t.c)
	if t.d.m.AtDot != nil {
		if err := t.d.m.AtDot(); err != nil {
			t.c.botched = true
			return aborted(err)
		}
	}
	written, err := t.c.write(t.c.w, limit)
	t.c.w = t.c.w[:0]
	if written < whole {
		t.c.botched = true
		return t.premature(ctx, err)
	}
	if err != nil {
		limit = min(limit, lastReplyTimeout)
	}
	r, readErr := t.c.read(limit)
	if readErr == nil {
		t.d.record.heard(r)
		err = nil
	} else {
		err = cmp.Or(err, readErr)
	}
	if err == nil && r.intermediate() {
		err = fmt.Errorf("%w: %d in answer to the dot", errProtocol, r.code)
	}
	if err != nil {
		t.c.botched = true
		e := t.d.s.ioError(ctx, PhaseDot, "DATA", err)
		e.Verdict, e.InDoubt = Soft, true
		return e
	}
	t.c.botched = r.code == 421
	if !r.positive() {
		return t.refused(PhaseDot, "DATA", r, len(t.accepted))
	}
	line := r.line()
	t.d.result.Response, t.d.result.Code = line, r.code
	for _, i := range t.accepted {
		t.d.result.Recipients[i].Response = line
	}
	return nil
}
