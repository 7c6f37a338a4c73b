package signedtoken

import (
	"cmp"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"golang.org/x/crypto/chacha20poly1305"
)

// Errors of Read, ReadReturnPath and ReadProof. A token that gave either error proves nothing.
var (
	// ErrForged: the token is malformed, forged, or of another purpose.
	ErrForged = errors.New("token is malformed or forged")
	// ErrUnknownKey: no known key has the token's key id. The key was removed, or never existed.
	ErrUnknownKey = errors.New("token is signed with a key that is not known")
	// ErrPreview: the token is one of our previews. It is refused for every other purpose.
	ErrPreview = errors.New("token is of a preview, not of a mail that was sent")
)

// Whole is the Recipient of a token about the message as a whole.
const Whole = -1

// Limits of what a token can hold.
const (
	MaxURL       = 4096 // bytes of a link's target
	maxRecipient = 1<<16 - 1
	maxName      = 1024 // bytes of an account's or a list's id, or of an address
)

// Token is the content of a signed token.
type Token struct {
	Account string // id of the account that sent the message
	// Postroom's ULID of the message, the queueId of the API; may be empty for Unsubscribe only. Sender and
	// Confirm: one of the request
	MessageID string
	Recipient int    // index of the recipient in the envelope, from 0; Whole: the message as a whole
	URL       string // Click only: the target
	// Unsubscribe: id of the list, or empty for all mail of the account. Confirm: ids, with commas between
	List string
	// Unsubscribe and Confirm: the recipient. Sender: the address. Return path and proof: the only recipient, or
	// empty if there are several
	Address string
}

// Time is when the message was accepted, and for Confirm when the token was made, to the millisecond. It is
// zero without a message.
func (s Token) Time() time.Time {
	id, err := ulid.ParseStrict(s.MessageID)
	if err != nil {
		return time.Time{}
	}
	return ulid.Time(id.Time()).UTC()
}

// Purpose is a token's purpose. It is signed: a token with one purpose is refused for every other.
type Purpose uint8

// The purposes. Their numbers are signed and must not change.
const (
	Open        Purpose = 1 // the pixel of an email was fetched
	Click       Purpose = 2 // a link of an email was followed
	Unsubscribe Purpose = 3 // the unsubscribe and preference pages of a recipient
	ReturnPath  Purpose = 4 // where bounces of a message go; see Ring.ReturnPath
	Proof       Purpose = 5 // the Message-ID, and what a provider repeats; see Ring.Proof
	Preview     Purpose = 6 // any link of an email that was not sent: it leads nowhere and proves nothing
	Sender      Purpose = 7 // the page on which the owner of an address lets an account send as it
	Confirm     Purpose = 8 // the link that confirms subscriptions
)

// String is the name of the purpose, for errors.
func (p Purpose) String() string { return cmp.Or(purposes[p], fmt.Sprintf("purpose %d", uint8(p))) }

var purposes = map[Purpose]string{Open: "open", Click: "click", Unsubscribe: "unsubscribe",
	ReturnPath: "return path", Proof: "proof", Preview: "preview", Sender: "sender", Confirm: "confirm"}

// Prefix is the text before the token of a return path. Case is ignored.
const Prefix = "bounces+"

const (
	version   = 1
	minSecret = 16
	maxKeyID  = 15
)

// Key signs tokens.
type Key struct {
	ID     uint8  // 0 to 15, in clear in each token; keys may share one
	Secret []byte // at least 16 random bytes
}

// KeyOf is the key of a secret. Its id is derived from the secret, so every process computes the same id.
func KeyOf(secret []byte) Key {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("postroom stamp key id")) // part of the format, as are the two strings below
	return Key{ID: h.Sum(nil)[0] & maxKeyID, Secret: secret}
}

// Ring signs tokens with its first key and verifies them with all keys. It is safe for concurrent use.
type Ring struct {
	keys []key // keys[0] signs
}

// key is a Key with the keys derived from it.
type key struct {
	id     uint8
	macs   *macs       // the secret's
	nonces *macs       // make nonces
	aead   cipher.AEAD // seals the tokens of sealed purposes
}

// New makes a Ring. The first key signs, all keys verify.
func New(keys []Key) (*Ring, error) {
	if len(keys) == 0 {
		return nil, errors.New("signed tokens: no key")
	}
	r := &Ring{}
	for _, k := range keys {
		ready, err := k.ready()
		if err != nil {
			return nil, err
		}
		r.keys = append(r.keys, ready)
	}
	return r, nil
}

func (k Key) ready() (key, error) {
	switch {
	case k.ID > maxKeyID:
		return key{}, fmt.Errorf("signed token key %d: ids are 0 to %d", k.ID, maxKeyID)
	case len(k.Secret) < minSecret:
		return key{}, fmt.Errorf("signed token key %d: the secret has %d bytes, at least %d are needed", k.ID,
			len(k.Secret), minSecret)
	}
	derived, err := hkdf.Key(sha256.New, k.Secret, nil, "postroom stamp sealing v1", chacha20poly1305.KeySize+
		sha256.Size)
	if err != nil {
		return key{}, fmt.Errorf("signed token key %d: derive a key: %w", k.ID, err)
	}
	aead, err := chacha20poly1305.NewX(derived[:chacha20poly1305.KeySize])
	if err != nil {
		return key{}, fmt.Errorf("signed token key %d: make a sealing key: %w", k.ID, err)
	}
	return key{id: k.ID, macs: newMacs(append([]byte(nil), k.Secret...)),
		nonces: newMacs(derived[chacha20poly1305.KeySize:]), aead: aead}, nil
}

// header is the first byte of every token.
func (k key) header() byte { return version<<4 | k.id }

// mac is the signature of content for a purpose.
func (k key) mac(p Purpose, content []byte, size int) []byte {
	sum := k.macs.sum(func(to []byte) []byte {
		return append(append(append(to, "postroom stamp v1\x00"...), byte(p)), content...)
	})
	return sum[:size]
}

// macs makes HMACs with one key. It reuses its hashes: keying takes half of the time.
type macs struct{ idle sync.Pool }

type mac struct {
	hash.Hash
	text []byte
}

func newMacs(secret []byte) *macs {
	return &macs{sync.Pool{New: func() any { return &mac{Hash: hmac.New(sha256.New, secret)} }}}
}

// sum is the HMAC of what write appends.
func (m *macs) sum(write func(to []byte) []byte) []byte {
	h := m.idle.Get().(*mac)
	defer m.idle.Put(h)
	h.text = write(h.text[:0])
	h.Reset()
	h.Write(h.text)
	return h.Sum(nil)
}

// tried calls read with each key that the token's header names. It returns nil as soon as one of them can
// read the token.
func (r *Ring) tried(header byte, read func(key) bool) error {
	err := ErrUnknownKey
	for _, k := range r.keys {
		if k.id != header&maxKeyID {
			continue
		}
		if read(k) {
			return nil
		}
		err = ErrForged
	}
	return err
}
