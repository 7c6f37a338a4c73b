package smtpsend

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testsmtp"
)

// tlsaOf returns the TLSA record of a certificate (RFC 6698 section 2.1).
func tlsaOf(usage, selector, matching int, cert *x509.Certificate) string {
	data := cert.Raw
	if selector == 1 {
		data = cert.RawSubjectPublicKeyInfo
	}
	switch matching {
	case 1:
		sum := sha256.Sum256(data)
		data = sum[:]
	case 2:
		sum := sha512.Sum512(data)
		data = sum[:]
	}
	return fmt.Sprintf("%d %d %d %s", usage, selector, matching, hex.EncodeToString(data))
}

// TestTLSARecords checks chains by RFC 7671 sections 5.1 and 5.2.
func TestTLSARecords(t *testing.T) {
	ca, caKey := issue(t, "authority", nil, nil)
	leaf, _ := issue(t, "mx.example", ca, caKey)
	expired, _ := issueUntil(t, time.Now().Add(-time.Minute), "mx.example", ca, caKey)
	neighbour, _ := issue(t, "other.example", ca, caKey)
	forgerCA, forgerKey := issue(t, "authority", nil, nil)
	forged, _ := issue(t, "mx.example", forgerCA, forgerKey)
	alone, _ := issue(t, "mx.example", nil, nil)
	type chain = []*x509.Certificate
	type row struct {
		name  string
		tlsa  string
		chain chain
		names []string
		ok    bool
	}
	rows := []row{
		{"usage 3, another certificate", tlsaOf(3, 1, 1, leaf), chain{forged, forgerCA}, nil, false},
		{"usage 3 ignores names", tlsaOf(3, 1, 1, neighbour), chain{neighbour}, nil, true},
		{"usage 3 ignores dates", tlsaOf(3, 1, 1, expired), chain{expired}, nil, true},
		{"usage 3 isn't for an authority", tlsaOf(3, 0, 1, ca), chain{leaf, ca}, nil, false},
		{"usage 3, shown second", tlsaOf(3, 1, 1, leaf), chain{forged, leaf}, nil, false},
		{"usage 2 looks at names", tlsaOf(2, 0, 1, ca), chain{neighbour, ca}, nil, false},
		{"usage 2, one of two names", tlsaOf(2, 0, 1, ca), chain{neighbour, ca},
			[]string{"mx.example", "other.example"}, true},
		{"usage 2 looks at dates", tlsaOf(2, 0, 1, ca), chain{expired, ca}, nil, false},
		{"usage 2, a forger who shows the authority", tlsaOf(2, 0, 1, ca), chain{forged, ca}, nil, false},
		{"usage 2, the authority isn't shown", tlsaOf(2, 0, 1, ca), chain{leaf}, nil, false},
		{"usage 2, the authority is in the record", tlsaOf(2, 0, 0, ca), chain{leaf}, nil, true},
		{"usage 2, its own authority", tlsaOf(2, 1, 2, alone), chain{alone}, nil, true},
		{"the second of two records", tlsaOf(3, 1, 1, forged) + "," + tlsaOf(3, 1, 1, leaf), chain{leaf}, nil,
			true},
		{"nothing shown", tlsaOf(3, 1, 1, leaf), nil, nil, false},
	}
	for selector := range 2 {
		for matching := range 3 {
			rows = append(rows,
				row{fmt.Sprint("usage 3 ", selector, matching), tlsaOf(3, selector, matching, leaf), chain{leaf, ca}, nil,
					true},
				row{fmt.Sprint("usage 2 ", selector, matching), tlsaOf(2, selector, matching, ca), chain{leaf, ca}, nil,
					true})
		}
	}
	for _, row := range rows {
		records, err := parseTLSA(row.tlsa)
		if err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		if row.names == nil {
			row.names = []string{"mx.example"}
		}
		err = records.verify(tls.ConnectionState{PeerCertificates: row.chain}, row.names)
		if row.ok != (err == nil) || err != nil && !errors.Is(err, ErrTLSA) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

// TestTLSADecides sends over STARTTLS to a server whose certificate no authority has signed.
func TestTLSADecides(t *testing.T) {
	cert, key := issue(t, "mx.example", nil, nil)
	stranger, _ := issue(t, "mx.example", nil, nil)
	server := testsmtp.Start(t, testsmtp.Options{Security: testsmtp.STARTTLS,
		Certificate: &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}})
	sender, err := New(Options{Timeout: 15 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	m := Message{To: []string{"b@example.org"}, Body: Bytes("x")}
	relay := Relay{Host: server.Host(), Port: server.Port(), TLS: TLSRequired, TLSName: "mx.example",
		TLSA: tlsaOf(3, 1, 1, cert)}
	if r, err := sender.Send(t.Context(), relay, m); err != nil || r.TLS == "" {
		t.Errorf("right record: %q, %v", r.TLS, err)
	}
	relay.TLSA = tlsaOf(3, 1, 1, stranger)
	_, err = sender.Send(t.Context(), relay, m)
	var e *Error
	if !errors.As(err, &e) || e.Phase != PhaseTLS || e.Verdict != Auth || !errors.Is(err, ErrTLSA) ||
		server.Count() != 1 {
		t.Errorf("wrong record: %v, %d messages", err, server.Count())
	}
}

// TestNameInTheCertificate: the relay is dialed by its address, and verified by its name.
func TestNameInTheCertificate(t *testing.T) {
	server := testsmtp.Start(t, testsmtp.Options{Security: testsmtp.STARTTLS, Addr: "0.0.0.0:0"})
	sender, err := New(Options{Timeout: 15 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	relay := Relay{Host: "127.0.0.2", Port: server.Port(), TLS: TLSRequired, CA: server.CA(),
		TLSName: "localhost"}
	if err := sender.Verify(t.Context(), relay); err != nil {
		t.Errorf("its name: %v", err)
	}
	relay.TLSName = "mx.example"
	var host x509.HostnameError
	if err := sender.Verify(t.Context(), relay); !errors.As(err, &host) {
		t.Errorf("another name: %v", err)
	}
}

// TestBrokenTLSIsReported: a message that went in clear because TLS failed says so, over a kept connection
// too.
func TestBrokenTLSIsReported(t *testing.T) {
	server := testsmtp.Start(t, testsmtp.Options{Security: testsmtp.STARTTLS,
		Respond: func(c testsmtp.Command) testsmtp.Action {
			if c.Verb == "STARTTLS" {
				return testsmtp.Action{Reply: "220 2.0.0 Go ahead", Close: true}
			}
			return testsmtp.Action{}
		}})
	sender, err := New(Options{Timeout: 15 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for _, reused := range []bool{false, true} {
		r, err := sender.Send(t.Context(), Relay{Host: server.Host(), Port: server.Port()},
			Message{To: []string{"b@example.org"}, Body: Bytes("x")})
		if err != nil || r.TLS != "" || r.TLSFailed == nil || r.TLSFailed.Phase != PhaseTLS || r.Reused != reused {
			t.Errorf("%v, %q, %v, reused %v", err, r.TLS, r.TLSFailed, r.Reused)
		}
	}
}
