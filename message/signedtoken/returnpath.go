package signedtoken

import (
	"crypto/hmac"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/oklog/ulid/v2"
)

const (
	returnMacBytes = 11 // 88 bits, for want of room
	returnPathLen  = ((1+16+binary.MaxVarintLen16+returnMacBytes)*8 + 4) / 5
)

// alphabet is base32 in lower case, as RFC 4648 numbers it.
var alphabet = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// ReturnPath is the return path (MAIL FROM) of a message to one recipient, or with Whole to all of them. The domain is not checked.
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
	return r.prefix + alphabet.EncodeToString(token) + "@" + domain, nil
}

// ReadReturnPath says which message and recipient a return path stands for; whatever its domain is. The account is not in it. It fails
// with ErrForged or ErrUnknownKey.
func (r *Ring) ReadReturnPath(address string) (Stamp, error) {
	token := strings.ToLower(r.tokenOf(address))
	raw, err := alphabet.DecodeString(token)
	if err != nil || len(raw) < 1+16+1+returnMacBytes || raw[0]>>4 != version {
		return Stamp{}, ErrForged
	}
	if alphabet.EncodeToString(raw) != token { // line breaks, and bits beyond the last byte, which the decoder lets pass
		return Stamp{}, ErrForged
	}
	signed, signature := raw[:len(raw)-returnMacBytes], raw[len(raw)-returnMacBytes:]
	err = r.tried(raw[0], func(k key) bool { return hmac.Equal(signature, k.mac(ReturnPath, signed, returnMacBytes)) })
	if err != nil {
		return Stamp{}, err
	}
	recipient, n := binary.Uvarint(signed[17:])
	if n != len(signed)-17 || recipient > maxRecipient+1 {
		return Stamp{}, ErrForged
	}
	return Stamp{MessageID: ulid.ULID(signed[1:17]).String(), Recipient: int(recipient) - 1}, nil
}

// tokenOf takes prefix and domain off an address. What lacks the prefix, or is longer than any return path, has no token.
func (r *Ring) tokenOf(address string) string {
	local := strings.Trim(address, "<> ")
	if at := strings.LastIndexByte(local, '@'); at >= 0 {
		local = local[:at]
	}
	if n := len(r.prefix); len(local) <= maxLocalPart && len(local) > n && strings.EqualFold(local[:n], r.prefix) {
		return local[n:]
	}
	return ""
}
