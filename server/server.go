package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/internal/telemetry"
	"github.com/postroom/postroom/server/peers"
)

// How long a client may take. A large body gets more, by its size.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = 30 * time.Second
	writeTimeout  = 2 * time.Minute // a page that streams lifts it with http.ResponseController
	idleTimeout   = 120 * time.Second
)

// maxHeaderBytes leaves room for a search of some length in the URL, and for a large cookie jar.
const maxHeaderBytes = 32 << 10

// Options configure a server. The zero value serves on 127.0.0.1:3000.
type Options struct {
	Listen  string // address to listen on, port 0 for any free one; defaults to 127.0.0.1:3000
	TLSCert string // file of the certificate chain in PEM, read again when it changes; empty means no TLS
	TLSKey  string // file of its key in PEM
	// Proxies finds the address of each client; nil means no proxy is trusted
	Proxies *peers.Proxies
	// ProxyProtocol says that Proxies send the PROXY protocol
	ProxyProtocol bool
	Version       string // of Postroom, for stats and the OpenAPI document; empty: "dev"
	MaxMessage    int64  // bytes of a message, which bounds the body of a submit; defaults to 25 MB
	// bytes for all bodies of clients with a token together; more wait, then get 503; defaults to 256 MB
	BodyMemory int64
	// the same of providers' webhooks, which need no token; more get 503; defaults to 32 MB
	PublicBodyMemory int64
	Connections      int // maximum; beyond it, the oldest without a token is closed; defaults to 4096
	// connections of one address (IPv6: /64) that sent no valid token; defaults to 256
	ConnectionsPerAddress int
	WrongProofs           int   // wrong proofs in public URLs per address and minute; more get 429; default 120
	FormsPerMinute        int   // subscription forms of one address (IPv6: /64); more get 429; 0 for any number
	MinRate               int64 // bytes a second that a body must arrive with, over 30 s; defaults to 4 kB
	// how long Run answers after its context ended, submits with 503; 0 if it stops listening immediately
	Drain           time.Duration
	Grace           time.Duration // timeout of the requests in progress at the end; defaults to 10 s
	Metrics         *prometheus.Registry
	HSTS            time.Duration     // how long browsers remember to use TLS only; 0 sends no such header
	GetUnsubscribes bool              // an unsubscribe link unsubscribes; otherwise its page asks first
	MetricsApart    bool              // /metrics is served by NewMonitor only
	Traces          *telemetry.Tracer // nil means no traces
	Logger          *slog.Logger      // nil if nothing is logged
	// settings that the process was started with; nil if they are not known
	Configuration []api.ConfiguredSetting
}

func (o Options) withDefaults() Options {
	o.Listen = cmp.Or(o.Listen, "127.0.0.1:3000")
	o.Version = cmp.Or(o.Version, "dev")
	o.MaxMessage = cmp.Or(o.MaxMessage, 25<<20)
	o.BodyMemory = max(cmp.Or(o.BodyMemory, 256<<20), o.maxSubmit())
	o.PublicBodyMemory = max(cmp.Or(o.PublicBodyMemory, 32<<20), 2*provider.MaxBody)
	o.Connections = cmp.Or(o.Connections, 4096)
	o.ConnectionsPerAddress = cmp.Or(o.ConnectionsPerAddress, 256)
	o.WrongProofs = cmp.Or(o.WrongProofs, 120)
	o.MinRate = cmp.Or(o.MinRate, 4<<10)
	o.Grace = cmp.Or(o.Grace, 10*time.Second)
	o.Metrics = cmp.Or(o.Metrics, prometheus.NewRegistry())
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Proxies = cmp.Or(o.Proxies, peers.New(nil, o.Logger))
	return o
}

// maxSubmit is the maximum size of a submit's body: base64 makes a message 1.37 times as long, and there are
// other fields.
func (o Options) maxSubmit() int64 { return o.MaxMessage + o.MaxMessage*2/5 + 64<<10 }

// Server answers HTTP requests while Run runs. It listens from New on.
type Server struct {
	parts    *Parts
	opts     Options
	echo     *echo.Echo
	listener net.Listener
	setting  string               // name of the setting of the address, for errors
	spec     func() (spec, error) // made at its first call
	metrics  *metrics
	log      *slog.Logger
	draining atomic.Bool
	bodies   *bodyMemory
	limiter  *peers.ConnLimiter
	proofs   *wrongProofs
	forms    *peers.Proofs // counts public forms by network
	pages    *publicPages
	csrf     *http.CrossOriginProtection
}

// New returns a Server that listens already, so that a port in use or an unreadable certificate is an error
// here. The caller must call Run, which closes the listener, or Close.
func New(parts Parts, o Options) (*Server, error) {
	for field, value := range reflect.ValueOf(parts).Fields() {
		if value.IsNil() {
			return nil, fmt.Errorf("new server: Parts.%s is missing", field.Name)
		}
	}
	o = o.withDefaults()
	s := prepare(parts, o, o.Metrics)
	s.setting = "http.listen"
	var err error
	if s.pages, err = newPublicPages(); err != nil {
		return nil, fmt.Errorf("new server: %w", err)
	}
	groups := s.routes()
	s.spec = sync.OnceValues(func() (spec, error) {
		examples, err := readExamples()
		if err != nil {
			return spec{}, err
		}
		return writeSpec(groups, examples)
	})
	s.mount(groups)
	if err := s.listen(); err != nil {
		return nil, fmt.Errorf("new server: %w", err)
	}
	return s, nil
}

// prepare returns a server without routes that counts its requests in a registry.
func prepare(parts Parts, o Options, counted prometheus.Registerer) *Server {
	s := &Server{
		parts: &parts, opts: o, echo: echo.New(), log: o.Logger, metrics: newMetrics(counted, o.Metrics),
		csrf: http.NewCrossOriginProtection(),
	}
	s.bodies = newBodyMemory(o, s.metrics.bodies)
	s.limiter = peers.NewConnLimiter(peers.ConnLimits{
		Connections: o.Connections, PerNetwork: o.ConnectionsPerAddress, Count: s.metrics.connections,
		Setting: "http.maxConnections", Logger: o.Logger})
	s.proofs = &wrongProofs{Proofs: peers.NewProofs(o.WrongProofs), count: s.metrics.wrongProofs}
	s.forms = peers.NewProofs(o.FormsPerMinute)
	s.echo.HTTPErrorHandler = s.answerError
	s.echo.IPExtractor = func(r *http.Request) string { return peers.Of(r).String() }
	s.echo.Use(s.identify, s.observe, s.protect, s.recover, compress())
	return s
}

func (s *Server) listen() error {
	listener, err := net.Listen("tcp", s.opts.Listen)
	if err != nil {
		return fmt.Errorf("%s: %w", s.setting, err)
	}
	s.listener = listener
	if s.opts.ProxyProtocol {
		s.listener = s.opts.Proxies.Listen(listener, "http.proxyProtocol", peers.ClientFirst)
	}
	s.listener = s.limiter.Listen(s.listener, s.opts.Proxies)
	if s.opts.TLSCert == "" && s.opts.TLSKey == "" {
		return nil
	}
	files, err := dialing.LoadCertificate(s.opts.TLSCert, s.opts.TLSKey, s.log)
	if err != nil {
		return errors.Join(fmt.Errorf("http.tls: %w", err), listener.Close())
	}
	shown := files.Server()
	shown.NextProtos = []string{"h2", "http/1.1"}
	s.listener = tls.NewListener(s.listener, shown)
	return nil
}

// instance returns the handlers about the process itself.
func (s *Server) instance() instanceRoutes {
	return instanceRoutes{state: s.parts.State, draining: &s.draining, log: s.log, metrics: s.metrics.serve,
		spec: func() (spec, error) { return s.spec() }}
}

// Addr returns the address that the server listens on, as host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// URL returns the URL of the server on this machine.
func (s *Server) URL() string {
	if s.opts.TLSCert != "" {
		return "https://" + s.Addr()
	}
	return "http://" + s.Addr()
}

// Echo returns the router. Package ui mounts its routes there before Run, with its own guards.
func (s *Server) Echo() *echo.Echo { return s.echo }

// Close stops listening. After Run it does nothing.
func (s *Server) Close() error {
	if err := s.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("stop listening: %w", err)
	}
	return nil
}

// Run answers requests until ctx ends. Then it refuses new submits, listens for another Options.Drain, waits
// up to Options.Grace for the requests in progress, and closes. It returns nil if all of them ended.
func (s *Server) Run(ctx context.Context) error {
	web := &http.Server{
		Handler:           s.opts.Proxies.Handler(s.echo),
		ConnContext:       connContext,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(s.listener) }()
	s.log.Info("listening", "setting", s.setting, "address", s.Addr(), "tls", s.opts.TLSCert != "")
	select {
	case err := <-failed:
		return fmt.Errorf("serve HTTP on %s: %w", s.Addr(), err)
	case <-ctx.Done():
	}
	return s.stop(ctx, web, failed)
}

// connContext keeps the other end of a connection, and its pass.
func connContext(ctx context.Context, conn net.Conn) context.Context {
	return peers.PassContext(peers.ConnContext(ctx, conn), conn)
}

// stop drains and closes the server. The context of Run has ended; its values are still used.
func (s *Server) stop(ctx context.Context, web *http.Server, failed <-chan error) error {
	s.draining.Store(true)
	if s.opts.Drain > 0 {
		select {
		case <-time.After(s.opts.Drain):
		case err := <-failed:
			return fmt.Errorf("serve HTTP on %s: %w", s.Addr(), err)
		}
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Grace)
	defer cancel()
	err := web.Shutdown(grace)
	if err != nil {
		s.log.Warn("requests cut off", "grace", s.opts.Grace, "error", err)
		err = web.Close()
	}
	<-failed
	return err
}
