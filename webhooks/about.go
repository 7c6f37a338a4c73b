package webhooks

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
)

// How many deliveries of a message are looked for, and how many at a time.
const (
	soughtMost = 5_000
	soughtPer  = 500
)

// DeliveriesAbout returns the deliveries of an account's events, oldest first: to the endpoints that exist,
// or with bound only to the account's endpoint. A delivery has the id of its event, so no log is read, and
// the time does not grow with the number of deliveries. If deliveries were made again, by an operator or by a
// replay, it includes the last one. Beyond 5,000 pairs of an event and an endpoint it leaves out the rest,
// and the answer is partial.
func (w *Webhooks) DeliveriesAbout(ctx context.Context, account string, bound bool, events []string) (
	api.MessageDeliveries, error) {
	var out api.MessageDeliveries
	s, err := w.dir.latest(ctx)
	if err != nil {
		return out, redisdb.Away(err)
	}
	targets, err := w.dir.implicit(ctx, s, account)
	if err != nil {
		return out, redisdb.Away(err)
	}
	if !bound {
		targets = append(slices.Clone(targets), s.list...)
	}
	var refs []ref
	for _, t := range targets {
		if bound && endpointAccount(t.id) != account || !holds(t.accounts, account) {
			continue
		}
		for _, id := range events {
			refs = append(refs, ref{Endpoint: t.id, Delivery: id})
		}
	}
	if out.Partial = len(refs) > soughtMost; out.Partial {
		refs = refs[:soughtMost]
	}
	for some := range slices.Chunk(refs, soughtPer) {
		found, err := w.withAgain(ctx, some)
		if err != nil {
			return out, redisdb.Away(err)
		}
		out.Deliveries = append(out.Deliveries, found...)
	}
	slices.SortStableFunc(out.Deliveries, func(a, b api.Delivery) int { return a.Created.Compare(b.Created) })
	return out, w.addWaits(ctx, out.Deliveries)
}

// withAgain reads first deliveries of events, and the last deliveries by which these were sent again. Missing
// ones are left out.
func (w *Webhooks) withAgain(ctx context.Context, firsts []ref) (found []api.Delivery, _ error) {
	pipe, again := w.store.client.Pipeline(), make([]*redis.StringCmd, len(firsts))
	for i, r := range firsts {
		again[i] = pipe.Get(ctx, againKey(r.Endpoint, r.Delivery))
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	refs := slices.Clone(firsts)
	for i, r := range firsts {
		id, err := again[i].Result()
		switch {
		case err == nil:
			refs = append(refs, ref{Endpoint: r.Endpoint, Delivery: id})
		case !errors.Is(err, redis.Nil):
			return nil, err
		}
	}
	records, err := w.store.read(ctx, refs...)
	for i, record := range records {
		if len(record) > 0 {
			found = append(found, showDelivery(refs[i], record))
		}
	}
	return found, err
}
