package smtpsend

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// proxy is a parsed Relay.Proxy.
type proxy struct {
	scheme         string // http, https or socks5
	host, address  string // address is host and port
	user, password string // both empty: no login
}

// CheckProxy returns an error if a text can't be [Relay.Proxy]. It follows the name of the field.
func CheckProxy(text string) error {
	_, err := parseProxy(text)
	return err
}

// parseProxy parses a proxy's URL; nil without one. Its errors never contain the URL: it may hold a password,
// and in a URL that does not parse its position is unknown.
func parseProxy(raw string) (*proxy, error) {
	if raw == "" {
		return nil, nil
	}
	u, err := url.Parse(raw)
	if err != nil {
		u = &url.URL{}
	}
	port := map[string]string{"http": "80", "https": "443", "socks5": "1080"}[u.Scheme]
	if u.Port() != "" {
		port = u.Port()
	}
	number, err := strconv.ParseUint(port, 10, 16)
	password, _ := u.User.Password()
	p := &proxy{scheme: u.Scheme, host: u.Hostname(), address: net.JoinHostPort(u.Hostname(), port),
		user: u.User.Username(), password: password}
	switch {
	case len(raw) > 2048:
		return nil, errors.New("must not be longer than 2048 characters")
	case !slices.Contains([]string{"http", "https", "socks5"}, p.scheme) || !ValidHost(p.host):
		return nil, errors.New("must be an http, https or socks5 URL such as socks5://user:password@proxy.example.com:1080")
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("must not have a path, query or fragment")
	case err != nil || number == 0:
		return nil, errors.New("must have a port of 1 to 65535")
	case u.User != nil && !p.mayLogIn():
		return nil, errors.New("must have a user name and a password of at most 255 bytes each, or none")
	}
	return p, nil
}

// mayLogIn reports whether user and password can be sent (RFC 1929 section 2, RFC 7617 section 2).
func (p *proxy) mayLogIn() bool {
	return p.user != "" && len(p.user) <= 255 && len(p.password) <= 255 &&
		!strings.ContainsFunc(p.user+p.password, unicode.IsControl) &&
		(p.scheme == "socks5" || !strings.Contains(p.user, ":"))
}

// tunnel asks the proxy to connect to the relay.
func (c *session) tunnel(ctx context.Context) *Error {
	begun := time.Now()
	conn, err := c.through(ctx)
	c.timings.Connect += time.Since(begun)
	if err != nil {
		return c.proxyError(ctx, err)
	}
	c.attach(conn)
	return nil
}

// through returns the stream to the relay. Nothing that the relay sent has been read from it.
func (c *session) through(ctx context.Context) (net.Conn, error) {
	p := c.proxy
	if err := c.raw.SetDeadline(time.Now().Add(c.setupTimeout())); err != nil {
		return nil, err
	}
	conn := c.conn
	if p.scheme == "https" {
		roots, err := c.proxyRoots()
		if err != nil {
			return nil, err
		}
		over := tls.Client(conn, &tls.Config{ServerName: p.host, RootCAs: roots, MinVersion: tls.VersionTLS12})
		if err := over.HandshakeContext(ctx); err != nil {
			return nil, fmt.Errorf("TLS handshake: %w", certificateOf(err))
		}
		conn = over
	}
	ask := p.askHTTP
	if p.scheme == "socks5" {
		ask = p.askSOCKS
	}
	if err := ask(conn, c.target, c.relay.Port); err != nil {
		return nil, err
	}
	return conn, c.raw.SetDeadline(time.Time{})
}

// proxyRoots are the authorities that may sign an https proxy's certificate: the system's, and Relay.CA.
func (c *session) proxyRoots() (*x509.CertPool, error) {
	if c.relay.CA == "" {
		return nil, nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	roots.AppendCertsFromPEM([]byte(c.relay.CA))
	return roots, nil
}

// errProxyLogin is the cause when a proxy refuses the login. Only a change of settings can fix that.
var errProxyLogin = errors.New("it refuses the login")

// proxyError is the error if a proxy does not connect to the relay. The cause may be the proxy or the relay,
// and may pass.
func (c *session) proxyError(ctx context.Context, err error) *Error {
	e := c.sender.ioError(ctx, PhaseConnect, "", err)
	if ctx.Err() != nil {
		return e
	}
	e.Scope = ScopeAccount
	switch {
	case errors.Is(err, errProxyLogin):
		e.Verdict, e.name = Auth, nameAuth
	case !e.Timeout():
		e.Verdict, e.name = Soft, nameSocket
		e = c.sender.silent(e)
	}
	e.Err = fmt.Errorf("proxy: %w", e.Err)
	return e
}

// askHTTP asks for a tunnel by CONNECT (RFC 9110 section 9.3.6).
func (p *proxy) askHTTP(conn net.Conn, host string, port int) error {
	target := net.JoinHostPort(host, strconv.Itoa(port))
	request := "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n"
	login := base64.StdEncoding.EncodeToString([]byte(p.user + ":" + p.password))
	if p.user != "" || p.password != "" {
		request += "Proxy-Authorization: Basic " + login + "\r\n"
	}
	if _, err := io.WriteString(conn, request+"\r\n"); err != nil {
		return err
	}
	head := &io.LimitedReader{R: byteReader{conn}, N: maxProxyHead}
	answer, err := http.ReadResponse(bufio.NewReader(head), &http.Request{Method: http.MethodConnect})
	switch {
	case head.N <= 0 && err != nil:
		return fmt.Errorf("its answer is longer than %d bytes", maxProxyHead)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return io.EOF
	case err != nil && !isTimeout(err) && !isClosed(err):
		return errors.New("its answer is not HTTP")
	case err != nil:
		return err
	case answer.StatusCode == 401, answer.StatusCode == 407:
		return fmt.Errorf("%w (%d)", errProxyLogin, answer.StatusCode)
	case answer.StatusCode/100 != 2:
		// not in the server's words: it may be any server, and they may hold the login
		return fmt.Errorf("it answers CONNECT with %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	}
	return nil
}

// byteReader reads byte by byte, so that nothing behind the head is read: that is the relay's.
type byteReader struct{ io.Reader }

func (r byteReader) Read(b []byte) (int, error) { return r.Reader.Read(b[:1]) }

// maxProxyHead bounds the head of a proxy's answer.
const maxProxyHead = 16 << 10
