package smtpsend

import (
	"bufio"
	"context"
	"net"
	"strconv"
	"strings"
	"time"
)

// session is one connection to a relay, greeted, encrypted and logged in as its Relay asks. One message at a
// time uses it.
type session struct {
	sender *Sender
	relay  Relay
	proxy  *proxy   // what raw leads to; nil for the relay itself
	target string   // what the proxy is asked to connect to
	raw    net.Conn // the TCP connection; closing it ends every wait
	conn   net.Conn // raw, or TLS over it
	r      *bufio.Reader
	w      []byte // commands not yet written

	name     string // in the relay's greeting
	tls      string // version; empty if in clear
	verified bool   // the relay was identified, by certificate, pin or TLSA record
	ext      extensions
	timings  Timings // for connecting
	release  func()  // by Options.Admit

	tlsFailed *Error // why it is in clear although the relay offers TLS

	record *recorder // for the message that opens it; nil if it is open, or no one wants it

	served    int // transactions begun
	expires   time.Time
	idleSince time.Time
	needReset bool // a transaction was begun and neither finished nor reset
	botched   bool // the state is unknown: close it, never reuse it
}

// extensions are what the relay offered in answer to EHLO.
type extensions struct {
	pipelining, eightBit, utf8, startTLS, dsn, size, requireTLS bool

	maxSize       int64 // 0 if not given (RFC 1870)
	maxRecipients int   // LIMITS RCPTMAX (RFC 9422); 0 if not given
	auth          []string
}

// parseExtensions reads the lines after the first of an EHLO answer. Keywords are case-insensitive (RFC 5321
// section 2.4).
func parseExtensions(text string) extensions {
	var ext extensions
	flags := map[string]*bool{"PIPELINING": &ext.pipelining, "8BITMIME": &ext.eightBit, "SMTPUTF8": &ext.utf8,
		"STARTTLS": &ext.startTLS, "REQUIRETLS": &ext.requireTLS, "DSN": &ext.dsn, "SIZE": &ext.size}
	_, lines, _ := strings.Cut(strings.ToUpper(text), "\n")
	for line := range strings.SplitSeq(lines, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if flag := flags[words[0]]; flag != nil {
			*flag = true
		}
		keyword, mech, old := strings.Cut(words[0], "=")
		switch {
		case words[0] == "SIZE" && len(words) > 1:
			ext.maxSize, _ = strconv.ParseInt(words[1], 10, 64)
		case words[0] == "LIMITS":
			for _, w := range words[1:] {
				if n, ok := strings.CutPrefix(w, "RCPTMAX="); ok && ext.maxRecipients <= 0 {
					ext.maxRecipients, _ = strconv.Atoi(n)
				}
			}
		case keyword == "AUTH":
			if old { // Old Exchange servers wrote AUTH=LOGIN for old clients.
				ext.auth = append(ext.auth, mech)
			}
			ext.auth = append(ext.auth, words[1:]...)
		}
	}
	return ext
}

// attach puts the session on a stream: the TCP connection, or TLS over it. Data that the old stream had
// buffered is lost.
func (c *session) attach(conn net.Conn) {
	c.conn = conn
	c.r = bufio.NewReader(conn)
	c.ext = extensions{}
}

// watch closes the connection when ctx ends. stop ends the watch and returns false if the connection was
// closed.
func (c *session) watch(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.raw.Close() })
}

// queue adds a command to the ones that flush will write.
func (c *session) queue(parts ...string) {
	for _, p := range parts {
		c.w = append(c.w, p...)
	}
	c.w = append(c.w, '\r', '\n')
}

// flush writes the queued commands in one piece.
func (c *session) flush(limit time.Duration) error {
	if len(c.w) == 0 {
		return nil
	}
	_, err := c.write(c.w, limit)
	c.w = c.w[:0]
	return err
}

func (c *session) write(b []byte, limit time.Duration) (written int, err error) {
	if err := c.raw.SetWriteDeadline(time.Now().Add(limit)); err != nil {
		return 0, err
	}
	return c.conn.Write(b)
}

// read reads one reply. limit is for the whole of it, so a relay that sends byte by byte gains no time.
func (c *session) read(limit time.Duration) (reply, error) {
	if err := c.raw.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return reply{}, err
	}
	return readReply(c.r)
}

// ask writes one command and reads its reply.
func (c *session) ask(limit time.Duration, parts ...string) (reply, error) {
	c.queue(parts...)
	if err := c.flush(limit); err != nil {
		return reply{}, err
	}
	return c.read(limit)
}

// worn reports whether the connection has served enough messages or lived long enough.
func (c *session) worn(now time.Time) bool {
	return c.served >= c.relay.MessagesPerConnection || !now.Before(c.expires)
}

// idleTooLong reports whether an idle connection is past use.
func (c *session) idleTooLong(now time.Time) bool {
	return now.Sub(c.idleSince) > c.relay.IdleTimeout || !now.Before(c.expires)
}

// quit sends QUIT and closes. Only Verify waits for the answer, so that no message is delayed by it.
func (c *session) quit(wait bool) {
	c.queue("QUIT")
	if c.flush(time.Second) == nil && wait {
		_, _ = c.read(5 * time.Second)
	}
	c.close()
}

// close closes the connection without QUIT.
func (c *session) close() {
	_ = c.raw.Close()
	c.sender.metrics.open.Dec()
	if c.release != nil {
		c.release()
	}
}
