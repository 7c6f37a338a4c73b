package smtpd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/server/access"
)

// Outbox is who takes the messages; outbox.Outbox implements it.
type Outbox interface {
	// SubmitSMTP makes a message durable. A nil error means that it will be seen through.
	SubmitSMTP(ctx context.Context, req api.SubmitRequest) (api.SubmitAnswer, error)
}

// Accounts is asked at login whether an account can send; app implements it with package accounts.
type Accounts interface {
	// Known returns a fault of kind NotFound for an account that does not exist. The empty id is the default account.
	Known(ctx context.Context, account string) error
}

// Access says what the bearer of a token may do; access.Access implements it.
type Access interface {
	Authenticate(ctx context.Context, presented string, remote netip.Addr, now time.Time) (*access.Grant, error)
}

// Parts are what an inlet needs, all required.
type Parts struct {
	Outbox   Outbox
	Accounts Accounts
	Access   Access
}

// Options are the choices of the one who runs Postroom. At least one of Listen and ListenTLS is needed.
type Options struct {
	Listen         string        // address for SMTP, with STARTTLS where there is a certificate; empty: not served
	ListenTLS      string        // address for TLS from the first byte (RFC 8314); empty: not served. Needs a certificate
	TLSCert        string        // file of the certificate chain in PEM, read again when it changes; empty: no TLS
	TLSKey         string        // file of its key in PEM
	Hostname       string        // name in the greeting; empty: the machine's
	InsecureAuth   bool          // take tokens without TLS from clients on other machines too
	MaxMessage     int64         // bytes of a message; 0: 25 MB
	MaxRecipients  int           // recipients of a message; 0: 1000
	MaxConnections int           // connections at once; 0: 500
	BodyMemory     int64         // bytes that messages of more than 1 MB may take together while they come in; beyond it 452; 0: 256 MB
	IdleTimeout    time.Duration // longest silence of a client, between commands and within a message; 0: 5 min (RFC 5321 section 4.5.3.2.7)
	LoginTimeout   time.Duration // how long a client may stay without logging in; 0: 1 min
	Grace          time.Duration // how long messages on their way in may take to end when Run is told to stop; 0: 10 s
	Metrics        *prometheus.Registry
	Logger         *slog.Logger // nil: nothing is logged
	Now            func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Hostname == "" {
		o.Hostname = hostname()
	}
	o.MaxMessage = or(o.MaxMessage, 25<<20)
	o.MaxRecipients = or(o.MaxRecipients, 1000)
	o.MaxConnections = or(o.MaxConnections, 500)
	o.BodyMemory = max(or(o.BodyMemory, 256<<20), o.MaxMessage)
	o.IdleTimeout = or(o.IdleTimeout, 5*time.Minute)
	o.LoginTimeout = or(o.LoginTimeout, time.Minute)
	o.Grace = or(o.Grace, 10*time.Second)
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Inlet is an SMTP door: for messages of applications, made by New, or for mail that comes back, made by NewBounceListener. It listens from then on
// and answers while Run runs.
type Inlet struct {
	Parts
	bounces   Bounces // nil: applications hand in their messages here
	opts      Options
	listeners []listener
	cert      *certificate // nil: no TLS
	metrics   *metrics
	log       maillog
	memory    *semaphore.Weighted // what is left of Options.BodyMemory
	turns     *semaphore.Weighted // of messages that take of it, to be worked on

	mu       sync.Mutex
	stopping bool
	open     map[*wire]bool
	serving  sync.WaitGroup
}

// listener is an address that is listened on.
type listener struct {
	net.Listener
	implicit bool // TLS from the first byte
	lmtp     bool // RFC 2033 is spoken, to a mail server of this house
}

// New makes an Inlet and begins to listen, so that a port in use or a certificate that can't be read shows at once. The caller either
// calls Run, which closes the listeners, or Close.
func New(parts Parts, o Options) (*Inlet, error) {
	switch {
	case parts.Outbox == nil || parts.Accounts == nil || parts.Access == nil:
		return nil, errors.New("new SMTP inlet: a part is missing")
	case o.Listen == "" && o.ListenTLS == "":
		return nil, errors.New("new SMTP inlet: no address to listen on")
	case o.ListenTLS != "" && o.TLSCert == "":
		return nil, errors.New("new SMTP inlet: TLS needs a certificate")
	}
	o = o.withDefaults()
	i, err := newInlet(o, newMetrics(o.Metrics))
	if err != nil {
		return nil, fmt.Errorf("new SMTP inlet: %w", err)
	}
	i.Parts = parts
	if err := errors.Join(i.listen("smtpd.listen", o.Listen, false), i.listen("smtpd.listenTls", o.ListenTLS, true)); err != nil {
		return nil, errors.Join(fmt.Errorf("new SMTP inlet: %w", err), i.Close())
	}
	return i, nil
}

// newInlet makes an Inlet that does not listen yet.
func newInlet(o Options, m *metrics) (*Inlet, error) {
	i := &Inlet{
		opts: o, metrics: m, log: maillog{o.Logger}, memory: semaphore.NewWeighted(o.BodyMemory),
		turns: semaphore.NewWeighted(int64(min(runtime.GOMAXPROCS(0), runtime.NumCPU()))), open: map[*wire]bool{},
	}
	if o.TLSCert == "" {
		return i, nil
	}
	var err error
	if i.cert, err = loadCertificate(o.TLSCert, o.TLSKey, o.Logger); err != nil {
		return nil, fmt.Errorf("smtpd.tls: %w", err)
	}
	return i, nil
}

func (i *Inlet) listen(setting, address string, implicit bool) error {
	if address == "" {
		return nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("%s: %w", setting, err)
	}
	i.listeners = append(i.listeners, listener{Listener: l, implicit: implicit})
	return nil
}

// Addr is the address of Options.Listen as it was taken, host:port; empty without one.
func (i *Inlet) Addr() string {
	return i.addr(func(l listener) bool { return !l.implicit && !l.lmtp })
}

// AddrTLS is the address of Options.ListenTLS as it was taken, host:port; empty without one.
func (i *Inlet) AddrTLS() string { return i.addr(func(l listener) bool { return l.implicit }) }

func (i *Inlet) addr(wanted func(listener) bool) string {
	for _, l := range i.listeners {
		if wanted(l) {
			return l.Addr().String()
		}
	}
	return ""
}

// purpose says in the log whose mail is taken.
func (i *Inlet) purpose() string {
	if i.bounces != nil {
		return "returned mail"
	}
	return "submission"
}

// Close stops listening, where Run was never called; after Run it does nothing.
func (i *Inlet) Close() error {
	var errs error
	for _, l := range i.listeners {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = errors.Join(errs, fmt.Errorf("stop listening: %w", err))
		}
	}
	return errs
}

// Run serves until ctx ends. Then it stops listening, tells clients between two messages to go (421), waits up to Options.Grace for the
// messages on their way in, and cuts what is left. It returns nil after an orderly end.
func (i *Inlet) Run(ctx context.Context) error {
	sessions, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	failed := make(chan error, len(i.listeners))
	var accepting sync.WaitGroup
	for _, l := range i.listeners {
		i.log.listening(l, i.purpose(), i.cert != nil)
		accepting.Go(func() { failed <- i.accept(ctx, sessions, l) })
	}
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	err = errors.Join(err, i.Close())
	i.stop(sessions, cut)
	accepting.Wait()
	return err
}

// stop ends what is being served: those who wait for nothing at once, the others when they are done or Options.Grace is over.
func (i *Inlet) stop(ctx context.Context, cut context.CancelFunc) {
	i.mu.Lock()
	i.stopping = true
	for w := range i.open {
		w.drain()
	}
	i.mu.Unlock()
	done := make(chan struct{})
	go func() { i.serving.Wait(); close(done) }()
	select {
	case <-done:
		return
	case <-time.After(i.opts.Grace):
	}
	cut()
	i.mu.Lock()
	i.log.cutOff(ctx, len(i.open), i.opts.Grace)
	for w := range i.open {
		w.cut()
	}
	i.mu.Unlock()
	<-done
}

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil || !printable(name) {
		return "localhost"
	}
	return name
}
