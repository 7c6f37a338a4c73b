package main

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/mail"
	"strconv"
	"sync"
	"time"

	"github.com/emersion/go-smtp"
)

// sink is a relay that reads each message at a limited rate and keeps only a hash of its file.
type sink struct {
	server *smtp.Server
	host   string
	port   int
	rate   int

	mu       sync.Mutex
	sums     map[int][sha256.Size]byte
	underWay int
	together int // the largest underWay
}

func newSink(rate int) (*sink, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().(*net.TCPAddr)
	s := &sink{host: address.IP.String(), port: address.Port, rate: rate, sums: map[int][sha256.Size]byte{}}
	s.server = smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) {
		return session{s}, nil
	}))
	s.server.Domain = "sink.test"
	go s.server.Serve(listener) //nolint:errcheck // it ends when it is closed
	return s, nil
}

func (s *sink) url() string { return "smtp://" + net.JoinHostPort(s.host, strconv.Itoa(s.port)) }

func (s *sink) close() { _ = s.server.Close() }

// count returns the number of messages received.
func (s *sink) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sums)
}

// most returns how many messages were under way at the same time.
func (s *sink) most() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.together
}

// whole counts the messages whose file has the wanted hash.
func (s *sink) whole(want [][sha256.Size]byte) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for number, sum := range want {
		if got, ok := s.sums[number]; ok && got == sum {
			n++
		}
	}
	return n
}

func (s *sink) begin() (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underWay++
	s.together = max(s.together, s.underWay)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.underWay--
	}
}

// session accepts everything.
type session struct{ *sink }

func (session) Reset()                               {}
func (session) Logout() error                        { return nil }
func (session) Mail(string, *smtp.MailOptions) error { return nil }
func (session) Rcpt(string, *smtp.RcptOptions) error { return nil }

// Data reads a message to its file, and the file to its end.
func (s session) Data(r io.Reader) error {
	defer s.begin()()
	m, err := mail.ReadMessage(&paced{r, s.rate})
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(m.Header.Get("Subject"))
	if err != nil {
		return err
	}
	_, parameters, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	sum, found := sha256.New(), false
	for parts := multipart.NewReader(m.Body, parameters["boundary"]); ; {
		p, err := parts.NextRawPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if p.FileName() != "" {
			found = true
			if _, err := io.Copy(sum, base64.NewDecoder(base64.StdEncoding, p)); err != nil {
				return fmt.Errorf("file of message %d: %w", number, err)
			}
		}
	}
	if !found {
		return fmt.Errorf("message %d has no file", number)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sums[number] = [sha256.Size]byte(sum.Sum(nil))
	return nil
}

// paced reads no faster than a rate, in bytes a second.
type paced struct {
	io.Reader
	rate int
}

func (p *paced) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	time.Sleep(time.Duration(n) * time.Second / time.Duration(p.rate))
	return n, err
}
