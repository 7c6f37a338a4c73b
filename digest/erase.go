package digest

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox"
)

// List returns recipients of an account, in the order of their ids. The cursor is the last id of the page
// before.
func (r *Recipients) List(ctx context.Context, bound string, q api.DigestRecipientQuery) (
	api.DigestRecipientPage, error) {
	page := api.DigestRecipientPage{Recipients: []api.DigestRecipient{}}
	account, err := r.requestAccount(ctx, bound, q.Account)
	if err != nil {
		return page, err
	}
	size := min(cmp.Or(max(0, q.PageSize), 20), 1000)
	search := strings.ToLower(q.Search)
	for last := q.Cursor; ; {
		ids, more, err := r.ids(ctx, account, last, size)
		if err != nil {
			return page, err
		}
		for _, id := range ids {
			last = id
			one, err := r.read(ctx, readerKey{account, id})
			if err != nil {
				return page, err
			}
			if one.version == "" || search != "" && !strings.Contains(strings.ToLower(one.id), search) &&
				!strings.Contains(strings.ToLower(one.email), search) {
				continue
			}
			if len(page.Recipients) == size {
				return page, nil
			}
			shown, err := r.show(ctx, one)
			if err != nil {
				return page, err
			}
			page.Recipients = append(page.Recipients, shown)
			page.Cursor = id
		}
		if !more {
			page.Cursor = ""
			return page, nil
		}
	}
}

// ids returns ids of recipients after one, in order. more is false if there are no others.
func (b *base) ids(ctx context.Context, account, after string, most int) (ids []string, more bool, _ error) {
	from := "-"
	if after != "" {
		from = "(" + after
	}
	pipe := b.DB.Client().Pipeline()
	var parts [shards]*redis.StringSliceCmd
	for shard := range shards {
		parts[shard] = pipe.ZRangeByLex(ctx, recipientsKey(shard, account), &redis.ZRangeBy{Min: from, Max: "+",
			Count: int64(most) + 1})
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, false, redisdb.Failed(err, "list account %q's digest recipients", account)
	}
	for _, part := range parts {
		ids = append(ids, part.Val()...)
	}
	slices.Sort(ids)
	more = len(ids) > most
	return ids[:min(len(ids), most+1)], more, nil
}

// Delete deletes a recipient with all waiting events and runs, or returns NotFound. Mail that the outbox has
// is sent.
func (r *Recipients) Delete(ctx context.Context, bound string, q api.DigestAccount, id string) error {
	one, err := r.find(ctx, bound, q.Account, id)
	if err != nil {
		return err
	}
	return r.forget(ctx, one.readerKey)
}

// forget deletes a recipient, whatever workers do with it at the same time.
func (b *base) forget(ctx context.Context, k readerKey) error {
	for range mostTries {
		one, err := b.read(ctx, k)
		if err != nil {
			return err
		}
		gone, err := b.tryForget(ctx, one)
		if err != nil || gone {
			return err
		}
	}
	return fault.New(fault.Unavailable, "", "the digests of %s keep changing and couldn't be deleted. Try "+
		"again", k)
}

// tryForget is one try of forget. gone is false if something came in between.
func (b *base) tryForget(ctx context.Context, one *recipient) (gone bool, _ error) {
	kinds, err := b.kinds.of(ctx, one.account)
	if err != nil {
		return false, err
	}
	runs, err := b.DB.Client().ZRange(ctx, one.runs(), 0, -1).Result()
	if err != nil {
		return false, redisdb.Failed(err, "list the runs of %s", one.readerKey)
	}
	for _, id := range runs {
		if err := b.forgetRun(ctx, one, id); err != nil {
			return false, err
		}
	}
	today := today(b.opts.Now())
	keys := []string{one.key(), recipientsKey(one.shard(), one.account), dueKey(one.shard()), one.runs(),
		one.known(today + 1), one.known(today), one.known(today - 1), one.known(today - 2)}
	for _, category := range one.categories {
		keys = append(keys, one.events(category))
	}
	members := b.opts.members(one, kinds)
	for schedule := range one.old {
		members = append(members, entry{one.readerKey, schedule}.member())
	}
	if one.email != "" {
		if err := b.DB.Client().SRem(ctx, addressKey(one.account, one.email), one.id).Err(); err != nil {
			return false, redisdb.Failed(err, "forget the address of %s", one.readerKey)
		}
	}
	answer, err := forgetScript.RunReplicated(ctx, b.DB, keys, forgetArgs{ID: one.id,
		Categories: len(one.categories), Members: members})
	return answer.Word == "GONE", redisdb.Failed(err, "forget %s", one.readerKey)
}

// forgetRun deletes a run of a recipient.
func (b *base) forgetRun(ctx context.Context, one *recipient, id string) error {
	key, ok := runKey(id)
	if !ok {
		return nil
	}
	pipe := b.DB.Client().Pipeline()
	pipe.Del(ctx, key)
	for i := range 2 * (mostCategories + 1) {
		taken := takenKey(id, i)
		pipe.Del(ctx, taken, taken+olderPart, taken+":actors")
	}
	for _, state := range states {
		pipe.ZRem(ctx, runsKey(one.shard(), one.account)+":"+state, id)
	}
	pipe.ZRem(ctx, openKey(one.shard()), "run "+id)
	pipe.HDel(ctx, fencesKey(one.shard()), "run "+id)
	pipe.ZRem(ctx, one.runs(), id)
	_, err := pipe.Exec(ctx)
	return redisdb.Failed(err, "forget run %s", id)
}

// Erase deletes the recipients of an account with the address of a person. It returns how many there were.
func (r *Recipients) Erase(ctx context.Context, w outbox.Whom) (recipients int, _ error) {
	all, err := r.at(ctx, w.Account, w.Address())
	if err != nil {
		return 0, err
	}
	for _, one := range all {
		if err := r.forget(ctx, one.readerKey); err != nil {
			return recipients, err
		}
		recipients++
	}
	err = r.DB.Client().Del(ctx, addressKey(w.Account, w.Address())).Err()
	return recipients, redisdb.Failed(err, "forget an address")
}

// Personal calls do with each recipient of an account who has a person's address, and the recipient's waiting
// events.
func (r *Recipients) Personal(ctx context.Context, w outbox.Whom, do func(api.PersonalDigest) error) error {
	all, err := r.at(ctx, w.Account, w.Address())
	if err != nil {
		return err
	}
	for _, one := range all {
		q := api.DigestAccount{Account: w.Account}
		shown, err := r.Get(ctx, "", q, one.id)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return err
		}
		waits, err := r.Waiting(ctx, "", q, one.id)
		if err != nil {
			return err
		}
		runs, err := (&Runs{r.base}).List(ctx, "", api.DigestRunQuery{Account: w.Account, Recipient: one.id,
			CursorQuery: api.CursorQuery{PageSize: 1000}})
		if err != nil {
			return err
		}
		if err := do(api.PersonalDigest{DigestRecipient: shown, Events: waits.Events,
			Runs: runs.Runs}); err != nil {
			return err
		}
	}
	return nil
}
