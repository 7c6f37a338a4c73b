package oauth

import (
	"context"
	"errors"
	"fmt"
)

// resealTries bounds the attempts at a record that others change. A change seals it with the current secret.
const resealTries = 5

// Reseal seals records again, under the current secret, that are sealed under an older one, and returns their
// number. Any process can run it at any time, and again after a failure. A record that can't be opened stays
// as it is, and the error names it after the others are done.
func (t *Tokens) Reseal(ctx context.Context) (int, error) {
	owners, err := t.store.client.SMembers(ctx, ownersKey()).Result()
	if err != nil {
		return 0, fmt.Errorf("oauth: list the owners of tokens: %w", err)
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
