package apisend

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/postroom/postroom/smtpsend"
)

// Bounds of an answer: to a message, and to a list of them.
const (
	answerMost = 1 << 20
	listMost   = 8 << 20
)

var (
	errTooLong = errors.New("the answer is too long")
	errNoReply = errors.New("no answer in time")
)

// sent is the result of a request.
type sent struct {
	x      *exchange       // nil if there is no answer
	err    *smtpsend.Error // why, for all recipients
	reused bool            // the connection had served before, and none of the request can have been seen
	tls    string          // such as "TLS 1.3"
	body   time.Duration   // until the last byte had left
	dot    time.Duration   // from then on
	wait   time.Duration   // for its turn
	unsent *smtpsend.Error // it had no turn: nothing was sent
}

// try sends a request and reads its answer.
func (s *Sender) try(ctx context.Context, t Target, q request, g group,
	marks func(context.Context) error) sent {
	begun, ctx, stop := time.Now(), ctx, context.CancelCauseFunc(nil)
	ctx, stop = context.WithCancelCause(ctx)
	defer stop(nil)
	late := time.AfterFunc(s.o.Timeout, func() { stop(errNoReply) })
	defer late.Stop()
	var out sent
	trace := &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { out.reused = c.Reused }}
	body := &gate{ctx: ctx, body: q.body, marks: marks, opened: func() { late.Reset(s.o.Timeout) }}
	r, err := q.build(httptrace.WithClientTrace(ctx, trace), t, body)
	if sign := adapters[t.Type].sign; err == nil && sign != nil {
		err = sign(ctx, s, t, r, q.body)
	}
	if err != nil {
		body.end()
		out.err = unmade(err)
		return out
	}
	response, err := s.client(t.Proxy).Do(r)
	released, aborted := body.end()
	if released {
		out.body, out.dot = body.released.Sub(begun), time.Since(body.released)
	}
	if err == nil {
		defer response.Body.Close() //nolint:errcheck // it was read, or its error is known
		if response.TLS != nil {
			out.tls = tls.VersionName(response.TLS.Version)
		}
		out.x = &exchange{target: t, adapter: adapters[t.Type], method: r.Method, to: g.all(), group: g,
			status: response.StatusCode, header: response.Header, now: s.o.Now()}
		most := int64(answerMost)
		if q.list {
			most = listMost
		}
		out.x.body, err = readAnswer(response.Body, most)
	}
	switch {
	case aborted != nil:
		out.x, out.err = nil, abortedError(aborted)
	case err == nil && (released || out.x.status >= 300 || len(q.body) == 0):
		return out
	case released && out.x != nil:
		out.err = out.x.doubt(unanswered(ctx, err))
	case released:
		out.err = (&exchange{method: r.Method}).doubt(unanswered(ctx, err))
	default:
		out.err = s.unreached(ctx, out, err)
	}
	out.x = nil
	out.reused = out.reused && !released && aborted == nil
	return out
}

// build makes the request of net/http. Without GetBody it is never repeated.
func (q request) build(ctx context.Context, t Target, g *gate) (*http.Request, error) {
	method := q.method
	if method == "" {
		method = http.MethodPost
	}
	address := t.Base() + q.path
	if q.body == nil {
		r, err := http.NewRequestWithContext(ctx, method, address, nil)
		if err == nil {
			r.Header = q.header
		}
		return r, err
	}
	r, err := http.NewRequestWithContext(ctx, method, address, g)
	if err != nil {
		return nil, err
	}
	r.Header, r.ContentLength, r.GetBody = q.header, int64(len(q.body)), nil
	return r, nil
}

// unmade returns the error for a request that couldn't be built or signed.
func unmade(err error) *smtpsend.Error {
	if known, is := errors.AsType[*smtpsend.Error](err); is {
		return known
	}
	return smtpsend.Refused(err)
}

// readAnswer reads an answer of at most most bytes.
func readAnswer(r io.Reader, most int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(body)) > most {
		err = errTooLong
	}
	return body, err
}

// unanswered is why there is no answer to a request that has left.
func unanswered(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, errTooLong):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil:
		return errors.New("the provider answered before the request had ended")
	}
	e := smtpsend.NetworkError(ctx, smtpsend.PhaseDot, err)
	return e.Err
}

// unreached is the error of a request whose last byte has not left.
func (s *Sender) unreached(ctx context.Context, out sent, err error) *smtpsend.Error {
	if err == nil {
		err = fmt.Errorf("status %d before the request had ended", out.x.status)
	}
	if errors.Is(context.Cause(ctx), errNoReply) {
		err = context.DeadlineExceeded // a net.Error that says timeout
		ctx = context.WithoutCancel(ctx)
	}
	e := smtpsend.NetworkError(ctx, smtpsend.PhaseConnect, err)
	e.Protocol = protocol
	return e
}

// abortedError is a request whose marks could not be set: nothing was delivered.
func abortedError(err error) *smtpsend.Error {
	return &smtpsend.Error{Protocol: protocol, Phase: smtpsend.PhaseBody, Verdict: smtpsend.Soft,
		Scope: smtpsend.ScopeMessage, Err: fmt.Errorf("%w: %w", smtpsend.ErrAborted, err)}
}
