package smtpsend

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// tlsa is a DANE record that mail servers use (RFC 7672 section 3.1).
type tlsa struct {
	usage    byte // 2: an authority that signs the server's certificate; 3: the certificate itself
	selector byte // 0 is the whole certificate, 1 its public key
	matching byte // 0 is the data as it is, 1 its SHA-256, 2 its SHA-512
	data     []byte
}

type tlsaRecords []tlsa

// ErrTLSA is the cause when a certificate matches no TLSA record.
var ErrTLSA = errors.New("the relay's certificate matches no TLSA record")

// CheckTLSA returns an error if a text can't be [Relay.TLSA].
func CheckTLSA(text string) error {
	_, err := parseTLSA(text)
	return err
}

func parseTLSA(text string) (tlsaRecords, error) {
	var out tlsaRecords
	for record := range strings.SplitSeq(text, ",") {
		words := strings.Fields(record)
		if len(words) != 4 {
			return nil, fmt.Errorf("%w: a TLSA record has usage, selector, matching type and data", errRelay)
		}
		data, err := hex.DecodeString(words[3])
		t := tlsa{data: data}
		ok := err == nil
		for i, field := range []struct {
			to    *byte
			words string
		}{{&t.usage, "23"}, {&t.selector, "01"}, {&t.matching, "012"}} {
			ok = ok && len(words[i]) == 1 && strings.Contains(field.words, words[i])
			*field.to = words[i][0] - '0'
		}
		if !ok || !t.complete() {
			return nil, fmt.Errorf("%w: TLSA record %s can't be used", errRelay, strings.Join(words[:3], " "))
		}
		out = append(out, t)
	}
	return out, nil
}

// complete reports whether the data can be what the record says.
func (t tlsa) complete() bool {
	switch t.matching {
	case 1:
		return len(t.data) == sha256.Size
	case 2:
		return len(t.data) == sha512.Size
	}
	var err error
	if t.selector == 0 {
		_, err = x509.ParseCertificate(t.data)
	} else {
		_, err = x509.ParsePKIXPublicKey(t.data)
	}
	return err == nil
}

// matches reports whether a certificate is the record's.
func (t tlsa) matches(cert *x509.Certificate) bool {
	content := cert.Raw
	if t.selector == 1 {
		content = cert.RawSubjectPublicKeyInfo
	}
	switch t.matching {
	case 1:
		sum := sha256.Sum256(content)
		content = sum[:]
	case 2:
		sum := sha512.Sum512(content)
		content = sum[:]
	}
	return bytes.Equal(content, t.data)
}

// verify looks for a record that the server's certificates match. Usage 3 ignores names and dates (RFC 7671
// section 5.1). Usage 2 verifies the chain up to the authority, dates, and one of the names (section 5.2).
func (r tlsaRecords) verify(cs tls.ConnectionState, names []string) error {
	if len(cs.PeerCertificates) == 0 {
		return ErrTLSA
	}
	leaf := cs.PeerCertificates[0]
	if slices.ContainsFunc(r, func(t tlsa) bool { return t.usage == 3 && t.matches(leaf) }) {
		return nil
	}
	o := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	found := false
	for _, cert := range cs.PeerCertificates {
		if slices.ContainsFunc(r, func(t tlsa) bool { return t.usage == 2 && t.matches(cert) }) {
			o.Roots.AddCert(cert)
			found = true
		} else {
			o.Intermediates.AddCert(cert)
		}
	}
	for _, t := range r { // an authority that is in the record as a whole need not be in the chain
		if t.usage == 2 && t.selector == 0 && t.matching == 0 {
			cert, err := x509.ParseCertificate(t.data)
			if err != nil {
				return err
			}
			o.Roots.AddCert(cert)
			found = true
		}
	}
	if !found {
		return ErrTLSA
	}
	var err error
	for _, name := range names {
		o.DNSName = name
		if _, err = leaf.Verify(o); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%w: an authority does, but %w", ErrTLSA, err)
}
