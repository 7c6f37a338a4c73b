package smtpsend

import (
	"bufio"
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// session is one connection to a relay, greeted, encrypted and logged in as its Relay asks. One message at a
// time uses it.
type session struct {
	sender *Sender
	relay  Relay
	proxy  *proxy   // what raw leads to; nil: the relay itself
	raw    net.Conn // the TCP connection; closing it ends every wait
	conn   net.Conn // raw, or TLS over it
	r      *bufio.Reader
	w      []byte // commands not yet written

	name     string // as the relay greeted
	tls      string // version; empty: in clear
	verified bool   // the relay has shown who it is, by certificate or pin
	ext      extensions
	timings  Timings // of getting here
	release  func()  // tells Options.Admit's other side that the connection is closed

	served    int // transactions begun
	born      time.Time
	expires   time.Time
	idleSince time.Time
	needReset bool // a transaction was begun and neither finished nor reset
	botched   bool // the state is unknown: close it, never reuse it
}

// extensions is what the relay offered in answer to EHLO.
type extensions struct {
	pipelining, eightBit, utf8, startTLS, dsn, size, requireTLS bool

	maxSize       int64 // 0: no limit told (RFC 1870)
	maxRecipients int   // LIMITS RCPTMAX (RFC 9422); 0: none told
	auth          []string
}

// parseExtensions reads the lines after the first of an EHLO answer. Keywords are case-insensitive (RFC 5321
// section 2.4).
func parseExtensions(text string) extensions {
	var ext extensions
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(strings.ToUpper(line))
		if i == 0 || len(words) == 0 {
			continue
		}
		switch words[0] {
		case "PIPELINING":
			ext.pipelining = true
		case "8BITMIME":
			ext.eightBit = true
		case "SMTPUTF8":
			ext.utf8 = true
		case "STARTTLS":
			ext.startTLS = true
		case "REQUIRETLS":
			ext.requireTLS = true
		case "DSN":
			ext.dsn = true
		case "SIZE":
			ext.size = true
			if len(words) > 1 {
				ext.maxSize, _ = strconv.ParseInt(words[1], 10, 64)
			}
		case "LIMITS":
			ext.maxRecipients = rcptMax(words[1:])
		case "AUTH":
			ext.auth = append(ext.auth, words[1:]...)
		default:
			// Old Exchange servers wrote AUTH=LOGIN for old clients.
			if mech, ok := strings.CutPrefix(words[0], "AUTH="); ok {
				ext.auth = append(append(ext.auth, mech), words[1:]...)
			}
		}
	}
	return ext
}

func rcptMax(words []string) int {
	for _, w := range words {
		if n, ok := strings.CutPrefix(w, "RCPTMAX="); ok {
			if v, err := strconv.Atoi(n); err == nil && v > 0 {
				return v
			}
		}
	}
	return 0
}

func (e extensions) offersAuth(mech string) bool { return slices.Contains(e.auth, mech) }

// attach puts the session on a stream: the TCP connection, or TLS over it. What the old stream had buffered
// is forgotten.
func (c *session) attach(conn net.Conn) {
	c.conn = conn
	c.r = bufio.NewReader(conn)
	c.ext = extensions{}
}

// watch closes the connection when ctx ends. The function it returns stops the watch; false: the connection
// was closed.
func (c *session) watch(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.raw.Close() })
}

// queue adds a command to those that flush will write.
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
	err := c.write(c.w, limit)
	c.w = c.w[:0]
	return err
}

func (c *session) write(b []byte, limit time.Duration) error {
	if err := c.raw.SetWriteDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	_, err := c.conn.Write(b)
	return err
}

// read reads one reply. The limit is for the whole of it, so a relay that drips cannot hold us longer.
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

// retire lets the connection take no further message.
func (c *session) retire() { c.expires = time.Time{} }

// idleTooLong reports whether an idle connection is past use.
func (c *session) idleTooLong(now time.Time) bool {
	return now.Sub(c.idleSince) > c.relay.IdleTimeout || !now.Before(c.expires)
}

// noop tells whether the other side is still there.
func (c *session) noop(limit time.Duration) bool {
	r, err := c.ask(limit, "NOOP")
	return err == nil && r.positive()
}

// quit says goodbye and closes. Waiting for the answer is a courtesy nobody's message should pay for, so only
// Verify does.
func (c *session) quit(wait bool) {
	const patience = 5 * time.Second
	c.queue("QUIT")
	if c.flush(time.Second) == nil && wait {
		_, _ = c.read(patience)
	}
	c.close()
}

// close drops the connection without a word.
func (c *session) close() {
	_ = c.raw.Close()
	c.sender.metrics.open.Dec()
	if c.release != nil {
		c.release()
	}
}
