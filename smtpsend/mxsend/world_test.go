package mxsend_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/internal/maildns"
	"github.com/postroom/postroom/internal/testdns"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/mxsend"
)

// authority signs the certificates that the system of these tests trusts.
var authority = struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}{}

// TestMain makes the authority the only one that this process trusts.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			panic(err)
		}
		authority.key = key
		authority.cert = sign(&x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true}, key)
		dir, err := os.MkdirTemp("", "postroom-mxsend-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir) //nolint:errcheck // it is a temporary directory
		file := filepath.Join(dir, "ca.pem")
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.cert.Raw})
		if err := errors.Join(os.WriteFile(file, text, 0o600), os.Setenv("SSL_CERT_FILE", file),
			os.Setenv("SSL_CERT_DIR", dir)); err != nil {
			panic(err)
		}
		return m.Run()
	}())
}

// sign completes a certificate. The authority signs all but its own.
func sign(template *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.BasicConstraintsValid = true
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	parent := authority.cert
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), authority.key)
	if err != nil {
		panic(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return cert
}

// certificate returns a certificate of the authority for some names.
func certificate(t *testing.T, names ...string) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := sign(&x509.Certificate{DNSNames: names}, key)
	return &tls.Certificate{Certificate: [][]byte{cert.Raw, authority.cert.Raw}, PrivateKey: key, Leaf: cert}
}

// world is a sender with its DNS and its servers of policies. All mail servers listen on the same port, on
// addresses of their own.
type world struct {
	*mxsend.Sender
	zone     *testdns.Zone
	port     int
	clock    *testkit.Clock
	log      *loud
	registry *prometheus.Registry
	client   *http.Client
	to       mxsend.Target
}

// loud is a log that may be written to at any time.
type loud struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *loud) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *loud) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

type change func(*mxsend.Options, *smtpsend.Options)

func newWorld(t *testing.T, changes ...change) *world {
	t.Helper()
	w := &world{zone: testdns.NewZone(t), port: testkit.FreePort(t), clock: testkit.ClockAt(time.Now()),
		log:      &loud{},
		registry: prometheus.NewRegistry()}
	logger := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.client = dialing.New(dialing.Options{AllowPrivate: true}).Client(dialing.HTTP{})
	o := mxsend.Options{Port: w.port, Now: w.clock.Now, Logger: logger, Registry: w.registry, HTTP: w.client,
		Shuffle: func(int, func(i, j int)) {}}
	inner := smtpsend.Options{Timeout: time.Minute, Logger: logger}
	for _, c := range changes {
		c(&o, &inner)
	}
	var err error
	w.port = o.Port
	if o.Resolver, err = maildns.NewClient(maildns.ClientOptions{Servers: []string{w.zone.Addr},
		Now: w.clock.Now}); err != nil {
		t.Fatal(err)
	}
	client, err := smtpsend.New(inner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	o.SMTP = client
	if w.Sender, err = mxsend.New(o); err != nil {
		t.Fatal(err)
	}
	return w
}

// server starts a mail server on an address, and gives it a name.
func (w *world) server(t *testing.T, name, ip string, o testsmtp.Options) *testsmtp.Server {
	t.Helper()
	w.named(t, name, ip)
	o.Addr = net.JoinHostPort(ip, strconv.Itoa(w.port))
	return testsmtp.Start(t, o)
}

func (w *world) named(t *testing.T, name, ip string) {
	t.Helper()
	kind := "A"
	if strings.Contains(ip, ":") {
		kind = "AAAA"
	}
	w.zone.Add(t, fmt.Sprintf("%s. 60 %s %s", name, kind, ip))
}

// policies serves a file over HTTPS as mta-sts.<domain>.
func (w *world) policies(t *testing.T, domain string, handler http.HandlerFunc) {
	t.Helper()
	w.policiesWith(t, domain, certificate(t, "mta-sts."+domain), handler)
}

func (w *world) policiesWith(t *testing.T, domain string, cert *tls.Certificate, handler http.HandlerFunc) {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{*cert}})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	w.client.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network,
		_ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, listener.Addr().String())
	}}
}

func text(policy string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/.well-known/mta-sts.txt" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte(policy))
	}
}

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

func mail(to ...string) smtpsend.Message {
	return smtpsend.Message{From: "a@example.com", To: to,
		Body: smtpsend.Bytes("Subject: hello\r\n\r\nworld\r\n")}
}

// send sends to recipients, and checks what holds for every result.
func (w *world) send(t *testing.T, to ...string) (smtpsend.Result, *smtpsend.Error) {
	t.Helper()
	return w.message(t, mail(to...))
}

func (w *world) message(t *testing.T, m smtpsend.Message) (smtpsend.Result, *smtpsend.Error) {
	t.Helper()
	r, err := w.Send(t.Context(), w.to, m)
	if len(r.Recipients) != len(m.To) {
		t.Fatalf("%d results for %d recipients", len(r.Recipients), len(m.To))
	}
	for i, one := range r.Recipients {
		if one.Address != m.To[i] {
			t.Errorf("result %d is about %s", i, one.Address)
		}
		if e := one.Err; e != nil && (e.Scope == smtpsend.ScopeAccount || e.Scope == smtpsend.ScopeConnection ||
			e.Verdict == smtpsend.Auth) {
			t.Errorf("a failure of a destination is about the %s: %v", e.Scope, e)
		}
	}
	e, _ := errors.AsType[*smtpsend.Error](err)
	if err != nil && e == nil {
		t.Fatalf("%T: %v", err, err)
	}
	return r, e
}

// sessions returns the counter of sessions by policy and result.
func (w *world) sessions(t *testing.T, policy, result string) (n int) {
	t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["policy"] == policy && labels["result"] == result {
				n += int(m.GetCounter().GetValue())
			}
		}
	}
	return n
}
