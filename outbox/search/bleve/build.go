package bleve

import (
	"context"
	"errors"
	"slices"

	"github.com/postroom/postroom/outbox/search"
)

var errNothingBuilt = errors.New("no search index is being built")

// Build implements search.Store.
func (s *Store) Build(ctx context.Context) (search.Writer, error) {
	if err := s.Drop(ctx); err != nil {
		return nil, err
	}
	e, err := s.newEngine()
	if err != nil {
		return nil, err
	}
	err = s.write(ctx, func(*engine, *engine) error {
		s.beside = e
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	return building{s, e}, nil
}

// Swap implements search.Store. It waits for running searches.
func (s *Store) Swap(ctx context.Context) error {
	return s.write(ctx, func(inUse, beside *engine) error {
		if beside == nil {
			return errNothingBuilt
		}
		if err := s.use(beside); err != nil {
			return err
		}
		s.using.Lock()
		s.inUse, s.beside = beside, nil
		s.using.Unlock()
		err := inUse.close()
		s.discard(inUse.path)
		return err
	})
}

// Drop implements search.Store.
func (s *Store) Drop(context.Context) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	beside := s.beside
	s.beside = nil
	if beside == nil {
		return nil
	}
	err := beside.close()
	s.discard(beside.path)
	return err
}

// building writes to the index that is being built.
type building struct {
	store  *Store
	engine *engine
}

// Put implements search.Writer.
func (b building) Put(ctx context.Context, docs []search.Document) error {
	for chunk := range slices.Chunk(docs, batchSize) {
		err := b.store.write(ctx, func(_, beside *engine) error {
			if beside != b.engine {
				return errNothingBuilt
			}
			return beside.put(chunk)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
