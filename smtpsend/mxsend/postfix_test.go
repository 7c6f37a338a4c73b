package mxsend_test

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/mxsend"
)

// chain returns a certificate of the authority with its key, for Postfix.
func chain(t *testing.T, names ...string) (text string, cert *x509.Certificate) {
	t.Helper()
	c := certificate(t, names...)
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	text = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	for _, der := range c.Certificate {
		text += string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	return text, c.Leaf
}

// nameless keeps Postfix from asking the real DNS for its clients' names.
const nameless = "smtpd_peername_lookup = no\n"

// TestPostfixAsReceiver delivers to real servers behind the test's own DNS. It has several hosts with one
// dead and one that defers, policies and records that are right and wrong, IPv6 only, greylisting.
func TestPostfixAsReceiver(t *testing.T) {
	port := testkit.FreePort(t)
	w := newWorld(t, func(o *mxsend.Options, _ *smtpsend.Options) { o.Port = port })
	right, cert := chain(t, "mx.good.test")
	good := testsmtp.StartPostfix(t, testsmtp.PostfixOptions{Host: "127.0.0.2", Port: port, Chain: right,
		Settings: nameless + "virtual_mailbox_domains = static:all\n"})
	_ = testsmtp.StartPostfix(t, testsmtp.PostfixOptions{Host: "127.0.0.3", Port: port,
		Settings: nameless +
			"smtpd_recipient_restrictions = check_recipient_access inline:{{b@defers.test = 450 4.2.0 Greylisted}}," +
			" defer\n"})
	six := testsmtp.StartPostfix(t, testsmtp.PostfixOptions{Host: "::1", Port: port,
		Settings: nameless + "inet_protocols = all\nmynetworks = [::1]/128\nvirtual_mailbox_domains = six.test\n"})
	reverse, err := dns.ReverseAddr("::1")
	if err != nil {
		t.Fatal(err)
	}
	w.zone.Add(t, "mx.good.test. 60 A 127.0.0.2", "mx.insecure.test. 60 A 127.0.0.2",
		"mx.defers.test. 60 A 127.0.0.3",
		"mx.dead.test. 60 A 127.0.0.4", "mx.six.test. 60 AAAA ::1", reverse+" 60 PTR out.example.com.",
		"several.test. 60 MX 10 mx.dead.test.", "several.test. 60 MX 20 mx.defers.test.",
		"several.test. 60 MX 30 mx.good.test.",
		"defers.test. 60 MX 10 mx.defers.test.", "null.test. 60 MX 0 .", "implicit.test. 60 A 127.0.0.2",
		"six.test. 60 MX 10 mx.six.test.", "dane.test. 60 MX 10 mx.good.test.",
		fmt.Sprintf("_%d._tcp.mx.good.test. 60 %s", port, tlsaOf(3, cert)),
		"wrong.test. 60 MX 10 mx.wrong.test.", "mx.wrong.test. 60 A 127.0.0.2",
		fmt.Sprintf("_%d._tcp.mx.wrong.test. 60 %s", port, tlsaOf(3, authority.cert)),
		"sts.test. 60 MX 10 mx.insecure.test.")
	sts(t, w, "sts.test", "1", "version: STSv1\nmode: enforce\nmx: mx.insecure.test\nmax_age: 86400\n")
	w.to.Addresses = mxsend.EncodeSources([]mxsend.Source{{Address: addr("127.0.0.9"), Name: "out.example.com"},
		{Address: addr("::1"), Name: "out.example.com"}})
	for _, row := range []struct {
		domain  string
		verdict smtpsend.Verdict // empty: delivered
		code    int
		tls     bool
	}{
		{"several.test", "", 250, true},
		{"implicit.test", "", 250, true},
		{"dane.test", "", 250, true},
		{"six.test", "", 250, false},
		{"defers.test", smtpsend.Soft, 450, false},
		{"null.test", smtpsend.Hard, 556, false},
		{"wrong.test", smtpsend.Soft, 0, false},
		{"sts.test", smtpsend.Soft, 0, false},
	} {
		r, e := w.send(t, "b@"+row.domain)
		switch {
		case row.verdict == "" && (e != nil || (r.TLS != "") != row.tls || r.Code != row.code):
			t.Errorf("%s: %v, TLS %q, %d\n%s", row.domain, e, r.TLS, r.Code, good.Log())
		case row.verdict != "" && (e == nil || e.Verdict != row.verdict || e.Code != row.code):
			t.Errorf("%s: %v", row.domain, e)
		}
	}
	if len(six.Wait(t, 1)) != 1 {
		t.Error("not delivered over IPv6")
	}
	for _, file := range good.Wait(t, 3) {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), "from out.example.com (unknown [127.0.0.9])") ||
			!strings.Contains(string(text), "(using TLSv1.3 with cipher") {
			t.Errorf("%v\n%s", err, text)
		}
	}
}

// TestAThousandDomainsOfOnePostfix share ten transactions over one connection.
func TestAThousandDomainsOfOnePostfix(t *testing.T) {
	port := testkit.FreePort(t)
	w := newWorld(t, func(o *mxsend.Options, _ *smtpsend.Options) { o.Port = port })
	server := testsmtp.StartPostfix(t, testsmtp.PostfixOptions{Host: "127.0.0.2", Port: port,
		Settings: nameless + "virtual_mailbox_domains = static:all\n"})
	w.zone.Add(t, "mx.hoster.test. 60 A 127.0.0.2")
	var to []string
	for i := range 1000 {
		w.zone.Add(t, fmt.Sprintf("d%d.test. 60 MX 10 mx.hoster.test.", i))
		to = append(to, fmt.Sprintf("b@d%d.test", i))
	}
	r, err := w.send(t, to...)
	if err != nil {
		t.Fatalf("%v\n%s", err, server.Log())
	}
	for _, one := range r.Recipients {
		if one.Err != nil {
			t.Fatal(one.Err)
		}
	}
	if n := strings.Count(server.Log(), "]: connect from"); n != 2 { // one of them waited for Postfix to start
		t.Errorf("%d connections", n)
	}
	if n := strings.Count(server.Log(), ": client="); n != 10 {
		t.Errorf("%d transactions", n)
	}
}
