package testsmtp

import (
	"crypto/tls"

	"github.com/postroom/postroom/internal/testkit"
)

// certificate is a certificate for the loopback addresses, which is its own authority.
type certificate struct {
	ca   string // PEM
	pair tls.Certificate
}

func newCertificate() (*certificate, error) {
	cert, key, err := testkit.MakeCertificate("testsmtp")
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	return &certificate{ca: string(cert), pair: pair}, err
}
