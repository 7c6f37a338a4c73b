package webhooks

import (
	"cmp"
	"context"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// Patch changes the given fields of an endpoint. Absent ones stay. A new URL needs the secret and the values
// of all headers again, as for [Webhooks.Update]. Setting enabled, or a new URL, ends a switch-off by
// Postroom. It returns Conflict for an endpoint whose secrets can't be opened: use Update, which has all that
// it needs.
func (w *Webhooks) Patch(ctx context.Context, id string, p api.EndpointPatch) (api.Endpoint, error) {
	return w.change(ctx, id, func(e *endpoint, s *secrets, lost bool) (fresh bool, err error) {
		if lost {
			return false, lostSecrets()
		}
		r := e.patched(p, *s)
		if err := validate(r); err != nil {
			return false, err
		}
		return w.replace(e, s, r)
	})
}

// patched returns the request that makes an endpoint what a patch wants.
func (e endpoint) patched(p api.EndpointPatch, s secrets) api.EndpointRequest {
	r := api.EndpointRequest{URL: e.URL, Events: e.Events, Accounts: e.Accounts, RateLimit: e.RateLimit,
		Description: e.Description, Headers: make(map[string]string, len(s.Headers))}
	for name := range s.Headers {
		r.Headers[name] = masked
	}
	api.Patch(&r, p)
	return r
}

// mostOverlap is the longest time for which a replaced secret may sign, too.
const mostOverlap = 30 * 24 * time.Hour

// Rotate replaces an endpoint's secret. Only this result holds the new one. Until the overlap is over,
// requests carry a signature by each of the two. It lasts a day by default, at most 30 days; 0 ends the old
// secret now, with all that were replaced before. It returns Conflict if three replaced secrets sign already,
// and for an endpoint whose secrets can't be opened.
func (w *Webhooks) Rotate(ctx context.Context, id string, r api.SecretRotation) (api.SecretRotated, error) {
	overlap := rotation
	if r.Overlap != nil {
		overlap = time.Duration(*r.Overlap) * time.Second
	}
	var wrong fault.Fields
	if overlap < 0 || overlap > mostOverlap {
		wrong.Add("overlap", "must be 0 to 2592000 seconds")
	}
	if r.Secret != "" {
		if _, err := parseSecret(r.Secret); err != nil {
			wrong.Add("secret", "%s", err)
		}
	}
	if err := fault.InvalidFields(wrong); err != nil {
		return api.SecretRotated{}, err
	}
	secret := cmp.Or(r.Secret, newSecret())
	e, err := w.change(ctx, id, func(e *endpoint, s *secrets, lost bool) (fresh bool, err error) {
		now := w.now()
		switch {
		case lost:
			return false, lostSecrets()
		case secret == s.Secret:
			return false, fault.InvalidField("secret", "is the current secret")
		case overlap == 0:
			s.Secret, s.Older = secret, nil
		default:
			if err := s.hasRoom(now); err != nil {
				return false, err
			}
			s.replace(secret, overlap, now)
		}
		e.Updated = now.UTC().Truncate(time.Millisecond)
		return false, nil
	})
	if err != nil {
		return api.SecretRotated{}, err
	}
	w.log.Info("webhook secret replaced", "endpoint", id, "overlap", overlap)
	return api.SecretRotated{Secret: secret, OldSecretUntil: e.OldSecretUntil}, nil
}

func lostSecrets() error {
	return fault.New(fault.Conflict, "SecretsLost", "The secrets of the webhook endpoint can't be "+
		"decrypted. PUT the endpoint with its secret and all its headers")
}
