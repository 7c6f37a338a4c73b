package ui

import (
	"context"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/webhooks"
)

// endpointRow is an endpoint of the list, with how its deliveries went.
type endpointRow struct {
	api.Endpoint
	Stats   api.EndpointStats // of the last 24 hours
	Waiting int               // unfinished deliveries
	Error   string            // of the latest failure; empty: none is known
	At      *time.Time        // when that was; nil: not known
}

// endpointRows completes the endpoints of a page.
func (u *UI) endpointRows(ctx context.Context, endpoints []api.Endpoint) ([]endpointRow, error) {
	rows, ids := make([]endpointRow, len(endpoints)), make([]string, len(endpoints))
	for i, e := range endpoints {
		ids[i] = e.ID
	}
	waiting, err := u.Webhooks.Waiting(ctx, ids...)
	if err != nil {
		return nil, err
	}
	failing, err := u.Webhooks.Failing(ctx)
	if err != nil {
		return nil, err
	}
	last := map[string]webhooks.Failure{}
	for _, f := range failing {
		last[f.Endpoint] = f
	}
	for i, e := range endpoints {
		rows[i] = endpointRow{Endpoint: e, Waiting: waiting[e.ID]}
		if rows[i].Stats, err = u.Webhooks.Stats(ctx, e.ID, 24); err != nil {
			return nil, err
		}
		if f, is := last[e.ID]; is && e.Resting != nil {
			rows[i].Error, rows[i].At = e.Resting.Error, &f.Last
			continue
		}
		page, err := u.Webhooks.Deliveries(ctx, e.ID, 0, lookedAtFailures)
		if err != nil {
			return nil, err
		}
		rows[i].Error, rows[i].At = lastFailure(page.Deliveries)
	}
	return rows, nil
}

// lookedAtFailures is how many of an endpoint's newest deliveries are searched for its latest failure.
const lookedAtFailures = 25

// lastFailure returns the error of the newest delivery whose last request failed, and the time of the
// request.
func lastFailure(newest []api.Delivery) (text string, at *time.Time) {
	for _, d := range newest {
		if d.LastAttempt != nil && d.Error != "" {
			return d.Error, d.LastAttempt
		}
	}
	return "", nil
}
