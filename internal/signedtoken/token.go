package signedtoken

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/oklog/ulid/v2"
	"golang.org/x/crypto/chacha20poly1305"
)

const (
	macBytes = 16
	// maxToken is the longest text that Read accepts.
	maxToken = (1 + 24 + 16 + 4*binary.MaxVarintLen32 + 2*maxName + MaxURL + 16) * 4 / 3
)

// Sign writes a token of a purpose other than ReturnPath and Proof as text for a URL: base64url without
// padding. It fails if the token lacks a required message, has fields of another purpose, or exceeds a limit.
// If the target of a Click is longer than MaxURL, leave the link as it is.
func (r *Ring) Sign(p Purpose, s Token) (string, error) {
	body, err := write(p, s)
	if err != nil {
		return "", fmt.Errorf("%s token of message %q: %w", p, s.MessageID, err)
	}
	k := r.keys[0]
	if p.sealed() {
		return base64.RawURLEncoding.EncodeToString(k.seal(p, body)), nil
	}
	token := append(make([]byte, 0, 1+len(body)+macBytes), k.header())
	token = append(token, body...)
	token = append(token, k.mac(p, token, macBytes)...)
	return base64.RawURLEncoding.EncodeToString(token), nil
}

// Read verifies a token's text for one purpose and returns its content. It fails with ErrForged,
// ErrUnknownKey or ErrPreview.
func (r *Ring) Read(p Purpose, token string) (Token, error) {
	s, err := r.readAs(p, token)
	if errors.Is(err, ErrForged) && p != Preview {
		if _, other := r.readAs(Preview, token); other == nil {
			err = ErrPreview
		}
	}
	return s, err
}

func (r *Ring) readAs(p Purpose, token string) (Token, error) {
	if len(token) > maxToken || strings.ContainsAny(token, "\r\n") { // the decoder would skip line breaks
		return Token{}, ErrForged
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(raw) < 1+macBytes || raw[0]>>4 != version {
		return Token{}, ErrForged
	}
	var body []byte
	err = r.tried(raw[0], func(k key) (ok bool) {
		if p.sealed() {
			body, ok = k.open(p, raw)
			return ok
		}
		signed, signature := raw[:len(raw)-macBytes], raw[len(raw)-macBytes:]
		body = signed[1:]
		return hmac.Equal(signature, k.mac(p, signed, macBytes))
	})
	if err != nil {
		return Token{}, err
	}
	return read(p, body)
}

// seal encrypts a body with a nonce made of it. Equal bodies give equal tokens; different bodies never share
// a nonce.
func (k key) seal(p Purpose, body []byte) []byte {
	nonce := k.nonces.sum(func(to []byte) []byte { return append(append(to, k.about(p)...), body...) })
	const size = chacha20poly1305.NonceSizeX
	token := make([]byte, 1+size, 1+size+len(body)+chacha20poly1305.Overhead)
	token[0] = k.header()
	copy(token[1:], nonce[:size])
	return k.aead.Seal(token, token[1:], body, k.about(p))
}

func (k key) open(p Purpose, token []byte) (body []byte, ok bool) {
	const size = chacha20poly1305.NonceSizeX
	if len(token) < 1+size {
		return nil, false
	}
	body, err := k.aead.Open(nil, token[1:1+size], token[1+size:], k.about(p))
	return body, err == nil
}

// sealed reports whether tokens of the purpose are sealed, not only signed.
func (p Purpose) sealed() bool { return p == Unsubscribe || p == Sender || p == Confirm }

// about returns what a sealed token is bound to in addition to its body: its header, and its purpose.
// Unsubscribe was the only purpose once, and its tokens are good for years.
func (k key) about(p Purpose) []byte {
	if p == Unsubscribe {
		return []byte{k.header()}
	}
	return []byte{k.header(), byte(p)}
}

// write encodes the body of a token: the message, the recipient counted from 1, and the texts of the purpose.
func write(p Purpose, s Token) ([]byte, error) {
	var id ulid.ULID
	if s.MessageID != "" || p != Unsubscribe {
		var err error
		if id, err = ulid.ParseStrict(s.MessageID); err != nil {
			return nil, err
		}
	}
	switch {
	case p == ReturnPath || p == Proof || p < Open || p > Confirm:
		return nil, fmt.Errorf("%s isn't a purpose for a token in a URL", p)
	case s.Recipient < Whole || s.Recipient > maxRecipient:
		return nil, fmt.Errorf("there is no recipient %d", s.Recipient)
	case len(s.Account) > maxName || len(s.List) > maxName || len(s.Address) > maxName:
		return nil, fmt.Errorf("an account, list or address of more than %d bytes", maxName)
	case (s.URL != "") != (p == Click):
		return nil, fmt.Errorf("a click, and nothing else, has a target")
	case len(s.URL) > MaxURL:
		return nil, fmt.Errorf("a target of %d bytes, at most %d are possible", len(s.URL), MaxURL)
	case !p.sealed() && (s.List != "" || s.Address != ""):
		return nil, fmt.Errorf("only sealed tokens have a list or an address")
	}
	body := make([]byte, 0, len(id)+4*binary.MaxVarintLen32+len(s.Account)+len(s.URL)+len(s.List)+len(s.Address))
	body = append(body, id[:]...)
	body = binary.AppendUvarint(body, uint64(s.Recipient+1))
	for _, text := range s.texts(p) {
		body = binary.AppendUvarint(body, uint64(len(*text)))
		body = append(body, *text...)
	}
	return body, nil
}

// read is the reverse of write. A body that can't be decoded was not written by us, even if its signature is
// right.
func read(p Purpose, body []byte) (Token, error) {
	var s Token
	if len(body) < len(ulid.ULID{}) {
		return Token{}, ErrForged
	}
	id, rest := ulid.ULID(body[:16]), body[16:]
	if !id.IsZero() {
		s.MessageID = id.String()
	}
	recipient, n := binary.Uvarint(rest)
	if n <= 0 || recipient > maxRecipient+1 {
		return Token{}, ErrForged
	}
	s.Recipient, rest = int(recipient)-1, rest[n:]
	for _, text := range s.texts(p) {
		size, n := binary.Uvarint(rest)
		if n <= 0 || size > uint64(len(rest)-n) {
			return Token{}, ErrForged
		}
		*text, rest = string(rest[n:n+int(size)]), rest[n+int(size):]
	}
	if len(rest) > 0 {
		return Token{}, ErrForged
	}
	return s, nil
}

// texts are the text fields of a token of the purpose, in encoding order.
func (s *Token) texts(p Purpose) []*string {
	switch p {
	case Click:
		return []*string{&s.Account, &s.URL}
	case Unsubscribe, Confirm:
		return []*string{&s.Account, &s.List, &s.Address}
	case Sender:
		return []*string{&s.Account, &s.Address}
	}
	return []*string{&s.Account}
}
