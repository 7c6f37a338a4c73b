package smtpsend

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// content writes the message, lets the caller record that delivery becomes possible, and writes the dot.
func (t *transaction) content(ctx context.Context) *Error {
	begun := time.Now()
	times := &t.d.result.Timings
	failure := t.writeBody(ctx)
	if failure == nil {
		failure = t.beforeDot(ctx)
	}
	times.Body += lap(&begun)
	if failure != nil {
		t.c.botched = true
		return failure
	}
	failure = t.dot(ctx)
	times.Dot += lap(&begun)
	return failure
}

// writeBody writes the content, a large one in blocks, each with a deadline of its own. Nothing before the
// dot can be taken for a whole message, so no failure in here is in doubt.
func (t *transaction) writeBody(ctx context.Context) *Error {
	if t.c.r.Buffered() > 0 {
		return t.premature(ctx, errors.New("the relay answers before it was asked"))
	}
	var err error
	if t.d.whole != nil {
		err = t.c.write(t.d.whole, t.d.s.timeout)
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
	err = t.c.writeListening(&wireReader{content: content, lacks: body.Size(), blocks: buffers}, t.d.s.timeout)
	if err == nil && t.c.r.Buffered() > 0 {
		err = errInterrupted
	}
	return err
}

// premature reads the reply a relay gave up with in the middle of the content. Without one, err is the
// failure.
func (t *transaction) premature(ctx context.Context, err error) *Error {
	if ctx.Err() == nil {
		r, readErr := t.c.read(min(lastWords, t.d.s.timeout))
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

// atDot asks the caller once more, with nothing left to do but to write.
func (t *transaction) atDot() *Error {
	if t.d.m.AtDot == nil {
		return nil
	}
	if err := t.d.m.AtDot(); err != nil {
		t.c.botched = true
		return aborted(err)
	}
	return nil
}

// aborted is the failure of a transaction whose caller did not want the dot.
func aborted(err error) *Error {
	return &Error{
		Phase: PhaseBody, Command: "DATA", Verdict: Soft, Scope: ScopeMessage,
		Err: fmt.Errorf("%w: %w", errAborted, err), name: nameConnection,
	}
}

// dot writes the terminator, with the envelope of whoever waits for the connection, and takes the answer.
// From here until a complete reply the message may have been delivered.
func (t *transaction) dot(ctx context.Context) *Error {
	limit := t.d.s.timeout
	t.c.w = append(t.c.w, endOfData...)
	t.follower = t.d.s.pool.chain(t.d.relay, t.c)
	if failure := t.atDot(); failure != nil {
		return failure
	}
	err := t.c.flush(limit)
	if err != nil {
		limit = min(limit, lastWords)
	}
	r, readErr := t.c.read(limit)
	switch {
	case readErr != nil && err == nil:
		err = readErr
	case readErr == nil:
		err = nil
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
	if r.code == 421 {
		t.c.botched = true
	}
	if !r.positive() {
		return t.refused(PhaseDot, "DATA", r, len(t.accepted))
	}
	t.delivered(r)
	return nil
}

// delivered notes the relay's yes: any 2xx is one.
func (t *transaction) delivered(r reply) {
	line := r.line()
	t.d.result.Response, t.d.result.Code = line, r.code
	for _, i := range t.accepted {
		t.d.result.Recipients[i].Response = line
	}
}
