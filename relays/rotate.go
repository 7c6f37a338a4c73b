package relays

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/postroom/postroom/fault"
)

// resealPage is how many gateways are looked at with one command.
const resealPage = 500

// Reseal seals anew, under the current secret of the instance, what was sealed under an older one, and says how many gateways that
// changed. Changes by others at the same time are safe, and running it again does no harm. Gateways that don't open are left as they are
// and named by the error, after all others were done.
func (r *Relays) Reseal(ctx context.Context) (int, error) {
	n := 0
	var failed []error
	for last := ""; ; {
		ids, err := r.store.records.After(ctx, last, resealPage)
		if err != nil {
			return n, away(err, "list gateways")
		}
		for _, id := range ids {
			done, err := r.resealOne(ctx, id)
			switch {
			case fault.Is(err, fault.Unavailable):
				return n, err
			case err != nil:
				failed = append(failed, err)
			case done:
				n++
			}
		}
		if len(ids) < resealPage {
			break
		}
		last = ids[len(ids)-1]
	}
	if n > 0 {
		r.routes.Clear()
	}
	return n, errors.Join(failed...)
}

// resealOne seals one gateway anew if it needs that, and reports whether it did.
func (r *Relays) resealOne(ctx context.Context, id string) (bool, error) {
	for range putTries {
		old, err := r.store.load(ctx, id)
		if err != nil || old == nil {
			return false, wrapAway(err, "load gateway %s", id)
		}
		settings := ofGateway(old.Gateway)
		needed, err := settings.Secrets().Reseal(r.ring, record(id))
		if err != nil || !needed {
			return false, err
		}
		next := &stored{Gateway: settings.intoGateway(old.Gateway), Created: old.Created, Updated: old.Updated, revision: rand.Text()}
		done, err := r.store.reseal(ctx, next, old)
		if err != nil || done {
			return done, wrapAway(err, "store gateway %s", id)
		}
	}
	return false, fault.New(fault.Conflict, "GatewayChanged", "Gateway %s is being changed by others; try again", id)
}

// wrapAway is away for an error that may be none.
func wrapAway(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return away(err, format, args...)
}
