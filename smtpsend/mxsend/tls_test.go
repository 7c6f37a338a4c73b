package mxsend_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/mxsend"
)

// encrypting is a server with STARTTLS whose certificate has some names.
func encrypting(t *testing.T, names ...string) testsmtp.Options {
	t.Helper()
	return testsmtp.Options{Security: testsmtp.STARTTLS, Certificate: certificate(t, names...)}
}

// breaking offers STARTTLS, and then has no handshake.
func breaking(t *testing.T) testsmtp.Options {
	t.Helper()
	o := encrypting(t, "mx.example.test")
	o.Respond = func(c testsmtp.Command) testsmtp.Action {
		if c.Verb == "STARTTLS" {
			return testsmtp.Action{Reply: "220 2.0.0 Go ahead", Close: true}
		}
		return testsmtp.Action{}
	}
	return o
}

// TestOpportunistic: whatever the server can do, and in clear for an hour after its handshake failed.
func TestOpportunistic(t *testing.T) {
	w := newWorld(t)
	w.server(t, "other.test", "127.0.0.2", encrypting(t, "another.name.test"))
	w.server(t, "clear.test", "127.0.0.3", testsmtp.Options{})
	broken := w.server(t, "broken.test", "127.0.0.4", breaking(t))
	if r, err := w.send(t, "b@other.test"); err != nil || r.TLS == "" {
		t.Errorf("a certificate of another name: %q, %v", r.TLS, err)
	}
	if r, err := w.send(t, "c@other.test"); err != nil || !r.Reused {
		t.Errorf("a connection that is kept counts once: %v", err)
	}
	if r, err := w.send(t, "b@clear.test"); err != nil || r.TLS != "" {
		t.Errorf("no STARTTLS: %q, %v", r.TLS, err)
	}
	if _, err := w.send(t, "b@broken.test"); err != nil || broken.Connections() != 2 {
		t.Errorf("broken: %v, %d connections", err, broken.Connections())
	}
	w.clock.Advance(59 * time.Minute)
	if _, err := w.send(t, "b@broken.test"); err != nil || broken.Connections() != 3 {
		t.Errorf("within the hour: %v, %d connections", err, broken.Connections())
	}
	w.clock.Advance(2 * time.Minute)
	broken.CutAll()
	if _, err := w.send(t, "b@broken.test"); err != nil || broken.Connections() != 5 {
		t.Errorf("after the hour: %v, %d connections", err, broken.Connections())
	}
	for result, want := range map[string]int{"success": 1, "starttls-not-supported": 2,
		"validation-failure": 2} {
		if got := w.sessions(t, "no-policy-found", result); got != want {
			t.Errorf("%s: %d", result, got)
		}
	}
}

// TestTLSRequired: nothing in clear, and no certificate is looked at.
func TestTLSRequired(t *testing.T) {
	w := newWorld(t)
	w.to.TLS = mxsend.TLSRequired
	w.server(t, "other.test", "127.0.0.2", encrypting(t, "another.name.test"))
	clear := w.server(t, "clear.test", "127.0.0.3", testsmtp.Options{})
	broken := w.server(t, "broken.test", "127.0.0.4", breaking(t))
	if r, err := w.send(t, "b@other.test"); err != nil || r.TLS == "" {
		t.Errorf("%q, %v", r.TLS, err)
	}
	for _, domain := range []string{"clear.test", "broken.test"} {
		if _, err := w.send(t, "b@"+domain); err == nil || err.Permanent() {
			t.Errorf("%s: %v", domain, err)
		}
	}
	if clear.Count()+broken.Count() != 0 {
		t.Error("a message in clear")
	}
}

// sts gives a domain a policy and a server.
func sts(t *testing.T, w *world, domain, id, policy string) {
	t.Helper()
	w.zone.Add(t, "_mta-sts."+domain+". 60 TXT \"v=STSv1; id="+id+";\"")
	w.policies(t, domain, text(policy))
}

// TestEnforce: RFC 8461 sections 4 and 5.
func TestEnforce(t *testing.T) {
	const policy = "version: STSv1\r\nmode: enforce\r\nmx: mx.example.test\r\nmx: *.pool.test\r\nmax_age: 86400\r\n"
	for _, row := range []struct {
		name   string
		host   string
		server func(t *testing.T) testsmtp.Options
		result string // of TLS-RPT
	}{
		{"the right certificate", "mx.example.test", func(t *testing.T) testsmtp.Options {
			return encrypting(t, "mx.example.test")
		}, "success"},
		{"a host of the wildcard", "a.pool.test", func(t *testing.T) testsmtp.Options {
			return encrypting(t, "a.pool.test")
		}, "success"},
		{"a certificate of another name", "mx.example.test", func(t *testing.T) testsmtp.Options {
			return encrypting(t, "mx.other.test")
		}, "certificate-host-mismatch"},
		{"a certificate of nobody", "mx.example.test", func(t *testing.T) testsmtp.Options {
			o := encrypting(t, "mx.example.test")
			key := o.Certificate.PrivateKey.(*ecdsa.PrivateKey)
			der, err := x509.CreateCertificate(rand.Reader, o.Certificate.Leaf, o.Certificate.Leaf, key.Public(), key)
			if err != nil {
				t.Fatal(err)
			}
			o.Certificate.Certificate = [][]byte{der}
			return o
		}, "certificate-not-trusted"},
		{"no STARTTLS", "mx.example.test", func(*testing.T) testsmtp.Options { return testsmtp.Options{} },
			"starttls-not-supported"},
		{"a broken handshake", "mx.example.test", breaking, "validation-failure"},
		{"a host that the policy doesn't name", "b.a.pool.test", func(t *testing.T) testsmtp.Options {
			return encrypting(t, "b.a.pool.test")
		}, "validation-failure"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.zone.Add(t, "example.test. 60 MX 10 "+row.host+".")
			server := w.server(t, row.host, "127.0.0.2", row.server(t))
			sts(t, w, "example.test", "1", policy)
			r, err := w.send(t, "b@example.test")
			if good := row.result == "success"; good != (err == nil) || good != (server.Count() == 1) ||
				good != (r.TLS != "") || err != nil && err.Verdict != smtpsend.Soft {
				t.Errorf("%v, %d messages", err, server.Count())
			}
			if got := w.sessions(t, "sts", row.result); got != 1 {
				t.Errorf("%s: %d", row.result, got)
			}
		})
	}
}

// TestEnforceTakesTheNextHost whose certificate is right.
func TestEnforceTakesTheNextHost(t *testing.T) {
	w := newWorld(t)
	w.zone.Add(t, "example.test. 60 MX 10 a.example.test.", "example.test. 60 MX 20 b.example.test.")
	w.server(t, "a.example.test", "127.0.0.2", encrypting(t, "wrong.test"))
	second := w.server(t, "b.example.test", "127.0.0.3", encrypting(t, "b.example.test"))
	sts(t, w, "example.test", "1", "version: STSv1\nmode: enforce\nmx: *.example.test\nmax_age: 86400\n")
	if _, err := w.send(t, "b@example.test"); err != nil || second.Count() != 1 {
		t.Error(err)
	}
}

// TestTesting delivers, and counts what enforce would have refused.
func TestTesting(t *testing.T) {
	for _, row := range []struct {
		names  []string
		mx     string
		result string
		tls    bool
	}{
		{[]string{"mx.example.test"}, "mx.example.test", "success", true},
		{[]string{"wrong.test"}, "mx.example.test", "certificate-host-mismatch", true},
		{nil, "mx.example.test", "starttls-not-supported", false},
		{[]string{"mx.example.test"}, "other.test", "validation-failure", true},
	} {
		w := newWorld(t)
		o := testsmtp.Options{}
		if row.names != nil {
			o = encrypting(t, row.names...)
		}
		w.zone.Add(t, "example.test. 60 MX 10 mx.example.test.")
		server := w.server(t, "mx.example.test", "127.0.0.2", o)
		sts(t, w, "example.test", "1", "version: STSv1\nmode: testing\nmx: "+row.mx+"\nmax_age: 86400\n")
		if r, err := w.send(t, "b@example.test"); err != nil || (r.TLS != "") != row.tls {
			t.Errorf("%s: %q, %v", row.result, r.TLS, err)
		}
		if got := w.sessions(t, "sts", row.result); got != 1 {
			t.Errorf("%s: %d", row.result, got)
		}
		server.Close()
	}
}

// TestThePolicyIsKept: an id that is the same, a policy that is gone, and one that has expired.
func TestThePolicyIsKept(t *testing.T) {
	w := newWorld(t)
	w.zone.Add(t, "example.test. 60 MX 10 mx.example.test.")
	server := w.server(t, "mx.example.test", "127.0.0.2", encrypting(t, "wrong.test"))
	var fetched atomic.Int64
	var mode atomic.Pointer[string]
	var status atomic.Int64
	serve := func(as string, code int64) {
		mode.Store(&as)
		status.Store(code)
	}
	serve("enforce", http.StatusOK)
	w.zone.Add(t, `_mta-sts.example.test. 60 TXT "v=STSv1; id=1"`)
	w.policies(t, "example.test", func(answer http.ResponseWriter, _ *http.Request) {
		fetched.Add(1)
		answer.Header().Set("Content-Type", "text/plain")
		answer.WriteHeader(int(status.Load()))
		_, _ = fmt.Fprintf(answer, "version: STSv1\nmode: %s\nmx: mx.example.test\nmax_age: 259200\n", *mode.Load())
	})
	step := func(what string, delivers bool, want int64) {
		t.Helper()
		_, err := w.send(t, "b@example.test")
		if delivers != (err == nil) || fetched.Load() != want {
			t.Errorf("%s: %v, fetched %d times", what, err, fetched.Load())
		}
	}
	step("fetched", false, 1)
	step("kept", false, 1)
	w.clock.Advance(23 * time.Hour)
	step("kept for a day", false, 1)
	w.clock.Advance(2 * time.Hour)
	serve("enforce", http.StatusNotFound)
	step("looked at daily; its server has lost it", false, 2)
	step("not looked for again now", false, 2)
	w.clock.Advance(6 * time.Minute)
	step("looked for again", false, 3)
	w.zone.Clear("_mta-sts.example.test", dns.TypeTXT)
	w.clock.Advance(6 * time.Minute)
	step("without its record it stays in force", false, 3)
	w.zone.Add(t, `_mta-sts.example.test. 60 TXT "v=STSv1; id=2"`)
	serve("none", http.StatusOK)
	w.clock.Advance(6 * time.Minute)
	step("another id", true, 4)
	step("kept", true, 4)
	serve("enforce", http.StatusOK)
	w.zone.Clear("_mta-sts.example.test", dns.TypeTXT)
	w.zone.Add(t, `_mta-sts.example.test. 60 TXT "v=STSv1; id=3"`)
	w.clock.Advance(6 * time.Minute)
	step("enforced again", false, 5)
	w.zone.Clear("_mta-sts.example.test", dns.TypeTXT)
	w.clock.Advance(73 * time.Hour)
	step("expired", true, 5)
	if server.Count() != 3 {
		t.Errorf("%d messages", server.Count())
	}
}

// TestPoliciesThatDontCount: the domain is served as if it had none (RFC 8461 section 3.3).
func TestPoliciesThatDontCount(t *testing.T) {
	const good = "version: STSv1\nmode: enforce\nmx: mx.example.test\nmax_age: 86400\n"
	moved := func(answer http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			text(good)(answer, r)
			return
		}
		http.Redirect(answer, r, "https://mta-sts.example.test/moved", http.StatusMovedPermanently)
	}
	html := func(answer http.ResponseWriter, _ *http.Request) {
		answer.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(answer, good)
	}
	for _, row := range []struct {
		name, record string
		names        string
		handler      http.HandlerFunc
		result       string // counted; empty if it wasn't asked for
	}{
		{"a redirect", "v=STSv1; id=1", "mta-sts.example.test", moved, "sts-policy-fetch-error"},
		{"not found", "v=STSv1; id=1", "mta-sts.example.test", http.NotFound, "sts-policy-fetch-error"},
		{"html", "v=STSv1; id=1", "mta-sts.example.test", html, "sts-policy-invalid"},
		{"too long", "v=STSv1; id=1", "mta-sts.example.test", text(good + strings.Repeat("a: hello\n", 8<<10)),
			"sts-policy-invalid"},
		{"a certificate of another name", "v=STSv1; id=1", "example.test", text(good), "sts-webpki-invalid"},
		{"no id", "v=STSv1;", "mta-sts.example.test", text(good), ""},
		{"an id with a hyphen", "v=STSv1; id=a-b", "mta-sts.example.test", text(good), ""},
		{"another version", "v=STSv2; id=1", "mta-sts.example.test", text(good), ""},
	} {
		w := newWorld(t)
		w.zone.Add(t, "example.test. 60 MX 10 mx.example.test.", `_mta-sts.example.test. 60 TXT "`+row.record+`"`)
		server := w.server(t, "mx.example.test", "127.0.0.2", encrypting(t, "wrong.test"))
		before := w.client.Transport
		w.policiesWith(t, "example.test", certificate(t, row.names), row.handler)
		if row.result == "" {
			w.client.Transport = before
		}
		if _, err := w.send(t, "b@example.test"); err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		if row.result != "" && w.sessions(t, "sts", row.result) != 1 {
			t.Errorf("%s: not counted\n%s", row.name, w.log)
		}
		server.Close()
	}
}

// TestTwoRecords of a policy count as none (RFC 8461 section 3.1).
func TestTwoRecords(t *testing.T) {
	w := newWorld(t)
	w.zone.Add(t, "example.test. 60 MX 10 mx.example.test.", `_mta-sts.example.test. 60 TXT "v=STSv1; id=1"`,
		`_mta-sts.example.test. 60 TXT "v=STSv1; id=2"`)
	w.server(t, "mx.example.test", "127.0.0.2", testsmtp.Options{})
	w.policies(t, "example.test", func(http.ResponseWriter, *http.Request) { t.Error("it was fetched") })
	if _, err := w.send(t, "b@example.test"); err != nil {
		t.Error(err)
	}
}

// failing are policies whose store is away.
type failing struct{}

func (failing) Get(context.Context, string) (mxsend.Policy, bool, error) {
	return mxsend.Policy{}, false, errors.New("the store is unavailable")
}
func (failing) Put(context.Context, string, mxsend.Policy) error {
	return errors.New("the store is unavailable")
}

// TestPoliciesWithoutAStore are fetched, and hold for the attempt.
func TestPoliciesWithoutAStore(t *testing.T) {
	w := newWorld(t, func(o *mxsend.Options, _ *smtpsend.Options) { o.Policies = failing{} })
	w.zone.Add(t, "example.test. 60 MX 10 mx.example.test.")
	w.server(t, "mx.example.test", "127.0.0.2", encrypting(t, "wrong.test"))
	sts(t, w, "example.test", "1", "version: STSv1\nmode: enforce\nmx: mx.example.test\nmax_age: 86400\n")
	if _, err := w.send(t, "b@example.test"); err == nil || err.Permanent() {
		t.Error(err)
	}
}

// tlsaOf returns a TLSA record with the SHA-256 of a public key (RFC 6698 section 2.1).
func tlsaOf(usage int, cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return fmt.Sprintf("TLSA %d 1 1 %s", usage, hex.EncodeToString(sum[:]))
}

// TestDANE: RFC 7672. The policy of MTA-STS, which enforces the right certificate, never helps or hurts.
func TestDANE(t *testing.T) {
	right := certificate(t, "mx.example.test")
	nameless := certificate(t, "another.test")
	stranger := certificate(t, "mx.example.test")
	long := sha512.Sum512(stranger.Leaf.RawSubjectPublicKeyInfo)
	wrongLong := "TLSA 3 1 2 " + hex.EncodeToString(long[:])
	for _, row := range []struct {
		name    string
		domain  string
		cert    *tls.Certificate // nil means no STARTTLS
		records []string
		fails   bool // the look-up of the records
		result  string
		policy  string
		ok      bool
	}{
		{"right", "example.test", right, []string{tlsaOf(3, right.Leaf)}, false, "success", "tlsa", true},
		{"right, without a name", "example.test", nameless, []string{tlsaOf(3, nameless.Leaf)}, false, "success",
			"tlsa", true},
		{"its authority", "example.test", right, []string{tlsaOf(2, authority.cert)}, false, "success", "tlsa",
			true},
		{"its authority, another name", "example.test", nameless, []string{tlsaOf(2, authority.cert)}, false,
			"validation-failure", "tlsa", false},
		{"its authority, the name of the domain", "another.test", nameless, []string{tlsaOf(2, authority.cert)},
			false,
			"success", "tlsa", true},
		{"wrong", "example.test", right, []string{tlsaOf(3, stranger.Leaf)}, false, "validation-failure", "tlsa",
			false},
		{"one of two", "example.test", right, []string{tlsaOf(3, stranger.Leaf), tlsaOf(3, right.Leaf)}, false,
			"success",
			"tlsa", true},
		{"SHA-512 replaces SHA-256", "example.test", right, []string{wrongLong, tlsaOf(3, right.Leaf)}, false,
			"validation-failure", "tlsa", false},
		{"no STARTTLS", "example.test", nil, []string{tlsaOf(3, right.Leaf)}, false, "starttls-not-supported",
			"tlsa", false},
		{"none usable", "example.test", stranger, []string{tlsaOf(1, right.Leaf), "TLSA 3 1 1 abcd"}, false,
			"tlsa-invalid",
			"tlsa", true},
		{"none usable, no STARTTLS", "example.test", nil, []string{tlsaOf(1, right.Leaf)}, false,
			"starttls-not-supported",
			"tlsa", false},
		{"look-up failed", "example.test", right, []string{tlsaOf(3, right.Leaf)}, true, "dnssec-invalid", "tlsa",
			false},
		{"insecure addresses", "unproven.test", right, []string{tlsaOf(3, stranger.Leaf)}, false, "success",
			"no-policy-found", true},
		{"insecure records", "unsigned.test", right, []string{tlsaOf(3, stranger.Leaf)}, false, "success",
			"no-policy-found", true},
		{"insecure MX", "insecure.test", right, []string{tlsaOf(3, stranger.Leaf)}, false, "success",
			"no-policy-found", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			o := testsmtp.Options{}
			if row.cert != nil {
				o = testsmtp.Options{Security: testsmtp.STARTTLS, Certificate: row.cert}
			}
			w.zone.Add(t, row.domain+". 60 MX 10 mx.example.test.")
			server := w.server(t, "mx.example.test", "127.0.0.2", o)
			name := fmt.Sprintf("_%d._tcp.mx.example.test", w.port)
			for _, record := range row.records {
				w.zone.Add(t, name+". 60 "+record)
			}
			switch {
			case row.fails:
				w.zone.Fail(name, dns.RcodeServerFailure)
			case row.domain == "unproven.test":
				w.zone.Doubt("mx.example.test A")
			case row.domain == "unsigned.test":
				w.zone.Doubt(name + " TLSA")
			}
			_, err := w.send(t, "b@"+row.domain)
			if row.ok != (err == nil) || row.ok != (server.Count() == 1) || err != nil &&
				err.Verdict != smtpsend.Soft {
				t.Errorf("%v, %d messages\n%s", err, server.Count(), w.log)
			}
			if got := w.sessions(t, row.policy, row.result); got != 1 {
				t.Errorf("%s: %d", row.result, got)
			}
		})
	}
}

// TestDANEWins over MTA-STS (RFC 8461 section 2): a certificate that only one of them accepts.
func TestDANEWins(t *testing.T) {
	right, stranger := certificate(t, "mx.example.test"), certificate(t, "other.test")
	for _, row := range []struct {
		cert *tls.Certificate
		tlsa *x509.Certificate
		ok   bool
	}{{right, stranger.Leaf, false}, {stranger, stranger.Leaf, true}} {
		w := newWorld(t)
		w.zone.Add(t, "example.test. 60 MX 10 mx.example.test.",
			fmt.Sprintf("_%d._tcp.mx.example.test. 60 %s", w.port, tlsaOf(3, row.tlsa)))
		server := w.server(t, "mx.example.test", "127.0.0.2", testsmtp.Options{Security: testsmtp.STARTTLS,
			Certificate: row.cert})
		sts(t, w, "example.test", "1", "version: STSv1\nmode: enforce\nmx: mx.example.test\nmax_age: 86400\n")
		if _, err := w.send(t, "b@example.test"); row.ok != (err == nil) {
			t.Error(err)
		}
		server.Close()
	}
}

// TestRequireTLS: RFC 8689 section 4.2.1. The host must be proven, its certificate right, and REQUIRETLS
// offered.
func TestRequireTLS(t *testing.T) {
	for _, row := range []struct {
		name, domain string
		names        string
		extension    string
		ok           bool
	}{
		{"all of it", "example.test", "mx.example.test", "REQUIRETLS", true},
		{"without the extension", "example.test", "mx.example.test", "DSN", false},
		{"another certificate", "example.test", "other.test", "REQUIRETLS", false},
		{"a host that nothing proves", "insecure.test", "mx.example.test", "REQUIRETLS", false},
	} {
		w := newWorld(t)
		w.zone.Add(t, row.domain+". 60 MX 10 mx.example.test.")
		o := encrypting(t, row.names)
		o.Extensions = []string{row.extension}
		server := w.server(t, "mx.example.test", "127.0.0.2", o)
		m := mail("b@" + row.domain)
		m.RequireTLS = true
		_, err := w.message(t, m)
		if row.ok != (err == nil) || row.ok != (server.Count() == 1) ||
			err != nil && (err.Verdict != smtpsend.Policy || err.Scope != smtpsend.ScopeMessage) {
			t.Errorf("%s: %v", row.name, err)
		}
		server.Close()
	}
}

// TestProvenAndUnprovenDomains of one host don't share a transaction: a wrong TLSA record is about the
// first one only.
func TestProvenAndUnprovenDomains(t *testing.T) {
	w := newWorld(t)
	w.server(t, "mx.example.test", "127.0.0.2", encrypting(t, "mx.example.test"))
	w.zone.Add(t, "example.test. 60 MX 10 mx.example.test.", "insecure.test. 60 MX 10 mx.example.test.",
		fmt.Sprintf("_%d._tcp.mx.example.test. 60 %s", w.port, tlsaOf(3, certificate(t, "mx.example.test").Leaf)))
	r, _ := w.send(t, "b@example.test", "b@insecure.test")
	if r.Recipients[0].Err == nil || r.Recipients[1].Err != nil {
		t.Errorf("%v, %v", r.Recipients[0].Err, r.Recipients[1].Err)
	}
}

// stale is a store that doesn't look at the clock.
type stale struct{ mxsend.Policy }

func (s stale) Get(context.Context, string) (mxsend.Policy, bool, error) { return s.Policy, true, nil }
func (stale) Put(context.Context, string, mxsend.Policy) error           { return nil }

// TestAnExpiredPolicyDoesntHold, whatever the store returns.
func TestAnExpiredPolicyDoesntHold(t *testing.T) {
	w := newWorld(t, func(o *mxsend.Options, _ *smtpsend.Options) {
		o.Policies = stale{mxsend.Policy{ID: "1", Mode: mxsend.Enforce, MX: []string{"other.test"},
			Expires: o.Now()}}
	})
	w.server(t, "example.test", "127.0.0.2", testsmtp.Options{})
	if _, err := w.send(t, "b@example.test"); err != nil {
		t.Error(err)
	}
}
