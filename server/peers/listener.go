package peers

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pires/go-proxyproto"
	"github.com/pires/go-proxyproto/tlvparse"
)

// headerTimeout bounds the wait for the PROXY header of a trusted proxy.
const headerTimeout = 5 * time.Second

// quiet is how long after a line about a connection without a valid header more such lines are logged at
// debug only. A health check that just connects comes every few seconds.
const quiet = time.Minute

// First is the side that speaks first in a protocol.
type First string

// The sides of a connection.
const (
	ClientFirst First = "client" // HTTP, TLS
	ServerFirst First = "server" // SMTP without TLS
)

// Listen returns a listener on which trusted proxies must send a PROXY header, and others must not. If the
// client speaks first, another client's connection that begins with a header is closed. Otherwise the header
// is the first thing that the server reads. The setting is named in the log.
//
// Accept returns at once. The first use of a connection waits for the header, 5 s at most.
func (p *Proxies) Listen(l net.Listener, setting string, first First) net.Listener {
	return &listener{Listener: l, proxies: p, setting: setting, first: first}
}

type listener struct {
	net.Listener
	proxies *Proxies
	setting string
	first   First
	missing atomic.Int64 // time of the last line about a missing header, in seconds since 1970
	forged  atomic.Int64 // the same, about one that an untrusted address sent
}

func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	policy := proxyproto.REJECT
	if l.proxies.trusts(parseHostPort(conn.RemoteAddr().String())) {
		policy = proxyproto.REQUIRE
	} else if l.first == ServerFirst {
		return conn, nil
	}
	return &proxied{listener: l, Conn: proxyproto.NewConn(conn, proxyproto.WithPolicy(policy),
		proxyproto.SetReadHeaderTimeout(headerTimeout))}, nil
}

// proxied is a connection that begins with a PROXY header, or must not.
type proxied struct {
	*proxyproto.Conn
	listener *listener
	once     sync.Once
	err      error
	known    func(Client) // nil if no one asked
}

// WhenKnown calls known once, when the client of a connection that waits for a PROXY header is known. It must
// be called before the connection is used. For other connections it does nothing.
func WhenKnown(conn net.Conn, known func(Client)) {
	if c, ok := conn.(*proxied); ok {
		c.known = known
	}
}

// await waits for the header. An error is final, and logged.
func (c *proxied) await() error {
	c.once.Do(func() {
		if _, c.err = c.Read(nil); c.err != nil {
			c.listener.logWrong(c)
		} else if c.known != nil {
			c.known(Client{Addr: parseHostPort(c.Conn.RemoteAddr().String()), TLS: c.clientTLS()})
		}
	})
	return c.err
}

// RemoteAddr returns the client's address, or without a valid header the peer's. It is the first thing that
// net/http asks a connection for.
func (c *proxied) RemoteAddr() net.Addr {
	_ = c.await() // the first read fails too
	return c.Conn.RemoteAddr()
}

// CloseWrite implements the half-close of TCP, if the connection has it.
func (c *proxied) CloseWrite() error {
	if half, ok := c.Raw().(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// clientTLS reports whether the header says that the client uses TLS to the proxy (HAProxy's
// send-proxy-v2-ssl).
func (c *proxied) clientTLS() bool {
	header := c.ProxyHeader()
	if header == nil {
		return false
	}
	extra, err := header.TLVs()
	if err != nil {
		return false
	}
	ssl, ok := tlvparse.FindSSL(extra)
	return ok && ssl.ClientSSL()
}

func (l *listener) logWrong(c *proxied) {
	told, fix := &l.missing, "the proxy must send the PROXY protocol; or set "+l.setting+" to false"
	if c.ProxyHeaderPolicy == proxyproto.REJECT {
		told, fix = &l.forged, "if this is your proxy, set http.trustedProxies to its address"
	}
	log, now, last := l.proxies.log.Warn, time.Now().Unix(), told.Load()
	if now-last < int64(quiet.Seconds()) || !told.CompareAndSwap(last, now) {
		log = l.proxies.log.Debug
	}
	log("connection closed: wrong PROXY header", "setting", l.setting, "peer", c.Raw().RemoteAddr().String(),
		"error", c.err, "fix", fix)
}
