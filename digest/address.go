package digest

import (
	"context"
	"errors"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/suppression"
)

// addressKey is the key of the ids of recipients who have an address, or once had it.
func addressKey(account, address string) string {
	address = strings.ToLower(address)
	return redisdb.Key(redisdb.PartitionFor(account+"\x00"+address, shards), "digest-address", account, address)
}

// noteAddress lets a recipient be found by an address that it gets. It comes before the address is stored, so
// what is found is looked at again.
func (b *base) noteAddress(ctx context.Context, p place, address string) error {
	if address == "" {
		return nil
	}
	err := b.DB.Client().SAdd(ctx, addressKey(p.account, address), p.id).Err()
	return redisdb.Failed(err, "note the address of %s", p)
}

// at returns the recipients of an account who have an address.
func (b *base) at(ctx context.Context, account, address string) ([]*recipient, error) {
	ids, err := b.DB.Client().SMembers(ctx, addressKey(account, address)).Result()
	if err != nil {
		return nil, redisdb.Failed(err, "look for recipients of digests of account %q", account)
	}
	var all []*recipient
	for _, id := range ids {
		r, err := b.read(ctx, place{account, id})
		if err != nil {
			return nil, err
		}
		if r.version != "" && strings.EqualFold(r.email, address) {
			all = append(all, r)
		}
	}
	return all, nil
}

// leave turns everything off that may be, for the recipients of an account with an address: they pressed the
// button of their mail program.
func (b *base) leave(ctx context.Context, account, address string) error {
	all, err := b.at(ctx, account, address)
	if err != nil {
		return err
	}
	for _, r := range all {
		_, err := b.change(ctx, r.place, func(r *recipient) error {
			if r.version == "" {
				return errGone
			}
			r.preferences = map[string]api.DigestPreference{rest: {Mode: off}}
			return nil
		})
		if err != nil && !errors.Is(err, errGone) {
			return err
		}
	}
	return nil
}

// welcome takes back that a recipient left, if it wants mail again.
func (b *base) welcome(ctx context.Context, r *recipient) error {
	if r.email == "" || !wantsSome(r) {
		return nil
	}
	reasons, err := b.stopping(ctx, r.account, []string{r.email}, true)
	if err != nil || reasons[0] != left {
		return err
	}
	_, err = b.Suppressions.Remove(ctx, leftEntry(r))
	return err
}

// left is why a recipient is not mailed who pressed the button of a mail program.
const left = "left"

var errGone = errors.New("the recipient is gone")

// leftEntry is the suppression of a recipient who left digests.
func leftEntry(r *recipient) suppression.Entry {
	return suppression.Entry{Reason: suppression.Unsubscribe, Account: r.account, List: ListID(r.account),
		Address: r.email}
}

// wantsSome reports whether a recipient chose anything but off.
func wantsSome(r *recipient) bool {
	for _, p := range r.preferences {
		if p.Mode != off {
			return true
		}
	}
	return false
}
