package signedtoken

import (
	"crypto/hmac"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/oklog/ulid/v2"
)

const returnMacBytes = 11 // 88 bits, for want of room

// alphabet is the base32 alphabet of RFC 4648 in lower case.
var alphabet = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// ReturnPath is the return path (MAIL FROM) of a message for one recipient, or with Whole for all. domain is
// not checked.
func (r *Ring) ReturnPath(messageID string, recipient int, domain string) (string, error) {
	id, err := ulid.ParseStrict(messageID)
	if err != nil {
		return "", fmt.Errorf("return path of message %q: %w", messageID, err)
	}
	if recipient < Whole || recipient > maxRecipient {
		return "", fmt.Errorf("return path of message %s: there is no recipient %d", messageID, recipient)
	}
	k := r.keys[0]
	token := make([]byte, 0, 1+len(id)+binary.MaxVarintLen16+returnMacBytes)
	token = append(token, k.header())
	token = append(token, id[:]...)
	token = binary.AppendUvarint(token, uint64(recipient+1))
	token = append(token, k.mac(ReturnPath, token, returnMacBytes)...)
	return Prefix + alphabet.EncodeToString(token) + "@" + domain, nil
}

// ReadReturnPath verifies a return path and returns its message and recipient. The domain is ignored. The
// account is not part of it. It fails with ErrForged or ErrUnknownKey.
func (r *Ring) ReadReturnPath(address string) (Token, error) {
	token := strings.ToLower(r.tokenOf(address))
	raw, err := alphabet.DecodeString(token)
	if err != nil || len(raw) < 1+16+1+returnMacBytes || raw[0]>>4 != version {
		return Token{}, ErrForged
	}
	if alphabet.EncodeToString(raw) != token { // the decoder accepts line breaks, and bits beyond the last byte
		return Token{}, ErrForged
	}
	signed, signature := raw[:len(raw)-returnMacBytes], raw[len(raw)-returnMacBytes:]
	err = r.tried(raw[0], func(k key) bool {
		return hmac.Equal(signature, k.mac(ReturnPath, signed, returnMacBytes))
	})
	if err != nil {
		return Token{}, err
	}
	recipient, n := binary.Uvarint(signed[17:])
	if n != len(signed)-17 || recipient > maxRecipient+1 {
		return Token{}, ErrForged
	}
	return Token{MessageID: ulid.ULID(signed[1:17]).String(), Recipient: int(recipient) - 1}, nil
}

// tokenOf removes prefix and domain from an address. It is "" if the prefix is missing or the address is too
// long.
func (r *Ring) tokenOf(address string) string {
	local := strings.Trim(address, "<> ")
	if at := strings.LastIndexByte(local, '@'); at >= 0 {
		local = local[:at]
	}
	if n := len(Prefix); len(local) <= maxLocalPart && len(local) > n &&
		strings.EqualFold(local[:n], Prefix) {
		return local[n:]
	}
	return ""
}
