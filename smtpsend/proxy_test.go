package smtpsend_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
)

// join passes bytes between two connections until either ends.
func join(a io.ReadWriteCloser, fromA io.Reader, b net.Conn) {
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(b, fromA); _ = b.Close() })
	both.Go(func() { _, _ = io.Copy(a, b); _ = a.Close() })
	both.Wait()
}

// connectProxy is an HTTP proxy by net/http, over TLS if asked. It gives its URL, and the certificate to
// trust.
func connectProxy(t *testing.T, secure bool, login string) (address, ca string) {
	t.Helper()
	var tunnels sync.WaitGroup
	t.Cleanup(tunnels.Wait)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if login != "" && r.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString(
			[]byte(login)) {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		onward, err := net.Dial("tcp", r.Host)
		if r.Method != http.MethodConnect || err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		conn, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n")
		tunnels.Go(func() { join(conn, buffered, onward) })
	}))
	if secure {
		server.StartTLS()
		ca = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), ca
}

// listening serves each connection with do, until the test ends.
func listening(t *testing.T, do func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { defer conn.Close(); do(conn) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); serving.Wait() })
	return l.Addr().String()
}

// socksProxy is a SOCKS 5 proxy that takes names.
func socksProxy(t *testing.T, login string) string {
	t.Helper()
	return listening(t, func(conn net.Conn) {
		r := bufio.NewReader(conn)
		read := func(n int) []byte {
			b := make([]byte, n)
			_, _ = io.ReadFull(r, b)
			return b
		}
		methods := read(int(read(2)[1]))
		switch {
		case login == "":
			_, _ = conn.Write([]byte{5, 0})
		case !bytes.Contains(methods, []byte{2}):
			_, _ = conn.Write([]byte{5, 0xff})
			return
		default:
			_, _ = conn.Write([]byte{5, 2})
			user := read(int(read(2)[1]))
			password := read(int(read(1)[0]))
			if string(user)+":"+string(password) != login {
				_, _ = conn.Write([]byte{1, 1})
				return
			}
			_, _ = conn.Write([]byte{1, 0})
		}
		var host string
		switch head := read(4); head[3] {
		case 1:
			host = net.IP(read(4)).String()
		case 3:
			host = string(read(int(read(1)[0])))
		default:
			host = net.IP(read(16)).String()
		}
		port := read(2)
		onward, err := net.Dial("tcp", net.JoinHostPort(host, fmt.Sprint(int(port[0])<<8|int(port[1]))))
		if err != nil {
			_, _ = conn.Write([]byte{5, 5, 0, 1, 0, 0, 0, 0, 0, 0})
			return
		}
		_, _ = conn.Write(append([]byte{5, 0, 0, 3, 4}, "name\x00\x19"...))
		join(conn, r, onward)
	})
}

func TestProxies(t *testing.T) {
	for _, scheme := range []string{"http", "https", "socks5"} {
		for _, row := range []struct {
			name, wants, gives, host string
			fails                    string
			verdict                  smtpsend.Verdict
		}{
			{name: "open"},
			{name: "with a name to look up", host: "localhost"},
			{name: "login", wants: "proxy-user:proxy-secret", gives: "proxy-user:proxy-secret"},
			{name: "login refused", wants: "proxy-user:proxy-secret", gives: "proxy-user:wrong-secret", fails: "EAUTH",
				verdict: smtpsend.Auth},
			{name: "login wanted", wants: "proxy-user:proxy-secret", fails: "EAUTH", verdict: smtpsend.Auth},
			{name: "login not wanted", gives: "proxy-user:proxy-secret"},
			{name: "relay not reached", gives: "proxy-user:proxy-secret", host: "relay.invalid", fails: "ESOCKET",
				verdict: smtpsend.Soft},
		} {
			t.Run(scheme+"/"+row.name, func(t *testing.T) {
				t.Parallel()
				server := testsmtp.Start(t, testsmtp.Options{Security: testsmtp.STARTTLS, Username: "u", Password: "p"})
				relay := relayTo(server)
				relay.Username, relay.Password = "u", "p"
				if row.host != "" {
					relay.Host = row.host
				}
				u := url.URL{Scheme: scheme}
				var ca string
				if scheme == "socks5" {
					u.Host = socksProxy(t, row.wants)
				} else {
					u.Host, ca = connectProxy(t, scheme == "https", row.wants)
				}
				if user, password, ok := strings.Cut(row.gives, ":"); ok {
					u.User = url.UserPassword(user, password)
				}
				relay.Proxy, relay.CA = u.String(), relay.CA+ca
				var log bytes.Buffer
				logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
				result, err := newSender(t, smtpsend.Options{Timeout: 15 * time.Second, Logger: logger}).Send(t.Context(),
					relay, mail("b@example.org"))
				if row.fails == "" {
					if err != nil {
						t.Fatal(err)
					}
					if got := server.Wait(1)[0]; !got.TLS || got.Login != "u" || result.RemoteAddress != u.Host {
						t.Errorf("TLS %v, login %q, by way of %s", got.TLS, got.Login, result.RemoteAddress)
					}
				} else if e := failure(t, err); e.Name() != row.fails || e.Verdict != row.verdict ||
					e.Phase != smtpsend.PhaseConnect ||
					e.Scope != smtpsend.ScopeAccount || !e.Elsewhere() || !strings.Contains(e.Error(), "proxy: ") {
					t.Errorf("%s %s %s: %v", e.Name(), e.Verdict, e.Phase, e)
				}
				if said := fmt.Sprint(err, relay, log.String()); strings.Contains(said, "secret") {
					t.Errorf("the proxy's password is shown: %s", said)
				}
			})
		}
	}
}

// TestProxyTroubles is what a proxy can do wrong besides refusing.
func TestProxyTroubles(t *testing.T) {
	says := func(answer string) func(net.Conn) {
		return func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, answer)
			_, _ = io.Copy(io.Discard, conn)
		}
	}
	for _, row := range []struct {
		name, scheme string
		does         func(net.Conn)
		fails, says  string
	}{
		{"says nothing", "http", says(""), "ETIMEDOUT", "did not answer in time"},
		{"says nothing", "socks5", says(""), "ETIMEDOUT", "did not answer in time"},
		{"says nothing", "https", says(""), "ETIMEDOUT", "did not answer in time"},
		{"hangs up", "http", func(net.Conn) {}, "ESOCKET", "closed"},
		{"is no HTTP server", "http", says("220 mx ESMTP\r\n\r\n"), "ESOCKET", "not HTTP"},
		{"is no TLS server", "https", says("220 mx ESMTP\r\n\r\n"), "ESOCKET", "TLS handshake"},
		{"is no SOCKS server", "socks5", says("220 mx ESMTP\r\n"), "ESOCKET", "not SOCKS"},
		{"talks without end", "http", says("HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 10_000)), "ESOCKET",
			"longer than"},
		{"repeats the login", "http",
			says("HTTP/1.1 403 no proxy-secret cHJveHktdXNlcjpwcm94eS1zZWNyZXQ=\x1b[31m\r\n\r\n"), "ESOCKET",
			"403 Forbidden"},
	} {
		t.Run(row.scheme+" "+row.name, func(t *testing.T) {
			t.Parallel()
			timeout := 15 * time.Second
			if row.fails == "ETIMEDOUT" {
				timeout = 2 * time.Second
			}
			relay := smtpsend.Relay{Host: "relay.test", Port: 25, Proxy: row.scheme + "://proxy-user:proxy-secret@" +
				listening(t, row.does)}
			e := failure(t, newSender(t, smtpsend.Options{Timeout: timeout}).Verify(t.Context(), relay))
			if e.Name() != row.fails || e.Verdict != smtpsend.Soft || e.Phase != smtpsend.PhaseConnect ||
				!strings.Contains(e.Error(), row.says) {
				t.Errorf("%s %s at %s: %v", e.Name(), e.Verdict, e.Phase, e)
			}
			if strings.Contains(e.Error(), "secret") || strings.Contains(e.Error(), "\x1b") {
				t.Errorf("%q", e)
			}
		})
	}
}

func TestProxyNotThere(t *testing.T) {
	for _, proxy := range []string{"http://127.0.0.1:1", "socks5://u:secret@no-such-proxy.invalid:1080"} {
		relay := smtpsend.Relay{Host: "relay.test", Port: 25, Proxy: proxy}
		e := failure(t, newSender(t, smtpsend.Options{Timeout: 30 * time.Second}).Verify(t.Context(), relay))
		if e.Phase != smtpsend.PhaseConnect || e.Verdict != smtpsend.Soft ||
			!strings.Contains(e.Error(), "proxy: ") || strings.Contains(e.Error(), "secret") {
			t.Errorf("%s: %s at %s: %v", proxy, e.Verdict, e.Phase, e)
		}
	}
}

// TestProxyOnThisMachineIsNoRelayOnIt: credentials may go in clear to a relay on this machine, not through a
// proxy that is.
func TestProxyOnThisMachineIsNoRelayOnIt(t *testing.T) {
	server := testsmtp.Start(t, testsmtp.Options{Username: "u", Password: "p"})
	address, _ := connectProxy(t, false, "")
	relay := relayTo(server)
	relay.TLS, relay.Username, relay.Password, relay.Proxy = smtpsend.TLSNone, "u", "p", "http://"+address
	if e := failure(t, newSender(t, smtpsend.Options{}).Verify(t.Context(), relay)); e.Name() != "ENOAUTH" {
		t.Error(e)
	}
}

// TestProxyEndsWithTheContext: a proxy that does not answer holds no one who has stopped waiting.
func TestProxyEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	address := listening(t, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 4096))
		cancel()
		_, _ = io.Copy(io.Discard, conn)
	})
	_, err := newSender(t, smtpsend.Options{}).Send(ctx, smtpsend.Relay{Host: "relay.test",
		Proxy: "http://" + address}, mail("b@example.org"))
	if e := failure(t, err); ctx.Err() == nil || e.InDoubt || e.Permanent() {
		t.Error(e)
	}
}
