package dkim

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/maildns"
)

// maxString is the longest character string of a TXT record (RFC 1035 section 3.3).
const maxString = 255

// Record returns the value of the TXT record of a key: v=DKIM1; k=rsa; p=… (RFC 6376 section 3.6.1).
func Record(k *Key) (string, error) {
	public, err := publicText(k)
	if err != nil {
		return "", err
	}
	return "v=DKIM1; k=" + k.Kind() + "; p=" + public, nil
}

// publicText returns the public key as in p=: of RSA the SubjectPublicKeyInfo, of Ed25519 the 32 octets.
func publicText(k *Key) (string, error) {
	if public, ok := k.signer.Public().(ed25519.PublicKey); ok {
		return base64.StdEncoding.EncodeToString(public), nil
	}
	der, err := x509.MarshalPKIXPublicKey(k.signer.Public())
	if err != nil {
		return "", fmt.Errorf("write a public key: %w", err)
	}
	return base64.StdEncoding.EncodeToString(der), nil
}

// RecordName returns the DNS name of the record of a selector and domain.
func RecordName(selector, domain string) string { return selector + "._domainkey." + domain }

// ZoneStrings cuts a record into strings of at most 255 octets, as a zone file needs; verifiers join them.
func ZoneStrings(record string) []string {
	var pieces []string
	for len(record) > maxString {
		pieces = append(pieces, record[:maxString])
		record = record[maxString:]
	}
	return append(pieces, record)
}

// ZoneLine returns a record as a line of a zone file.
func ZoneLine(selector, domain, record string) string {
	return RecordName(selector, domain) + `. IN TXT ( "` + strings.Join(ZoneStrings(record), `" "`) + `" )`
}

// Published is a parsed record of the DNS.
type Published struct {
	Kind    string // RSA or Ed25519
	Bits    int    // size of the key
	Testing bool   // t=y: receivers treat a failed signature like a missing one
	key     string
}

// CheckRecord parses a record as verifiers do, and compares it with a key, unless that is nil. The error says
// what is wrong with the record and what to do.
func CheckRecord(record string, k *Key) (Published, error) {
	p, err := readRecord(record)
	if err != nil || k == nil {
		return p, err
	}
	want, err := publicText(k)
	switch {
	case err != nil:
		return p, err
	case p.Kind != k.Kind():
		return p, fmt.Errorf("publishes a key of kind %s, and mail is signed with one of kind %s: publish the record of this key", p.Kind, k.Kind())
	case p.key != want && !samePublicKey(p, k):
		return p, errors.New("publishes another key than the one that mail is signed with: publish the record of this key, or sign with another selector")
	}
	return p, nil
}

// readRecord parses the tags of a record (RFC 6376 section 3.6.1).
func readRecord(record string) (Published, error) {
	tags, first, err := maildns.Tags(record)
	if err != nil {
		return Published{}, err
	}
	if v, ok := tags["v"]; ok && (v != "DKIM1" || first != "v") {
		return Published{}, errors.New("must begin with v=DKIM1")
	}
	p := Published{Kind: tags["k"], key: strings.Join(strings.Fields(tags["p"]), "")}
	p.Kind = cmp.Or(p.Kind, RSA)
	if _, ok := tags["p"]; !ok {
		return p, errors.New("has no key (p=): publish the whole record")
	}
	if p.key == "" {
		return p, errors.New("is revoked: its key is empty; publish the key, or sign with another selector")
	}
	if h, ok := tags["h"]; ok && !listed(h, "sha256") {
		return p, errors.New("does not allow SHA-256 (h=), which mail is signed with: take h= out")
	}
	if s, ok := tags["s"]; ok && !listed(s, "*") && !listed(s, "email") {
		return p, errors.New("is not for mail (s=): take s= out")
	}
	p.Testing = listed(tags["t"], "y")
	public, err := base64.StdEncoding.DecodeString(p.key)
	if err != nil {
		return p, errors.New("has a key that is not base64: was it copied as a whole?")
	}
	p.Bits, err = publicBits(p.Kind, public)
	return p, err
}

func listed(list, name string) bool {
	return slices.ContainsFunc(strings.Split(list, ":"), func(s string) bool {
		return strings.TrimSpace(s) == name
	})
}

func publicBits(kind string, public []byte) (int, error) {
	switch kind {
	case Ed25519:
		if len(public) != ed25519.PublicKeySize {
			return 0, fmt.Errorf("has an Ed25519 key of %d octets, not of %d: was it copied as a whole?", len(public),
				ed25519.PublicKeySize)
		}
		return 256, nil
	case RSA:
		key, err := parsePublic(public)
		if err != nil {
			return 0, err
		}
		if key.N.BitLen() < 1024 {
			return 0, fmt.Errorf("has an RSA key of %d bits: receivers take no less than 1024, and advise %d",
				key.N.BitLen(), MinBits)
		}
		return key.N.BitLen(), nil
	}
	return 0, fmt.Errorf("has a key of kind %q: receivers know %s and %s", kind, RSA, Ed25519)
}

// parsePublic accepts both forms that occur in the DNS: SubjectPublicKeyInfo, and the bare RSAPublicKey of
// RFC 6376.
func parsePublic(der []byte) (*rsa.PublicKey, error) {
	if key, err := x509.ParsePKIXPublicKey(der); err == nil {
		if public, ok := key.(*rsa.PublicKey); ok {
			return public, nil
		}
	}
	if public, err := x509.ParsePKCS1PublicKey(der); err == nil {
		return public, nil
	}
	return nil, errors.New("has a key that is damaged or not RSA: was it copied as a whole?")
}

// samePublicKey reports whether RSA keys in different forms are equal.
func samePublicKey(p Published, k *Key) bool {
	der, err := base64.StdEncoding.DecodeString(p.key)
	if err != nil || p.Kind != RSA {
		return false
	}
	public, err := parsePublic(der)
	return err == nil && public.Equal(k.signer.Public())
}
