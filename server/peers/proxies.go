package peers

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"
)

// Proxies are the trusted proxies of a process. It is safe for concurrent use.
type Proxies struct {
	trusted []netip.Prefix
	log     *slog.Logger
	told    [2]atomic.Bool // whether an untrusted header was logged; the second is for private networks
}

// New returns Proxies that trusts the given networks. A nil logger logs nothing.
func New(trusted []netip.Prefix, log *slog.Logger) *Proxies {
	return &Proxies{trusted: trusted, log: cmp.Or(log, slog.New(slog.DiscardHandler))}
}

// Client describes who is connected.
type Client struct {
	// Addr is invalid if it is not known. IPv4 addresses are never mapped to IPv6, and there are no zones.
	Addr netip.Addr
	TLS  bool // the client uses TLS, perhaps only to a proxy
}

// String returns the address for a log, or "unknown".
func (c Client) String() string {
	if !c.Addr.IsValid() {
		return "unknown"
	}
	return c.Addr.String()
}

// clientKey is the key of the Client in a request's context, connKey the key of the connection.
type (
	clientKey struct{}
	connKey   struct{}
)

// Of returns a request's client, as a Handler found it. Without a Handler, it is the other end of the
// connection.
func Of(r *http.Request) Client {
	if c, ok := r.Context().Value(clientKey{}).(Client); ok {
		return c
	}
	return peer(r)
}

// peer returns the other end of a request's connection, after the PROXY protocol.
func peer(r *http.Request) Client {
	c := Client{Addr: parseHostPort(r.RemoteAddr), TLS: r.TLS != nil}
	if !c.TLS {
		conn, _ := r.Context().Value(connKey{}).(net.Conn)
		c.TLS = toldTLS(conn)
	}
	return c
}

// OfConn returns a connection's client, after the PROXY protocol, for which it waits. It returns an error if
// the connection must be closed because a trusted proxy sent no valid header. That is logged already.
func OfConn(conn net.Conn) (Client, error) {
	if c, ok := conn.(*proxied); ok {
		if err := c.await(); err != nil {
			return Client{}, err
		}
	}
	return Client{Addr: parseHostPort(conn.RemoteAddr().String()), TLS: toldTLS(conn)}, nil
}

// ConnContext keeps the connection for Of. It is for http.Server.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// Handler makes Of return the client that trusted proxies name in the headers of requests.
func (p *Proxies) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := peer(r)
		switch {
		case p.trusts(c.Addr):
			c = p.forwarded(r.Header, c)
			r = r.WithContext(context.WithValue(r.Context(), clientKey{}, c))
		case isForwarded(r.Header):
			p.notBelieved(c)
		}
		next.ServeHTTP(w, r)
	})
}

func (p *Proxies) trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(p.trusted, func(n netip.Prefix) bool { return n.Contains(addr) })
}

// notBelieved logs that a peer that is not trusted sent a header. Anybody on the internet can send one. So
// it is logged once for these, and once for peers in a private network, which may be the operator's proxy.
func (p *Proxies) notBelieved(c Client) {
	where := 0
	if c.Addr.IsPrivate() || c.Addr.IsLoopback() {
		where = 1
	}
	if p.told[where].CompareAndSwap(false, true) {
		p.log.Warn("forwarded address ignored: untrusted proxy", "remote_addr", c.String(), "fix",
			"if this is your proxy, set http.trustedProxies to its address; later requests are not logged")
	}
}

// parseHostPort returns the address of a host:port; invalid if there is none.
func parseHostPort(text string) netip.Addr {
	at, _ := netip.ParseAddrPort(text)
	return at.Addr().Unmap().WithZone("")
}

// Waits reports whether OfConn of a connection waits for a PROXY header.
func Waits(conn net.Conn) bool {
	_, ok := conn.(*proxied)
	return ok
}

// toldTLS reports whether a proxy's PROXY header says that its client uses TLS. The connection may be
// wrapped, for example by crypto/tls.
func toldTLS(conn net.Conn) bool {
	for {
		if c, ok := conn.(*proxied); ok {
			return c.clientTLS()
		}
		outer, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return false
		}
		conn = outer.NetConn()
	}
}
