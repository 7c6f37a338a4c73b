package emailengine

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"errors"
	"strings"

	"golang.org/x/crypto/scrypt"
)

var (
	errNoSecret    = errors.New("it is sealed, and no secret was given: --from-secret")
	errWrongSecret = errors.New("it does not open with the secret that was given: --from-secret")
	errSeal        = errors.New("it is sealed in a way that is not known")
)

// opener opens sealed secrets.
type opener struct{ secret string }

// open returns a secret in clear. One that is not sealed is returned as it is: EmailEngine seals only what
// was stored while it had a secret. A sealed one is $wd01$cipher$tag$nonce$salt$text, the last four in hex.
func (o opener) open(text string) (string, error) {
	part := strings.Split(text, "$")
	if len(part) != 7 || part[0] != "" || part[1] != "wd01" {
		return text, nil
	}
	if o.secret == "" {
		return "", errNoSecret
	}
	var raw [4][]byte // tag, nonce, salt, text
	for i := range raw {
		var err error
		if raw[i], err = hex.DecodeString(part[3+i]); err != nil {
			return "", errSeal
		}
	}
	if part[2] != "aes-256-gcm" || len(raw[0]) != 16 || len(raw[1]) != 12 || len(raw[2]) != 16 {
		return "", errSeal
	}
	key, err := scrypt.Key([]byte(o.secret), raw[2], 1<<14, 8, 1, 32)
	if err != nil {
		return "", err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return "", err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return "", err
	}
	clear, err := gcm.Open(nil, raw[1], append(raw[3], raw[0]...), nil)
	if err != nil {
		return "", errWrongSecret
	}
	return string(clear), nil
}
