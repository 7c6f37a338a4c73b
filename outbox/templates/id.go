package templates

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"time"
)

// alphabet sorts as the encoded values do and omits ambiguous letters.
var alphabet = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// newID returns an id of 20 characters. Later ids sort after earlier ones, so lists are in order of creation.
func newID(now time.Time) string {
	var raw [12]byte
	binary.BigEndian.PutUint64(raw[:8], uint64(now.UnixMilli())<<16)
	_, _ = rand.Read(raw[6:]) // never fails
	return alphabet.EncodeToString(raw[:])
}
