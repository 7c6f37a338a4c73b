package signedtoken

import (
	"crypto/hmac"
	"encoding/base32"
	"fmt"
	"strings"

	"github.com/oklog/ulid/v2"
)

const (
	tagBytes    = 4  // for the account, and for the recipient
	sentMac     = 10 // 80 bits: a return path has no room for more
	proofBytes  = 1 + 2*tagBytes + sentMac
	returnBytes = 16 + proofBytes
	proofMark   = "-" // between the id and the rest of a proof
)

// alphabet is the base32 alphabet of RFC 4648 in lower case.
var alphabet = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Sent is the content of a verified return path or proof. It names a message, and shows whether it was a
// given account's and went to a given address.
type Sent struct {
	MessageID string
	Whole     bool // the message had several recipients, and To is false for all addresses

	account, address [tagBytes]byte
	key              key
}

// Of reports whether the message was sent by an account.
func (s Sent) Of(account string) bool {
	return s.MessageID != "" && s.account == s.key.tag('a', account)
}

// To reports whether the message went to an address, and to no other. Case is ignored; the domain is
// compared in the form it was signed in.
func (s Sent) To(address string) bool {
	return s.MessageID != "" && !s.Whole && s.address == s.key.tag('r', strings.ToLower(address))
}

// tag is a keyed hash of an account or an address. 32 bits are enough: without the key no one can search for
// a text with a given tag.
func (k key) tag(kind byte, text string) (tag [tagBytes]byte) {
	copy(tag[:], k.macs.sum(func(to []byte) []byte {
		return append(append(append(to, "postroom tag v1\x00"...), kind), text...)
	}))
	return tag
}

// ReturnPath is the return path (MAIL FROM) of a message: to Token.Address, or to several recipients if that
// is empty. It uses MessageID, Account and Address of the token. domain is not checked.
func (r *Ring) ReturnPath(about Token, domain string) (string, error) {
	id, rest, err := r.sent(ReturnPath, about)
	if err != nil {
		return "", fmt.Errorf("return path of message %q: %w", about.MessageID, err)
	}
	return Prefix + alphabet.EncodeToString(append(id, rest...)) + "@" + domain, nil
}

// Proof is a text that a message carries, as the local part of its Message-ID or as metadata for a provider.
// It begins with the id of the message and proves the same as a return path.
func (r *Ring) Proof(about Token) (string, error) {
	_, rest, err := r.sent(Proof, about)
	if err != nil {
		return "", fmt.Errorf("proof of message %q: %w", about.MessageID, err)
	}
	return strings.ToLower(about.MessageID) + proofMark + alphabet.EncodeToString(rest), nil
}

// sent signs a message, its account and its recipient. The id and the rest together are the token.
func (r *Ring) sent(p Purpose, about Token) (id, rest []byte, err error) {
	parsed, err := ulid.ParseStrict(about.MessageID)
	if err != nil {
		return nil, nil, err
	}
	k, address := r.keys[0], [tagBytes]byte{}
	if about.Address != "" {
		address = k.tag('r', strings.ToLower(about.Address))
	}
	account := k.tag('a', about.Account)
	rest = append(make([]byte, 0, proofBytes), k.header())
	rest = append(append(rest, account[:]...), address[:]...)
	rest = append(rest, k.mac(p, append(parsed[:], rest...), sentMac)...)
	return parsed[:], rest, nil
}

// ReadReturnPath verifies a return path. The domain is ignored. It fails with ErrForged or ErrUnknownKey.
func (r *Ring) ReadReturnPath(address string) (Sent, error) {
	raw, err := decoded(tokenOf(address), returnBytes)
	if err != nil {
		return Sent{}, err
	}
	return r.readSent(ReturnPath, ulid.ULID(raw[:16]), raw[16:])
}

// ReadProof verifies a proof: a text, or the Message-ID that has it as its local part. It fails with
// ErrForged or ErrUnknownKey.
func (r *Ring) ReadProof(text string) (Sent, error) {
	local, _, _ := strings.Cut(strings.Trim(text, "<> "), "@")
	name, rest, _ := strings.Cut(local, proofMark)
	id, err := ulid.ParseStrict(strings.ToUpper(name))
	if err != nil {
		return Sent{}, ErrForged
	}
	raw, err := decoded(rest, proofBytes)
	if err != nil {
		return Sent{}, err
	}
	return r.readSent(Proof, id, raw)
}

func (r *Ring) readSent(p Purpose, id ulid.ULID, rest []byte) (Sent, error) {
	if rest[0]>>4 != version {
		return Sent{}, ErrForged
	}
	s := Sent{MessageID: id.String()}
	signed, signature := rest[:len(rest)-sentMac], rest[len(rest)-sentMac:]
	err := r.tried(rest[0], func(k key) bool {
		s.key = k
		return hmac.Equal(signature, k.mac(p, append(id[:], signed...), sentMac))
	})
	if err != nil {
		return Sent{}, err
	}
	copy(s.account[:], signed[1:])
	copy(s.address[:], signed[1+tagBytes:])
	s.Whole = s.address == [tagBytes]byte{}
	return s, nil
}

// decoded decodes base32 text of a number of bytes, in either case.
func decoded(text string, size int) ([]byte, error) {
	text = strings.ToLower(text)
	if len(text) != alphabet.EncodedLen(size) {
		return nil, ErrForged
	}
	raw, err := alphabet.DecodeString(text)
	// the decoder accepts line breaks, and bits beyond the last byte
	if err != nil || len(raw) != size || alphabet.EncodeToString(raw) != text {
		return nil, ErrForged
	}
	return raw, nil
}

// tokenOf removes prefix and domain from an address. It is "" if the prefix is missing.
func tokenOf(address string) string {
	local := strings.Trim(address, "<> ")
	if at := strings.LastIndexByte(local, '@'); at >= 0 {
		local = local[:at]
	}
	if n := len(Prefix); len(local) > n && strings.EqualFold(local[:n], Prefix) {
		return local[n:]
	}
	return ""
}
