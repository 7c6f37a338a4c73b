package smtpsend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxSetupTimeout bounds each wait before mail begins: greeting, EHLO, STARTTLS, AUTH.
const maxSetupTimeout = 60 * time.Second

// open makes a session: dial, TLS, greeting, EHLO, STARTTLS, AUTH. record gets the dialogue, unless it is
// nil.
func (s *Sender) open(ctx context.Context, relay Relay, record *recorder) (*session, *Error) {
	log := s.o.Logger.With(slog.String("relay", relay.ID), slog.String("host", relay.Host))
	c, err := s.establish(ctx, relay, record)
	if err != nil && err.Phase == PhaseTLS && relay.TLS == TLSOpportunistic && !relay.hasCredentials() &&
		ctx.Err() == nil {
		// A relay that offers a STARTTLS it cannot do would otherwise get no mail at all.
		log.Debug("smtp tls failed, sending in clear", slog.Any("error", err))
		record.ended(err)
		record.note("once more without TLS")
		relay.TLS = TLSNone
		failed := err
		if c, err = s.establish(ctx, relay, record); err == nil {
			c.tlsFailed = failed
		}
	}
	if err != nil {
		record.ended(err)
		log.Debug("smtp connection failed", slog.Any("error", err), slog.String("server_said", saidIn(err)))
		return nil, err
	}
	log.Debug("smtp connected", slog.String("tls", c.tls))
	return c, nil
}

// establish opens one connection, if it is admitted, and prepares it for MAIL.
func (s *Sender) establish(ctx context.Context, relay Relay, record *recorder) (*session, *Error) {
	release, failure := s.admitted(ctx, relay)
	if failure != nil {
		return nil, failure
	}
	c, failure := s.dial(ctx, relay, record)
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
	c.record = nil // the messages on it have their own
	return c, nil
}

// errNotAdmitted is the cause when the connections of other processes reach the limit.
var errNotAdmitted = errors.New("no further connection to this relay now")

// admitted asks Options.Admit whether a connection to a shared relay may be opened.
func (s *Sender) admitted(ctx context.Context, relay Relay) (release func(), _ *Error) {
	release = func() {}
	if s.o.Admit == nil || relay.Shared == "" {
		return release, nil
	}
	done, err := s.o.Admit(ctx, relay)
	switch {
	case err == nil && done != nil:
		return done, nil
	case err == nil:
		return release, nil
	case ctx.Err() != nil:
		return nil, s.ioError(ctx, PhaseConnect, "", err)
	}
	e := newError(PhaseConnect, Throttle, ScopeConnection, nameConnection,
		fmt.Errorf("%w: %w", errNotAdmitted, err))
	if wait, ok := errors.AsType[interface {
		error
		RetryAfter() time.Duration
	}](err); ok {
		e.RetryAfter = wait.RetryAfter()
	}
	return nil, s.silent(e)
}

// dial connects to the relay or its proxy, at the first of its addresses that answers.
func (s *Sender) dial(ctx context.Context, relay Relay, record *recorder) (*session, *Error) {
	guard := s.o.Guard
	if relay.OperatorsOwn {
		guard = guard.WithPrivate()
	}
	d := guard.Dialer()
	d.Timeout = s.o.ConnectTimeout
	if relay.LocalAddress != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(relay.LocalAddress)}
	}
	address := net.JoinHostPort(relay.Host, strconv.Itoa(relay.Port))
	p, err := parseProxy(relay.Proxy)
	if err != nil {
		return nil, settingsError(err)
	}
	record.dials(relay, p)
	target := ""
	if p != nil {
		address = p.address
		if target, err = guard.Target(ctx, relay.Host); err != nil {
			return nil, s.dialError(ctx, false, err)
		}
	}
	begun := time.Now()
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, s.dialError(ctx, p != nil, err)
	}
	s.metrics.opened.Inc()
	s.metrics.open.Inc()
	age := relay.Lifetime
	c := &session{sender: s, relay: relay, proxy: p, target: target, raw: conn, record: record,
		expires: begun.Add(age - age/10 + rand.N(age/5+1))}
	c.attach(conn)
	record.opened(c)
	c.timings.Connect = time.Since(begun)
	return c, nil
}

// introduce prepares a new TCP connection for MAIL.
func (c *session) introduce(ctx context.Context) *Error {
	steps := []func(context.Context) *Error{c.greet, c.hello, c.upgrade}
	if c.relay.TLS == TLSImplicit {
		steps = slices.Insert(steps, 0, c.handshake)
	}
	if c.proxy != nil {
		steps = slices.Insert(steps, 0, c.tunnel)
	}
	if c.relay.hasCredentials() {
		steps = append(steps, c.authenticate)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// setupTimeout is the longest wait for one reply before mail begins.
func (c *session) setupTimeout() time.Duration { return min(c.sender.o.Timeout, maxSetupTimeout) }

// greet reads the relay's first line.
func (c *session) greet(ctx context.Context) *Error {
	begun := time.Now()
	r, err := c.read(c.setupTimeout())
	c.timings.Connect += time.Since(begun)
	if err == nil {
		c.record.heard(r)
	}
	if err == nil && r.positive() && r.code != 220 { // another protocol, such as NNTP
		err = greetingError{r.code, strconv.Quote(r.text)}
	}
	if e := c.judge(ctx, PhaseGreeting, "", r, err); e != nil {
		return e
	}
	c.name, _, _ = strings.Cut(printableText(r.text), " ")
	return nil
}

// command sends a command that must be answered by 2xx.
func (c *session) command(ctx context.Context, p Phase, verb string, rest ...string) (reply, *Error) {
	line := verb + strings.Join(rest, "")
	c.record.said(line)
	r, err := c.ask(c.setupTimeout(), line)
	if err == nil {
		c.record.heard(r)
	}
	return r, c.judge(ctx, p, verb, r, err)
}

// judge returns nil if r is a 2xx reply, else the failure.
func (c *session) judge(ctx context.Context, p Phase, verb string, r reply, err error) *Error {
	var e *Error
	switch {
	case err != nil:
		e = c.sender.ioError(ctx, p, verb, err)
	case !r.positive():
		e = c.sender.replyError(p, verb, r, 0)
	default:
		return nil
	}
	if (p == PhaseGreeting || p == PhaseEHLO) && !c.relay.OperatorsOwn {
		if e.Code != 0 && wordedAsSMTP(e) {
			c.record.unveil()
		}
		e.hideReply()
	}
	return e
}

// hello sends EHLO, or HELO to a relay that does not know EHLO.
func (c *session) hello(ctx context.Context) *Error {
	name := c.ehloName()
	r, e := c.command(ctx, PhaseEHLO, "EHLO", " ", name)
	if e == nil {
		c.ext = parseExtensions(r.text)
		c.ext.pipelining = c.ext.pipelining && !c.sender.losers.has(c.relay, time.Now())
	} else if r.code >= 500 && r.code <= 504 {
		_, e = c.command(ctx, PhaseEHLO, "HELO", " ", name)
	}
	if e == nil {
		c.record.unveil()
	}
	return e
}

// ehloName is the name to greet with: the configured or the qualified one, else an address literal (RFC 5321
// section 4.1.4).
func (c *session) ehloName() string {
	if name := cmp.Or(c.relay.EHLOName, c.sender.o.EHLOName); name != "" {
		return name
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

// upgrade does STARTTLS (RFC 3207) as the mode asks. It fails if TLS is required and not offered.
func (c *session) upgrade(ctx context.Context) *Error {
	mode := c.relay.TLS
	if mode != TLSRequired && mode != TLSOpportunistic {
		return nil
	}
	if !c.ext.startTLS {
		if mode == TLSRequired {
			return tlsRefused("the relay does not offer STARTTLS, and TLS is required")
		}
		return nil
	}
	if r, e := c.command(ctx, PhaseSTARTTLS, "STARTTLS"); e != nil {
		if mode == TLSOpportunistic && !c.relay.hasCredentials() && r.code != 0 && r.code != 421 {
			return nil
		}
		return e
	}
	if c.r.Buffered() > 0 {
		// Bytes behind the clear-text reply would be read as if they came through TLS (CVE-2021-33515).
		return tlsRefused("the relay sent bytes ahead of the TLS handshake")
	}
	if failure := c.handshake(ctx); failure != nil {
		return failure
	}
	return c.hello(ctx)
}

// onLoopback reports whether the relay is on this machine, by the address that answered, not by its name. It
// is false behind a proxy.
func (c *session) onLoopback() bool {
	addr, ok := c.raw.RemoteAddr().(*net.TCPAddr)
	return ok && addr.IP.IsLoopback() && c.proxy == nil
}
