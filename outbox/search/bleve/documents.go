package bleve

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/blevesearch/bleve/v2/index/scorch"

	"github.com/postroom/postroom/outbox/search"
	"github.com/postroom/postroom/outbox/search/query"
)

var errClosed = errors.New("the search index is not open in this process")

// write calls do with the index in use and the one being built (nil: none). Other writers are excluded.
func (s *Store) write(ctx context.Context, do func(inUse, beside *engine) error) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.closed || s.inUse == nil {
		return errClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return do(s.inUse, s.beside)
}

// read calls do with the index in use, which stays open during the call.
func (s *Store) read(do func(*engine) error) error {
	s.using.RLock()
	defer s.using.RUnlock()
	if s.closed || s.inUse == nil {
		return errClosed
	}
	return do(s.inUse)
}

// Put implements search.Index.
func (s *Store) Put(ctx context.Context, docs []search.Document) error {
	for chunk := range slices.Chunk(docs, batchSize) {
		err := s.write(ctx, func(inUse, beside *engine) error {
			chunk, err := search.Complete(chunk, inUse.stored)
			if err != nil {
				return err
			}
			if err := inUse.put(chunk); err != nil || beside == nil {
				return err
			}
			return beside.put(chunk)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Search implements search.Index.
func (s *Store) Search(ctx context.Context, q search.Query) (found search.Found, err error) {
	err = s.read(func(e *engine) error {
		found, err = e.search(ctx, q)
		return err
	})
	return found, err
}

// Size implements search.Index.
func (s *Store) Size(context.Context) (size search.Size, err error) {
	err = s.read(func(e *engine) error {
		size, err = e.size()
		return err
	})
	return size, err
}

// Forget implements search.Index.
func (s *Store) Forget(ctx context.Context, before time.Time, max int) (int, error) {
	gone := 0
	err := s.write(ctx, func(inUse, beside *engine) error {
		ids, err := inUse.older(ctx, before, max)
		if err != nil || len(ids) == 0 {
			return err
		}
		if err := inUse.remove(ids); err != nil {
			return err
		}
		gone = len(ids)
		if beside == nil {
			return nil
		}
		return beside.remove(ids)
	})
	return gone, err
}

// Delete implements search.Index.
func (s *Store) Delete(ctx context.Context, ids []string) error {
	return s.write(ctx, func(inUse, beside *engine) error {
		if err := inUse.remove(ids); err != nil || beside == nil {
			return err
		}
		return beside.remove(ids)
	})
}

// older lists documents of messages accepted before a time.
func (e *engine) older(ctx context.Context, before time.Time, max int) ([]string, error) {
	snapshot, err := e.snapshot()
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	found, err := e.match(ctx, snapshot, search.Query{Where: query.Created{Until: before}})
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, f := range found {
		for it := f.numbers.Iterator(); it.HasNext() && len(ids) < max; {
			id, err := f.segment.DocID(uint64(it.Next()))
			if err != nil {
				return nil, err
			}
			ids = append(ids, string(id))
		}
	}
	return ids, nil
}

// Walk implements search.Index. It passes the documents of one snapshot and blocks no one.
func (s *Store) Walk(ctx context.Context, fn func([]search.Document) error) error {
	var snapshot *scorch.IndexSnapshot
	err := s.read(func(e *engine) (err error) {
		snapshot, err = e.snapshot()
		return err
	})
	if err != nil {
		return err
	}
	defer snapshot.Close()
	batch := make([]search.Document, 0, batchSize)
	for _, segment := range snapshot.Segments() {
		for it := segment.DocNumbersLive().Iterator(); it.HasNext(); {
			d, err := source(segment, uint64(it.Next()))
			if err != nil {
				return err
			}
			if batch = append(batch, d); len(batch) < batchSize {
				continue
			}
			if err := errors.Join(ctx.Err(), fn(batch)); err != nil {
				return err
			}
			batch = make([]search.Document, 0, batchSize)
		}
	}
	if len(batch) == 0 {
		return nil
	}
	return fn(batch)
}
