package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/feedback/tracking"
	"github.com/postroom/postroom/feedback/unsubscribe"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/peers"
)

// thisMachine is where the clients of tests come from.
var thisMachine = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}

// way is how a proxy tells the address of its client.
type way struct {
	name   string
	header string // in the request, before the address
	first  string // format of the first bytes of the connection, for the address
	tls    bool
}

// transport returns a proxy that makes each request on a new connection.
func (w way) transport(from string) *http.Transport {
	return &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the certificate is a test's
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err == nil && w.first != "" {
				_, err = fmt.Fprintf(conn, w.first, from)
			}
			return conn, err
		}}
}

// TestEverythingSeesTheClientBehindTheProxy has one proxy pass on two clients. Each part that uses an address
// must see the client's.
func TestEverythingSeesTheClientBehindTheProxy(t *testing.T) {
	t.Parallel()
	for _, via := range []way{
		{name: "X-Forwarded-For", header: "X-Forwarded-For: "},
		{name: "Forwarded", header: "Forwarded: proto=http;for="},
		{name: "the PROXY protocol", first: "PROXY TCP4 %s 127.0.0.1 4711 80\r\n"},
		{name: "the PROXY protocol before TLS", first: "PROXY TCP4 %s 127.0.0.1 4711 80\r\n", tls: true},
	} {
		t.Run(via.name, func(t *testing.T) {
			t.Parallel()
			h := &hits{}
			p := newParts(t)
			var log logs
			h.setup(t, p)
			o := Options{Listen: "127.0.0.1:0", ProxyProtocol: via.first != "",
				Logger: log.logger()}
			o.Proxies = peers.New(thisMachine, o.Logger)
			if via.tls {
				files := testkit.NewCertificate(t)
				files.Issue(t, "proxied")
				o.TLSCert, o.TLSKey = files.Cert, files.Key
			}
			p.token(t, "restricted", api.TokenRequest{Restrictions: &api.Restrictions{
				Addresses: []string{"203.0.113.9"}}})
			h.world = p.serve(t, o)
			ask := func(from, method, path, token, body string, headers ...string) int {
				t.Helper()
				h.http.Transport = via.transport(from)
				if via.header != "" {
					name, value, _ := strings.Cut(via.header, ":")
					headers = append(headers, name, strings.TrimSpace(value+from))
				}
				return h.do(t, method, path, token, body, headers...).status
			}

			if got := ask("203.0.113.9", "GET", "/v1/outbox", "restricted", ""); got != 200 {
				t.Errorf("the restricted token from its address: %d", got)
			}
			if got := ask("203.0.113.10", "GET", "/v1/outbox", "restricted", ""); got != 403 {
				t.Errorf("the restricted token from another address: %d", got)
			}
			cookie := access.SessionCookie(strings.HasPrefix(h.URL(), "https:")) + "=" + h.login(t, "restricted")
			if got := ask("203.0.113.9", "GET", "/v1/outbox", "", "", "Cookie", cookie); got != 200 {
				t.Errorf("the restricted session from its address: %d", got)
			}
			if got := ask("203.0.113.10", "GET", "/v1/outbox", "", "", "Cookie", cookie); got != 403 {
				t.Errorf("the restricted session from another address: %d", got)
			}
			h.checkGuesses(t, ask)
			h.checkVisits(t, ask)
			for _, line := range []string{"path=/v1/outbox query=\"\" status=200", "status=429"} {
				if !log.hasLine(line, "remote_addr=203.0.113.9") {
					t.Errorf("no line has %q and the client's address:\n%s", line, log.text())
				}
			}
			if log.hasLine("remote_addr=127.0.0.1", "") {
				t.Errorf("the proxy is taken for a client:\n%s", log.text())
			}
		})
	}
}

// hasLine reports whether a line contains both texts.
func (l *logs) hasLine(one, other string) bool {
	return slices.ContainsFunc(strings.Split(l.text(), "\n"), func(line string) bool {
		return strings.Contains(line, one) && strings.Contains(line, other)
	})
}

type asking func(from, method, path, token, body string, headers ...string) int

// setup makes the parts pass on their hits to h, and lets clients guess as often as by default.
func (h *hits) setup(t *testing.T, p *parts) {
	t.Helper()
	h.ring = p.signed
	real, err := tracking.New(p.signed, h.Append, tracking.Options{Address: "ip"})
	if err != nil {
		t.Fatal(err)
	}
	p.Tracking = real
	h.run = func() {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := real.Run(ctx); err != nil {
			t.Error(err)
		}
	}
	if p.Unsubscribe, err = unsubscribe.New(unsubscribe.Parts{Tokens: p.signed, Suppressions: p.Suppressions,
		Append: h.Append, Account: p.Accounts.Get}, unsubscribe.Options{StoreAddress: "ip"}); err != nil {
		t.Fatal(err)
	}
	ring, err := seal.New([]byte(partsSecret))
	if err != nil {
		t.Fatal(err)
	}
	if p.Access, err = access.New(p.db, ring, access.Options{Token: adminToken}); err != nil {
		t.Fatal(err)
	}
}

// login opens a session as a client at the address that the token is restricted to.
func (h *hits) login(t *testing.T, token string) string {
	t.Helper()
	cookie, err := h.parts.Access.Login(t.Context(), h.parts.secret(token),
		access.Client{Addr: netip.MustParseAddr("203.0.113.9")}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return cookie
}

// checkGuesses makes 21 wrong guesses from one address. They end the guessing from there, but lock nobody
// out.
func (h *hits) checkGuesses(t *testing.T, ask asking) {
	t.Helper()
	for n := range 20 {
		if got := ask("203.0.113.9", "GET", "/v1/outbox", "guess", ""); got != 401 {
			t.Fatalf("guess %d: %d", n+1, got)
		}
	}
	for _, tt := range []struct {
		name, from, token string
		want              int
	}{
		{"guess 21", "203.0.113.9", "guess", 429},
		{"the admin at the same address", "203.0.113.9", adminToken, 200},
		{"a program at the same address", "203.0.113.9", "restricted", 200},
		{"the first guess of another client of the proxy", "203.0.113.10", "guess", 401},
	} {
		if got := ask(tt.from, "GET", "/v1/outbox", tt.token, ""); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// checkVisits opens an email, follows its link and unsubscribes.
func (h *hits) checkVisits(t *testing.T, ask asking) {
	t.Helper()
	ask("203.0.113.9", "GET", "/o/"+h.token(t, signedtoken.Open, ""), "", "")
	ask("203.0.113.9", "GET", "/c/"+h.token(t, signedtoken.Click, "https://shop.test/"), "", "")
	h.run()
	leave, err := h.ring.Sign(signedtoken.Unsubscribe, signedtoken.Token{Account: "acme", MessageID: mailID,
		Address: "ann@example.net"})
	if err != nil {
		t.Fatal(err)
	}
	if got := ask("203.0.113.9", "POST", "/unsubscribe?t="+leave, "", oneClickForm, "Content-Type",
		"application/x-www-form-urlencoded"); got != 200 {
		t.Errorf("unsubscribing: %d", got)
	}
	if len(h.got) != 3 {
		t.Fatalf("told: %+v", h.got)
	}
	for _, fact := range h.got {
		if fact.Details.RemoteAddress != "203.0.113.9" {
			t.Errorf("%s comes from %s", fact.Type, fact.Details.RemoteAddress)
		}
	}
}

// TestMonitorSeesTheClientBehindTheProxy: the token of its metrics may be restricted too.
func TestMonitorSeesTheClientBehindTheProxy(t *testing.T) {
	t.Parallel()
	p := newParts(t)
	p.token(t, "prometheus", api.TokenRequest{Scopes: []api.Scope{api.ScopeMetrics},
		Restrictions: &api.Restrictions{Addresses: []string{"203.0.113.9"}}})
	m, err := NewMonitor(p.Access, p, Options{Listen: "127.0.0.1:0", Proxies: peers.New(thisMachine, nil)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	w := &world{Server: m, parts: p, http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	for from, want := range map[string]int{"203.0.113.9": 200, "203.0.113.10": 403} {
		if got := w.do(t, "GET", "/metrics", "prometheus", "", "X-Forwarded-For", from); got.status != want {
			t.Errorf("from %s: %d", from, got.status)
		}
	}
}

// TestProxyWithoutItsHeaderIsNotServed, and does not hang.
func TestProxyWithoutItsHeaderIsNotServed(t *testing.T) {
	t.Parallel()
	var log logs
	w := setup(t, func(o *Options) {
		o.Logger, o.ProxyProtocol = log.logger(), true
		o.Proxies = peers.New(thisMachine, o.Logger)
	})
	conn, err := net.Dial("tcp", w.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /health HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if text, _ := io.ReadAll(conn); bytes.Contains(text, []byte("200")) {
		t.Errorf("answered %q", text)
	}
	if !log.hasLine("connection closed: wrong PROXY header", "peer=127.0.0.1:") {
		t.Errorf("logged %q", log.text())
	}
}

// TestHSTSNeedsTLS: browsers ignore it without TLS, and a client's own claim of TLS does not count.
func TestHSTSNeedsTLS(t *testing.T) {
	t.Parallel()
	p := newParts(t)
	w := p.serve(t, Options{Listen: "127.0.0.1:0", HSTS: time.Hour,
		Proxies: peers.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, nil)})
	untrusting := p.serve(t, Options{Listen: "127.0.0.1:0", HSTS: time.Hour})
	off := p.serve(t, Options{Listen: "127.0.0.1:0",
		Proxies: peers.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, nil)})
	for _, tt := range []struct {
		name, proto, want string
		w                 *world
	}{
		{"by TLS", "https", "max-age=3600", w}, {"in clear", "http", "", w},
		{"from nobody's proxy", "https", "", untrusting}, {"switched off", "https", "", off},
	} {
		got := tt.w.do(t, "GET", "/health", "", "", "X-Forwarded-Proto", tt.proto)
		if h := got.header.Get("Strict-Transport-Security"); h != tt.want {
			t.Errorf("%s: %q", tt.name, h)
		}
	}
}
