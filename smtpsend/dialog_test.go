package smtpsend_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testkit"
)

// dialogServer is a server that plays one dialog, line by line, and notes where the client says something
// else.
//
//	<- 220 mx.example ESMTP     we say this line
//	<~ 220 mx                   we say this without a line end
//	-> EHLO *                   the client must say this; * stands for anything
//	.. close                    we close the connection
//	.. reset                    we close it with a TCP reset
//	.. eof                      the client must close it
//	.. hang                     we say nothing until the client closes
//	.. tls                      we do the server's part of a TLS handshake
//	.. body                     the client says anything up to and including a line with a dot alone
//	.. connection               what follows happens on the next connection
//
// Other lines, and those after #, mean nothing.
type dialogServer struct {
	listener    net.Listener
	ca          string // the certificate to trust, in PEM form
	pair        tls.Certificate
	connections [][]string
	tb          tester
	group       sync.WaitGroup
	live        chan net.Conn // the connection being served, for Close

	mu     sync.Mutex
	strays []string
}

// stuckAfter bounds how long a dialogServer waits for the client, so that a dialog that got stuck fails
// instead of hanging.
const stuckAfter = 20 * time.Second

// errDialogOver ends a connection.
var errDialogOver = errors.New("dialog over")

// tester is what a dialogServer needs of a test.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

// playDialog starts a server for the dialog and stops it when the test ends. The test fails if the client
// strayed from the dialog or did not come to its end.
func playDialog(t tester, dialog string) *dialogServer {
	t.Helper()
	p := &dialogServer{tb: t, live: make(chan net.Conn, 1)}
	lines := []string{}
	for _, line := range strings.Split(dialog, "\n") {
		line = strings.TrimRight(line, " \r")
		switch {
		case line == ".. connection":
			p.connections = append(p.connections, lines)
			lines = []string{}
		case strings.HasPrefix(line, "<-"), strings.HasPrefix(line, "<~"), strings.HasPrefix(line,
			"->"), strings.HasPrefix(line, ".. "):
			lines = append(lines, line)
		}
	}
	p.connections = append(p.connections, lines)
	cert, key, err := testkit.MakeCertificate("smtpsend")
	if err != nil {
		t.Fatalf("%v", err)
	}
	if p.pair, err = tls.X509KeyPair(cert, key); err != nil {
		t.Fatalf("%v", err)
	}
	p.ca = string(cert)
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatalf("%v", err)
	}
	p.group.Add(1)
	go p.serve()
	t.Cleanup(p.finish)
	return p
}

// host is the IP address to connect to.
func (p *dialogServer) host() string { return "127.0.0.1" }

// port is the port to connect to.
func (p *dialogServer) port() int { return p.listener.Addr().(*net.TCPAddr).Port }

// finish waits for the dialog to end and reports where it did not go as written.
func (p *dialogServer) finish() {
	p.tb.Helper()
	ended := make(chan struct{})
	go func() { p.group.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(stuckAfter):
		p.stray("the dialog did not come to its end")
	}
	_ = p.listener.Close()
	select {
	case conn := <-p.live:
		_ = conn.Close()
	default:
	}
	<-ended
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.strays {
		p.tb.Errorf("transcript: %s", s)
	}
}

func (p *dialogServer) stray(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.strays = append(p.strays, fmt.Sprintf(format, args...))
}

func (p *dialogServer) serve() {
	defer p.group.Done()
	for n, lines := range p.connections {
		if len(lines) == 0 {
			continue
		}
		conn, err := p.listener.Accept()
		if err != nil {
			p.stray("connection %d never came", n+1)
			return
		}
		p.live <- conn
		p.converse(conn, lines)
		select {
		case <-p.live:
		default:
		}
		_ = conn.Close()
	}
}

// converse plays the lines of one connection.
func (p *dialogServer) converse(raw net.Conn, lines []string) {
	conn := raw
	r := bufio.NewReader(conn)
	for i, line := range lines {
		_ = raw.SetDeadline(time.Now().Add(stuckAfter))
		what, rest := line[:2], strings.TrimPrefix(line[2:], " ")
		var err error
		switch what {
		case "<-":
			_, err = io.WriteString(conn, rest+"\r\n")
		case "<~":
			_, err = io.WriteString(conn, rest)
		case "->":
			err = p.expect(r, rest)
		default:
			var next net.Conn
			if next, err = p.act(raw, conn, r, rest); next != nil {
				conn, r = next, bufio.NewReader(next)
			}
		}
		if err == errDialogOver {
			return
		}
		if err != nil {
			p.stray("line %d, %q: %v", i+1, line, err)
			return
		}
	}
	// A client that leaves politely is let go without being written down each time.
	_ = raw.SetDeadline(time.Now().Add(stuckAfter))
	if line, err := r.ReadString('\n'); err == nil && strings.TrimRight(line, "\r\n") != "QUIT" {
		p.stray("after the end of the dialog the client says %q", line)
	}
}

func (p *dialogServer) expect(r *bufio.Reader, want string) error {
	line, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if !matchesLine(want, line) {
		return fmt.Errorf("the client says %q", line)
	}
	return nil
}

// matchesLine compares a line with a pattern in which * stands for anything.
func matchesLine(pattern, line string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == line
	}
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(line, first) {
		return false
	}
	line = line[len(first):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(line, part)
		if i < 0 {
			return false
		}
		line = line[i+len(part):]
	}
	return strings.HasSuffix(line, last)
}

func (p *dialogServer) act(raw, conn net.Conn, r *bufio.Reader, what string) (net.Conn, error) {
	switch what {
	case "close":
		return nil, errDialogOver
	case "reset":
		if tcp, ok := raw.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		return nil, errDialogOver
	case "eof", "hang":
		line, err := r.ReadString('\n')
		if err == nil {
			return nil, fmt.Errorf("the client says %q", line)
		}
		return nil, errDialogOver
	case "tls":
		next := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{p.pair}})
		return next, next.Handshake()
	case "body":
		for {
			line, err := r.ReadString('\n')
			if err != nil || line == ".\r\n" {
				return nil, err
			}
		}
	}
	return nil, fmt.Errorf("no such action")
}

// fakeTB stands in for a test that is expected to fail.
type fakeTB struct {
	errors   []string
	cleanups []func()
}

func (f *fakeTB) Helper() {}
func (f *fakeTB) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}
func (f *fakeTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (f *fakeTB) Cleanup(fn func())                 { f.cleanups = append(f.cleanups, fn) }

func TestDialogNoticesStrays(t *testing.T) {
	const dialog = "<- 220 mx\n-> EHLO *\n<- 250 ok\n-> QUIT\n<- 221 bye\n"
	for _, row := range []struct{ name, say, stray string }{
		{"as written", "EHLO there\r\nQUIT\r\n", ""},
		{"another word", "EHLO there\r\nNOOP\r\n", `"NOOP"`},
		{"too early an end", "EHLO there\r\n", "EOF"},
		{"LF alone", "EHLO there\nQUIT\n", "QUIT"},
		{"too much", "EHLO there\r\nQUIT\r\nNOOP\r\n", "after the end"},
	} {
		f := &fakeTB{}
		p := playDialog(f, dialog)
		conn, err := net.Dial("tcp", net.JoinHostPort(p.host(), strconv.Itoa(p.port())))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, row.say); err != nil {
			t.Fatal(err)
		}
		_ = conn.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
		for _, fn := range f.cleanups {
			fn()
		}
		switch got := strings.Join(f.errors, "\n"); {
		case row.stray == "" && got != "":
			t.Errorf("%s: %s", row.name, got)
		case !strings.Contains(got, row.stray):
			t.Errorf("%s: %q, want %q", row.name, got, row.stray)
		}
	}
}
