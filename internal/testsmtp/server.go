package testsmtp

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// TB is what a test gives to Start; testing.TB is one.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Cleanup(func())
}

// Security says how a Server does TLS.
type Security int

// The ways.
const (
	Clear    Security = iota // no TLS
	STARTTLS                 // offered after EHLO
	Implicit                 // from the first byte
)

// Options tunes a Server. The zero value listens on a free port of 127.0.0.1, in clear, without login, with
// PIPELINING.
type Options struct {
	Addr     string   // address to listen on; defaults to 127.0.0.1 and a free port
	Security Security // zero: Clear
	Username string   // with Password or AccessToken: login is offered and required
	Password string   // for PLAIN and LOGIN
	Token    string   // for XOAUTH2 and OAUTHBEARER

	// Certificate is shown instead of one for the loopback addresses; nil: one is made.
	Certificate *tls.Certificate

	NoPipelining  bool
	No8BitMIME    bool
	NoUTF8        bool
	MaxSize       int64    // 0 means no SIZE offered
	MaxRecipients int      // recipients beyond get 452 4.5.3; 0 means no limit
	Extensions    []string // further EHLO lines
	Discard       bool     // count messages without keeping them, for benchmarks
	Record        bool     // keep every command line, for Commands

	// Respond decides what happens instead of the usual; the zero Action is the usual. If nil, addresses speak
	// for themselves, as ByAddress documents. Many connections call it together.
	Respond func(Command) Action
}

// Message is one mail as it was accepted or, with Action.Store, kept before the connection was cut.
type Message struct {
	From       string
	To         []string // accepted recipients
	Data       []byte   // content with dots undoubled, ending in CRLF
	Login      string   // user name of the session; empty without login
	TLS        bool
	Connection int // which connection brought it, counted from 1
	Time       time.Time
}

// Server is a running SMTP server.
type Server struct {
	o           Options
	listener    net.Listener
	certificate *certificate
	tb          TB

	connections atomic.Int64
	open        atomic.Int64
	group       sync.WaitGroup
	done        chan struct{}
	closing     sync.Once

	mu       sync.Mutex
	live     map[net.Conn]struct{}
	count    int // messages accepted, those not kept too
	messages []Message
	commands []string
	seen     map[string]int // how often an address with a counted behaviour came up
	changed  chan struct{}  // closed and replaced whenever a message arrives or a connection ends
}

// New starts a server. Close stops it.
func New(o Options) (*Server, error) {
	s := &Server{o: o, done: make(chan struct{}), live: map[net.Conn]struct{}{}, seen: map[string]int{},
		changed: make(chan struct{})}
	if s.o.Respond == nil {
		s.o.Respond = s.ByAddress
	}
	switch {
	case o.Certificate != nil:
		s.certificate = &certificate{pair: *o.Certificate}
	case o.Security != Clear:
		var err error
		if s.certificate, err = newCertificate(); err != nil {
			return nil, fmt.Errorf("testsmtp: make a certificate: %w", err)
		}
	}
	addr := o.Addr
	addr = cmp.Or(addr, "127.0.0.1:0")
	var err error
	if s.listener, err = net.Listen("tcp", addr); err != nil {
		return nil, fmt.Errorf("testsmtp: %w", err)
	}
	s.group.Add(1)
	go s.accept()
	return s, nil
}

// Start is New for a test, which closes the server when it ends.
func Start(t TB, o Options) *Server {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	s.tb = t
	t.Cleanup(s.Close)
	return s
}

// Close cuts every connection, stops listening and waits until all is quiet.
func (s *Server) Close() {
	s.closing.Do(func() { close(s.done) })
	_ = s.listener.Close()
	s.CutAll()
	s.group.Wait()
}

// CutAll cuts every connection without a word, as a relay that is restarted does, and continues to listen.
func (s *Server) CutAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.live {
		_ = c.Close()
	}
}

// Addr is the address clients connect to, as host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Host is the IP address of Addr.
func (s *Server) Host() string { return s.listener.Addr().(*net.TCPAddr).IP.String() }

// Port is the port of Addr.
func (s *Server) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// URL is the server as the setting "smtp" names one, without credentials.
func (s *Server) URL() string {
	scheme := "smtp"
	if s.o.Security == Implicit {
		scheme = "smtps"
	}
	return scheme + "://" + net.JoinHostPort(s.Host(), strconv.Itoa(s.Port()))
}

// CA is the certificate clients must trust, in PEM form; empty without TLS.
func (s *Server) CA() string {
	if s.certificate == nil {
		return ""
	}
	return s.certificate.ca
}

// Connections is how many connections were accepted so far.
func (s *Server) Connections() int { return int(s.connections.Load()) }

// Open is how many connections are open now.
func (s *Server) Open() int { return int(s.open.Load()) }

// Count is how many messages were accepted so far, discarded ones included.
func (s *Server) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// Messages lists the messages kept so far, oldest first. What Count has counted is among them, unless it was
// discarded or forgotten.
func (s *Server) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Message(nil), s.messages...)
}

// Commands lists the command lines received so far, with Options.Record.
func (s *Server) Commands() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.commands...)
}

// Forget drops the messages and commands kept so far. Count continues to count.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages, s.commands = nil, nil
}

// waitsFor is how long Wait waits on a machine that is busy with other tests.
const waitsFor = 2 * time.Minute

// Wait waits until n messages were accepted and lists those kept. A test fails when that takes longer than
// two minutes.
func (s *Server) Wait(n int) []Message {
	ctx, cancel := context.WithTimeout(context.Background(), waitsFor)
	defer cancel()
	messages, err := s.WaitContext(ctx, n)
	if err != nil && s.tb != nil {
		s.tb.Helper()
		s.tb.Fatalf("%v", err)
	}
	return messages
}

// WaitContext waits until n messages were accepted or ctx ends.
func (s *Server) WaitContext(ctx context.Context, n int) ([]Message, error) {
	for {
		s.mu.Lock()
		changed, count := s.changed, s.count
		s.mu.Unlock()
		if count >= n {
			return s.Messages(), nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return s.Messages(), fmt.Errorf("testsmtp: %d of %d messages arrived: %w", count, n, ctx.Err())
		}
	}
}

func (s *Server) accept() {
	defer s.group.Done()
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		if !s.enlist(conn) {
			_ = conn.Close()
			return
		}
		n := int(s.connections.Add(1))
		s.open.Add(1)
		s.group.Add(1)
		go func() {
			defer s.group.Done()
			newSession(s, conn, n).serve()
			_ = conn.Close()
			s.open.Add(-1)
			s.mu.Lock()
			delete(s.live, conn)
			s.mu.Unlock()
		}()
	}
}

// enlist has CutAll reach a connection from now on. It refuses one that Close could not cut any more.
func (s *Server) enlist(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.done:
		return false
	default:
		s.live[conn] = struct{}{}
		return true
	}
}

func (s *Server) keep(m Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	if !s.o.Discard {
		s.messages = append(s.messages, m)
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) record(line string) {
	if !s.o.Record {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands = append(s.commands, line)
}

func (s *Server) tlsConfig() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{s.certificate.pair}}
}
