package smtpsend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options tunes a Sender. The zero value works.
type Options struct {
	// longest wait for one reply, or for one 32 KiB block of content to leave; 0: 120 s
	Timeout        time.Duration
	ConnectTimeout time.Duration // for look-up and TCP together; 0: 30 s, never more than Timeout
	IdleTimeout    time.Duration // how long a connection is kept unused; 0: 10 s
	// age beyond which a connection takes no further message, give or take a tenth; 0: 5 min
	Lifetime time.Duration
	// "full" judges by code, enhanced code and words; "basic" by EmailEngine's plain rule; empty: full
	Classifier string
	// for relays that name none; empty: the host name when fully qualified, else the local address
	EHLOName string

	// Control is asked before each connection, as in net.Dialer: the place for a rule about which addresses may
	// be reached.
	Control func(network, address string, c syscall.RawConn) error

	// Admit is asked before each new connection to a relay with Shared set, so that processes can count their
	// connections together. The relay comes with its defaults filled in. Without an error the connection may be
	// opened, and release is called once, when it is closed or could not be opened. An error makes the message
	// wait for a connection this process has, or, where it has none, fail with Verdict Throttle, after the time
	// that RetryAfter() time.Duration of the error asks for, if it has that method. Nil: every connection may be
	// opened.
	Admit func(ctx context.Context, relay Relay) (release func(), err error)

	Registry prometheus.Registerer // nil: measure nothing
	Logger   *slog.Logger          // nil: discard
}

// Sender sends messages. It keeps connections open between messages and is safe for concurrent use.
type Sender struct {
	timeout  time.Duration
	connect  time.Duration
	hostname string
	idle     time.Duration
	lifetime time.Duration
	control  func(network, address string, c syscall.RawConn) error
	admit    func(ctx context.Context, relay Relay) (release func(), err error)
	judge    func(Evidence) Judgement
	basic    bool
	pool     *pool
	blocks   sync.Pool // *blocks, for large contents
	metrics  *metrics
	log      *slog.Logger
}

// New makes a Sender. It fails when the classifier is unknown or the metrics cannot be registered.
func New(o Options) (*Sender, error) {
	s := &Sender{
		timeout:  durationOr(o.Timeout, 120*time.Second),
		hostname: o.EHLOName,
		idle:     durationOr(o.IdleTimeout, 10*time.Second),
		lifetime: durationOr(o.Lifetime, 5*time.Minute),
		control:  o.Control,
		admit:    o.Admit,
		log:      o.Logger,
	}
	s.connect = min(s.timeout, durationOr(o.ConnectTimeout, 30*time.Second))
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.hostname == "" {
		s.hostname = qualifiedHostname()
	}
	switch o.Classifier {
	case "", "full":
		s.judge = Classify
	case "basic":
		s.judge, s.basic = ClassifyBasic, true
	default:
		return nil, fmt.Errorf("smtpsend: unknown classifier %q: use full or basic", o.Classifier)
	}
	var err error
	if s.metrics, err = newMetrics(o.Registry); err != nil {
		return nil, fmt.Errorf("smtpsend: register metrics: %w", err)
	}
	s.pool, s.blocks.New = newPool(), newBlocks
	return s, nil
}

// Send hands m to the relay and waits for what comes of it. The Result lists every recipient in any case. The
// error is nil as soon as one recipient was delivered; otherwise it is an *Error that speaks for the whole
// message, and worth another attempt (not Permanent) if any recipient is. The end of ctx closes the
// connection.
func (s *Sender) Send(ctx context.Context, relay Relay, m Message) (Result, error) {
	d := newDelivery(s, s.complete(relay), m)
	err := d.check(ctx, relay)
	if err == nil {
		d.run(ctx)
	} else {
		d.failRest(d.rest, err)
	}
	s.metrics.observe(&d.result)
	return d.result, d.err()
}

// Verify connects, encrypts, logs in and says goodbye, and so tells whether the relay's settings work. The
// error is an *Error.
func (s *Sender) Verify(ctx context.Context, relay Relay) error {
	if err := relay.Check(); err != nil {
		return settingsError(err)
	}
	c, err := s.open(ctx, s.complete(relay))
	if err != nil {
		return err
	}
	c.quit(true)
	return nil
}

// Run closes connections that were idle for too long. It returns nil when ctx ends, after closing all idle
// ones.
func (s *Sender) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			s.pool.reap(time.Now(), true)
			return nil
		case now := <-tick.C:
			s.pool.reap(now, false)
		}
	}
}

// Close closes all idle connections and refuses new messages. Those under way finish.
func (s *Sender) Close() error {
	s.pool.close()
	return nil
}

// complete fills in what the relay's settings leave to the defaults.
func (s *Sender) complete(relay Relay) Relay {
	relay = relay.withDefaults()
	relay.IdleTimeout = durationOr(relay.IdleTimeout, s.idle)
	relay.Lifetime = durationOr(relay.Lifetime, s.lifetime)
	return relay
}

// errClosed is the cause of errors after Close.
var errClosed = errors.New("sender is closed")

// settingsError blames the account's settings, so that nothing is sent until somebody has changed them.
func settingsError(err error) *Error {
	return &Error{Phase: PhaseCheck, Verdict: Auth, Scope: ScopeAccount, Err: err, name: nameConnection}
}

// qualifiedHostname is this machine's name when it is one a relay may accept in EHLO, else empty.
func qualifiedHostname() string {
	name, err := os.Hostname()
	if err != nil || !strings.Contains(name, ".") || strings.HasPrefix(name, "localhost.") || !printable(name) ||
		!ascii(name) || net.ParseIP(name) != nil {
		return ""
	}
	return name
}

func durationOr(d, def time.Duration) time.Duration {
	if d <= 0 {
		return def
	}
	return d
}
