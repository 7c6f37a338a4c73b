package templates

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"time"
)

// alphabet keeps the order of what it encodes, and leaves out the letters that look like others.
var alphabet = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// newID makes an id of 20 characters. Ids made later stand later in the alphabet, so lists are in the order of creation.
func newID(now time.Time) string {
	var raw [12]byte
	binary.BigEndian.PutUint64(raw[:8], uint64(now.UnixMilli())<<16)
	_, _ = rand.Read(raw[6:]) // never fails
	return alphabet.EncodeToString(raw[:])
}
