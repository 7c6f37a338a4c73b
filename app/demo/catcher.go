package demo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"mime"
	"net"
	netmail "net/mail"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/postroom/postroom/ui"
)

// maxMails is how many emails the catcher keeps. The demo may be left running during the development of
// another program.
const maxMails = 1000

// mail is an email that the catcher accepted.
type mail struct {
	id       string
	to       []string
	subject  string
	received time.Time
	raw      []byte
}

// maxKept is the maximum size in bytes of the kept emails, all but the newest.
const maxKept = 100 << 20

// catcher is an SMTP server that accepts mail for all recipients and relays none. There are two exceptions
// for the tour: it rejects mail for busy@ once, and mail for nobody@ always.
type catcher struct {
	server   *smtp.Server
	listener net.Listener
	news     chan<- happening
	closed   chan struct{}
	served   sync.WaitGroup

	mu    sync.Mutex
	mails []mail          // the newest maxMails
	taken int             // emails so far
	bytes int             // total size of emails
	known map[string]bool // Message-IDs of rejected mail for busy@
}

// openCatcher starts a catcher on a free local port.
func openCatcher(news chan<- happening) (*catcher, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the mail catcher: %w", err)
	}
	c := &catcher{listener: l, news: news, closed: make(chan struct{}), known: map[string]bool{}}
	c.server = smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) {
		return &session{catcher: c}, nil
	}))
	c.server.Domain, c.server.MaxMessageBytes, c.server.EnableSMTPUTF8 = "catcher.example", 50<<20, true
	c.server.ReadTimeout, c.server.WriteTimeout = time.Minute, time.Minute
	c.server.ErrorLog = log.New(io.Discard, "", 0)
	c.served.Go(func() { _ = c.server.Serve(l) })
	return c, nil
}

func (c *catcher) url() string { return "smtp://" + c.listener.Addr().String() }

// close closes all connections.
func (c *catcher) close() {
	close(c.closed)
	_ = c.server.Close()
	c.served.Wait()
}

// inbox returns the subjects of the emails that an address got.
func (c *catcher) inbox(address string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var subjects []string
	for _, m := range c.mails {
		if slices.Contains(m.to, address) {
			subjects = append(subjects, m.subject)
		}
	}
	return subjects
}

// caught returns the emails for the pages, newest first.
func (c *catcher) caught() []ui.CaughtMail {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]ui.CaughtMail, 0, len(c.mails))
	for _, m := range slices.Backward(c.mails) {
		out = append(out, ui.CaughtMail{ID: m.id, To: m.to, Subject: m.subject, Received: m.received, Raw: m.raw})
	}
	return out
}

// take keeps an email or rejects it.
func (c *catcher) take(to []string, raw []byte) error {
	subject, id := glance(raw)
	c.mu.Lock()
	if slices.ContainsFunc(to, func(a string) bool { return local(a) == "busy" }) && !c.known[id] {
		c.known[id] = true
		c.mu.Unlock()
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 2},
			Message: "Busy, please come back in a moment"}
	}
	delete(c.known, id)
	c.taken++
	m := mail{id: strconv.Itoa(c.taken), to: to, subject: subject, received: time.Now(), raw: raw}
	c.mails, c.bytes = append(c.mails, m), c.bytes+len(raw)
	for len(c.mails) > maxMails || c.bytes > maxKept && len(c.mails) > 1 {
		c.bytes -= len(c.mails[0].raw)
		c.mails = slices.Delete(c.mails, 0, 1)
	}
	c.mu.Unlock()
	select {
	case c.news <- happening{mail: &m}:
		return nil
	case <-c.closed:
		return errors.New("the catcher is closing")
	}
}

// glance returns the subject and Message-ID of an email; both are empty if the header is broken.
func glance(raw []byte) (subject, id string) {
	m, err := netmail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return "", ""
	}
	subject = m.Header.Get("Subject")
	if decoded, err := new(mime.WordDecoder).DecodeHeader(subject); err == nil {
		subject = decoded
	}
	return subject, m.Header.Get("Message-Id")
}

// local returns the part before the @.
func local(address string) string {
	name, _, _ := strings.Cut(address, "@")
	return strings.ToLower(name)
}

// session is one SMTP connection.
type session struct {
	catcher *catcher
	to      []string
}

func (s *session) Mail(string, *smtp.MailOptions) error { return nil }

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if local(to) == "nobody" {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1},
			Message: "There is nobody of that name here"}
	}
	s.to = append(s.to, to)
	return nil
}

// Data implements smtp.Session.
func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return s.catcher.take(slices.Clone(s.to), raw)
}

// Reset implements smtp.Session.
func (s *session) Reset() { s.to = nil }

// Logout implements smtp.Session.
func (s *session) Logout() error { return nil }
