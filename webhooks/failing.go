package webhooks

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
)

// Failure is an endpoint without a success since a time, or one that Postroom switched off.
type Failure struct {
	Endpoint string
	Off      string    // why it was switched off; empty if it is on
	Since    time.Time // the first failed attempt
	Last     time.Time // the latest failed attempt
}

// failure is a failure as it is stored: for one URL.
type failure struct {
	since, last time.Time
	url         string
}

// failureOf reads a stored failure; its url is empty if there is none.
func failureOf(text string) (f failure) {
	if parts := strings.SplitN(text, " ", 3); len(parts) == 3 {
		f = failure{redisdb.ParseTime(parts[0]), redisdb.ParseTime(parts[1]), parts[2]}
	}
	return f
}

// Failing returns the endpoints whose attempts have all failed since a time, and endpoints that Postroom
// switched off, the longest failing first. An endpoint that somebody switched off is not among them.
func (w *Webhooks) Failing(ctx context.Context) ([]Failure, error) {
	all, err := w.store.all(ctx)
	if err != nil {
		return nil, redisdb.Away(err)
	}
	var found []Failure
	for id, text := range all.failing {
		t, err := w.dir.find(ctx, id)
		if err != nil {
			return nil, redisdb.Away(err)
		}
		if f := failureOf(text); t != nil && t.off == "" && f.url == t.url {
			found = append(found, Failure{Endpoint: id, Since: f.since, Last: f.last})
		}
	}
	for id, text := range all.off {
		t, err := w.dir.find(ctx, id)
		if err != nil {
			return nil, redisdb.Away(err)
		}
		var o switchedOff
		if json.Unmarshal([]byte(text), &o) == nil && t != nil && t.off == o.Reason && t.url == o.URL {
			found = append(found, Failure{Endpoint: id, Off: o.Reason, Since: o.At, Last: o.At})
		}
	}
	slices.SortFunc(found, func(a, b Failure) int { return a.Since.Compare(b.Since) })
	return found, nil
}
