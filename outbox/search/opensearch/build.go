package opensearch

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/postroom/postroom/outbox/search"
)

var errNothingBuilt = errors.New("no search index is being built")

// Build implements search.Store. It waits until every process knows of the new index.
func (s *Store) Build(ctx context.Context) (search.Writer, error) {
	name, err := s.Ready(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.Drop(ctx); err != nil {
		return nil, err
	}
	// Another version may have left a different template.
	if err := s.do(ctx, http.MethodPut, "/_index_template/"+s.alias, s.template(), nil); err != nil {
		return nil, err
	}
	index, err := s.create(ctx, name, s.building())
	if err != nil {
		return nil, err
	}
	s.noteBuilding(true)
	select {
	case <-time.After(s.learn):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return building{s, index}, nil
}

// Swap implements search.Store. One request switches all readers and writers.
func (s *Store) Swap(ctx context.Context) error {
	built, err := s.behind(ctx, s.building())
	if err != nil {
		return err
	}
	if built == "" {
		return errNothingBuilt
	}
	used, err := s.indexes(ctx, s.alias)
	if err != nil {
		return err
	}
	if err := s.refresh(ctx, built); err != nil {
		return err
	}
	actions := []any{action("add", built, s.alias), action("remove", built, s.building())}
	for _, index := range used {
		actions = append(actions, action("remove", index, s.alias))
	}
	if err := s.do(ctx, http.MethodPost, "/_aliases", map[string]any{"actions": actions}, nil); err != nil {
		return err
	}
	s.noteBuilding(false)
	return s.remove(ctx, used...)
}

func action(do, index, alias string) map[string]any {
	return map[string]any{do: map[string]any{"index": index, "alias": alias}}
}

// Drop implements search.Store. It also deletes the remains of earlier attempts.
func (s *Store) Drop(ctx context.Context) error {
	used, err := s.indexes(ctx, s.alias)
	if err != nil {
		return err
	}
	var all map[string]any
	if err := s.do(ctx, http.MethodGet, "/"+s.own()+"/_alias", nil, &all); err != nil {
		return err
	}
	s.noteBuilding(false)
	return s.remove(ctx, slices.DeleteFunc(sortedKeys(all), func(index string) bool {
		return slices.Contains(used, index)
	})...)
}

func (s *Store) remove(ctx context.Context, indexes ...string) error {
	for _, index := range indexes {
		if err := s.do(ctx, http.MethodDelete, "/"+index, nil, nil); err != nil && !isMissing(err) {
			return err
		}
	}
	return nil
}

// building writes to the index that is being built.
type building struct {
	store *Store
	index string
}

// Put implements search.Writer.
func (b building) Put(ctx context.Context, docs []search.Document) error {
	index, err := b.store.behind(ctx, b.store.building())
	if err != nil {
		return err
	}
	if index != b.index {
		return errNothingBuilt
	}
	for chunk := range slices.Chunk(docs, batchSize) {
		if err := b.store.bulk(ctx, chunk, b.store.building()); err != nil {
			return err
		}
	}
	return nil
}
