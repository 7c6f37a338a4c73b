package server

import (
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
	Listen     string // address to listen on, port 0 for any free one; empty: 127.0.0.1:3000
	TLSCert    string // file of the certificate chain in PEM; empty: no TLS
	TLSKey     string // file of its key in PEM
	Version    string // of Postroom, for stats and the OpenAPI document; empty: "dev"
	MaxMessage int64  // bytes of a message, which bounds the body of a submit; 0: 25 MB
	// bytes that large bodies may take together as they come in; beyond it they wait, then get 503; 0: 256 MB
	BodyMemory int64
	// name of the cookie that holds a session of the login page; empty: "postroom_session"
	SessionCookie string
	// how long to go on answering when Run ends, submits with 503; 0: stop listening at once
	Drain           time.Duration
	Grace           time.Duration // how long requests under way may take to end; 0: 10 s
	Metrics         *prometheus.Registry
	GetUnsubscribes bool         // following an unsubscribe link is enough; else its page asks first
	MetricsApart    bool         // /metrics is not answered here, because a server of NewMonitor does
	Logger          *slog.Logger // nil: nothing is logged
	Now             func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Listen == "" {
		o.Listen = "127.0.0.1:3000"
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.MaxMessage == 0 {
		o.MaxMessage = 25 << 20
	}
	if o.BodyMemory == 0 {
		o.BodyMemory = 256 << 20
	}
	o.BodyMemory = max(o.BodyMemory, o.maxSubmit())
	if o.SessionCookie == "" {
		o.SessionCookie = "postroom_session"
	}
	if o.Grace == 0 {
		o.Grace = 10 * time.Second
	}
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

// maxSubmit is the size of a submit's body: base64 makes a message 1.37 times as long, and the other fields
// take some room too.
func (o Options) maxSubmit() int64 { return o.MaxMessage + o.MaxMessage*2/5 + 64<<10 }

// Server answers HTTP requests. It listens from New on and answers while Run runs.
type Server struct {
	parts    *Parts
	opts     Options
	echo     *echo.Echo
	listener net.Listener
	setting  string               // that names the address, for errors
	spec     func() (spec, error) // written when it is first asked for
	metrics  *metrics
	log      *slog.Logger
	draining atomic.Bool
	bodies   *bodyMemory
	pages    *publicPages
}

// New makes a Server and begins to listen, so that a port in use or a certificate that can't be read shows at
// once. The caller either calls Run, which closes the listener, or Close.
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
	s.spec = sync.OnceValues(func() (spec, error) { return writeSpec(groups) })
	s.mount(groups)
	if err := s.listen(); err != nil {
		return nil, fmt.Errorf("new server: %w", err)
	}
	return s, nil
}

// prepare makes a server without routes, which counts its requests in a registry.
func prepare(parts Parts, o Options, counted prometheus.Registerer) *Server {
	s := &Server{
		parts: &parts, opts: o, echo: echo.New(), log: o.Logger, metrics: newMetrics(counted, o.Metrics),
		bodies: newBodyMemory(o.BodyMemory),
	}
	s.echo.HTTPErrorHandler = s.answerError
	// X-Forwarded-For is anybody's to write; restrictions by address must not believe it
	s.echo.IPExtractor = echo.ExtractIPDirect()
	s.echo.Use(s.identify, s.observe, s.protect, s.recover, compress())
	return s
}

func (s *Server) listen() error {
	listener, err := net.Listen("tcp", s.opts.Listen)
	if err != nil {
		return fmt.Errorf("%s: %w", s.setting, err)
	}
	s.listener = listener
	if s.opts.TLSCert == "" && s.opts.TLSKey == "" {
		return nil
	}
	cert, err := tls.LoadX509KeyPair(s.opts.TLSCert, s.opts.TLSKey)
	if err != nil {
		return errors.Join(fmt.Errorf("http.tls: %w", err), listener.Close())
	}
	s.listener = tls.NewListener(listener, &tls.Config{
		Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
	})
	return nil
}

// instance returns what answers for the process itself.
func (s *Server) instance() instanceRoutes {
	return instanceRoutes{state: s.parts.State, draining: &s.draining, log: s.log, metrics: s.metrics.serve,
		spec: func() (spec, error) { return s.spec() }}
}

// Addr is the address that the server listens on, as host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// URL is the address that the server is reached at on this machine.
func (s *Server) URL() string {
	if s.opts.TLSCert != "" {
		return "https://" + s.Addr()
	}
	return "http://" + s.Addr()
}

// Echo is where the pages of the ui mount their own routes, with guards of their own. That must be done
// before Run.
func (s *Server) Echo() *echo.Echo { return s.echo }

// Close stops listening, where Run was never called; after Run it does nothing.
func (s *Server) Close() error {
	if err := s.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("stop listening: %w", err)
	}
	return nil
}

// Run answers requests until ctx ends. Then it refuses new submits, goes on listening for Options.Drain,
// waits up to Options.Grace for the requests under way, and closes. It returns nil after an orderly end.
func (s *Server) Run(ctx context.Context) error {
	web := &http.Server{
		Handler:           s.echo,
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

// stop ends the service in order. The context of Run has ended, but its values still count.
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
