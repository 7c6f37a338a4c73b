package testkit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certificate has the names of the files of a certificate and its key, in PEM.
type Certificate struct{ Cert, Key string }

// NewCertificate returns names of files in a directory of the test. Issue writes them.
func NewCertificate(t testing.TB) Certificate {
	dir := t.TempDir()
	return Certificate{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
}

// Issue writes a new certificate into the files, and returns the pool that trusts it. name is its common
// name, to distinguish certificates.
func (f Certificate) Issue(t testing.TB, name string) *x509.CertPool {
	t.Helper()
	cert, key, err := MakeCertificate(name)
	if err != nil {
		t.Fatal(err)
	}
	write(t, f.Cert, cert)
	write(t, f.Key, key)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return pool
}

// MakeCertificate returns a new certificate for localhost, 127.0.0.1 and ::1, and its key, in PEM. It is its
// own authority.
func MakeCertificate(name string) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), err
}

func write(t testing.TB, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
