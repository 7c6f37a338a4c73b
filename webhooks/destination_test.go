package webhooks

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

func TestDestinations(t *testing.T) {
	public, private := newDestinations(false), newDestinations(true)
	for _, row := range []struct {
		name, ip            string
		normally, ifAllowed bool
	}{
		{"public", "93.184.215.14", true, true},
		{"public, IPv6", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", true, true},
		{"public, mapped", "::ffff:93.184.215.14", true, true},
		{"loopback", "127.0.0.1", false, true},
		{"loopback, elsewhere in its net", "127.8.8.8", false, true},
		{"loopback, IPv6", "::1", false, true},
		{"loopback, mapped", "::ffff:127.0.0.1", false, true},
		{"private 10", "10.1.2.3", false, true},
		{"private 172.16", "172.16.0.1", false, true},
		{"private 192.168", "192.168.1.1", false, true},
		{"private, mapped", "::ffff:10.1.2.3", false, true},
		{"carrier-grade NAT", "100.64.1.1", false, true},
		{"unique local", "fd12:3456::1", false, true},
		{"metadata of most clouds", "169.254.169.254", false, false},
		{"metadata, mapped", "::ffff:169.254.169.254", false, false},
		{"metadata of AWS, IPv6", "fd00:ec2::254", false, false},
		{"metadata of Google, IPv6", "fd20:ce::254", false, false},
		{"metadata of Alibaba", "100.100.100.200", false, false},
		{"metadata of Oracle", "192.0.0.192", false, false},
		{"host agent of Azure", "168.63.129.16", false, false},
		{"link-local", "169.254.1.1", false, false},
		{"link-local, IPv6", "fe80::1", false, false},
		{"link-local, IPv6 with zone", "fe80::1%eth0", false, false},
		{"this network, which Linux takes for itself", "0.0.0.0", false, false},
		{"unspecified, IPv6", "::", false, false},
		{"multicast", "224.0.0.1", false, false},
		{"multicast, IPv6", "ff02::1", false, false},
		{"broadcast", "255.255.255.255", false, false},
		{"reserved", "240.0.0.1", false, false},
		{"documentation", "192.0.2.1", false, false},
		{"NAT64 of the metadata address", "64:ff9b::a9fe:a9fe", false, false},
		{"6to4 of loopback", "2002:7f00:1::", false, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			ip := netip.MustParseAddr(row.ip)
			for allow, d := range map[bool]destinations{false: public, true: private} {
				err := d.check(ip)
				want := row.normally
				if allow {
					want = row.ifAllowed
				}
				if (err == nil) != want || err != nil && !errors.Is(err, errRefused) {
					t.Errorf("allowPrivate %v: %v, want reachable %v", allow, err, want)
				}
			}
		})
	}
}

// A name is judged by what it leads to at the moment of the connection.
func TestNamesAreJudgedByTheirAddress(t *testing.T) {
	hits := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits++ }))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	dns := nameServer(t, map[string][4]byte{
		"loopback.example.": {127, 0, 0, 1}, "metadata.example.": {169, 254, 169, 254}, "private.example.": {
			10, 0, 0, 1},
	})
	for _, row := range []struct {
		name, host string
		private    bool
		want       string // of the error; empty: it arrives
	}{
		{"loopback by name", "loopback.example", false, "127.0.0.1 is not a public address"},
		{"loopback by name, allowed", "loopback.example", true, ""},
		{"private by name", "private.example", false, "10.0.0.1 is not a public address"},
		{"metadata by name", "metadata.example", false, "169.254.169.254 is a link-local or metadata address"},
		{"metadata by name, private allowed", "metadata.example", true,
			"169.254.169.254 is a link-local or metadata address"},
		{"loopback by address", "127.0.0.1", false, "127.0.0.1 is not a public address"},
		{"loopback, mapped", "[::ffff:127.0.0.1]", false, "127.0.0.1 is not a public address"},
		// Go's resolver asks DNS for it: the error is another, see below
		{"loopback as one number", "2130706433", false, ""},
		{"localhost", "localhost", false, "is not a public address"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dialer := newDialer(newDestinations(row.private))
			dialer.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn,
				error) {
				return (&net.Dialer{}).DialContext(ctx, "udp", dns)
			}}
			p := &poster{
				client: &http.Client{Transport: newTransport(dialer, 1)}, timeout: 20 * time.Second, agent: "test",
				service: func() string { return "" },
			}
			defer p.client.CloseIdleConnections()
			before := hits
			to := &target{id: "ep", url: "http://" + row.host + ":" + port + "/", keys: secrets{}.keys}
			got := p.post(t.Context(), posting{to: to, attempt: 1, created: time.Now()}, time.Now())
			switch {
			case row.name == "loopback as one number":
				if got.ok() {
					t.Error("it arrived")
				}
			case row.want == "" && !got.ok():
				t.Errorf("it did not arrive: %v", got.fault())
			case row.want != "" && (!errors.Is(got.err, errRefused) || !strings.Contains(got.err.Error(), row.want) ||
				hits != before):
				t.Errorf("got %v, want %q; %d hits", got.err, row.want, hits-before)
			}
			if row.want != "" && got.retryable() {
				t.Error("a refused destination must not be tried again")
			}
		})
	}
}

// nameServer answers A questions over UDP.
func nameServer(t *testing.T, names map[string][4]byte) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { conn.Close(); <-done })
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, peer, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			answer := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true},
				Questions: m.Questions}
			ip, known := names[q.Name.String()]
			if !known {
				answer.RCode = dnsmessage.RCodeNameError
			} else if q.Type == dnsmessage.TypeA {
				answer.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET},
					Body:   &dnsmessage.AResource{A: ip},
				}}
			}
			if out, err := answer.Pack(); err == nil {
				_, _ = conn.WriteTo(out, peer)
			}
		}
	}()
	return conn.LocalAddr().String()
}

func TestCheckURL(t *testing.T) {
	for _, row := range []struct{ name, url, want string }{
		{"https", "https://example.com/hook?a=b", ""},
		{"http on an odd port", "http://example.com:8123", ""},
		{"an address", "http://[::1]:80/", ""},
		{"empty", "", "must begin"},
		{"no scheme", "example.com/hook", "must begin"},
		{"another scheme", "gopher://example.com", "must begin"},
		{"a file", "file:///etc/passwd", "must begin"},
		{"no host", "https:///hook", "name a host"},
		{"only a port", "https://:443/", "name a host"},
		{"user", "https://user@example.com/", "user or password"},
		{"password", "https://user:pass@example.com/", "user or password"},
		{"fragment", "https://example.com/#x", "fragment"},
		{"line break", "https://example.com/\r\nX: y", "not a URL"},
		{"space in the host", "https://exa mple.com/", "not a URL"},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := CheckURL(row.url)
			if row.want == "" && err != nil || row.want != "" &&
				(err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}
