package smtpd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"time"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/feedback"
	"github.com/postroom/postroom/feedback/bounce"
	"github.com/postroom/postroom/server/peers"
)

// Bounces takes bounces in. feedback.Bounces implements it.
type Bounces interface {
	// Expected returns nil if mail to address is accepted, and NotFound if address only looks like a return path
	// of ours. Any other error means that this is not an address of ours.
	Expected(address string) error
	// Receive makes the facts that an email proves durable. The mail may be cut after its first megabyte. A nil
	// error means that they will be applied.
	Receive(ctx context.Context, mail io.Reader, to string) (bounce.Report, feedback.Outcome, error)
}

// BounceOptions are the settings of a bounce listener. At least one of Listen and LMTP is needed.
type BounceOptions struct {
	// Listen is for SMTP from anywhere. ListenTLS and InsecureAuth have no effect. LoginTimeout bounds the time
	// to the first expected recipient; defaults to 2 min. BodyMemory has no effect
	Options
	// path of a Unix socket, or host:port, for LMTP (RFC 2033) from a mail server of your own; empty if none
	LMTP string
}

// Bounds of bounces, unless the options say otherwise.
const (
	// a bounce may hold all of a large message; the other server must get rid of it
	maxBounce            = 50 << 20
	keptOfBounce         = 1 << 20 // as much as package bounce reads
	maxBounceRecipients  = 100     // RFC 5321 section 4.5.3.1.8
	maxBounceConnections = 200
	maxBouncesOfAddress  = 20
	bounceMemory         = 64 << 20 // for all incoming bounces together, shared by addresses
	bounceTime           = 2 * time.Minute
)

// NewBounceListener makes an Inlet for bounces. Clients do not log in. It accepts mail from everybody, but
// only for expected addresses.
func NewBounceListener(to Bounces, o BounceOptions) (*Inlet, error) {
	switch {
	case to == nil:
		return nil, errors.New("new bounce listener: Bounces is missing")
	case o.Listen == "" && o.LMTP == "":
		return nil, errors.New("new bounce listener: no address to listen on")
	}
	o.MaxMessage = cmp.Or(o.MaxMessage, maxBounce)
	o.MaxRecipients = cmp.Or(o.MaxRecipients, maxBounceRecipients)
	o.MaxConnections = cmp.Or(o.MaxConnections, maxBounceConnections)
	o.MaxConnectionsPerAddress = cmp.Or(o.MaxConnectionsPerAddress, maxBouncesOfAddress)
	o.LoginTimeout = cmp.Or(o.LoginTimeout, bounceTime)
	i := newInlet(o.Options, newBounceMetrics(o.Metrics))
	i.bounces = to
	i.memory = peers.NewPool(peers.Shares{Size: bounceMemory, First: keptOfBounce})
	// Each has its own limiter, so that others on the internet cannot shut out your own mail server.
	smtp, lmtp := i.newLimiter("bounce.maxConnections"), i.newLimiter("bounce.maxConnections")
	if err := cmp.Or(
		i.loadCertificate(),
		i.listen("bounce.listen", o.Listen, listener{limiter: smtp}),
		i.listen("bounce.lmtp", o.LMTP, listener{limiter: lmtp, lmtp: true}),
	); err != nil {
		return nil, errors.Join(fmt.Errorf("new bounce listener: %w", err), i.Close())
	}
	return i, nil
}

// listenSocket listens on a Unix socket that every user can write to. Mail servers run as different users,
// and a client of the socket can do no more than any sender of mail to us.
func listenSocket(path string) (net.Listener, error) {
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o666); err != nil { //nolint:gosec // see above
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// removeStale removes a socket that a killed process left behind. It fails for a socket with a listener, and
// for other files.
func removeStale(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s exists, but isn't a socket", path)
	}
	if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
		_ = conn.Close() // the dial was the test
		return fmt.Errorf("another process listens on %s", path)
	}
	return os.Remove(path)
}

// greeting is the first line of a conversation.
func (s *session) greeting() reply {
	protocol := "ESMTP"
	if s.lmtp {
		protocol = "LMTP"
	}
	return reply{code: 220, text: s.opts.Hostname + " " + protocol + " Postroom"}
}

// handleBounces answers the commands that differ on a bounce listener: LMTP greets with LHLO only (RFC 2033
// section 4.1), and neither logins nor chunks are offered.
func (s *session) handleBounces(verb, arg string) (r reply, known bool) {
	switch {
	case s.bounces == nil:
		return reply{}, false
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

// expected refuses recipients that no bounce can be for. Each refusal counts as an idle command, so that a
// client cannot try thousands of tokens on one connection.
func (s *session) expected(to string) reply {
	err := s.bounces.Expected(to)
	if err == nil {
		return reply{}
	}
	s.idle++
	if fault.Is(err, fault.NotFound) {
		return reply{code: 550, enhanced: "5.1.1", text: "This is not the return path of any message"}
	}
	return reply{code: 550, enhanced: "5.7.1", text: "Relay access denied"}
}

// takeBounce passes the mail on for each recipient. SMTP has one reply for all recipients, the worst; LMTP
// has one for each (RFC 2033 section 4.2).
func (s *session) takeBounce(ctx context.Context) reply {
	s.idle = 0
	s.t.body.refuseLoop()
	var last reply
	for n, to := range s.t.to {
		r := s.t.body.refused
		if r.code == 0 {
			r = s.receive(ctx, to)
		}
		s.metrics.answered(r, "taken")
		if s.lmtp && n < len(s.t.to)-1 {
			s.wire.reply(r)
		}
		if s.lmtp || r.code > last.code {
			last = r
		}
	}
	return last
}

func (s *session) receive(ctx context.Context, to string) reply {
	if _, _, err := s.bounces.Receive(ctx, bytes.NewReader(s.t.body.content), to); err != nil {
		s.log.WarnContext(ctx, "returned mail not taken", "remote_addr", s.remote, "bytes", len(s.t.body.content),
			"error", err)
		return reply{code: 451, enhanced: "4.3.0", text: "The mail can't be taken now; try again later"}
	}
	s.taken = true
	return reply{code: 250, enhanced: "2.0.0", text: "Ok: taken"}
}
