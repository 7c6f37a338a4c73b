package testsmtp

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// Transcript is a server that plays one dialog, line by line, and notes where the client says something else.
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
type Transcript struct {
	listener    net.Listener
	certificate *certificate
	connections [][]string
	tb          TB
	group       sync.WaitGroup
	live        chan net.Conn // the connection being served, for Close

	mu     sync.Mutex
	strays []string
}

// patience bounds how long a Transcript waits for the client, so that a dialog that got stuck fails instead
// of hanging.
const patience = 20 * time.Second

// Play starts a server for the dialog and stops it when the test ends. The test fails if the client strayed
// from the dialog or did not come to its end.
func Play(t TB, dialog string) *Transcript {
	t.Helper()
	p := &Transcript{tb: t, live: make(chan net.Conn, 1)}
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
	var err error
	if p.certificate, err = newCertificate(); err != nil {
		t.Fatalf("%v", err)
	}
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatalf("%v", err)
	}
	p.group.Add(1)
	go p.serve()
	t.Cleanup(p.finish)
	return p
}

// Host is the IP address to connect to.
func (p *Transcript) Host() string { return "127.0.0.1" }

// Port is the port to connect to.
func (p *Transcript) Port() int { return p.listener.Addr().(*net.TCPAddr).Port }

// CA is the certificate to trust, in PEM form.
func (p *Transcript) CA() string { return p.certificate.ca }

// finish waits for the dialog to end and reports where it did not go as written.
func (p *Transcript) finish() {
	p.tb.Helper()
	ended := make(chan struct{})
	go func() { p.group.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(patience):
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

func (p *Transcript) stray(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.strays = append(p.strays, fmt.Sprintf(format, args...))
}

func (p *Transcript) serve() {
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
func (p *Transcript) converse(raw net.Conn, lines []string) {
	conn := raw
	r := bufio.NewReader(conn)
	for i, line := range lines {
		_ = raw.SetDeadline(time.Now().Add(patience))
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
		if err == errOver {
			return
		}
		if err != nil {
			p.stray("line %d, %q: %v", i+1, line, err)
			return
		}
	}
	// A client that leaves politely is let go without being written down each time.
	_ = raw.SetDeadline(time.Now().Add(patience))
	if line, err := r.ReadString('\n'); err == nil && strings.TrimRight(line, "\r\n") != "QUIT" {
		p.stray("after the end of the dialog the client says %q", line)
	}
}

func (p *Transcript) expect(r *bufio.Reader, want string) error {
	line, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if !match(want, line) {
		return fmt.Errorf("the client says %q", line)
	}
	return nil
}

// match compares a line with a pattern in which * stands for anything.
func match(pattern, line string) bool {
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

func (p *Transcript) act(raw, conn net.Conn, r *bufio.Reader, what string) (net.Conn, error) {
	switch what {
	case "close":
		return nil, errOver
	case "reset":
		if tcp, ok := raw.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		return nil, errOver
	case "eof", "hang":
		line, err := r.ReadString('\n')
		if err == nil {
			return nil, fmt.Errorf("the client says %q", line)
		}
		return nil, errOver
	case "tls":
		next := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{p.certificate.pair}})
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
