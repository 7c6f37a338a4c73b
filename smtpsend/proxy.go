package smtpsend

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/message"
)

// proxy is a Relay.Proxy taken apart.
type proxy struct {
	scheme         string // http, https or socks5
	host, address  string // address is host and port
	user, password string // both empty: no login
}

// parseProxy takes a proxy's URL apart; nil without one. Its errors never show the URL: a password may be in
// it, and in a URL that does not parse there is no telling where.
func parseProxy(raw string) (*proxy, error) {
	if raw == "" {
		return nil, nil
	}
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || !printable(u.Host) {
		return nil, fmt.Errorf("%w: proxy is not a URL like scheme://user:password@host:port", errRelay)
	}
	port := map[string]string{"http": "80", "https": "443", "socks5": "1080"}[u.Scheme]
	if port == "" {
		return nil, fmt.Errorf("%w: the proxy's scheme is not http, https or socks5", errRelay)
	}
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%w: the proxy's URL has more than a host and a port", errRelay)
	}
	if u.Port() != "" {
		port = u.Port()
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return nil, fmt.Errorf("%w: the proxy's port is out of range", errRelay)
	}
	p := &proxy{scheme: u.Scheme, host: u.Hostname(), address: net.JoinHostPort(u.Hostname(), port),
		user: u.User.Username()}
	p.password, _ = u.User.Password()
	if len(p.user) > 255 || len(p.password) > 255 {
		return nil, fmt.Errorf("%w: the proxy's user name or password is longer than 255 bytes", errRelay)
	}
	return p, nil
}

// tunnel asks the proxy the connection leads to for a way on to the relay.
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

// through gives the stream that reaches the relay. What the relay says is left in it, to the byte.
func (c *session) through(ctx context.Context) (net.Conn, error) {
	p := c.proxy
	if err := c.raw.SetDeadline(time.Now().Add(c.patience())); err != nil {
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
			return nil, fmt.Errorf("TLS handshake: %w", err)
		}
		conn = over
	}
	ask := p.askHTTP
	if p.scheme == "socks5" {
		ask = p.askSOCKS
	}
	if err := ask(conn, c.relay.Host, c.relay.Port); err != nil {
		return nil, err
	}
	return conn, c.raw.SetDeadline(time.Time{})
}

// proxyRoots are the authorities an https proxy's certificate may come from: the system's, and Relay.CA.
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

// errProxyLogin is a proxy that does not know us. Nothing of ours goes out before somebody has put that
// right.
var errProxyLogin = errors.New("it refuses the login")

// proxyError is a proxy that does not lead to the relay. It may be the proxy's trouble or the relay's; either
// may pass.
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
	code, reason, err := readStatus(conn)
	switch {
	case err != nil:
		return err
	case code == 401, code == 407:
		return fmt.Errorf("%w (%d)", errProxyLogin, code)
	case code/100 != 2:
		for _, secret := range []string{login, p.password} {
			if secret != "" {
				reason = strings.ReplaceAll(reason, secret, "***")
			}
		}
		return fmt.Errorf("it answers CONNECT with %d %s", code, message.Clip(printableText(reason), 200))
	}
	return nil
}

// maxProxyHead bounds what a proxy may say before the tunnel begins.
const maxProxyHead = 16 << 10

// readStatus reads the head of an HTTP answer. It reads byte by byte: the one after the empty line is the
// relay's.
func readStatus(r io.Reader) (code int, reason string, err error) {
	var head strings.Builder
	b := make([]byte, 1)
	for lineLength := -1; lineLength != 0; {
		if head.Len() >= maxProxyHead {
			return 0, "", fmt.Errorf("its answer is longer than %d bytes", maxProxyHead)
		}
		if _, err := io.ReadFull(r, b); err != nil {
			return 0, "", err
		}
		head.WriteByte(b[0])
		switch {
		case b[0] == '\n' && lineLength <= 0:
			lineLength = 0
		case b[0] == '\n':
			lineLength = -1
		case b[0] != '\r':
			lineLength = max(lineLength, 0) + 1
		}
	}
	line, _, _ := strings.Cut(head.String(), "\n")
	version, rest, _ := strings.Cut(strings.TrimRight(line, "\r"), " ")
	digits, reason, _ := strings.Cut(rest, " ")
	code, err = strconv.Atoi(digits)
	if !strings.HasPrefix(version, "HTTP/") || err != nil || len(digits) != 3 || code < 100 {
		return 0, "", errors.New("its answer is not HTTP")
	}
	return code, reason, nil
}
