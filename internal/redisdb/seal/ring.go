package seal

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/chacha20poly1305"
)

// MinSecret is the fewest bytes a secret may have.
const MinSecret = 32

// version begins every sealed value, so that a later version can have another cipher.
const version = "v1"

// Errors of opening a value.
var (
	// ErrUnknownKey means the value was sealed under a secret that is not in the ring.
	ErrUnknownKey = errors.New("sealed under a secret that is not configured any more")
	// ErrDamaged means the value was changed after it was sealed, or was sealed for another record.
	ErrDamaged = errors.New("the sealed value is damaged or belongs to another record or place")
)

// Ring seals under its current secret, and opens values sealed under that or an older one. It is safe for
// concurrent use.
type Ring struct {
	keys    []key // the current one first
	refused refused
}

// key is one secret with its derived key.
type key struct {
	id     string // names the key of a value, and reveals nothing about it
	secret []byte
	aead   cipher.AEAD
	box    cipher.AEAD // for boxes
	mac    []byte
}

// New returns a ring of the current secret and older ones, each of at least 32 bytes. Repetitions are
// ignored.
func New(current []byte, older ...[]byte) (*Ring, error) {
	r := &Ring{}
	for i, secret := range append([][]byte{current}, older...) {
		if len(secret) < MinSecret {
			return nil, fmt.Errorf("secret %d has %d bytes, at least %d are needed", i+1, len(secret), MinSecret)
		}
		k, err := newKey(secret)
		if err != nil {
			return nil, err
		}
		if _, known := r.find(k.id); !known {
			r.keys = append(r.keys, k)
		}
	}
	return r, nil
}

// newKey derives the keys of a secret, and its id.
func newKey(secret []byte) (key, error) {
	id, err := derive(secret, "key id", idSize)
	if err != nil {
		return key{}, err
	}
	aead, err := newAEAD(secret, "seal")
	if err != nil {
		return key{}, err
	}
	box, err := newAEAD(secret, "box")
	if err != nil {
		return key{}, err
	}
	mac, err := derive(secret, "mac", sha256.Size)
	if err != nil {
		return key{}, err
	}
	return key{id: hex.EncodeToString(id), secret: append([]byte(nil), secret...), aead: aead, box: box,
		mac: mac}, nil
}

func newAEAD(secret []byte, purpose string) (cipher.AEAD, error) {
	k, err := derive(secret, purpose, chacha20poly1305.KeySize)
	if err != nil {
		return nil, err
	}
	aead, err := chacha20poly1305.NewX(k)
	if err != nil {
		return nil, fmt.Errorf("make a sealing key: %w", err)
	}
	return aead, nil
}

// derive returns a key for one purpose.
func derive(secret []byte, purpose string, size int) ([]byte, error) {
	k, err := hkdf.Key(sha256.New, secret, nil, "postroom "+purpose, size)
	if err != nil {
		return nil, fmt.Errorf("derive a key: %w", err)
	}
	return k, nil
}

// Seal encrypts plain for the record named aad, such as "account:42:smtp". Open needs the same name. An empty
// value is sealed like any other.
func (r *Ring) Seal(plain []byte, aad string) string {
	k := r.keys[0]
	nonce := make([]byte, chacha20poly1305.NonceSizeX, chacha20poly1305.NonceSizeX+len(plain)+
		chacha20poly1305.Overhead)
	rand.Read(nonce) // never fails: crypto/rand ends the program first
	box := k.aead.Seal(nonce, nonce, plain, []byte(aad))
	return version + "." + k.id + "." + base64.RawURLEncoding.EncodeToString(box)
}

// Open decrypts a value that Seal made for the same record. It fails with ErrUnknownKey or ErrDamaged.
func (r *Ring) Open(sealed, aad string) ([]byte, error) {
	plain, err := r.open(sealed, aad)
	if err != nil {
		r.refused.note(aad)
	}
	return plain, err
}

func (r *Ring) open(sealed, aad string) ([]byte, error) {
	id, text, err := split(sealed)
	if err != nil {
		return nil, err
	}
	k, known := r.find(id)
	if !known {
		return nil, ErrUnknownKey
	}
	if strings.ContainsAny(text, "\r\n") { // which the decoder would skip
		return nil, ErrDamaged
	}
	box, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(box) < chacha20poly1305.NonceSizeX {
		return nil, ErrDamaged
	}
	nonce, body := box[:chacha20poly1305.NonceSizeX], box[chacha20poly1305.NonceSizeX:]
	plain, err := k.aead.Open(nil, nonce, body, []byte(aad))
	if err != nil {
		return nil, ErrDamaged
	}
	return plain, nil
}

// NeedsRotation reports whether a value is sealed under another secret than the current one, and should be
// sealed again. It is false for a text that isn't a sealed value.
func (r *Ring) NeedsRotation(sealed string) bool {
	id, _, err := split(sealed)
	return err == nil && id != r.keys[0].id
}

// Renew seals a value again, under the current secret, if it is sealed under an older one, and reports
// whether it did. Any other text is returned as it is.
func (r *Ring) Renew(sealed, aad string) (string, bool, error) {
	if !r.NeedsRotation(sealed) {
		return sealed, false, nil
	}
	plain, err := r.Open(sealed, aad)
	if err != nil {
		return sealed, false, err
	}
	return r.Seal(plain, aad), true, nil
}

// Derive returns a 32-byte key for one purpose, such as "tracking", from the current secret. After the secret
// was replaced, [Ring.DeriveAll] has the key to check older signatures.
func (r *Ring) Derive(purpose string) ([]byte, error) {
	return derive(r.keys[0].secret, "purpose "+purpose, sha256.Size)
}

// DeriveAll is Derive for every secret of the ring, the current one first.
func (r *Ring) DeriveAll(purpose string) ([][]byte, error) {
	all := make([][]byte, 0, len(r.keys))
	for _, k := range r.keys {
		d, err := derive(k.secret, "purpose "+purpose, sha256.Size)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// split returns the key id and the base64 of a sealed value.
func split(sealed string) (id, text string, err error) {
	rest, ok := strings.CutPrefix(sealed, version+".")
	if !ok {
		return "", "", ErrDamaged
	}
	id, text, ok = strings.Cut(rest, ".")
	if !ok {
		return "", "", ErrDamaged
	}
	return id, text, nil
}

func (r *Ring) find(id string) (key, bool) {
	for _, k := range r.keys {
		if k.id == id {
			return k, true
		}
	}
	return key{}, false
}
