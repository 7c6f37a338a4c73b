package smtpsend

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testsmtp"
)

// issue makes a certificate for name, signed by parent, or self-signed without one.
func issue(t *testing.T, name string, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (
	*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	return issueUntil(t, time.Now().Add(time.Hour), name, parent, parentKey)
}

func issueUntil(t *testing.T, end time.Time, name string, parent *x509.Certificate,
	parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{
			name},
		NotBefore: end.Add(-2 * time.Hour), NotAfter: end, BasicConstraintsValid: true, IsCA: parent == nil,
	}
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func pinOf(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:])
}

func TestPinOfAChain(t *testing.T) {
	ca, caKey := issue(t, "authority", nil, nil)
	leaf, _ := issue(t, "mx.example", ca, caKey)
	neighbour, _ := issue(t, "other.example", ca, caKey)
	forgerCA, forgerKey := issue(t, "authority", nil, nil)
	forged, _ := issue(t, "mx.example", forgerCA, forgerKey)
	type chain = []*x509.Certificate
	for _, row := range []struct {
		name      string
		pin       string
		presented chain
		verified  []chain
		ok        bool
	}{
		{name: "the relay's own key", pin: pinOf(leaf), presented: chain{leaf, ca}, ok: true},
		{name: "the second of two", pin: pinOf(forged) + " " + pinOf(leaf), presented: chain{leaf}, ok: true},
		{name: "its authority's key", pin: pinOf(ca), presented: chain{leaf, ca}, ok: true},
		{name: "its authority's key, in a verified chain", pin: pinOf(ca), presented: chain{leaf},
			verified: []chain{{leaf, ca}}, ok: true},
		{name: "none of them", pin: pinOf(forged), presented: chain{leaf, ca}},
		{name: "none of them, in a verified chain", pin: pinOf(forged), presented: chain{leaf, ca},
			verified: []chain{{leaf, ca}}},
		{name: "another of the same authority", pin: pinOf(ca), presented: chain{neighbour, ca}},
		{name: "a forger who shows the authority's certificate", pin: pinOf(ca), presented: chain{forged, ca}},
		{name: "a forger who shows the relay's certificate", pin: pinOf(leaf), presented: chain{forged, leaf}},
		{name: "shown, but not part of the verified chain", pin: pinOf(leaf), presented: chain{forged, leaf},
			verified: []chain{{forged, forgerCA}}},
		{name: "nothing at all", pin: pinOf(leaf)},
	} {
		p, err := parsePins(row.pin)
		if err != nil {
			t.Fatal(err)
		}
		err = p.verify(tls.ConnectionState{PeerCertificates: row.presented, VerifiedChains: row.verified},
			"mx.example")
		if row.ok != (err == nil) || err != nil && !errors.Is(err, errPin) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

func TestPins(t *testing.T) {
	server := testsmtp.Start(t, testsmtp.Options{Security: testsmtp.Implicit})
	conn, err := tls.Dial("tcp", server.Addr(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	right := pinOf(conn.ConnectionState().PeerCertificates[0])
	_ = conn.Close()
	stranger, _ := issue(t, "stranger", nil, nil)
	wrong := pinOf(stranger)
	otherCA := testsmtp.Start(t, testsmtp.Options{Security: testsmtp.Implicit}).CA()
	for _, row := range []struct {
		name  string
		relay Relay
		ok    bool
	}{
		{"right, of an authority nobody knows", Relay{Pin: right}, true},
		{"right, under its authority", Relay{Pin: right, CA: server.CA()}, true},
		{"right, under another authority", Relay{Pin: right, CA: otherCA}, false},
		{"wrong", Relay{Pin: wrong}, false},
		{"wrong, under its authority", Relay{Pin: wrong, CA: server.CA()}, false},
		{"wrong, with nothing else looked at", Relay{Pin: wrong, InsecureSkipVerify: true}, false},
		{"right, with nothing else looked at", Relay{Pin: right, InsecureSkipVerify: true}, true},
		{"one of two", Relay{Pin: wrong + " " + right}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			row.relay.Host, row.relay.Port, row.relay.TLS = server.Host(), server.Port(), TLSImplicit
			sender, err := New(Options{Timeout: 15 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			err = sender.Verify(t.Context(), row.relay)
			if row.ok {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var e *Error
			if !errors.As(err, &e) || e.Verdict != Auth || e.Scope != ScopeAccount || e.Name() != nameTLS ||
				!e.Elsewhere() {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestPinIsNeverGivenUp: a relay that is pinned gets nothing in clear, whatever it offers.
func TestPinIsNeverGivenUp(t *testing.T) {
	server := testsmtp.Start(t, testsmtp.Options{Record: true})
	stranger, _ := issue(t, "stranger", nil, nil)
	sender, err := New(Options{Timeout: 15 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	_, err = sender.Send(t.Context(), Relay{Host: server.Host(), Port: server.Port(), Pin: pinOf(stranger)},
		Message{To: []string{"b@example.org"}, Body: Bytes("x")})
	var e *Error
	if !errors.As(err, &e) || e.Phase != PhaseSTARTTLS || e.Verdict != Auth || server.Count() != 0 {
		t.Errorf("%v", err)
	}
}

// TestOldTLS: nothing below TLS 1.2, whatever the settings say, and nothing below what they say.
func TestOldTLS(t *testing.T) {
	cert, key := issue(t, "relay", nil, nil)
	for _, row := range []struct {
		name      string
		theirs    uint16 // the highest the relay speaks
		ours      uint16 // Relay.MinVersion
		handshake bool
	}{
		{"TLS 1.0", tls.VersionTLS10, 0, false},
		{"TLS 1.1", tls.VersionTLS11, tls.VersionTLS10, false},
		{"TLS 1.2", tls.VersionTLS12, 0, true},
		{"TLS 1.2 where 1.3 is wanted", tls.VersionTLS12, tls.VersionTLS13, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
				Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}},
				MinVersion:   tls.VersionTLS10, MaxVersion: row.theirs,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			done := make(chan struct{})
			go func() {
				defer close(done)
				if conn, err := listener.Accept(); err == nil {
					_, _ = conn.Write([]byte("421 enough\r\n"))
					_ = conn.Close()
				}
			}()
			sender, err := New(Options{Timeout: 15 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			relay := Relay{Host: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port, TLS: TLSImplicit,
				MinVersion: row.ours, Pin: pinOf(cert)}
			err = sender.Verify(t.Context(), relay)
			<-done
			var e *Error
			if !errors.As(err, &e) || row.handshake != (e.Phase == PhaseGreeting) || !row.handshake &&
				(e.Name() != nameTLS || e.Verdict != Soft) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestExpiredCertificate: an account is held for it, as it will not be better in a minute. A pin on the very
// key stands for the date, too.
func TestExpiredCertificate(t *testing.T) {
	ca, caKey := issue(t, "authority", nil, nil)
	expired, key := issueUntil(t, time.Now().Add(-time.Minute), "localhost", ca, caKey)
	for _, row := range []struct {
		name  string
		relay Relay
		phase Phase
	}{
		{"expired", Relay{CA: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw}))},
			PhaseTLS},
		{"expired and pinned", Relay{Pin: pinOf(expired)}, PhaseGreeting},
		{"expired, its authority pinned", Relay{Pin: pinOf(ca)}, PhaseTLS},
	} {
		t.Run(row.name, func(t *testing.T) {
			listener, err := tls.Listen("tcp", "127.0.0.1:0",
				&tls.Config{Certificates: []tls.Certificate{
					{Certificate: [][]byte{expired.Raw, ca.Raw}, PrivateKey: key}}})
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			done := make(chan struct{})
			go func() {
				defer close(done)
				if conn, err := listener.Accept(); err == nil {
					_, _ = conn.Write([]byte("421 enough\r\n"))
					_ = conn.Close()
				}
			}()
			sender, err := New(Options{Timeout: 15 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			row.relay.Host, row.relay.TLS = "localhost", TLSImplicit
			row.relay.Port = listener.Addr().(*net.TCPAddr).Port
			err = sender.Verify(t.Context(), row.relay)
			<-done
			var e *Error
			if !errors.As(err, &e) || e.Phase != row.phase || e.Phase == PhaseTLS &&
				(e.Verdict != Auth || e.Scope != ScopeAccount || e.Name() != nameTLS) {
				t.Errorf("%v", err)
			}
		})
	}
}
