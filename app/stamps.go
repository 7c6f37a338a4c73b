package app

import (
	"github.com/postroom/postroom/seal"
	"github.com/postroom/postroom/stamp"
)

// newStamps makes the keys of tracking tokens, unsubscribe pages and return paths from the secrets of the instance. Those made under an
// older secret read as long as secretPrevious has it.
func newStamps(ring *seal.Ring) (*stamp.Ring, error) {
	secrets, err := ring.DeriveAll("stamps")
	if err != nil {
		return nil, err
	}
	keys := make([]stamp.Key, len(secrets))
	for i, secret := range secrets {
		keys[i] = stamp.KeyOf(secret)
	}
	return stamp.New(keys, stamp.Options{})
}
