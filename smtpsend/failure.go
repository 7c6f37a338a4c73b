package smtpsend

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// replyError is what a reply means in its phase, as judged by the sender's classifier. Recipients is how many
// the reply is about.
func (s *Sender) replyError(p Phase, command string, r reply, recipients int) *Error {
	enhanced, text := r.enhanced()
	if r.code < 400 {
		// A yes, or a "go on", where neither can be meant: we and the relay are not in the same conversation any
		// more.
		return &Error{
			Phase: p, Command: command, Code: r.code, Enhanced: enhanced, Line: r.line(),
			Verdict: Soft, Scope: ScopeConnection, name: nameProtocol,
		}
	}
	j := s.judge(Evidence{Phase: p, Code: r.code, Enhanced: enhanced, Text: text, Recipients: recipients,
		Now: time.Now()})
	return &Error{
		Phase: p, Command: command, Code: r.code, Enhanced: enhanced, Line: r.line(),
		Verdict: j.Verdict, Scope: j.Scope, Suppress: j.Suppress,
		RetryAfter: j.RetryAfter, Reconnect: j.Reconnect, NewTransaction: j.NewTransaction,
	}
}

// silent finishes an error that has no reply to be judged by.
func (s *Sender) silent(e *Error) *Error {
	if s.basic && !e.InDoubt {
		e.Verdict = basicSilence(e.Name(), e.Verdict)
	}
	return e
}

// ioError is a conversation that broke: closed, reset, timed out, cancelled, or answered with something that
// is no reply.
func (s *Sender) ioError(ctx context.Context, p Phase, command string, err error) *Error {
	e := &Error{Phase: p, Command: command, Verdict: Soft, Scope: ScopeConnection}
	switch {
	case ctx.Err() != nil:
		e.Err, e.name = context.Cause(ctx), nameConnection
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			e.name = nameTimeout
		}
	case isTimeout(err):
		e.Err, e.name = errors.New("the relay did not answer in time"), nameTimeout
	case errors.Is(err, errProtocol):
		e.Err, e.name = err, nameProtocol
	case isClosed(err):
		e.Err, e.name = fmt.Errorf("the connection was closed: %w", withoutPorts(err)), nameConnection
	default:
		e.Err, e.name = withoutPorts(err), nameSocket
	}
	return s.silent(e)
}

// withoutPorts takes addresses out of a socket error: with our port in it, no two texts of the same failure
// are alike.
func withoutPorts(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// dialError is a relay, or a proxy on the way to it, that could not be reached. A name that does not exist
// may be a typing error or a resolver's bad day: after some tries it deserves the account's attention, which
// is for the caller to count.
func (s *Sender) dialError(ctx context.Context, proxied bool, err error) *Error {
	e := &Error{Phase: PhaseConnect, Verdict: Soft, Scope: ScopeAccount, Err: err, name: nameSocket}
	var dns *net.DNSError
	switch {
	case ctx.Err() != nil:
		return s.ioError(ctx, PhaseConnect, "", err)
	case proxied:
		e.Err = fmt.Errorf("proxy: %w", err)
	case errors.As(err, &dns):
		e.Phase, e.name = PhaseDNS, nameDNS
	case isTimeout(err):
		e.name = nameTimeout
	}
	return s.silent(e)
}

// handshakeError is TLS that did not come about. A certificate that does not verify will not verify in a
// minute either, so the account is held; everything else may be a passing trouble.
func (s *Sender) handshakeError(ctx context.Context, err error) *Error {
	var (
		certificate *tls.CertificateVerificationError
		unknown     x509.UnknownAuthorityError
	)
	e := &Error{Phase: PhaseTLS, Verdict: Soft, Scope: ScopeAccount, Err: fmt.Errorf("TLS handshake: %w", err),
		name: nameTLS}
	switch {
	case errors.As(err, &certificate), errors.As(err, &unknown), errors.Is(err, errPin):
		e.Verdict = Auth
	case isTimeout(err) || errors.Is(ctx.Err(), context.DeadlineExceeded):
		e.name = nameTimeout
	case ctx.Err() != nil:
		e.name = nameConnection
	case isClosed(err):
		// with EOF or a reset, as chance has it: whichever of the two the relay's end makes of what it has not read
		e.Err = errors.New("TLS handshake: the connection was closed")
	}
	return s.silent(e)
}

// tlsRefused is a relay that will not do the TLS it must.
func (s *Sender) tlsRefused(err error) *Error {
	return &Error{Phase: PhaseSTARTTLS, Command: "STARTTLS", Verdict: Auth, Scope: ScopeAccount, Err: err,
		name: nameTLS}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
