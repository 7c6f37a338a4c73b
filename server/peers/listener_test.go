package peers_test

import (
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pires/go-proxyproto"
	"github.com/pires/go-proxyproto/tlvparse"

	"github.com/postroom/postroom/server/peers"
)

// wires is a listener whose connections are made by a test.
type wires struct {
	net.Listener
	peer string
	made chan net.Conn
}

// peered is a connection with the address of a peer.
type peered struct {
	net.Conn
	peer string
}

func (p peered) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(p.peer))
}

func (w wires) Accept() (net.Conn, error) { return peered{<-w.made, w.peer}, nil }

// accepted returns both ends of a connection through Listen, and its log.
func accepted(t *testing.T, peer string, first peers.First) (client, server net.Conn,
	log *strings.Builder) {
	t.Helper()
	log = &strings.Builder{}
	p := peers.New(trusted, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	w := wires{peer: peer, made: make(chan net.Conn, 1)}
	client, far := net.Pipe()
	w.made <- far
	server, err := p.Listen(w, "http.proxyProtocol", first).Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server, log
}

// header is version 2 of the PROXY protocol, with what HAProxy adds with send-proxy-v2-ssl.
func header(t *testing.T, command proxyproto.ProtocolVersionAndCommand, overTLS bool) string {
	t.Helper()
	h := proxyproto.Header{Version: 2, Command: command, TransportProtocol: proxyproto.TCPv6,
		SourceAddr:      net.TCPAddrFromAddrPort(netip.MustParseAddrPort("[2a00::1]:4711")),
		DestinationAddr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort("[2001:db8::1]:25"))}
	if overTLS {
		extra, err := tlvparse.PP2SSL{Client: tlvparse.PP2_BITFIELD_CLIENT_SSL, TLV: []proxyproto.TLV{
			{Type: proxyproto.PP2_SUBTYPE_SSL_VERSION, Value: []byte("TLSv1.3")}}}.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if err := h.SetTLVs([]proxyproto.TLV{extra}); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := h.Format()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestProxyHeader(t *testing.T) {
	t.Parallel()
	const proxy, other = "10.0.0.1:4711", "192.0.2.7:1"
	for _, tt := range []struct {
		name, peer string
		first      peers.First
		sent       string
		want       string // the client; empty: the connection is closed
		tls        bool
		logged     string
	}{
		{"v1", proxy, peers.ClientFirst, "PROXY TCP4 203.0.113.9 10.0.0.1 4711 25\r\nhello", "203.0.113.9",
			false, ""},
		{"v1, IPv6", proxy, peers.ServerFirst, "PROXY TCP6 2a00::1 2001:db8::1 4711 25\r\nhello", "2a00::1",
			false, ""},
		{"v1, the proxy itself", proxy, peers.ClientFirst, "PROXY UNKNOWN\r\nhello", "10.0.0.1", false, ""},
		{"v2", proxy, peers.ClientFirst, header(t, proxyproto.PROXY, false) + "hello", "2a00::1", false, ""},
		{"v2 over TLS", proxy, peers.ServerFirst, header(t, proxyproto.PROXY, true) + "hello", "2a00::1", true,
			""},
		{"v2, a health check", proxy, peers.ClientFirst, header(t, proxyproto.LOCAL, false) + "hello",
			"10.0.0.1", false, ""},
		{"none", proxy, peers.ClientFirst, "hello, this is no header", "", false,
			"set http.proxyProtocol to false"},
		{"garbage", proxy, peers.ClientFirst, "PROXY TCP4 here there 1 2\r\nhello", "", false,
			"wrong PROXY header"},
		{"silence", proxy, peers.ServerFirst, "", "", false, "signature not present"},
		{"half of it", proxy, peers.ClientFirst, "PROXY TC", "", false, "level=WARN"},
		{"a client without", other, peers.ClientFirst, "hello", "192.0.2.7", false, ""},
		{"a client with one", other, peers.ClientFirst, header(t, proxyproto.PROXY, true) + "hello", "",
			false, "set http.trustedProxies to its address"},
		{"a client who waits to be greeted", other, peers.ServerFirst, "hello", "192.0.2.7", false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server, log := accepted(t, tt.peer, tt.first)
				go func() { _, _ = io.WriteString(client, tt.sent) }()
				began := time.Now()
				got, err := peers.OfConn(server)
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("waited %s", took)
				}
				if tt.logged == "" && log.Len() > 0 || !strings.Contains(log.String(), tt.logged) {
					t.Errorf("logged %q", log)
				}
				if tt.want == "" {
					if _, again := server.Read(make([]byte, 5)); err == nil || again == nil {
						t.Errorf("served as %v: %v, %v", got, err, again)
					}
					return
				}
				if err != nil || got.String() != tt.want || got.TLS != tt.tls {
					t.Errorf("the client is %+v, %v", got, err)
				}
				text := make([]byte, 5)
				if _, err := io.ReadFull(server, text); err != nil || string(text) != "hello" {
					t.Errorf("read %q, %v", text, err)
				}
			})
		})
	}
}

// TestWrongHeadersAreLoggedOnceAMinute: a health check that only connects comes every few seconds.
func TestWrongHeadersAreLoggedOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		p := peers.New(trusted, slog.New(slog.NewTextHandler(&log, nil)))
		w := wires{peer: "10.0.0.1:1", made: make(chan net.Conn, 1)}
		l := p.Listen(w, "smtpd.proxyProtocol", peers.ServerFirst)
		for range 10 {
			client, far := net.Pipe()
			w.made <- far
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			client.Close()
			if _, err := peers.OfConn(conn); err == nil {
				t.Error("served without a header")
			}
			conn.Close()
			time.Sleep(10 * time.Second)
		}
		if got := strings.Count(log.String(), "wrong PROXY header"); got != 2 {
			t.Errorf("%d lines in 100 s:\n%s", got, &log)
		}
	})
}
