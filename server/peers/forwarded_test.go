package peers_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/postroom/postroom/server/peers"
)

// trusted are the proxies of these tests.
var trusted = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("127.0.0.1/32")}

// see returns what a handler behind Proxies sees of a request from peer with header lines ("Name: value").
func see(p *peers.Proxies, peer string, lines ...string) (got peers.Client) {
	r := httptest.NewRequest(http.MethodGet, "http://postroom.test/", nil)
	r.RemoteAddr = peer
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		r.Header.Add(name, strings.TrimSpace(value))
	}
	p.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = peers.Of(r) })).
		ServeHTTP(httptest.NewRecorder(), r)
	return got
}

func TestForwardedAddress(t *testing.T) {
	t.Parallel()
	p := peers.New(trusted, nil)
	const proxy = "10.0.0.1:4711"
	for _, tt := range []struct {
		name, peer string
		lines      []string
		want       string // with " tls" if the client uses TLS
	}{
		{"no header", proxy, nil, "10.0.0.1"},
		{"not from a proxy", "192.0.2.7:1", []string{"X-Forwarded-For: 203.0.113.9", "X-Forwarded-Proto: https",
			"Forwarded: for=203.0.113.9;proto=https"}, "192.0.2.7"},
		{"loopback is not trusted by itself", "[::1]:1", []string{"X-Forwarded-For: 203.0.113.9"}, "::1"},
		{"nor is a private network", "192.168.0.1:1", []string{"X-Forwarded-For: 203.0.113.9"}, "192.168.0.1"},
		{"one proxy", proxy, []string{"X-Forwarded-For: 203.0.113.9"}, "203.0.113.9"},
		{"a mapped peer", "[::ffff:10.0.0.1]:1", []string{"X-Forwarded-For: ::ffff:203.0.113.9"}, "203.0.113.9"},
		{"what the client claims", proxy, []string{"X-Forwarded-For: 10.1.1.1, 198.51.100.1, 203.0.113.9"},
			"203.0.113.9"},
		{"a chain of proxies", proxy, []string{"X-Forwarded-For: 198.51.100.1, 203.0.113.9, 10.0.0.3,10.0.0.2"},
			"203.0.113.9"},
		{"several lines", proxy, []string{"X-Forwarded-For: 198.51.100.1", "X-Forwarded-For: 203.0.113.9",
			"X-Forwarded-For: 10.0.0.2"}, "203.0.113.9"},
		{"proxies all the way", proxy, []string{"X-Forwarded-For: 10.0.0.4, 10.0.0.3"}, "10.0.0.4"},
		{"with a port", proxy, []string{"X-Forwarded-For: 203.0.113.9:443"}, "203.0.113.9"},
		{"IPv6", proxy, []string{"X-Forwarded-For: 2a00::1"}, "2a00::1"},
		{"IPv6 in brackets", proxy, []string{"X-Forwarded-For: [2a00::1]"}, "2a00::1"},
		{"IPv6 with a port", proxy, []string{"X-Forwarded-For: [2a00::1]:443"}, "2a00::1"},
		{"IPv6 with a zone", proxy, []string{"X-Forwarded-For: fe80::1%eth0"}, "fe80::1"},
		{"a proxy over IPv6", "[2001:db8::1]:1", []string{"X-Forwarded-For: 203.0.113.9, 2001:db8::2"},
			"203.0.113.9"},
		{"empty elements", proxy, []string{"X-Forwarded-For: ,203.0.113.9,, ,"}, "203.0.113.9"},
		{"an empty header", proxy, []string{"X-Forwarded-For: "}, "10.0.0.1"},
		{"a client without address", proxy, []string{"X-Forwarded-For: 203.0.113.9, unknown"}, "unknown"},
		{"a hidden client of a farther proxy", proxy, []string{"X-Forwarded-For: _hidden, 10.0.0.2"}, "unknown"},
		{"garbage", proxy, []string{"X-Forwarded-For: 203.0.113.9, 300.1.2.3"}, "unknown"},
		{"a client's garbage", proxy, []string{"X-Forwarded-For: \"),\";=, 203.0.113.9"}, "203.0.113.9"},

		{"https", proxy, []string{"X-Forwarded-For: 203.0.113.9", "X-Forwarded-Proto: HTTPS"}, "203.0.113.9 tls"},
		{"http", proxy, []string{"X-Forwarded-For: 203.0.113.9", "X-Forwarded-Proto: http"}, "203.0.113.9"},
		{"a client's claim of https", proxy, []string{"X-Forwarded-Proto: https, http"}, "10.0.0.1"},
		{"https without address", proxy, []string{"X-Forwarded-Proto: https"}, "10.0.0.1 tls"},

		{"Forwarded", proxy, []string{"Forwarded: for=203.0.113.9"}, "203.0.113.9"},
		{"Forwarded with everything", proxy,
			[]string{`Forwarded: by=10.0.0.1 ; FOR="203.0.113.9:4711";host=x.test;Proto=https`}, "203.0.113.9 tls"},
		{"Forwarded, a chain", proxy,
			[]string{"Forwarded: for=198.51.100.1, for=203.0.113.9;proto=https", "Forwarded: for=10.0.0.2;proto=http"},
			"203.0.113.9 tls"},
		{"Forwarded, IPv6", proxy, []string{`Forwarded: for="[2a00::1]"`}, "2a00::1"},
		{"Forwarded, IPv6 with a hidden port", proxy, []string{`Forwarded: for="[2a00::1]:_p1"`}, "2a00::1"},
		{"Forwarded, hidden", proxy, []string{"Forwarded: for=203.0.113.9, for=_hidden;proto=https"}, "unknown tls"},
		{"Forwarded, unknown", proxy, []string{"Forwarded: for=unknown"}, "unknown"},
		{"Forwarded, without for", proxy, []string{"Forwarded: for=203.0.113.9, proto=https"}, "unknown tls"},
		{"Forwarded, a quote that the client left open", proxy,
			[]string{`Forwarded: for="10.0.0.9, for=203.0.113.9`}, "203.0.113.9"},
		{"Forwarded beside X-Forwarded-For came from the client", proxy,
			[]string{"Forwarded: for=198.51.100.1", "X-Forwarded-For: 203.0.113.9"}, "203.0.113.9"},
		{"Forwarded beside an empty X-Forwarded-For", proxy,
			[]string{"Forwarded: for=203.0.113.9", "X-Forwarded-For:  , "}, "203.0.113.9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := see(p, tt.peer, tt.lines...)
			got := c.String()
			if c.TLS {
				got += " tls"
			}
			if got != tt.want {
				t.Errorf("the client is %s, want %s", got, tt.want)
			}
		})
	}
}

func TestWithoutHandlerThePeerIsTheClient(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodGet, "https://postroom.test/", nil)
	r.RemoteAddr = "192.0.2.1:4711"
	r.Header.Set("X-Forwarded-For", "203.0.113.9")
	if got := peers.Of(r); got.String() != "192.0.2.1" || !got.TLS {
		t.Errorf("the client is %+v", got)
	}
	r.RemoteAddr = "@"
	if got := peers.Of(r); got.Addr.IsValid() {
		t.Errorf("what is no address became %v", got)
	}
}

// TestUntrustedHeadersAreLoggedOnce: the operator's own proxy, in a private network, is not hidden by
// untrusted clients that send such headers.
func TestUntrustedHeadersAreLoggedOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	p := peers.New(nil, slog.New(slog.NewTextHandler(&log, nil)))
	for range 3 {
		see(p, "198.51.100.1:1", "X-Forwarded-For: 203.0.113.9")
		see(p, "192.168.0.1:1", "Forwarded: for=203.0.113.9")
		see(p, "192.168.0.2:1", "X-Forwarded-Proto: https")
		see(p, "192.168.0.3:1")
	}
	text := log.String()
	if strings.Count(text, "\n") != 2 || !strings.Contains(text, "remote_addr=198.51.100.1") ||
		!strings.Contains(text, "remote_addr=192.168.0.1") || strings.Count(text, "level=WARN") != 2 ||
		!strings.Contains(text, "http.trustedProxies") {
		t.Errorf("the log is\n%s", text)
	}
}

// FuzzClientsCannotForge: whatever a client sends, the address that the nearest proxy appends is the
// client's.
func FuzzClientsCannotForge(f *testing.F) {
	for _, seed := range []string{"10.0.0.1", `for="10.0.0.1`, "for=_x;proto=https", `"\",`, ";;==,,", "[::1",
		"\x00"} {
		f.Add(seed)
	}
	p := peers.New(trusted, nil)
	f.Fuzz(func(t *testing.T, claim string) {
		for _, h := range []http.Header{
			{"X-Forwarded-For": {claim + ", 203.0.113.9"}, "Forwarded": {claim}},
			{"X-Forwarded-For": {claim, "203.0.113.9"}, "X-Forwarded-Proto": {claim}},
			{"Forwarded": {claim + ", for=203.0.113.9"}},
			{"Forwarded": {claim, "proto=http;for=\"203.0.113.9:1\", for=10.0.0.2"}},
		} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr, r.Header = "10.0.0.1:1", h
			p.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if got := peers.Of(r).String(); got != "203.0.113.9" {
					t.Errorf("%q makes the client %s", h, got)
				}
			})).ServeHTTP(httptest.NewRecorder(), r)
		}
	})
}
