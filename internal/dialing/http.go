package dialing

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// HTTP are the settings of an HTTP client. The zero value works.
type HTTP struct {
	Timeout time.Duration // for a request and its answer; if zero, only the context bounds them
	PerHost int           // idle connections kept to one host; zero for none
	// Environment: requests go through the proxy that the environment names, if any (HTTPS_PROXY…). Its address
	// may be private, because the operator named it. It judges where names lead.
	Environment bool
	// Proxy is the URL of a proxy (http, https or socks5) that all requests go through, if any. Its address is
	// judged like any other. It resolves names.
	Proxy string
}

// Client returns a client that follows no redirect.
func (g *Guard) Client(o HTTP) *http.Client {
	return &http.Client{
		Timeout: o.Timeout, Transport: g.Transport(o),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Transport returns the transport of such a client.
func (g *Guard) Transport(o HTTP) http.RoundTripper {
	t := &transport{guard: g, direct: g.pool(o)}
	switch proxy, err := url.Parse(o.Proxy); {
	case o.Proxy != "" && err == nil:
		t.proxied, t.proxy = g.pool(o), http.ProxyURL(proxy)
	case o.Environment:
		t.proxied, t.proxy = g.WithPrivate().pool(o), http.ProxyFromEnvironment
	}
	if t.proxied != nil {
		t.proxied.Proxy = t.proxy
	}
	return t
}

// pool returns connections that ignore the environment: a proxy would dial for us.
func (g *Guard) pool(o HTTP) *http.Transport {
	return &http.Transport{
		DialContext:            g.Dialer().DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // a small answer could unpack to gigabytes
		DisableKeepAlives:      o.PerHost == 0,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    o.PerHost,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// transport is a transport whose errors show nothing about the network.
type transport struct {
	guard           *Guard
	direct, proxied *http.Transport // proxied is nil without a proxy
	proxy           func(*http.Request) (*url.URL, error)
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	use, err := t.way(r)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as RoundTripper promises
		}
		return nil, err
	}
	answer, err := use.RoundTrip(r)
	if err != nil && r.Context().Err() == nil && !told(err) {
		t.guard.o.Logger.Debug("answer is no HTTP", "host", r.URL.Host, "error", err)
		err = errors.New("the server does not answer in HTTP, or broke off")
	}
	return answer, Plain(err)
}

// way returns the connections for a request. A proxy never gets a host that is known here to be refused: in a
// closed network only the proxy resolves names.
func (t *transport) way(r *http.Request) (*http.Transport, error) {
	if t.proxied == nil {
		return t.direct, nil
	}
	if proxy, err := t.proxy(r); proxy == nil || err != nil {
		return t.direct, err
	}
	if _, err := t.guard.Target(r.Context(), r.URL.Hostname()); errors.Is(err, ErrRefused) {
		return nil, err
	}
	return t.proxied, nil
}

// told reports whether the text of an error is the library's or the system's. The others may quote what a
// server sent that does not speak HTTP.
func told(err error) bool {
	var network net.Error
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &network) || errors.As(err, &certificate) || strings.HasPrefix(err.Error(), "tls: ") {
		return true
	}
	for _, known := range []error{ErrRefused, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// CloseIdleConnections closes connections that are not in use. http.Client calls it.
func (t *transport) CloseIdleConnections() {
	t.direct.CloseIdleConnections()
	if t.proxied != nil {
		t.proxied.CloseIdleConnections()
	}
}

// RetryAfter returns the wait that an answer asks for, in seconds or by a date (RFC 9110 section 10.2.3). It
// is zero if there is none, or if it is over.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if n, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return max(0, at.Sub(now))
}
