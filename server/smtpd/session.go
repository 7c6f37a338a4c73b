package smtpd

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/postroom/postroom/server/peers"
)

// Bounds on the mistakes of a client. Beyond them the conversation ends.
const (
	maxErrors   = 10
	maxFailures = 3 // failed logins; access counts them too, over all connections of a network
)

// maxIdleCommands bounds the idle commands (NOOP, RSET, VRFY, …) between two messages.
const maxIdleCommands = 200

// session is one conversation with one client.
type session struct {
	*Inlet
	wire   *wire
	remote netip.Addr // invalid: unknown, and no restriction of a token matches it
	began  time.Time
	tls    bool
	lmtp   bool
	pass   *peers.Pass // the connection's; nil in tests

	proxyTLS bool // a trusted proxy says that the client uses TLS to it

	greeted  bool // the client has said EHLO or HELO
	login    *login
	failures int // failed logins
	errors   int
	idle     int // idle commands since the last message

	taken bool // a bounce was taken
	t     transaction
}

// serve greets the client and answers its commands until one of the two ends the conversation.
func (s *session) serve(ctx context.Context, implicit bool) {
	defer s.wire.flush()
	defer s.reset()
	if implicit {
		if err := s.encrypt(); err != nil {
			s.log.handshake(ctx, s.remote, err)
			return
		}
	}
	s.wire.reply(s.greeting())
	for {
		line, err := s.wire.line(maxCommand, s.deadline())
		var r reply
		switch {
		case err == nil:
			r = s.handle(ctx, line)
		case errors.Is(err, errBareLineEnd):
			r = reply{code: 500, enhanced: "5.5.2", text: "A command must end with CRLF, the only line break in it"}
		default:
			r = s.farewell(err)
		}
		if !r.silent {
			s.wire.reply(r)
		}
		if r.close {
			return
		}
		if r.isError() {
			s.errors++
		}
		if s.errors > maxErrors || s.failures >= maxFailures || s.idle > maxIdleCommands {
			s.wire.reply(tooManyErrors)
			return
		}
	}
}

// deadline is when the next command must have come in.
func (s *session) deadline() time.Time {
	limit := time.Now().Add(s.opts.IdleTimeout)
	if s.login != nil || s.lmtp || s.taken || len(s.t.to) > 0 {
		return limit
	}
	if login := s.began.Add(s.opts.LoginTimeout); login.Before(limit) {
		return login
	}
	return limit
}

// gone ends a conversation whose client is not connected any more.
var gone = reply{close: true, silent: true}

// farewell returns the last reply after reading failed with err.
func (s *session) farewell(err error) reply {
	switch {
	case errors.Is(err, errDraining):
		return stopping
	case errors.Is(err, errLineTooLong):
		return reply{code: 500, enhanced: "5.5.2", text: "Line too long", close: true}
	case isTimeout(err) && s.login == nil && s.bounces == nil:
		return noLogin
	case isTimeout(err):
		return tooIdle
	}
	return gone
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// handle answers one command.
func (s *session) handle(ctx context.Context, line []byte) reply {
	if !s.greeted && isProxyHeader(line) {
		return s.refuseProxy(ctx)
	}
	if bytes.IndexByte(line, 0) >= 0 {
		return reply{code: 500, enhanced: "5.5.2", text: "A command must not contain NUL"}
	}
	verb, arg, _ := strings.Cut(string(line), " ")
	arg = strings.TrimSpace(arg)
	if r, known := s.handleBounces(strings.ToUpper(verb), arg); known {
		return r
	}
	switch strings.ToUpper(verb) {
	case "EHLO":
		return s.ehlo(arg)
	case "HELO":
		return s.helo(arg)
	case "STARTTLS":
		return s.startTLS(ctx, arg)
	case "AUTH":
		return s.auth(ctx, arg)
	case "MAIL":
		return s.mail(ctx, arg)
	case "RCPT":
		return s.rcpt(ctx, arg)
	case "DATA":
		return s.data(ctx, arg)
	case "BDAT":
		return s.bdat(ctx, arg)
	case "QUIT":
		return reply{code: 221, enhanced: "2.0.0", text: "Bye", close: true}
	}
	s.idle++
	switch strings.ToUpper(verb) {
	case "RSET":
		s.reset()
		return ok
	case "NOOP":
		return ok
	case "VRFY":
		return reply{code: 252, enhanced: "2.5.0", text: "Can't verify, but will try to deliver"}
	case "HELP":
		return reply{code: 214, enhanced: "2.0.0", text: "See RFC 5321 and RFC 6409"}
	case "GET", "POST", "PUT", "HEAD", "OPTIONS", "CONNECT":
		// an attacker may make a browser send SMTP commands in a body
		return reply{code: 421, enhanced: "4.7.0", text: "This is not an HTTP server", close: true}
	}
	return reply{code: 500, enhanced: "5.5.1", text: "Command not recognized"}
}

// reset forgets the message in hand.
func (s *session) reset() {
	if s.t.body != nil {
		s.t.body.release()
	}
	s.t = transaction{}
}
