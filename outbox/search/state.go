package search

import (
	"context"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
)

// State returns the state of the index. It works in any process.
func (d *Documents) State(ctx context.Context) (api.DocumentsState, error) {
	s := api.DocumentsState{Store: d.opts.Kind}
	if d.opts.Kind == kindNone {
		return s, nil
	}
	k, err := d.keys.read(ctx)
	if err != nil {
		return s, err
	}
	waiting, err := d.waiting(ctx)
	if err != nil {
		return s, err
	}
	s.Documents, s.Bytes, s.Indexer, s.Rebuild = k.size.Documents, k.size.Bytes, k.indexer, k.build
	s.Waiting, s.Paused, s.Lag = waiting.tasks, waiting.paused, waiting.age.Seconds()
	if !k.behind.IsZero() {
		s.Behind = &k.behind
	}
	if !k.size.At.IsZero() {
		s.Seen = &k.size.At
	}
	return s, nil
}

// Leave removes the index's group from the event stream, which otherwise keeps every event for it. It is for
// an instance without index.
func Leave(ctx context.Context, db *redisdb.DB) error { return db.Unfollow(ctx, stream, group) }
