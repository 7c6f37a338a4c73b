package dkim

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// MinBits is the smallest accepted size of an RSA key. Receivers ignore shorter ones, or soon will (RFC 8301
// section 3.2).
const MinBits = 2048

// maxBits is the largest accepted size: verifiers need not accept larger keys (RFC 8301 section 3.2), and the
// time of signing grows with the cube.
const maxBits = 4096

// The kinds of key, as the k= of a record names them.
const (
	RSA     = "rsa"
	Ed25519 = "ed25519" // RFC 8463; not every receiver verifies it yet
)

// Key is a private key that signs mail. It is safe for concurrent use.
type Key struct{ signer crypto.Signer }

// Parse parses a private key in PEM: RSA of 2048 to 4096 bits in PKCS #1 or PKCS #8, or Ed25519 in PKCS #8.
// The error says what to do, follows the name of a field, and contains no part of the key.
func Parse(text string) (*Key, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("is not PEM: it must begin with a line -----BEGIN PRIVATE KEY-----")
	}
	parsed, err := parseBlock(block)
	if err != nil {
		return nil, err
	}
	switch k := parsed.(type) {
	case *rsa.PrivateKey:
		if bits := k.N.BitLen(); bits < MinBits || bits > maxBits {
			return nil, fmt.Errorf("is an RSA key of %d bits: receivers take %d to %d; make one with postroom dkim generate", bits, MinBits, maxBits)
		}
		return &Key{k}, nil
	case ed25519.PrivateKey:
		return &Key{k}, nil
	}
	return nil, errors.New("is neither an RSA nor an Ed25519 key: DKIM knows no others")
}

func parseBlock(block *pem.Block) (any, error) {
	var key any
	var err error
	switch block.Type {
	case "RSA PRIVATE KEY":
		if block.Headers["DEK-Info"] != "" {
			return nil, errors.New("is locked with a passphrase: unlock it with openssl pkey first")
		}
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "ENCRYPTED PRIVATE KEY":
		return nil, errors.New("is locked with a passphrase: unlock it with openssl pkey first")
	case "PUBLIC KEY", "RSA PUBLIC KEY", "CERTIFICATE":
		return nil, errors.New("is public: the private key signs, and the public one goes into the DNS")
	default:
		return nil, fmt.Errorf("is PEM of %q, not of a private key in PKCS #1 or PKCS #8", block.Type)
	}
	if err != nil { // which may quote the key
		return nil, errors.New("is damaged, or no RSA or Ed25519 key")
	}
	return key, nil
}

// Generate returns a new private key in PEM, of kind RSA or Ed25519. bits is for RSA: 2048 to 4096, 0 means
// 2048.
func Generate(kind string, bits int) (string, error) {
	var key any
	var err error
	switch {
	case kind == Ed25519 && bits == 0:
		_, key, err = ed25519.GenerateKey(rand.Reader)
	case kind == Ed25519:
		return "", errors.New("an Ed25519 key has no choice of bits")
	case kind == RSA && bits != 0 && (bits < MinBits || bits > maxBits):
		return "", fmt.Errorf("an RSA key has %d to %d bits", MinBits, maxBits)
	case kind == RSA:
		key, err = rsa.GenerateKey(rand.Reader, max(bits, MinBits))
	default:
		return "", fmt.Errorf("a key is of kind %s or %s", RSA, Ed25519)
	}
	if err != nil {
		return "", fmt.Errorf("make a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", fmt.Errorf("write a key: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), nil
}

// Kind returns RSA or Ed25519.
func (k *Key) Kind() string {
	if _, ok := k.signer.(ed25519.PrivateKey); ok {
		return Ed25519
	}
	return RSA
}

// sign signs a SHA-256 hash. For Ed25519 the hash is the message itself (RFC 8463 section 3).
func (k *Key) sign(hash []byte) ([]byte, error) {
	if k.Kind() == Ed25519 {
		return k.signer.Sign(nil, hash, crypto.Hash(0))
	}
	return k.signer.Sign(rand.Reader, hash, crypto.SHA256)
}
