package smtpsend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/internal/telemetry"
)

// Options tunes a Sender. The zero value works.
type Options struct {
	// longest wait for one reply, or for one 32 KiB block of content to leave; defaults to 120 s
	Timeout        time.Duration
	ConnectTimeout time.Duration // for look-up and TCP together; defaults to 30 s, never more than Timeout
	IdleTimeout    time.Duration // how long a connection is kept unused; defaults to 10 s
	// age beyond which a connection takes no further message, give or take a tenth; defaults to 5 min
	Lifetime time.Duration
	// "full" (default) judges by code, enhanced code and text; "basic" by EmailEngine's plain rule
	Classifier string
	// for relays that name none; defaults to the host name if fully qualified, else the local address
	EHLOName string

	// Guard judges relays and proxies when they are dialed, except Relay.OperatorsOwn. If nil, it permits
	// private addresses. Its refusal is a failure of the account's settings.
	Guard *dialing.Guard

	// Admit is called before each new connection to a relay with Shared set, so that processes can count
	// connections together. The relay has its defaults filled in. Without an error the connection may be opened.
	// release is called once, when it is closed or could not be opened. After an error the message waits for a
	// connection of this process. Without one it fails with Verdict Throttle; Error.RetryAfter comes from the
	// error's method RetryAfter() time.Duration, if it has one. If Admit is nil, every connection may be opened.
	Admit func(ctx context.Context, relay Relay) (release func(), err error)

	Registry prometheus.Registerer // nil to measure nothing
	Logger   *slog.Logger          // nil to discard
}

// Sender sends messages. It keeps connections open between messages and is safe for concurrent use.
type Sender struct {
	o       Options // with the defaults filled in
	judge   func(Evidence) Judgement
	basic   bool // judge is ClassifyBasic
	pool    *pool
	losers  losers
	blocks  sync.Pool // *blocks, for large contents
	records sync.Pool // *recorder
	metrics *metrics
}

// New makes a Sender. It fails when the classifier is unknown or the metrics cannot be registered.
func New(o Options) (*Sender, error) {
	o.Timeout = positiveOr(o.Timeout, 120*time.Second)
	o.ConnectTimeout = min(o.Timeout, positiveOr(o.ConnectTimeout, 30*time.Second))
	o.IdleTimeout = positiveOr(o.IdleTimeout, 10*time.Second)
	o.Lifetime = positiveOr(o.Lifetime, 5*time.Minute)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Guard = cmp.Or(o.Guard, dialing.New(dialing.Options{AllowPrivate: true, Logger: o.Logger}))
	if o.EHLOName == "" {
		o.EHLOName = qualifiedHostname()
	}
	s := &Sender{o: o, judge: Classify, pool: newPool()}
	switch o.Classifier {
	case "", "full":
	case "basic":
		s.judge, s.basic = ClassifyBasic, true
	default:
		return nil, fmt.Errorf("smtpsend: unknown classifier %q: use full or basic", o.Classifier)
	}
	s.blocks.New = newBlocks
	s.records.New = func() any { return new(recorder) }
	var err error
	s.metrics, err = telemetry.Try(func() *metrics { return newMetrics(o.Registry) })
	return s, err
}

// Send hands m to the relay and waits for the result, which always lists every recipient. The error is nil
// when at least one recipient was delivered. Otherwise it is an *Error for the whole message, which is not
// Permanent if any recipient's is not. The end of ctx closes the connection.
func (s *Sender) Send(ctx context.Context, relay Relay, m Message) (Result, error) {
	d := newDelivery(s, s.complete(relay), m)
	d.record = s.records.Get().(*recorder)
	d.record.begin()
	err := d.check(ctx, relay)
	if err == nil {
		d.run(ctx)
	} else {
		d.failRest(d.rest, err)
	}
	if d.record.n > 0 && !d.delivered() {
		d.result.Dialogue = d.record.excerpt(&d.relay)
	}
	d.record.reset()
	s.records.Put(d.record)
	s.metrics.observe(&d.result)
	return d.result, d.result.Err()
}

// Verify connects, encrypts, logs in and quits, to test the relay's settings. The error is an *Error.
func (s *Sender) Verify(ctx context.Context, relay Relay) error {
	if err := relay.Check(); err != nil {
		return settingsError(err)
	}
	c, err := s.open(ctx, s.complete(relay), nil)
	if err != nil {
		return err
	}
	c.quit(true)
	return nil
}

// Run closes connections that were idle for too long. When ctx ends it closes all idle ones and returns nil.
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

func (s *Sender) complete(relay Relay) Relay {
	relay = relay.withDefaults()
	relay.IdleTimeout = positiveOr(relay.IdleTimeout, s.o.IdleTimeout)
	relay.Lifetime = positiveOr(relay.Lifetime, s.o.Lifetime)
	return relay
}

var errClosed = errors.New("sender is closed")

// settingsError is a failure of the account's settings. Nothing is sent until somebody changes them.
func settingsError(err error) *Error {
	return newError(PhaseCheck, Auth, ScopeAccount, nameConnection, err)
}

// qualifiedHostname returns this host's name if a relay may accept it in EHLO, else "".
func qualifiedHostname() string {
	name, err := os.Hostname()
	if err != nil || !strings.Contains(name, ".") || strings.HasPrefix(name, "localhost.") || !printable(name) ||
		!ascii(name) || net.ParseIP(name) != nil {
		return ""
	}
	return name
}
