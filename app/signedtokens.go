package app

import (
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/signedtoken"
)

// newSignedTokens returns the ring for tracking tokens, unsubscribe pages and return paths, from the instance
// secrets. Tokens signed under an older secret are valid as long as secretPrevious has that secret.
func newSignedTokens(ring *seal.Ring) (*signedtoken.Ring, error) {
	secrets, err := ring.DeriveAll("signed tokens")
	if err != nil {
		return nil, err
	}
	keys := make([]signedtoken.Key, len(secrets))
	for i, secret := range secrets {
		keys[i] = signedtoken.KeyOf(secret)
	}
	return signedtoken.New(keys)
}
