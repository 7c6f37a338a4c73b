package testsmtp

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// session is one connection to a Server.
type session struct {
	s    *Server
	raw  net.Conn
	conn net.Conn
	r    *bufio.Reader
	w    *bufio.Writer

	number int
	login  string
	tls    bool
	sent   int // messages accepted
	mail   bool
	from   string
	to     []string
	body   bytes.Buffer
}

var errOver = errors.New("session over")

func newSession(s *Server, conn net.Conn, number int) *session {
	c := &session{s: s, raw: conn, number: number}
	c.attach(conn)
	return c
}

func (c *session) attach(conn net.Conn) {
	c.conn = conn
	c.r = bufio.NewReaderSize(conn, 32<<10)
	c.w = bufio.NewWriter(conn)
}

func (c *session) serve() {
	if c.s.o.Security == Implicit && c.handshake() != nil {
		return
	}
	if c.do("CONNECT", "", "220 testsmtp ESMTP") != nil {
		_ = c.w.Flush()
		return
	}
	for {
		line, err := c.line()
		if err != nil {
			return
		}
		c.s.record(line)
		if c.command(line) != nil {
			_ = c.w.Flush()
			return
		}
	}
}

// line reads a command line. What we have to say is said before waiting for more.
func (c *session) line() (string, error) {
	if c.r.Buffered() == 0 {
		if err := c.w.Flush(); err != nil {
			return "", err
		}
	}
	line, err := c.r.ReadString('\n')
	return strings.TrimRight(line, "\r\n"), err
}

func (c *session) command(line string) error {
	verb, arg, _ := strings.Cut(line, " ")
	switch verb = strings.ToUpper(verb); verb {
	case "EHLO", "LHLO":
		c.reset()
		return c.do("EHLO", arg, c.ehlo())
	case "HELO":
		c.reset()
		return c.do("EHLO", arg, "250 testsmtp")
	case "STARTTLS":
		return c.startTLS()
	case "AUTH":
		return c.auth(arg)
	case "MAIL":
		return c.mailFrom(arg)
	case "RCPT":
		return c.rcptTo(arg)
	case "DATA":
		return c.data()
	case "RSET":
		c.reset()
		return c.do(verb, arg, "250 2.0.0 Reset")
	case "NOOP":
		return c.do(verb, arg, "250 2.0.0 Still here")
	case "QUIT":
		_ = c.do(verb, arg, "221 2.0.0 Bye")
		return errOver
	}
	return c.say("500 5.5.2 Unknown command")
}

// do lets the test decide about a command, and does it. Errors end the session.
func (c *session) do(verb, arg, usual string) error {
	_, err := c.decide(verb, arg, usual)
	return err
}

// decide is do that also reports whether the command succeeded.
func (c *session) decide(verb, arg, usual string) (ok bool, err error) {
	a := c.s.o.Respond(Command{Verb: verb, Arg: arg, From: c.from, To: c.to, Data: c.body.Bytes(),
		Connection: c.number, Messages: c.sent})
	if a.Store && verb == "DOT" {
		c.store()
	}
	if a.Delay > 0 && !c.pause(a.Delay) {
		return false, errOver
	}
	switch {
	case a.Hang:
		_ = c.w.Flush()
		_, _ = io.Copy(io.Discard, c.r)
		return false, errOver
	case a.Reset:
		if tcp, isTCP := c.raw.(*net.TCPConn); isTCP {
			_ = tcp.SetLinger(0)
		}
		_ = c.raw.Close()
		return false, errOver
	case a.Close && a.Reply == "":
		return false, errOver
	case a.Reply == "":
		a.Reply = usual
	}
	if err := c.say(a.Reply); err != nil {
		return false, err
	}
	ok = a.Reply[0] == '2' || a.Reply[0] == '3'
	if ok && verb == "DOT" && !a.Store {
		c.store()
	}
	if a.Close {
		return ok, errOver
	}
	return ok, nil
}

func (c *session) pause(d time.Duration) bool {
	_ = c.w.Flush()
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
		return true
	case <-c.s.done:
		return false
	}
}

// say queues a reply, which may have several lines separated by \n.
func (c *session) say(reply string) error {
	lines := strings.Split(reply, "\n")
	for i, line := range lines {
		if i < len(lines)-1 && len(line) > 3 && line[3] == ' ' {
			line = line[:3] + "-" + line[4:]
		}
		if _, err := c.w.WriteString(line + "\r\n"); err != nil {
			return err
		}
	}
	return nil
}

func (c *session) ehlo() string {
	o := &c.s.o
	lines := []string{"testsmtp", "ENHANCEDSTATUSCODES"}
	add := func(yes bool, keyword string) {
		if yes {
			lines = append(lines, keyword)
		}
	}
	add(!o.NoPipelining, "PIPELINING")
	add(!o.No8BitMIME, "8BITMIME")
	add(!o.NoUTF8, "SMTPUTF8")
	add(o.MaxSize > 0, "SIZE "+strconv.FormatInt(o.MaxSize, 10))
	add(o.Security == STARTTLS && !c.tls, "STARTTLS")
	add(o.Password != "", "AUTH PLAIN LOGIN")
	add(o.Token != "", "AUTH XOAUTH2 OAUTHBEARER")
	lines = append(lines, o.Extensions...)
	return "250 " + strings.Join(lines, "\n250 ")
}

func (c *session) startTLS() error {
	if c.s.o.Security != STARTTLS || c.tls {
		return c.say("502 5.5.1 Not offered")
	}
	ok, err := c.decide("STARTTLS", "", "220 2.0.0 Go ahead")
	if err != nil || !ok {
		return err
	}
	if err := c.w.Flush(); err != nil {
		return err
	}
	return c.handshake()
}

func (c *session) handshake() error {
	conn := tls.Server(c.raw, c.s.tlsConfig())
	if err := conn.Handshake(); err != nil {
		return err
	}
	c.attach(conn)
	c.tls = true
	return nil
}

// auth checks a login by PLAIN, LOGIN, XOAUTH2 or OAUTHBEARER.
func (c *session) auth(arg string) error {
	mech, first, _ := strings.Cut(arg, " ")
	var got, want []string
	switch mech = strings.ToUpper(mech); mech {
	case "PLAIN":
		want = []string{"\x00" + c.s.o.Username + "\x00" + c.s.o.Password}
	case "LOGIN":
		want = []string{c.s.o.Username, c.s.o.Password}
	case "XOAUTH2":
		want = []string{"user=" + c.s.o.Username + "\x01auth=Bearer " + c.s.o.Token + "\x01\x01"}
	case "OAUTHBEARER":
		want = []string{"\x01auth=Bearer " + c.s.o.Token + "\x01\x01"}
	default:
		return c.say("504 5.5.4 Unknown mechanism")
	}
	for len(got) < len(want) {
		if first == "" {
			if err := c.say("334 " + base64.StdEncoding.EncodeToString([]byte("next:"))); err != nil {
				return err
			}
			var err error
			if first, err = c.line(); err != nil {
				return err
			}
		}
		b, _ := base64.StdEncoding.DecodeString(first)
		got, first = append(got, string(b)), ""
	}
	right := true
	for i := range want {
		right = right && (got[i] == want[i] || mech == "OAUTHBEARER" && strings.HasSuffix(got[i], want[i]))
	}
	usual := "535 5.7.8 Authentication credentials invalid"
	if right {
		usual = "235 2.7.0 Welcome"
	}
	ok, err := c.decide("AUTH", mech, usual)
	if ok && right {
		c.login = c.s.o.Username
	}
	return err
}

func (c *session) mailFrom(arg string) error {
	if (c.s.o.Password != "" || c.s.o.Token != "") && c.login == "" {
		return c.say("530 5.7.0 Authentication required")
	}
	if c.mail {
		return c.say("503 5.5.1 Nested MAIL command")
	}
	ok, err := c.decide("MAIL", mailbox(arg), "250 2.1.0 Sender ok")
	if ok {
		c.mail, c.from = true, mailbox(arg)
	}
	return err
}

func (c *session) rcptTo(arg string) error {
	if !c.mail {
		return c.say("503 5.5.1 MAIL first")
	}
	usual := "250 2.1.5 Recipient ok"
	if n := c.s.o.MaxRecipients; n > 0 && len(c.to) >= n {
		usual = "452 4.5.3 Too many recipients"
	}
	ok, err := c.decide("RCPT", mailbox(arg), usual)
	if ok {
		c.to = append(c.to, mailbox(arg))
	}
	return err
}

func (c *session) data() error {
	if len(c.to) == 0 {
		return c.say("554 5.5.1 No valid recipients")
	}
	ok, err := c.decide("DATA", "", "354 Go ahead")
	if err != nil || !ok {
		return err
	}
	if err := c.w.Flush(); err != nil {
		return err
	}
	if err := c.content(); err != nil {
		return err
	}
	usual := "250 2.0.0 Ok: queued as " + strconv.Itoa(c.number) + "-" + strconv.Itoa(c.sent+1)
	if n := c.s.o.MaxSize; n > 0 && int64(c.body.Len()) > n {
		usual = "552 5.3.4 Message too big"
	}
	err = c.do("DOT", "", usual)
	c.reset()
	return err
}

// content reads up to the terminator. Only CRLF ends a line, so what a lenient server might take for one
// stays visible.
func (c *session) content() error {
	c.body.Reset()
	lineStart := true
	for {
		chunk, err := c.r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if lineStart && chunk[0] == '.' {
			if string(chunk) == ".\r\n" {
				return nil
			}
			chunk = chunk[1:]
		}
		c.body.Write(chunk)
		lineStart = bytes.HasSuffix(c.body.Bytes(), []byte("\r\n"))
	}
}

// store keeps the message of the transaction.
func (c *session) store() {
	c.sent++
	m := Message{From: c.from, To: c.to, Login: c.login, TLS: c.tls, Connection: c.number, Time: time.Now()}
	if !c.s.o.Discard {
		m.Data = bytes.Clone(c.body.Bytes())
	}
	c.s.keep(m)
}

func (c *session) reset() {
	c.mail, c.from, c.to = false, "", nil
}

// mailbox takes the address out of "FROM:<a@b> PARAM" or "TO:<a@b>".
func mailbox(arg string) string {
	_, rest, _ := strings.Cut(arg, "<")
	address, _, _ := strings.Cut(rest, ">")
	return address
}
