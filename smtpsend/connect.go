package smtpsend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"
)

// handshakePatience bounds the waits before mail begins: greeting, EHLO, STARTTLS, AUTH.
const handshakePatience = 60 * time.Second

// open makes a session: dial, TLS, greeting, EHLO, STARTTLS, AUTH.
func (s *Sender) open(ctx context.Context, relay Relay) (*session, *Error) {
	c, err := s.establish(ctx, relay)
	if err != nil && err.Phase == PhaseTLS && relay.TLS == TLSOpportunistic && !relay.hasCredentials() &&
		ctx.Err() == nil {
		// A relay that offers a STARTTLS it cannot do would otherwise get no mail at all.
		s.log.Debug("smtp tls failed, sending in clear", slog.String("relay", relay.ID),
			slog.String("host", relay.Host), slog.Any("error", err))
		relay.TLS = TLSNone
		c, err = s.establish(ctx, relay)
	}
	if err != nil {
		s.log.Debug("smtp connection failed", slog.String("relay", relay.ID), slog.String("host", relay.Host),
			slog.Any("error", err))
		return nil, err
	}
	s.log.Debug("smtp connected", slog.String("relay", relay.ID), slog.String("host", relay.Host),
		slog.String("tls", c.tls))
	return c, nil
}

// establish brings one connection as far as MAIL, having asked whether it may be opened.
func (s *Sender) establish(ctx context.Context, relay Relay) (*session, *Error) {
	release, failure := s.admitted(ctx, relay)
	if failure != nil {
		return nil, failure
	}
	c, failure := s.dial(ctx, relay)
	if failure != nil {
		release()
		return nil, failure
	}
	c.release = release
	stop := c.watch(ctx)
	failure = c.introduce(ctx)
	if !stop() && failure == nil {
		failure = s.ioError(ctx, PhaseConnect, "", context.Cause(ctx))
	}
	if failure != nil {
		c.close()
		return nil, failure
	}
	return c, nil
}

// errNotAdmitted marks a connection that other processes' connections left no room for.
var errNotAdmitted = errors.New("no further connection to this relay now")

// admitted asks Options.Admit whether a connection to a shared relay may be opened.
func (s *Sender) admitted(ctx context.Context, relay Relay) (release func(), _ *Error) {
	if s.admit == nil || relay.Shared == "" {
		return func() {}, nil
	}
	release, err := s.admit(ctx, relay)
	switch {
	case err == nil && release == nil:
		return func() {}, nil
	case err == nil:
		return release, nil
	case ctx.Err() != nil:
		return nil, s.ioError(ctx, PhaseConnect, "", err)
	}
	e := &Error{
		Phase: PhaseConnect, Verdict: Throttle, Scope: ScopeConnection,
		Err: fmt.Errorf("%w: %w", errNotAdmitted, err), name: nameConnection,
	}
	var wait interface{ RetryAfter() time.Duration }
	if errors.As(err, &wait) {
		e.RetryAfter = wait.RetryAfter()
	}
	return nil, s.silent(e)
}

// dial looks the relay up, or the proxy that leads to it, and connects to the first of its addresses that
// answers.
func (s *Sender) dial(ctx context.Context, relay Relay) (*session, *Error) {
	d := net.Dialer{Timeout: s.connect, Control: s.control}
	if relay.LocalAddress != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(relay.LocalAddress)}
	}
	address := net.JoinHostPort(relay.Host, strconv.Itoa(relay.Port))
	p, err := parseProxy(relay.Proxy)
	if err != nil {
		return nil, settingsError(err)
	}
	if p != nil {
		address = p.address
	}
	begun := time.Now()
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, s.dialError(ctx, p != nil, err)
	}
	s.metrics.opened.Inc()
	s.metrics.open.Inc()
	age := relay.Lifetime
	c := &session{sender: s, relay: relay, proxy: p, raw: conn, born: begun,
		expires: begun.Add(age - age/10 + rand.N(age/5+1))}
	c.attach(conn)
	c.timings.Connect = time.Since(begun)
	return c, nil
}

// introduce brings a fresh TCP connection to where MAIL may follow.
func (c *session) introduce(ctx context.Context) *Error {
	if c.proxy != nil {
		if err := c.tunnel(ctx); err != nil {
			return err
		}
	}
	if c.relay.TLS == TLSImplicit {
		if err := c.handshake(ctx); err != nil {
			return err
		}
	}
	if err := c.greet(ctx); err != nil {
		return err
	}
	if err := c.hello(ctx); err != nil {
		return err
	}
	if err := c.upgrade(ctx); err != nil {
		return err
	}
	if !c.relay.hasCredentials() {
		return nil
	}
	begun := time.Now()
	err := c.authenticate(ctx)
	c.timings.Auth = time.Since(begun)
	return err
}

func (c *session) patience() time.Duration { return min(c.sender.timeout, handshakePatience) }

// greet reads the relay's first line.
func (c *session) greet(ctx context.Context) *Error {
	begun := time.Now()
	r, err := c.read(c.patience())
	c.timings.Connect += time.Since(begun)
	if err != nil {
		return c.sender.ioError(ctx, PhaseGreeting, "", err)
	}
	if !r.positive() {
		return c.sender.replyError(PhaseGreeting, "", r, 0)
	}
	c.name, _, _ = strings.Cut(printableText(r.text), " ")
	return nil
}

// hello sends EHLO, or HELO to a relay that does not know EHLO.
func (c *session) hello(ctx context.Context) *Error {
	name := c.ehloName()
	r, err := c.ask(c.patience(), "EHLO ", name)
	if err != nil {
		return c.sender.ioError(ctx, PhaseEHLO, "EHLO", err)
	}
	if r.positive() {
		c.ext = parseExtensions(r.text)
		return nil
	}
	switch r.code {
	case 500, 501, 502, 503, 504:
	default:
		return c.sender.replyError(PhaseEHLO, "EHLO", r, 0)
	}
	if r, err = c.ask(c.patience(), "HELO ", name); err != nil {
		return c.sender.ioError(ctx, PhaseEHLO, "HELO", err)
	}
	if !r.positive() {
		return c.sender.replyError(PhaseEHLO, "HELO", r, 0)
	}
	return nil
}

// ehloName is the name to greet with. Without a qualified one an address literal is what RFC 5321 section
// 4.1.4 asks for.
func (c *session) ehloName() string {
	if c.relay.EHLOName != "" {
		return c.relay.EHLOName
	}
	if c.sender.hostname != "" {
		return c.sender.hostname
	}
	addr, ok := c.raw.LocalAddr().(*net.TCPAddr)
	if !ok {
		return "[127.0.0.1]"
	}
	if ip := addr.IP.To4(); ip != nil {
		return "[" + ip.String() + "]"
	}
	return "[IPv6:" + addr.IP.String() + "]"
}

// upgrade does STARTTLS (RFC 3207) as the mode asks. Without TLS where it was required, nothing further is
// said.
func (c *session) upgrade(ctx context.Context) *Error {
	mode := c.relay.TLS
	if mode != TLSRequired && mode != TLSOpportunistic {
		return nil
	}
	if !c.ext.startTLS {
		if mode == TLSRequired {
			return c.sender.tlsRefused(errors.New("the relay does not offer STARTTLS, and TLS is required"))
		}
		return nil
	}
	r, err := c.ask(c.patience(), "STARTTLS")
	if err != nil {
		return c.sender.ioError(ctx, PhaseSTARTTLS, "STARTTLS", err)
	}
	if !r.positive() {
		if mode == TLSOpportunistic && !c.relay.hasCredentials() && r.code != 421 {
			return nil
		}
		return c.sender.replyError(PhaseSTARTTLS, "STARTTLS", r, 0)
	}
	if c.r.Buffered() > 0 {
		// Whoever put bytes behind the clear-text reply wants them read as if they came through TLS (CVE-2021-33515
		// and kin).
		return c.sender.tlsRefused(errors.New("the relay sent bytes ahead of the TLS handshake"))
	}
	if failure := c.handshake(ctx); failure != nil {
		return failure
	}
	return c.hello(ctx)
}

// onLoopback reports whether the relay is on this machine, judged by the address that answered and not by its
// name. Where a proxy answered, nothing is known.
func (c *session) onLoopback() bool {
	addr, ok := c.raw.RemoteAddr().(*net.TCPAddr)
	return ok && addr.IP.IsLoopback() && c.proxy == nil
}
