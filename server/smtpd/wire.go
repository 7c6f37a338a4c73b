package smtpd

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/postroom/postroom/server/peers"
)

// Sizes of reads. A line of AUTH may have 12,288 octets (RFC 4954 section 4); a command needs far less.
const (
	readBuffer = 16 << 10
	maxCommand = 4 << 10
	maxAnswer  = 12288
)

// writeTimeout bounds how long a client may leave replies unread.
const writeTimeout = time.Minute

// Errors of reading a line.
var (
	errLineTooLong = errors.New("line too long")
	errBareLineEnd = errors.New("line not ended by CRLF")
	errDraining    = errors.New("the inlet is stopping")
)

// wire is one connection: lines and content in, replies out, each with its timeout. Replies to commands that
// came in together go out together (RFC 2920).
type wire struct {
	pace peers.Pace // for a message; Every is its longest silence
	r    *bufio.Reader
	w    *bufio.Writer

	window peers.Window // for the incoming message
	until  time.Time    // its end; zero if a new one begins

	raw net.Conn // beneath TLS

	mu       sync.Mutex
	conn     net.Conn
	draining bool // the inlet stops: no further command is read
	waiting  bool // between commands, so drain may interrupt
}

func newWire(conn net.Conn, pace peers.Pace) *wire {
	w := &wire{raw: conn, conn: conn, pace: pace}
	w.r, w.w = bufio.NewReaderSize(content{w}, readBuffer), bufio.NewWriterSize(sink{w}, 1<<10)
	return w
}

// content reads from the connection. A message must come at its pace. A command has one deadline as a whole,
// which line has set.
type content struct{ *wire }

func (c content) Read(p []byte) (int, error) {
	c.mu.Lock()
	conn := c.conn
	message := !c.waiting
	if message && c.until.IsZero() {
		c.until, c.window = time.Now().Add(c.pace.Every), c.pace.Window()
	}
	if message {
		_ = conn.SetReadDeadline(c.until) // fails on a closed connection, and then so does Read
	}
	c.mu.Unlock()
	n, err := conn.Read(p)
	if message && c.window.Got(n) {
		c.until = time.Time{}
	}
	return n, err
}

type sink struct{ *wire }

func (s sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	return conn.Write(p)
}

// line returns a line of at most limit octets, without its CRLF. All of it must come before the deadline. If
// it is not buffered yet, replies are sent first. The line is valid until the next read.
func (w *wire) line(limit int, deadline time.Time) ([]byte, error) {
	if !w.await(deadline) {
		return nil, errDraining
	}
	defer w.resume()
	if buffered, _ := w.r.Peek(w.r.Buffered()); bytes.IndexByte(buffered, '\n') < 0 {
		if err := w.flush(); err != nil {
			return nil, err
		}
	}
	line, err := w.r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull), err == nil && len(line) > limit:
		return nil, errLineTooLong
	case err != nil && w.isDraining():
		return nil, errDraining
	case err != nil:
		return nil, err
	}
	line, crlf := bytes.CutSuffix(line, []byte("\r\n"))
	if !crlf || bytes.IndexByte(line, '\r') >= 0 {
		return nil, errBareLineEnd
	}
	return line, nil
}

// await begins to wait for the client. It returns false if the inlet stops.
func (w *wire) await(deadline time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.draining {
		return false
	}
	w.waiting = true
	_ = w.conn.SetReadDeadline(deadline)
	return true
}

func (w *wire) resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting, w.until = false, time.Time{}
}

// drain interrupts the wait for a command, and lets a message on its way in come in.
func (w *wire) drain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.draining = true
	if w.waiting {
		_ = w.conn.SetReadDeadline(time.Unix(1, 0))
	}
}

func (w *wire) isDraining() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.draining
}

// startTLS encrypts the connection. The caller has checked that nothing read in the clear is left in the
// buffer.
func (w *wire) startTLS(config *tls.Config, deadline time.Time) error {
	if !w.await(deadline) {
		return errDraining
	}
	defer w.resume()
	_ = w.raw.SetWriteDeadline(deadline)
	encrypted := tls.Server(w.raw, config)
	if err := encrypted.Handshake(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn = encrypted
	return nil
}

// reply queues a reply. A failure to send shows when the next line is read.
func (w *wire) reply(r reply) {
	_, _ = w.w.Write(r.lines())
	_, _ = w.w.WriteString("\r\n")
}

func (w *wire) flush() error { return w.w.Flush() }

// discard skips n octets.
func (w *wire) discard(n int64) error {
	_, err := io.CopyN(io.Discard, w.r, n)
	return err
}

// Bounds of what close still reads.
const (
	lingerTime  = time.Second
	lingerBytes = 256 << 10
)

// close ends the connection so that the last reply arrives. It continues to read for a moment: closing a
// connection with unread octets makes the kernel discard what is on its way out.
func (w *wire) close() {
	w.mu.Lock()
	conn := w.conn
	w.mu.Unlock()
	_ = conn.SetWriteDeadline(time.Now().Add(lingerTime))
	for _, c := range []net.Conn{conn, w.raw} { // first TLS, then TCP
		if half, is := c.(interface{ CloseWrite() error }); is {
			_ = half.CloseWrite()
		}
	}
	_ = w.raw.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, w.raw, lingerBytes)
	w.cut()
}

// cut ends the connection immediately.
func (w *wire) cut() { _ = w.raw.Close() }
