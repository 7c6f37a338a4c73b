package webhooks

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"
)

const (
	secretPrefix = "whsec_"
	secretSize   = 32             // bytes of generated secrets; the specification allows 24 to 64
	rotation     = 24 * time.Hour // how long a secret that was replaced still signs, unless asked otherwise
)

// newSecret returns a new secret in the form that the Standard Webhooks libraries accept.
func newSecret() string {
	key := make([]byte, secretSize)
	rand.Read(key) // never fails: crypto/rand ends the program instead
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// parseSecret returns the key of a secret: base64 of 24 to 64 bytes after whsec_, as Standard Webhooks
// requires.
func parseSecret(secret string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(secret, secretPrefix)
	if !ok {
		return nil, errors.New("must begin with " + secretPrefix)
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, errors.New("must be base64 after " + secretPrefix)
	}
	if len(key) < 24 || len(key) > 64 {
		return nil, errors.New("must hold 24 to 64 bytes")
	}
	return key, nil
}

// maskSecret returns the form in which a secret is shown after its creation.
func maskSecret(secret string) string {
	if secret == "" {
		return ""
	}
	return secretPrefix + "******"
}

// standardSignature returns the value of webhook-signature: one v1 signature for each key, so that a
// receiver with only the old or only the new secret finds a valid one (Standard Webhooks 1.0, "Signature
// scheme").
func standardSignature(id string, at time.Time, body []byte, keys [][]byte) string {
	var b strings.Builder
	for i, key := range keys {
		if i > 0 {
			b.WriteByte(' ')
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
		mac.Write(body)
		b.WriteString("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return b.String()
}

// serviceSignature returns the value of X-EE-Wh-Signature: unpadded base64url of the HMAC-SHA256 of the
// body, as EmailEngine signs.
func serviceSignature(body []byte, secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
