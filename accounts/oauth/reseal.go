package oauth

import (
	"context"
	"errors"
	"fmt"
)

// resealTries bounds how often a record that changes meanwhile is looked at again. Whoever changes it seals it anew anyway.
const resealTries = 5

// Reseal seals again, under the current secret, every record that is sealed under an older one, and gives their number. It can be run at
// any time, by any process, and again after a failure. A record that can't be opened is left as it is and told in the error; the others are
// still done.
func (t *Tokens) Reseal(ctx context.Context) (int, error) {
	owners, err := t.store.all(ctx)
	if err != nil {
		return 0, fmt.Errorf("oauth: %w", err)
	}
	changed := 0
	var failed []error
	for _, owner := range owners {
		did, err := t.resealOne(ctx, owner)
		if err != nil {
			failed = append(failed, fmt.Errorf("oauth: seal the token of %s again: %w", owner, err))
		}
		if did {
			changed++
		}
	}
	return changed, errors.Join(failed...)
}

func (t *Tokens) resealOne(ctx context.Context, owner string) (bool, error) {
	for range resealTries {
		before, err := t.store.get(ctx, owner)
		if err != nil {
			return false, err
		}
		after := ""
		if before != "" {
			if !t.ring.NeedsRotation(before) {
				return false, nil
			}
			plain, err := t.ring.Open(before, place(owner))
			if err != nil {
				return false, err
			}
			after = t.ring.Seal(plain, place(owner))
		}
		if done, err := t.store.reseal(ctx, owner, before, after); err != nil || done || before == "" {
			return done, err
		}
	}
	return false, errors.New("it keeps changing")
}
