package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
)

const (
	restShown = time.Minute // how long a finished pause is still shown, because one request probes it
	wakeMost  = 100         // deliveries that are made due when a rest is ended
	wakeRead  = 500         // newest deliveries among which they are looked for
)

// rest is the record of an endpoint's pause, for pages and the API. The breaker does not read it.
type rest struct {
	api.EndpointRest
	URL string `json:"url"`
}

// noteRest records that an endpoint is paused, or works again. A failure is logged: the record is only shown
// on pages, and it expires.
func (w *Webhooks) noteRest(ctx context.Context, t *target, next turn, failure error) {
	if next.rests.IsZero() && !next.recovers {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	var err error
	if next.recovers {
		err = w.store.client.Del(ctx, restKey(t.id)).Err()
	} else {
		r := rest{URL: t.url, EndpointRest: api.EndpointRest{Until: next.rests.UTC().Truncate(time.Millisecond),
			Failures: next.failures}}
		if failure != nil {
			r.Error = message.Clip(printable(failure.Error()), 1024)
		}
		var raw []byte
		if raw, err = json.Marshal(r); err == nil {
			err = w.store.client.Set(ctx, restKey(t.id), raw, next.rests.Sub(w.now())+restShown).Err()
		}
	}
	if err != nil {
		w.log.Warn("can't note the rest of a webhook endpoint", "endpoint", t.id, "error", err)
	}
}

// Resting returns the pause of an endpoint, or nil. Its Until may have passed: then one request asks the
// endpoint, and the others wait for its answer.
func (w *Webhooks) Resting(ctx context.Context, endpoint string) (*api.EndpointRest, error) {
	t, err := w.exists(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	found, err := w.store.rests(ctx, endpoint)
	if err != nil {
		return nil, redisdb.Away(err)
	}
	if r, ok := found[endpoint]; ok && r.URL == t.url {
		return &r.EndpointRest, nil
	}
	return nil, nil
}

// addWaits shows the endpoint pauses that deliveries wait for.
func (w *Webhooks) addWaits(ctx context.Context, all []api.Delivery) error {
	var ids []string
	for _, d := range all {
		if d.Status == statusPending && !slices.Contains(ids, d.Endpoint) {
			ids = append(ids, d.Endpoint)
		}
	}
	found, err := w.store.rests(ctx, ids...)
	if err != nil || len(found) == 0 {
		return redisdb.Away(err)
	}
	for id, r := range found {
		t, err := w.dir.find(ctx, id)
		if err != nil {
			return redisdb.Away(err)
		}
		if t == nil || t.off != "" || t.url != r.URL {
			continue
		}
		for i := range all {
			d := &all[i]
			if d.Endpoint != id || d.Status != statusPending || d.NextAttempt.Time.After(r.Until) {
				continue // its own next attempt is later
			}
			d.WaitsUntil = &r.Until
			if r.Until.After(w.now()) {
				d.NextAttempt = api.TimeOrFalse{Time: &r.Until}
			}
		}
	}
	return nil
}

// Off returns why an endpoint is off; empty if it is on.
func (w *Webhooks) Off(ctx context.Context, endpoint string) (string, error) {
	t, err := w.exists(ctx, endpoint)
	if err != nil {
		return "", err
	}
	return t.off, nil
}

// Wake ends an endpoint's pause in all processes, and makes up to 100 of its waiting deliveries due. It takes
// a second, until each process has seen it. If the endpoint still fails, it is paused again. It returns
// Conflict for an endpoint that is switched off.
func (w *Webhooks) Wake(ctx context.Context, endpoint string) (api.EndpointWoken, error) {
	if err := w.active(ctx, endpoint); err != nil {
		return api.EndpointWoken{}, err
	}
	if err := w.store.wake(ctx, endpoint, newID()); err != nil {
		return api.EndpointWoken{}, redisdb.Away(err)
	}
	w.dir.reload(ctx)
	if !redisdb.Pause(ctx, freshFor) { // a task that another process runs earlier would still be held
		return api.EndpointWoken{}, ctx.Err()
	}
	var tasks []string
	for page := 0; page*searchedPer < wakeRead && len(tasks) < wakeMost; page++ {
		got, err := w.Deliveries(ctx, endpoint, page, searchedPer)
		if err != nil {
			return api.EndpointWoken{}, err
		}
		for _, d := range got.Deliveries {
			if d.Status == statusPending && len(tasks) < wakeMost {
				tasks = append(tasks, ref{Endpoint: endpoint, Delivery: d.ID}.taskID())
			}
		}
	}
	var woken api.EndpointWoken
	for _, err := range w.runNow(ctx, queue.Notify, tasks...) {
		if err == nil { // others run already, or have ended
			woken.Woken++
		}
	}
	return woken, nil
}

// wake ends an endpoint's pause: every process obeys each new request once.
func (s store) wake(ctx context.Context, endpoint, request string) error {
	pipe := s.client.TxPipeline()
	pipe.HSet(ctx, wokenKey(), endpoint, request)
	pipe.Del(ctx, restKey(endpoint))
	pipe.Incr(ctx, versionKey())
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("end the rest of webhook endpoint %s: %w", endpoint, err)
	}
	return nil
}

// rests reads the pauses of endpoints; endpoints that aren't paused are missing.
func (s store) rests(ctx context.Context, endpoints ...string) (map[string]rest, error) {
	found := map[string]rest{}
	if len(endpoints) == 0 {
		return found, nil
	}
	pipe := s.client.Pipeline()
	cmds := make([]*redis.StringCmd, len(endpoints))
	for i, id := range endpoints {
		cmds[i] = pipe.Get(ctx, restKey(id))
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("read the rests of %d webhook endpoints: %w", len(endpoints), err)
	}
	for i, cmd := range cmds {
		var r rest
		if json.Unmarshal([]byte(cmd.Val()), &r) == nil {
			found[endpoints[i]] = r
		}
	}
	return found, nil
}
