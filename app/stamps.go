package app

import (
	"github.com/postroom/postroom/message/signedtoken"
	"github.com/postroom/postroom/redisdb/seal"
)

// newStamps makes the keys of tracking tokens, unsubscribe pages and return paths from the secrets of the instance. Those made under an
// older secret read as long as secretPrevious has it.
func newStamps(ring *seal.Ring) (*signedtoken.Ring, error) {
	secrets, err := ring.DeriveAll("stamps")
	if err != nil {
		return nil, err
	}
	keys := make([]signedtoken.Key, len(secrets))
	for i, secret := range secrets {
		keys[i] = signedtoken.KeyOf(secret)
	}
	return signedtoken.New(keys, signedtoken.Options{})
}
