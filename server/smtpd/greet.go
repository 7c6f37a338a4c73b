package smtpd

import (
	"bytes"
	"context"
	"fmt"
)

// ehlo names the extensions. It also resets the session (RFC 5321 section 4.1.4).
func (s *session) ehlo(arg string) reply {
	r := s.helo(arg)
	if r.code != 250 {
		return r
	}
	r.more = []string{"PIPELINING", "8BITMIME", "SMTPUTF8", "DSN", "ENHANCEDSTATUSCODES", "CHUNKING"}
	if s.bounces != nil {
		r.more = []string{"PIPELINING", "8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES"}
	}
	r.more = append(r.more, fmt.Sprintf("SIZE %d", s.opts.MaxMessage), fmt.Sprintf("LIMITS RCPTMAX=%d",
		s.opts.MaxRecipients))
	if s.cert != nil && !s.tls {
		r.more = append(r.more, "STARTTLS")
	}
	if s.tls && s.bounces == nil {
		r.more = append(r.more, "REQUIRETLS") // RFC 8689 section 4.1: offered only where this hop is encrypted
	}
	if s.mayLogIn() && s.login == nil && s.bounces == nil {
		r.more = append(r.more, "AUTH PLAIN LOGIN")
	}
	return r
}

func (s *session) helo(arg string) reply {
	if arg == "" {
		return syntax("Syntax: EHLO hostname")
	}
	s.reset()
	s.greeted = true
	return reply{code: 250, text: s.opts.Hostname}
}

// mayLogIn reports whether a token can be sent safely on this connection.
func (s *session) mayLogIn() bool {
	return s.tls || s.proxyTLS || s.opts.InsecureAuth || s.remote.IsLoopback()
}

// isProxyHeader reports whether a line begins the PROXY protocol: version 1, or the third line of version 2's
// signature.
func isProxyHeader(line []byte) bool {
	return bytes.HasPrefix(line, []byte("PROXY ")) || string(line) == "\x00"
}

// refuseProxy refuses an unexpected PROXY header. Continuing would mistake the proxy for the client.
func (s *session) refuseProxy(ctx context.Context) reply {
	s.log.proxyRefused(ctx, s.remote, s.proxySetting())
	return reply{code: 554, enhanced: "5.7.1", text: "The PROXY protocol is not accepted from this address",
		close: true}
}

// startTLS encrypts the connection. Octets that came along with the command were sent in the clear, perhaps
// by an attacker in between: the connection ends (RFC 3207 section 6, CVE-2011-0411).
func (s *session) startTLS(ctx context.Context, arg string) reply {
	switch {
	case s.cert == nil:
		return reply{code: 502, enhanced: "5.5.1", text: "TLS is not configured here"}
	case s.tls:
		return badSequence
	case arg != "":
		return syntax("STARTTLS takes no parameters")
	case s.wire.r.Buffered() > 0:
		return reply{code: 554, enhanced: "5.5.1", text: "Nothing may follow STARTTLS before its reply",
			close: true}
	}
	s.wire.reply(reply{code: 220, enhanced: "2.0.0", text: "Ready to start TLS"})
	if err := s.wire.flush(); err != nil {
		return gone
	}
	if err := s.encrypt(); err != nil {
		s.log.handshake(ctx, s.remote, err)
		return gone
	}
	s.reset()
	s.greeted, s.login = false, nil // commands in the clear do not count
	return reply{silent: true}
}

func (s *session) encrypt() error {
	if err := s.wire.startTLS(s.cert.Server(), s.deadline()); err != nil {
		return err
	}
	s.tls = true
	return nil
}
