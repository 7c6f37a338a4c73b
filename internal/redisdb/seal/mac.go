package seal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
)

// MAC returns a code by which Verify knows that text was written by an instance with this secret for the
// record named aad. The text itself stays readable. [Ring.NeedsRotation] holds for codes, too.
func (r *Ring) MAC(text []byte, aad string) string {
	k := r.keys[0]
	return version + "." + k.id + "." + base64.RawURLEncoding.EncodeToString(k.sum(text, aad))
}

// Verify checks a code that MAC made of the same text and record. It fails with ErrUnknownKey or ErrDamaged.
func (r *Ring) Verify(code string, text []byte, aad string) error {
	err := r.verify(code, text, aad)
	if err != nil {
		r.refused.note(aad)
	}
	return err
}

func (r *Ring) verify(code string, text []byte, aad string) error {
	id, sum, err := split(code)
	if err != nil {
		return err
	}
	k, known := r.find(id)
	if !known {
		return ErrUnknownKey
	}
	got, err := base64.RawURLEncoding.Strict().DecodeString(sum)
	if err != nil || !hmac.Equal(got, k.sum(text, aad)) {
		return ErrDamaged
	}
	return nil
}

// sum returns the HMAC-SHA-256 of a text and the name of its record. The length keeps the two apart.
func (k key) sum(text []byte, aad string) []byte {
	h := hmac.New(sha256.New, k.mac)
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(aad))))
	h.Write([]byte(aad))
	h.Write(text)
	return h.Sum(nil)
}
