package smtpd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"github.com/postroom/postroom/fault"
)

// Bounces is who takes mail that comes back; app implements it with package feedback.
type Bounces interface {
	// Expected says whether mail to an address is taken. A fault of kind NotFound means that the address looks like a return path of ours and is
	// none; any other one, that it is not for here.
	Expected(address string) error
	// Returned makes what a mail tells durable. It may be cut behind its first megabyte. A nil error means that it will be seen through.
	Returned(ctx context.Context, mail []byte, to string) error
}

// BounceOptions are the choices of the one who runs Postroom about mail that comes back. At least one of Listen and LMTP is needed.
type BounceOptions struct {
	Options        // Listen is for SMTP from anywhere. Of no use here: ListenTLS, InsecureAuth, LoginTimeout, BodyMemory
	LMTP    string // path of a Unix socket, or host:port, for LMTP (RFC 2033) from a mail server of this house; empty: not served
}

// Limits of mail that comes back, where the options don't say otherwise.
const (
	maxBounce            = 50 << 20 // a bounce may hold all of a large message; the other server must be able to get rid of it
	keptOfBounce         = 1 << 20  // as much as package bounce reads
	maxBounceRecipients  = 100      // RFC 5321 section 4.5.3.1.8
	maxBounceConnections = 50
	unknownReturnPath    = "This is not the return path of any message"
	noRelaying           = "Relay access denied"
	bounceExtensions     = "PIPELINING,8BITMIME,SMTPUTF8,ENHANCEDSTATUSCODES"
)

// NewBounceListener makes an Inlet for mail that comes back. Nobody logs in: it takes mail from anybody, but only for addresses that are expected.
func NewBounceListener(to Bounces, o BounceOptions) (*Inlet, error) {
	switch {
	case to == nil:
		return nil, errors.New("new inlet for returned mail: nobody takes it")
	case o.Listen == "" && o.LMTP == "":
		return nil, errors.New("new inlet for returned mail: no address to listen on")
	}
	o.MaxMessage = or(o.MaxMessage, maxBounce)
	o.MaxRecipients = or(o.MaxRecipients, maxBounceRecipients)
	o.MaxConnections = or(o.MaxConnections, maxBounceConnections)
	o.Options = o.withDefaults()
	i, err := newInlet(o.Options, newBounceMetrics(o.Metrics))
	if err != nil {
		return nil, fmt.Errorf("new inlet for returned mail: %w", err)
	}
	i.bounces = to
	if err := errors.Join(i.listen("bounce.listen", o.Listen, false), i.listenLMTP(o.LMTP)); err != nil {
		return nil, errors.Join(fmt.Errorf("new inlet for returned mail: %w", err), i.Close())
	}
	return i, nil
}

// listenLMTP listens on a Unix socket or a port.
func (i *Inlet) listenLMTP(address string) error {
	if address == "" {
		return nil
	}
	network := "tcp"
	if strings.Contains(address, "/") {
		network = "unix"
		if err := removeStale(address); err != nil {
			return fmt.Errorf("bounce.lmtp: %w", err)
		}
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return fmt.Errorf("bounce.lmtp: %w", err)
	}
	i.listeners = append(i.listeners, listener{Listener: l, lmtp: true})
	if network == "unix" {
		// Mail servers run as users of their own. Who can speak to the socket can do no more than whoever sends us mail.
		if err := os.Chmod(address, 0o666); err != nil { //nolint:gosec // see above
			return fmt.Errorf("bounce.lmtp: %w", err)
		}
	}
	return nil
}

// removeStale removes a socket that a process left behind when it was killed. One that somebody listens on stays, and so does a file that
// is no socket.
func removeStale(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is there, and is no socket", path)
	}
	if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
		_ = conn.Close() // it was only to see whether there is one
		return fmt.Errorf("another process listens on %s", path)
	}
	return os.Remove(path)
}

// AddrLMTP is the address of BounceOptions.LMTP as it was taken: a path, or host:port; empty without one.
func (i *Inlet) AddrLMTP() string { return i.addr(func(l listener) bool { return l.lmtp }) }

// greeting is the first line of a conversation.
func (s *session) greeting() reply {
	if s.lmtp {
		return reply{code: 220, text: s.opts.Hostname + " LMTP Postroom"}
	}
	return reply{code: 220, text: s.opts.Hostname + " ESMTP Postroom"}
}

// handleBounces answers the commands that differ where mail comes back: LMTP greets with LHLO and with nothing else (RFC 2033 section 4.1),
// and there are neither logins nor chunks.
func (s *session) handleBounces(verb, arg string) (r reply, known bool) {
	if s.bounces == nil {
		return reply{}, false
	}
	switch {
	case verb == "LHLO" && s.lmtp:
		return s.ehlo(arg), true
	case s.lmtp && (verb == "EHLO" || verb == "HELO"):
		return reply{code: 500, enhanced: "5.5.1", text: "This is LMTP: say LHLO"}, true
	case verb == "AUTH":
		return reply{code: 502, enhanced: "5.5.1", text: "Nobody logs in here"}, true
	case verb == "BDAT": // octets follow, which must not be read as commands
		return reply{code: 502, enhanced: "5.5.1", text: "BDAT is not offered", close: true}, true
	}
	return reply{}, false
}

// bounceOffers are the extensions that EHLO and LHLO name.
func (s *session) bounceOffers() []string {
	offers := append(strings.Split(bounceExtensions, ","), fmt.Sprintf("SIZE %d", s.opts.MaxMessage), fmt.Sprintf("LIMITS RCPTMAX=%d", s.opts.MaxRecipients))
	if s.cert != nil && !s.tls {
		offers = append(offers, "STARTTLS")
	}
	return offers
}

// expected refuses recipients that no mail comes back to. Each costs one of the commands that lead to nothing, so that nobody tries tokens by the
// thousand on one connection.
func (s *session) expected(to string) reply {
	err := s.bounces.Expected(to)
	if err == nil {
		return reply{}
	}
	s.idle++
	if fault.Is(err, fault.NotFound) {
		return reply{code: 550, enhanced: "5.1.1", text: unknownReturnPath}
	}
	return reply{code: 550, enhanced: "5.7.1", text: noRelaying}
}

// takeBounce hands over the mail that came in. SMTP has one reply for all recipients, the worst; LMTP one for each (RFC 2033 section 4.2).
func (s *session) takeBounce(ctx context.Context) reply {
	s.idle = 0
	if hops(s.t.body.content) > maxHops {
		s.t.body.refuse(looping)
	}
	var last reply
	for n, to := range s.t.to {
		r := s.t.body.refused
		if r.code == 0 {
			r = s.returned(ctx, to)
		}
		s.metrics.returned(r)
		if s.lmtp && n < len(s.t.to)-1 {
			s.wire.reply(r)
		}
		if s.lmtp || r.code > last.code {
			last = r
		}
	}
	return last
}

// returned hands over the mail for one recipient.
func (s *session) returned(ctx context.Context, to string) reply {
	if err := s.bounces.Returned(ctx, s.t.body.content, to); err != nil {
		s.log.bounceNotTaken(ctx, s, err)
		return reply{code: 451, enhanced: "4.3.0", text: "The mail can't be taken now; try again later"}
	}
	return reply{code: 250, enhanced: "2.0.0", text: "Ok: taken"}
}

// returned counts a mail that came back.
func (m *metrics) returned(r reply) {
	if r.code == 250 {
		m.messages.WithLabelValues("taken").Inc()
		return
	}
	m.message(r)
}

func (l maillog) bounceNotTaken(ctx context.Context, s *session, err error) {
	l.WarnContext(ctx, "returned mail not taken", "remote_addr", s.remote, "bytes", len(s.t.body.content), "error", err)
}
