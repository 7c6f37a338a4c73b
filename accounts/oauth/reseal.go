package oauth

import (
	"context"
	"errors"
	"fmt"
)

// resealTries bounds how often a record is read again because it changed meanwhile. A change seals it anew
// anyway.
const resealTries = 5

// Reseal seals every record under the current secret that is sealed under an older one, and returns their
// number. Any process can run it at any time, and again after a failure. A record that can't be opened is
// left as it is and named in the error; the others are still done.
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
		after, needed, err := t.ring.Renew(before, place(owner))
		if err != nil || !needed && before != "" {
			return false, err
		}
		if done, err := t.store.reseal(ctx, owner, before, after); err != nil || done || before == "" {
			return done, err
		}
	}
	return false, errors.New("it keeps changing")
}
