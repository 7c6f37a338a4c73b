package dialing

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

func TestDestinations(t *testing.T) {
	public := New(Options{})
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
		{"documentation", "192.0.2.1", false, true},
		{"NAT64 of the metadata address", "64:ff9b::a9fe:a9fe", false, false},
		{"6to4 of loopback", "2002:7f00:1::", false, false},
		{"benchmarks, which some networks use", "198.18.0.1", false, true},
		{"NAT64 of a public address", "64:ff9b::5db8:d70e", true, true},
		{"NAT64 of a private address", "64:ff9b::a00:1", false, true},
		{"NAT64 within a network, of the metadata address", "64:ff9b:1::a9fe:a9fe", false, false},
		{"6to4 of the metadata address", "2002:a9fe:a9fe::1", false, false},
		{"Teredo", "2001:0:a9fe:a9fe::1", false, false},
		{"IPv4-compatible", "::169.254.169.254", false, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			for g, want := range map[*Guard]bool{public: row.normally, public.WithPrivate(): row.ifAllowed} {
				err := g.check(netip.MustParseAddr(row.ip))
				if (err == nil) != want || err != nil && !errors.Is(err, ErrRefused) {
					t.Errorf("AllowPrivate %v: %v, want reachable %v", g.o.AllowPrivate, err, want)
				}
			}
		})
	}
}

// A name is judged by its address at the moment of the connection, and the error does not show that address.
func TestNamesAreJudgedByTheirAddress(t *testing.T) {
	hits := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits++ }))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	dns := nameServer(t, map[string][][4]byte{"loopback.example.": {{127, 0, 0, 1}},
		"metadata.example.": {{169, 254, 169, 254}}, "private.example.": {{10, 0, 0, 1}}})
	const notPublic, metadata = "the address is not a public one, and x.allowPrivate is off", "never dialed"
	for _, row := range []struct {
		name, host string
		private    bool
		want       string // part of the error; empty if it arrives
	}{
		{"loopback by name", "loopback.example", false, notPublic},
		{"loopback by name, allowed", "loopback.example", true, ""},
		{"private by name", "private.example", false, notPublic},
		{"metadata by name", "metadata.example", false, metadata},
		{"metadata by name, private allowed", "metadata.example", true, metadata},
		{"loopback by address", "127.0.0.1", false, notPublic},
		{"loopback, mapped", "[::ffff:127.0.0.1]", false, notPublic},
		{"loopback as one number", "2130706433", false, "no such host"}, // Go's resolver asks DNS for it
		{"localhost", "localhost", false, notPublic},
	} {
		t.Run(row.name, func(t *testing.T) {
			var log bytes.Buffer
			g := New(Options{AllowPrivate: row.private, Setting: "x.allowPrivate", Resolver: dns,
				Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
			before := hits
			err := get(t, g.Client(HTTP{}), "http://"+row.host+":"+port+"/")
			switch {
			case row.want == "" && (err != nil || hits != before+1):
				t.Errorf("it did not arrive: %v", err)
			case row.want == "":
			case err == nil || !strings.HasSuffix(err.Error(), row.want) || hits != before:
				t.Errorf("got %v, want %q; %d hits", err, row.want, hits-before)
			case errors.Is(err, ErrRefused) && !strings.Contains(log.String(), "address not dialed"):
				t.Errorf("log: %s", &log)
			}
		})
	}
}

// get makes a request and drops the answer.
func get(t *testing.T, client *http.Client, url string) error {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		return errors.Unwrap(err) // without the URL
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.Body.Close()
}

// What a name leads to when it is looked at has no bearing on what is dialed later.
func TestRebindingGainsNothing(t *testing.T) {
	hits := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits++ }))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	g := New(Options{Resolver: nameServer(t, map[string][][4]byte{
		"rebind.example.": {{93, 184, 215, 14}, {127, 0, 0, 1}}})})
	if got, err := g.Target(t.Context(), "rebind.example"); err != nil || got != "93.184.215.14" {
		t.Errorf("a proxy gets %q, %v", got, err)
	}
	if err := get(t, g.Client(HTTP{}), "http://rebind.example:"+port); !errors.Is(err, ErrRefused) || hits > 0 {
		t.Errorf("%v, %d hits", err, hits)
	}
}

func TestTargetsOfProxies(t *testing.T) {
	dns := nameServer(t, map[string][][4]byte{"public.example.": {{93, 184, 215, 14}},
		"private.example.": {{10, 0, 0, 1}}, "metadata.example.": {{169, 254, 169, 254}}})
	for _, row := range []struct {
		host         string
		public, both string // what a proxy gets without and with AllowPrivate; empty if it is refused
	}{
		{"public.example", "93.184.215.14", "public.example"},
		{"private.example", "", "private.example"},
		{"metadata.example", "", "metadata.example"}, // known to the proxy alone
		{"unknown.example", "", "unknown.example"},
		{"93.184.215.14", "93.184.215.14", "93.184.215.14"},
		{"10.0.0.1", "", "10.0.0.1"},
		{"localhost", "", "localhost"},
		{"LOCALHOST.", "", "LOCALHOST."},
		{"169.254.169.254", "", ""},
		{"::ffff:169.254.169.254", "", ""},
	} {
		for private, want := range map[bool]string{false: row.public, true: row.both} {
			g := New(Options{AllowPrivate: private, Resolver: dns})
			got, err := g.Target(t.Context(), row.host)
			if (err == nil) != (want != "") || err == nil && got != want {
				t.Errorf("%s, AllowPrivate %v: %q, %v; want %q", row.host, private, got, err, want)
			}
		}
	}
}

// nameServer returns a resolver whose server answers A questions: the n-th question about a name gets its
// n-th address, and later questions the last.
func nameServer(t *testing.T, names map[string][][4]byte) *net.Resolver {
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
			ips := names[q.Name.String()]
			if len(ips) == 0 {
				answer.RCode = dnsmessage.RCodeNameError
			} else if q.Type == dnsmessage.TypeA {
				answer.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET},
					Body:   &dnsmessage.AResource{A: ips[0]},
				}}
				if len(ips) > 1 {
					names[q.Name.String()] = ips[1:]
				}
			}
			if out, err := answer.Pack(); err == nil {
				_, _ = conn.WriteTo(out, peer)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}
