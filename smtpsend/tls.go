package smtpsend

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/message"
)

// handshake starts TLS on the connection.
func (c *session) handshake(ctx context.Context) *Error {
	config, err := c.tlsConfig()
	if err != nil {
		return settingsError(err)
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, c.setupTimeout())
	defer cancel()
	if err := c.raw.SetDeadline(time.Time{}); err != nil {
		return c.sender.ioError(ctx, PhaseTLS, "", err)
	}
	conn := tls.Client(c.conn, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		e := c.sender.handshakeError(ctx, err)
		if c.relay.TLS == TLSImplicit && !c.relay.OperatorsOwn {
			e.Err = fmt.Errorf("TLS handshake: %w", certificateOf(err))
		}
		return e
	}
	c.attach(conn)
	state := conn.ConnectionState()
	c.tls = tls.VersionName(state.Version)
	c.record.note(c.tls, ", ", tls.CipherSuiteName(state.CipherSuite))
	c.verified = !config.InsecureSkipVerify || config.VerifyConnection != nil
	c.timings.TLS = time.Since(begun)
	return nil
}

// tlsConfig returns the conditions on the relay's certificate. Without credentials an opportunistic
// connection accepts any: an attacker who can forge one can also remove the offer of STARTTLS.
func (c *session) tlsConfig() (*tls.Config, error) {
	r := &c.relay
	config := &tls.Config{
		ServerName:         r.tlsNames()[0],
		MinVersion:         max(r.MinVersion, tls.VersionTLS12),
		InsecureSkipVerify: r.InsecureSkipVerify || r.TLS == TLSOpportunistic && !r.hasCredentials(),
	}
	if r.CA != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(r.CA)) {
			return nil, fmt.Errorf("%w: CA holds no certificate in PEM form", errRelay)
		}
	}
	if r.Pin != "" {
		pins, err := parsePins(r.Pin)
		if err != nil {
			return nil, err
		}
		config.InsecureSkipVerify = config.InsecureSkipVerify || r.CA == ""
		config.VerifyConnection = func(cs tls.ConnectionState) error { return pins.verify(cs, config.ServerName) }
	}
	if r.TLSA != "" {
		records, err := parseTLSA(r.TLSA)
		if err != nil {
			return nil, err
		}
		config.InsecureSkipVerify = true
		config.VerifyConnection = func(cs tls.ConnectionState) error { return records.verify(cs, r.tlsNames()) }
	}
	return config, nil
}

// tlsNames returns the names that the certificate may have; at least one.
func (r Relay) tlsNames() []string { return strings.Fields(cmp.Or(r.TLSName, r.Host)) }

// pins are the SHA-256 sums of public keys one of which the relay must hold.
type pins [][sha256.Size]byte

// CheckPin returns an error if a text can't be [Relay.Pin].
func CheckPin(s string) error {
	_, err := parsePins(s)
	return err
}

func parsePins(s string) (pins, error) {
	var out pins
	for _, word := range strings.Fields(s) {
		sum, err := base64.StdEncoding.DecodeString(word)
		if err != nil || len(sum) != sha256.Size {
			return nil, fmt.Errorf("%w: pin %q is not the base64 form of a SHA-256 sum", errRelay,
				message.Clip(printableText(word), 80))
		}
		out = append(out, [sha256.Size]byte(sum))
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: pin is blank", errRelay)
	}
	return out, nil
}

func (p pins) has(cert *x509.Certificate) bool {
	return slices.Contains(p, sha256.Sum256(cert.RawSubjectPublicKeyInfo))
}

var errPin = errors.New("the relay's certificate has none of the pinned keys")

// verify looks for a pinned key. In a verified chain any key counts. In another, only the first certificate
// proves something (a forger may send the real relay's certificate behind his own). A pinned key further up
// counts only if it signs the first certificate, for this host.
func (p pins) verify(cs tls.ConnectionState, host string) error {
	for _, chain := range cs.VerifiedChains {
		if slices.ContainsFunc(chain, p.has) {
			return nil
		}
	}
	if len(cs.PeerCertificates) == 0 || len(cs.VerifiedChains) > 0 {
		return errPin
	}
	leaf, rest := cs.PeerCertificates[0], cs.PeerCertificates[1:]
	if p.has(leaf) {
		return nil
	}
	if !slices.ContainsFunc(rest, p.has) {
		return errPin
	}
	o := x509.VerifyOptions{DNSName: host, Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool()}
	for _, cert := range rest {
		if p.has(cert) {
			o.Roots.AddCert(cert)
		} else {
			o.Intermediates.AddCert(cert)
		}
	}
	if _, err := leaf.Verify(o); err != nil {
		return fmt.Errorf("%w: a key further up has, but %w", errPin, err)
	}
	return nil
}
