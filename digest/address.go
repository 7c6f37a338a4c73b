package digest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox/suppression"
)

// addressKey is the key of the ids of recipients who have an address, or once had it.
func addressKey(account, address string) string {
	address = strings.ToLower(address)
	return redisdb.Key(redisdb.PartitionFor(account+"\x00"+address, shards), "digest-address", account, address)
}

// noteAddress makes a recipient findable by its new address. It runs before the address is stored, so readers
// check what they find.
func (b *base) noteAddress(ctx context.Context, k readerKey, address string) error {
	if address == "" {
		return nil
	}
	err := b.DB.Client().SAdd(ctx, addressKey(k.account, address), k.id).Err()
	return redisdb.Failed(err, "note the address of %s", k)
}

// at returns the recipients of an account who have an address.
func (b *base) at(ctx context.Context, account, address string) ([]*recipient, error) {
	ids, err := b.DB.Client().SMembers(ctx, addressKey(account, address)).Result()
	if err != nil {
		return nil, redisdb.Failed(err, "look for account %q's digest recipients", account)
	}
	var all []*recipient
	for _, id := range ids {
		r, err := b.read(ctx, readerKey{account, id})
		if err != nil {
			return nil, err
		}
		if r.version != "" && strings.EqualFold(r.email, address) {
			all = append(all, r)
		}
	}
	return all, nil
}

// AccountsOf returns the accounts where a recipient has an address, or once had it.
func (r *Recipients) AccountsOf(ctx context.Context, address string, accounts []string) (having []string,
	_ error) {
	for some := range slices.Chunk(accounts, 1000) {
		pipe, has := r.DB.Client().Pipeline(), make([]*redis.IntCmd, len(some))
		for i, account := range some {
			has[i] = pipe.Exists(ctx, addressKey(account, address))
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, redisdb.Failed(err, "look for digest recipients of all accounts")
		}
		for i, account := range some {
			if has[i].Val() > 0 {
				having = append(having, account)
			}
		}
	}
	return having, nil
}

// leave turns everything off that may be, for the recipients of an account with an address: they pressed the
// button of their mail program. If they have taken that back since, it changes nothing.
func (b *base) leave(ctx context.Context, account, address string) error {
	reasons, err := b.stopping(ctx, account, []string{address}, true)
	if err != nil || reasons[0] == "" {
		return err
	}
	kinds, err := b.kinds.of(ctx, account)
	if err != nil {
		return err
	}
	return b.changeAt(ctx, account, address, func(r *recipient) { r.preferences = afterLeaving(r, kinds) })
}

// afterLeaving returns the preferences of a recipient who leaves: off, but of required kinds as they are.
// Categories without a kind are named: nothing else would show them to a reader who wants one again.
func afterLeaving(r *recipient, kinds map[string]*api.DigestKind) map[string]api.DigestPreference {
	next := map[string]api.DigestPreference{rest: {Mode: off}}
	for _, category := range known(r, kinds) {
		if k := kinds[category]; k == nil || !k.Required || len(next) > mostCategories {
			continue
		}
		for _, name := range []string{category, rest} {
			if p, ok := r.preferences[name]; ok && p.Mode != off {
				next[category] = p
				break
			}
		}
	}
	for _, category := range known(r, kinds) {
		if kinds[category] == nil && len(next) <= mostCategories {
			next[category] = api.DigestPreference{Mode: off}
		}
	}
	return next
}

// Leave does what a mail program's unsubscribe button does, for a page that did it already. It turns off what
// may be off, for an account's recipients with an address. The suppression of the list must exist.
func (r *Recipients) Leave(ctx context.Context, account, address string) error {
	return r.leave(ctx, account, address)
}

// Return gives an account's recipients with an address their defaults again, if all that may be off is off.
// If their mail is still stopped, it changes nothing.
func (r *Recipients) Return(ctx context.Context, account, address string) error {
	reasons, err := r.stopping(ctx, account, []string{address}, true)
	if err != nil || reasons[0] == left {
		return err
	}
	kinds, err := r.kinds.of(ctx, account)
	if err != nil {
		return err
	}
	return r.changeAt(ctx, account, address, func(one *recipient) {
		for category, p := range one.preferences {
			if k := kinds[category]; p.Mode != off && (k == nil || !k.Required) {
				return // a choice
			}
		}
		maps.DeleteFunc(one.preferences, func(_ string, p api.DigestPreference) bool { return p.Mode == off })
	})
}

// changeAt changes the recipients of an account with an address.
func (b *base) changeAt(ctx context.Context, account, address string, edit func(*recipient)) error {
	all, err := b.at(ctx, account, address)
	if err != nil {
		return err
	}
	for _, r := range all {
		_, err := b.change(ctx, r.readerKey, func(r *recipient) error {
			if r.version == "" {
				return errGone
			}
			edit(r)
			return nil
		})
		if err != nil && !errors.Is(err, errGone) {
			return err
		}
	}
	return nil
}

// welcome reverts a recipient's unsubscribe, if a request asks for mail that may be off.
func (b *base) welcome(ctx context.Context, r *recipient, asked map[string]*api.DigestPreference) error {
	kinds, err := b.kinds.of(ctx, r.account)
	if err != nil || r.email == "" || !wantsSome(asked, kinds) {
		return err
	}
	reasons, err := b.stopping(ctx, r.account, []string{r.email}, true)
	if err != nil || reasons[0] != left {
		return err
	}
	_, err = b.Suppressions.Remove(ctx, leftEntry(r))
	return err
}

// left is why a recipient who pressed a mail program's unsubscribe button gets no mail.
const left = "left"

var errGone = errors.New("the recipient is gone")

// leftEntry is the suppression of a recipient who left digests.
func leftEntry(r *recipient) suppression.Entry {
	return suppression.Entry{Reason: suppression.Unsubscribe, Account: r.account, List: ListID(r.account),
		Address: r.email}
}

// wantsSome reports whether preferences ask for mail that may be off. Mail of required kinds comes anyway.
func wantsSome(asked map[string]*api.DigestPreference, kinds map[string]*api.DigestKind) bool {
	for category, p := range asked {
		if k := kinds[category]; p != nil && p.Mode != off && (k == nil || !k.Required) {
			return true
		}
	}
	return false
}
