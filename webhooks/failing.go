package webhooks

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
)

// Failure is an endpoint without a success since a time.
type Failure struct {
	Endpoint string
	Since    time.Time // of the first failed attempt
	Last     time.Time // of the latest one
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

// Failing returns the endpoints whose attempts have all failed since a time, the longest failing first.
// Those that are off are not among them.
func (w *desk) Failing(ctx context.Context) ([]Failure, error) {
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
	slices.SortFunc(found, func(a, b Failure) int { return a.Since.Compare(b.Since) })
	return found, nil
}
