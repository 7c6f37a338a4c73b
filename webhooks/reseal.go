package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

// Reseal seals the secrets of endpoints that are sealed under an older secret again under the current one,
// and returns their number. It can run at any time, also while endpoints are edited, and again after a
// failure. An endpoint that cannot be opened stays as it is and is named in the error; the others are still
// resealed.
func (w *Webhooks) Reseal(ctx context.Context) (int, error) {
	all, err := w.store.all(ctx)
	if err != nil {
		return 0, redisdb.Away(err)
	}
	changed := 0
	var failed []error
	for id, raw := range all.endpoints {
		did, err := w.resealOne(ctx, id, raw)
		if err != nil {
			failed = append(failed, fmt.Errorf("webhooks: seal the secrets of endpoint %s again: %w", id, err))
		}
		if did {
			changed++
		}
	}
	return changed, errors.Join(failed...)
}

// resealOne starts from the endpoint as it was when all were read. A concurrent edit seals it under the
// current secret anyway, unless that process does not have the current secret yet.
func (w *Webhooks) resealOne(ctx context.Context, id, raw string) (bool, error) {
	for range 5 {
		var e endpoint
		if err := json.Unmarshal([]byte(raw), &e); err != nil {
			return false, err
		}
		if !w.ring.NeedsRotation(e.Sealed) {
			return false, nil
		}
		s, err := e.open(w.ring)
		if err != nil {
			return false, err
		}
		err = w.write(ctx, raw, &e, s, false)
		if fault.CodeOf(err) != codeChanged {
			return err == nil, err
		}
		if raw, err = w.store.one(ctx, id); err != nil {
			return false, redisdb.Away(err)
		}
		if raw == "" { // it has been deleted
			return false, nil
		}
	}
	return false, errors.New("it keeps changing")
}
