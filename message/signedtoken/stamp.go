package signedtoken

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
	"golang.org/x/crypto/chacha20poly1305"
)

// Why a token says nothing. Nothing may be done on the strength of one that gave either.
var (
	// ErrForged means the token is malformed, forged, or of another purpose.
	ErrForged = errors.New("token is malformed or forged")
	// ErrUnknownKey means that no key of the token's key id is known: it was taken away, or never was one.
	ErrUnknownKey = errors.New("token is signed with a key that is not known")
)

// Whole is the Recipient of a stamp that is about the message as a whole.
const Whole = -1

// Limits of what a token can hold.
const (
	MaxURL       = 4096 // bytes of a link's target
	maxRecipient = 1<<16 - 1
	maxName      = 1024 // bytes of an account's or a list's id, or of an address
)

// Stamp is what a token stands for.
type Stamp struct {
	Account   string // id of the account that sent the message; return paths have no room for it
	MessageID string // Postroom's id of the message, the queueId of the API: a ULID. Empty is possible for Unsubscribe only: no message
	Recipient int    // index of the recipient in the envelope, from 0; Whole: the message as a whole
	URL       string // Click only: the target
	List      string // Unsubscribe only: id of the list; empty: all mail of the account
	Address   string // Unsubscribe only: the recipient
}

// Time is when the message was accepted, to the millisecond; zero without a message.
func (s Stamp) Time() time.Time {
	id, err := ulid.ParseStrict(s.MessageID)
	if err != nil {
		return time.Time{}
	}
	return ulid.Time(id.Time()).UTC()
}

// Purpose is what a token is for. It is signed: a token of one purpose is none of another.
type Purpose uint8

// The purposes. Their numbers are signed, and must stay what they are.
const (
	Open        Purpose = 1 // the pixel of a mail was fetched
	Click       Purpose = 2 // a link of a mail was followed
	Unsubscribe Purpose = 3 // the unsubscribe and preference pages of a recipient
	ReturnPath  Purpose = 4 // where bounces of a message go; see Ring.ReturnPath
)

// String is the name of a purpose, for errors.
func (p Purpose) String() string {
	switch p {
	case Open:
		return "open"
	case Click:
		return "click"
	case Unsubscribe:
		return "unsubscribe"
	case ReturnPath:
		return "return path"
	}
	return fmt.Sprintf("purpose %d", uint8(p))
}

const (
	version       = 1
	minSecret     = 16
	maxKeyID      = 15
	maxLocalPart  = 64
	defaultPrefix = "bounces+"
)

// Key signs tokens.
type Key struct {
	ID     uint8  // 0 to 15, in clear in each token; keys may share one
	Secret []byte // at least 16 random bytes
}

// KeyOf is the key of a secret, with an id that is drawn from it: whoever has the secret comes to the same id.
func KeyOf(secret []byte) Key {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("postroom stamp key id"))
	return Key{ID: h.Sum(nil)[0] & maxKeyID, Secret: secret}
}

// Options say what return paths look like. The zero value works.
type Options struct {
	Prefix string // what stands before the token of a return path; empty: "bounces+". At most 14 octets, compared without regard to case
}

// Ring makes tokens with its first key and reads those of all. It may be used by many goroutines.
type Ring struct {
	prefix string
	keys   []key // the one that signs first
}

// key is a Key, ready for use.
type key struct {
	id     uint8
	secret []byte
	nonces []byte      // makes the nonce of what is sealed
	aead   cipher.AEAD // seals
}

// New makes a Ring. The first key signs, all verify.
func New(keys []Key, o Options) (*Ring, error) {
	if o.Prefix == "" {
		o.Prefix = defaultPrefix
	}
	if longest := len(o.Prefix) + returnPathLen; longest > maxLocalPart {
		return nil, fmt.Errorf("return path prefix %q: the local part would have %d octets, at most %d are allowed", o.Prefix, longest, maxLocalPart)
	}
	if len(keys) == 0 {
		return nil, errors.New("stamps: no key")
	}
	r := &Ring{prefix: o.Prefix}
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
		return key{}, fmt.Errorf("stamp key %d: ids are 0 to %d", k.ID, maxKeyID)
	case len(k.Secret) < minSecret:
		return key{}, fmt.Errorf("stamp key %d: the secret has %d bytes, at least %d are needed", k.ID, len(k.Secret), minSecret)
	}
	derived, err := hkdf.Key(sha256.New, k.Secret, nil, "postroom stamp sealing v1", chacha20poly1305.KeySize+sha256.Size)
	if err != nil {
		return key{}, fmt.Errorf("stamp key %d: derive a key: %w", k.ID, err)
	}
	aead, err := chacha20poly1305.NewX(derived[:chacha20poly1305.KeySize])
	if err != nil {
		return key{}, fmt.Errorf("stamp key %d: make a sealing key: %w", k.ID, err)
	}
	return key{id: k.ID, secret: append([]byte(nil), k.Secret...), nonces: derived[chacha20poly1305.KeySize:], aead: aead}, nil
}

// header is the first byte of every token.
func (k key) header() byte { return version<<4 | k.id }

// mac signs content for a purpose.
func (k key) mac(p Purpose, content []byte, size int) []byte {
	h := hmac.New(sha256.New, k.secret)
	h.Write([]byte("postroom stamp v1\x00"))
	h.Write([]byte{byte(p)})
	h.Write(content)
	return h.Sum(nil)[:size]
}

// tried calls read with each key that the header of a token names, and says whether one of them could read it.
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
