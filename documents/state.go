package documents

import (
	"context"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/redisdb"
)

// State says how the index is doing. Any process can tell.
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
	s.Documents, s.Bytes, s.Keeper, s.Rebuild = k.size.Documents, k.size.Bytes, k.keeper, k.build
	s.Waiting, s.Paused, s.Lag = waiting.tasks, waiting.paused, waiting.age.Seconds()
	if !k.behind.IsZero() {
		s.Behind = &k.behind
	}
	if !k.size.At.IsZero() {
		s.Seen = &k.size.At
	}
	return s, nil
}

// Leave takes the search index out of the event stream, which otherwise keeps every event for it. It is for an instance that has none.
func Leave(ctx context.Context, db *redisdb.DB) error { return db.Unfollow(ctx, stream, group) }
