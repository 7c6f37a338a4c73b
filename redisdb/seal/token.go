package seal

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
)

// Token makes a new secret of 32 random bytes as 43 characters that are safe in URLs and headers.
func Token() string {
	var b [32]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the program first
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// HashToken is how a token is stored and looked up: its SHA-256 in hex. A plain hash is enough because nobody
// can guess 32 random bytes; passwords that people choose need a slow one.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// SameToken reports whether a token has the given hash, taking as long for a near miss as for a far one.
func SameToken(token, hash string) bool {
	return subtle.ConstantTimeCompare([]byte(HashToken(token)), []byte(hash)) == 1
}
