package smtpd_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
	"github.com/pires/go-proxyproto/tlvparse"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/peers"
	"github.com/postroom/postroom/server/smtpd"
)

// thisMachine are proxies on the machine of the tests.
func thisMachine(log *slog.Logger) *peers.Proxies {
	return peers.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, log)
}

// proxied is a connection of a proxy for a client at an address.
func (w *world) proxied(address string, version byte, from string, overTLS bool) net.Conn {
	w.t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
	h := proxyproto.HeaderProxyFromAddrs(version, net.TCPAddrFromAddrPort(netip.AddrPortFrom(
		netip.MustParseAddr(from), 4711)), conn.RemoteAddr())
	if overTLS {
		extra, err := tlvparse.PP2SSL{Client: tlvparse.PP2_BITFIELD_CLIENT_SSL, TLV: []proxyproto.TLV{
			{Type: proxyproto.PP2_SUBTYPE_SSL_VERSION, Value: []byte("TLSv1.3")}}}.Marshal()
		if err == nil {
			err = h.SetTLVs([]proxyproto.TLV{extra})
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	if _, err := h.WriteTo(conn); err != nil {
		w.t.Fatal(err)
	}
	return conn
}

// TestClientBehindTheProxy logs in by each way through a proxy, with a token that is restricted to the
// address of the client. It is not the machine's own address, so it needs TLS.
func TestClientBehindTheProxy(t *testing.T) {
	rights, err := access.New(testredis.New(t), testkit.Ring(t, "secret"), access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	restricted, err := rights.Create(t.Context(), api.TokenRequest{Description: "x",
		Restrictions: &api.Restrictions{Addresses: []string{"203.0.113.9"}}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	w := setup(t, settings{access: rights, tls: true, log: &log,
		Options: smtpd.Options{Proxies: thisMachine(nil)}})
	for _, tt := range []struct {
		name    string
		version byte
		from    string
		wire    string // "starttls", "implicit", "proxy" (TLS ends there) or "clear"
		want    string
	}{
		{"v1, STARTTLS", 1, "203.0.113.9", "starttls", "235 .*"},
		{"v2, STARTTLS", 2, "203.0.113.9", "starttls", "235 .*"},
		{"v1, implicit TLS", 1, "203.0.113.9", "implicit", "235 .*"},
		{"v2, implicit TLS", 2, "203.0.113.9", "implicit", "235 .*"},
		{"v2, TLS to the proxy", 2, "203.0.113.9", "proxy", "235 .*"},
		{"in the clear", 1, "203.0.113.9", "clear", "538 5.7.11 .*"},
		{"another client", 2, "203.0.113.10", "starttls", "535 5.7.8 .*"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			address := w.inlet.Addr()
			if tt.wire == "implicit" {
				address = w.inlet.AddrTLS()
			}
			conn := w.proxied(address, tt.version, tt.from, tt.wire == "proxy")
			if tt.wire == "implicit" {
				conn = tls.Client(conn, &tls.Config{RootCAs: w.ca, ServerName: "localhost"})
			}
			c := newClient(t, conn)
			c.expect("220 .*")
			if tt.wire == "starttls" {
				c.say("EHLO x", "(?s)250.*")
				c = c.startTLS(w.ca)
			}
			c.say("EHLO x", "(?s)250.*")
			c.say("AUTH PLAIN "+plain("acme", restricted.Token), tt.want)
			if !strings.HasPrefix(tt.want, "235") {
				return
			}
			c.begin()
			c.say(mailText+".", "250 .*")
			c.say("QUIT", "221 .*")
			c.closed() // the half-close reaches the client through the layers
		})
	}
	w.stop()
	text := log.String()
	for _, want := range []string{`msg="message accepted" message_id=Q1 account=acme`,
		`msg="smtp login refused" remote_addr=203.0.113.10`} {
		if !strings.Contains(text, want) {
			t.Errorf("the log has no %q", want)
		}
	}
	if strings.Count(text, "remote_addr=203.0.113.9") != 10 || strings.Contains(text, "remote_addr=127.0.0.1") {
		t.Errorf("the log names other clients:\n%s", text)
	}
}

// TestWrongTokensOfOthersLockNobodyOut: 21 of them from one address end the guessing from there, and
// neither a right token nor the other clients of the proxy suffer.
func TestWrongTokensOfOthersLockNobodyOut(t *testing.T) {
	w := setup(t, settings{Options: smtpd.Options{Proxies: thisMachine(nil), InsecureAuth: true}})
	logIn := func(from, token, want string) {
		t.Helper()
		c := newClient(t, w.proxied(w.inlet.Addr(), 1, from, false))
		c.expect("220 .*")
		c.say("EHLO x", "(?s)250.*")
		c.say("AUTH PLAIN "+plain("acme", token), want)
		c.conn.Close()
	}
	for range 20 {
		logIn("2a00::1", "guess", "535 .*")
	}
	logIn("2a00::2", "guess", "454 4.7.0 Too many failed attempts from your address; .*")
	logIn("2a00::1", token, "235 .*")
	logIn("2a00:0:0:1::1", "guess", "535 .*")
}

// TestProxyWithoutItsHeader is neither greeted nor served.
func TestProxyWithoutItsHeader(t *testing.T) {
	var log bytes.Buffer
	w := setup(t, settings{Options: smtpd.Options{
		Proxies: thisMachine(slog.New(slog.NewTextHandler(&log, nil)))}})
	c := dial(t, w.inlet.Addr())
	c.send("EHLO app.example.com\r\n")
	c.closed()
	w.stop()
	if !strings.Contains(log.String(), "wrong PROXY header") ||
		!strings.Contains(log.String(), "set smtpd.proxyProtocol to false") {
		t.Errorf("logged %q", &log)
	}
}

// TestForgedProxyHeader: a header from a client that isn't a trusted proxy ends the conversation. A log line
// tells a proxy's operator what to set.
func TestForgedProxyHeader(t *testing.T) {
	untrusting := peers.New([]netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}, nil)
	for _, tt := range []struct {
		name    string
		proxies *peers.Proxies
		version byte
		replies string
	}{
		{"v1, nobody speaks it", nil, 1, "554 5.7.1 The PROXY protocol is not accepted from this address"},
		{"v1, others speak it", untrusting, 1, "554 5.7.1 The PROXY protocol is not accepted from this address"},
		{"v2, nobody speaks it", nil, 2, "500 .*"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			w := setup(t, settings{log: &log, Options: smtpd.Options{Proxies: tt.proxies}})
			c := newClient(t, w.proxied(w.inlet.Addr(), tt.version, "203.0.113.9", false))
			c.expect("220 .*")
			c.expect(tt.replies)
			if text, err := io.ReadAll(c.r); err != nil || strings.Contains(string(text), "\n2") {
				t.Errorf("then %q, %v", text, err)
			}
			w.stop()
			if !strings.Contains(log.String(), "PROXY header from an untrusted address\" remote_addr=127.0.0.1") ||
				!strings.Contains(log.String(), "smtpd.proxyProtocol") {
				t.Errorf("logged %q", &log)
			}
		})
	}
}

func TestBouncesThroughAProxy(t *testing.T) {
	to := &returns{}
	inlet := startBounces(t, to, smtpd.BounceOptions{LMTP: "127.0.0.1:0",
		Options: smtpd.Options{Listen: "127.0.0.1:0", Proxies: thisMachine(nil)}})
	w := &world{t: t}
	c := newClient(t, w.proxied(inlet.Addr(), 2, "203.0.113.9", false))
	c.expect("220 .*")
	c.say("EHLO mx.example.net", "(?s)250.*")
	c.say("MAIL FROM:<>", "250 .*")
	c.say("RCPT TO:<bounces+good1@example.com>", "250 .*")
	c.say("DATA", "354 .*")
	c.say(bounceText+".", "250 .*")
	local := dialBounces(t, inlet.AddrLMTP()) // no proxy is in front of LMTP
	local.expect("220 .*")
	if len(to.all()) != 2 {
		t.Errorf("taken: %q", to.all())
	}
}
