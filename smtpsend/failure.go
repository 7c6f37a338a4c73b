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
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/postroom/postroom/internal/dialing"
)

// replyError returns what a reply means in its phase, by the sender's classifier. recipients is the number of
// recipients that the reply is about.
func (s *Sender) replyError(p Phase, command string, r reply, recipients int) *Error {
	enhanced, text := r.enhanced()
	e := &Error{Phase: p, Command: command, Code: r.code, Enhanced: enhanced, Line: r.line(),
		Verdict: Soft, Scope: ScopeConnection, name: nameProtocol}
	if r.code < 400 {
		return e // a 2xx or 3xx that cannot be meant: the two sides disagree about the state
	}
	j := s.judge(Evidence{Phase: p, Code: r.code, Enhanced: enhanced, Text: text, Recipients: recipients,
		Now: time.Now()})
	e.Verdict, e.Scope, e.Suppress, e.name = j.Verdict, j.Scope, j.Suppress, ""
	e.RetryAfter, e.Reconnect, e.NewTransaction = j.RetryAfter, j.Reconnect, j.NewTransaction
	return e
}

// silent applies the basic classifier to an error without a reply.
func (s *Sender) silent(e *Error) *Error {
	if s.basic && !e.InDoubt {
		e.Verdict = basicVerdict(slices.Contains(permanentNames, e.Name()), e.Verdict)
	}
	return e
}

// ioError is the error for a conversation that broke: closed, reset, timed out, cancelled, or answered by
// bytes that aren't a reply.
func (s *Sender) ioError(ctx context.Context, p Phase, command string, err error) *Error {
	e := newError(p, Soft, ScopeConnection, nameConnection, context.Cause(ctx))
	e.Command = command
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		e.name = nameTimeout
	case ctx.Err() != nil:
	case isTimeout(err):
		e.Err, e.name = errors.New("the relay did not answer in time"), nameTimeout
	case errors.Is(err, errProtocol):
		e.Err, e.name = err, nameProtocol
	case isClosed(err):
		e.Err = fmt.Errorf("the connection was closed: %w", withoutPorts(err))
	default:
		e.Err, e.name = withoutPorts(err), nameSocket
	}
	return s.silent(e)
}

// withoutPorts removes the addresses from a socket error. With our port in it, the same failure would have
// another text each time.
func withoutPorts(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

// dialError is a relay or proxy that could not be reached. A name that does not exist may be a typing error
// or a failing resolver. The caller counts attempts and decides when to hold the account.
func (s *Sender) dialError(ctx context.Context, proxied bool, err error) *Error {
	e := newError(PhaseConnect, Soft, ScopeAccount, nameSocket, dialing.Plain(err))
	var dns *net.DNSError
	switch {
	case ctx.Err() != nil:
		return s.ioError(ctx, PhaseConnect, "", err)
	case errors.Is(err, dialing.ErrRefused) && proxied:
		return settingsError(fmt.Errorf("proxy: %w", e.Err))
	case errors.Is(err, dialing.ErrRefused):
		return settingsError(e.Err)
	case proxied:
		e.Err = fmt.Errorf("proxy: %w", e.Err)
	case errors.As(err, &dns):
		e.Phase, e.name = PhaseDNS, nameDNS
	case isTimeout(err):
		e.name = nameTimeout
	}
	return s.silent(e)
}

// NetworkError is the failure of an exchange over a protocol other than SMTP. In PhaseConnect the server
// could not be reached, or its TLS failed; in a later phase the exchange broke.
func NetworkError(ctx context.Context, p Phase, err error) *Error {
	var s Sender
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case p != PhaseConnect:
		return s.ioError(ctx, p, "", err)
	case errors.As(err, &certificate), errors.As(err, &record), strings.Contains(err.Error(), "tls: "):
		return s.handshakeError(ctx, err)
	}
	return s.dialError(ctx, false, err)
}

// Refused is a failure of a gateway's settings: nothing is sent until somebody changes them.
func Refused(err error) *Error { return settingsError(err) }

// handshakeError is a failed TLS handshake. A certificate that does not verify holds the account, because a
// later attempt would fail too. Everything else may pass.
func (s *Sender) handshakeError(ctx context.Context, err error) *Error {
	var (
		certificate *tls.CertificateVerificationError
		unknown     x509.UnknownAuthorityError
	)
	e := newError(PhaseTLS, Soft, ScopeAccount, nameTLS, fmt.Errorf("TLS handshake: %w", err))
	switch {
	case errors.As(err, &certificate), errors.As(err, &unknown), errors.Is(err, errPin), errors.Is(err, ErrTLSA):
		e.Verdict = Auth
	case isTimeout(err) || errors.Is(ctx.Err(), context.DeadlineExceeded):
		e.name = nameTimeout
	case ctx.Err() != nil:
		e.name = nameConnection
	case isClosed(err):
		// EOF or a reset, at random: it depends on what the relay has not read. One text for both.
		e.Err = errors.New("TLS handshake: the connection was closed")
	}
	return s.silent(e)
}

// tlsRefused is a relay that does not offer the TLS that is required, or breaks its rules.
func tlsRefused(why string) *Error {
	e := newError(PhaseSTARTTLS, Auth, ScopeAccount, nameTLS, errors.New(why))
	e.Command = "STARTTLS"
	return e
}

// TokenError is a login that failed because there was no OAuth 2.0 access token for it. Its phase is
// PhaseAuth, its scope the account, its name EOAUTH2. If permanent, the token server refused permanently and
// the verdict is Auth. Otherwise it is Soft, and the next attempt should not be earlier than retryAfter.
func TokenError(err error, permanent bool, retryAfter time.Duration) *Error {
	e := newError(PhaseAuth, Soft, ScopeAccount, nameOAuth2, err)
	e.RetryAfter = retryAfter
	if permanent {
		e.Verdict = Auth
	}
	return e
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
