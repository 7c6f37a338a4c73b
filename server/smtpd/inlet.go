package smtpd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/audit"
	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/peers"
)

// Parts are what an inlet calls, all required.
type Parts struct {
	// Submit makes a message durable. A nil error means that it will be delivered, or reported as failed. It is
	// SubmitSMTP of outbox.Intake.
	Submit   func(ctx context.Context, req api.SubmitRequest) (api.SubmitAnswer, error)
	Accounts *accounts.Accounts
	Access   *access.Access
	Audit    *audit.Log // gets logins
}

// Options are the settings of an inlet. At least one of Listen and ListenTLS is needed.
type Options struct {
	Listen       string // address for SMTP, with STARTTLS if there is a certificate; empty if none
	ListenTLS    string // address for TLS from the first byte (RFC 8314), needs a certificate; empty if none
	TLSCert      string // file of the certificate chain in PEM, read again when it changes; empty means no TLS
	TLSKey       string // file of its key in PEM
	Hostname     string // name in the greeting; defaults to os.Hostname
	InsecureAuth bool   // accept tokens without TLS from other machines too
	// Proxies send the PROXY protocol on Listen and ListenTLS; nil if no one does
	Proxies        *peers.Proxies
	MaxMessage     int64 // bytes of a message; defaults to 25 MB
	MaxRecipients  int   // recipients of a message; defaults to 1000
	MaxConnections int   // maximum of connections; defaults to 500
	// connections of one address (IPv6: /64) without a login; defaults to 50
	MaxConnectionsPerAddress int
	MinRate                  int64 // bytes a second of a message, measured over IdleTimeout; defaults to 4 kB
	// BodyMemory is the memory in bytes that incoming messages share, except for the first 64 kB of each. An
	// account gets at most as much as is left for all others. Beyond it, the answer is 452. Defaults to 256 MB.
	BodyMemory int64
	// IdleTimeout bounds the silence of a client between commands and within a message.
	// defaults to 5 min (RFC 5321 section 4.5.3.2.7).
	IdleTimeout  time.Duration
	LoginTimeout time.Duration         // from the greeting to the login; defaults to 1 min
	Grace        time.Duration         // for messages on their way in when ctx of Run ends; defaults to 10 s
	Metrics      prometheus.Registerer // nil if nothing is counted
	Logger       *slog.Logger          // nil if nothing is logged
	Now          func() time.Time
}

func (o Options) withDefaults() Options {
	o.Hostname = cmp.Or(o.Hostname, hostname())
	o.MaxMessage = cmp.Or(o.MaxMessage, 25<<20)
	o.MaxRecipients = cmp.Or(o.MaxRecipients, 1000)
	o.MaxConnections = cmp.Or(o.MaxConnections, 500)
	o.MaxConnectionsPerAddress = cmp.Or(o.MaxConnectionsPerAddress, 50)
	o.MinRate = cmp.Or(o.MinRate, 4<<10)
	o.BodyMemory = max(cmp.Or(o.BodyMemory, 256<<20), o.MaxMessage)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 5*time.Minute)
	o.LoginTimeout = cmp.Or(o.LoginTimeout, time.Minute)
	o.Grace = cmp.Or(o.Grace, 10*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Inlet is an SMTP listener: for messages of applications ([New]), or for bounces ([NewBounceListener]). It
// listens as soon as it is made, and answers while Run runs.
type Inlet struct {
	Parts
	bounces   Bounces // nil if applications submit their messages here
	opts      Options
	listeners []listener
	cert      *dialing.Certificate // nil means no TLS
	metrics   *metrics
	log       maillog
	memory    *peers.Pool         // Options.BodyMemory
	turns     *semaphore.Weighted // for the outbox, taken by messages that hold some of memory

	mu       sync.Mutex
	stopping bool
	open     map[*wire]bool
	serving  sync.WaitGroup
}

// listener is one address of an Inlet.
type listener struct {
	net.Listener
	limiter  *peers.ConnLimiter
	implicit bool // TLS from the first byte
	lmtp     bool // RFC 2033 is spoken
}

// New makes an Inlet and begins to listen, so that a port in use or an unreadable certificate shows at once.
// The caller calls either Run, which closes the listeners, or Close.
func New(parts Parts, o Options) (*Inlet, error) {
	switch {
	case parts.Submit == nil || parts.Accounts == nil || parts.Access == nil || parts.Audit == nil:
		return nil, errors.New("new SMTP inlet: a part is missing")
	case o.Listen == "" && o.ListenTLS == "":
		return nil, errors.New("new SMTP inlet: no address to listen on")
	case o.ListenTLS != "" && o.TLSCert == "":
		return nil, errors.New("new SMTP inlet: TLS needs a certificate")
	}
	i := newInlet(o, newMetrics(o.Metrics))
	i.Parts = parts
	limiter := i.newLimiter("smtpd.maxConnections")
	if err := cmp.Or(
		i.loadCertificate(),
		i.listen("smtpd.listen", o.Listen, listener{limiter: limiter}),
		i.listen("smtpd.listenTls", o.ListenTLS, listener{limiter: limiter, implicit: true}),
	); err != nil {
		return nil, errors.Join(fmt.Errorf("new SMTP inlet: %w", err), i.Close())
	}
	return i, nil
}

// newInlet makes an Inlet that does not listen yet.
func newInlet(o Options, m *metrics) *Inlet {
	o = o.withDefaults()
	return &Inlet{
		opts: o, metrics: m, log: maillog{o.Logger}, memory: peers.NewPool(peers.Shares{
			Size: o.BodyMemory, First: o.MaxMessage}),
		turns: semaphore.NewWeighted(int64(min(runtime.GOMAXPROCS(0), runtime.NumCPU()))), open: map[*wire]bool{},
	}
}

// newLimiter makes the limiter for one kind of listener.
func (i *Inlet) newLimiter(setting string) *peers.ConnLimiter {
	return peers.NewConnLimiter(peers.ConnLimits{Connections: i.opts.MaxConnections,
		PerNetwork: i.opts.MaxConnectionsPerAddress, Count: i.metrics.connections, Setting: setting,
		Logger: i.opts.Logger})
}

// pace is how fast a message must come.
func (i *Inlet) pace() peers.Pace { return peers.PaceOf(i.opts.MinRate, i.opts.IdleTimeout) }

func (i *Inlet) loadCertificate() (err error) {
	if i.opts.TLSCert == "" {
		return nil
	}
	if i.cert, err = dialing.LoadCertificate(i.opts.TLSCert, i.opts.TLSKey, i.opts.Logger); err != nil {
		return fmt.Errorf("smtpd.tls: %w", err)
	}
	return nil
}

// listen adds a listener on a port, or on a Unix socket if the address is a path.
func (i *Inlet) listen(setting, address string, l listener) (err error) {
	if address == "" {
		return nil
	}
	if strings.Contains(address, "/") {
		l.Listener, err = listenSocket(address)
	} else {
		l.Listener, err = net.Listen("tcp", address)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", setting, err)
	}
	if i.opts.Proxies != nil && !l.lmtp {
		first := peers.ServerFirst
		if l.implicit {
			first = peers.ClientFirst
		}
		l.Listener = i.opts.Proxies.Listen(l.Listener, i.proxySetting(), first)
	}
	i.listeners = append(i.listeners, l)
	return nil
}

func (i *Inlet) proxySetting() string {
	if i.bounces != nil {
		return "bounce.proxyProtocol"
	}
	return "smtpd.proxyProtocol"
}

// Addr returns the host:port of Options.Listen; empty without one.
func (i *Inlet) Addr() string { return i.addr(false, false) }

// AddrTLS returns the host:port of Options.ListenTLS; empty without one.
func (i *Inlet) AddrTLS() string { return i.addr(true, false) }

// AddrLMTP returns the path or host:port of BounceOptions.LMTP; empty without one.
func (i *Inlet) AddrLMTP() string { return i.addr(false, true) }

func (i *Inlet) addr(implicit, lmtp bool) string {
	for _, l := range i.listeners {
		if l.implicit == implicit && l.lmtp == lmtp {
			return l.Addr().String()
		}
	}
	return ""
}

// Close stops listening if Run was never called; after Run it does nothing.
func (i *Inlet) Close() error {
	var errs error
	for _, l := range i.listeners {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = errors.Join(errs, fmt.Errorf("stop listening: %w", err))
		}
	}
	return errs
}

// Run serves until ctx ends. Then it stops listening, sends 421 to clients between two messages, waits up to
// Options.Grace for messages on their way in, and cuts the rest off. It returns nil after an orderly end.
func (i *Inlet) Run(ctx context.Context) error {
	sessions, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	failed := make(chan error, len(i.listeners))
	var accepting sync.WaitGroup
	for _, l := range i.listeners {
		i.log.listening(l, i)
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

// stop ends connections: idle ones immediately, the others when they are done or Options.Grace ends.
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
	i.log.WarnContext(ctx, "smtp connections cut off", "connections", len(i.open), "grace", i.opts.Grace)
	for w := range i.open {
		w.cut()
	}
	i.mu.Unlock()
	<-done
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil || name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "localhost"
	}
	return name
}
