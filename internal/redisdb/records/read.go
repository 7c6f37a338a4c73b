package records

import (
	"context"
	"fmt"

	"github.com/postroom/postroom/internal/redisdb"
)

// scanPage is the number of records that [Store.Each] reads with one round trip.
const scanPage = 500

// Page is a part of all records.
type Page[V any] struct {
	Records []*Record[V]
	Total   int // all records
	Number  int // this page's, from 0
	Pages   int
}

// Get returns a record with its state, secrets masked, or NotFound.
func (s *Store[V]) Get(ctx context.Context, id string) (*Record[V], error) {
	r, err := s.loadOne(ctx, id, true)
	switch {
	case err != nil:
		return nil, err
	case r == nil:
		return nil, s.kind.Missing(id)
	}
	return s.masked(r), nil
}

// Open returns the first of these records that exists, with its state and its secrets in clear: for use, not
// for an answer. Nil means none exists. If the secrets don't open, Broken has the error.
func (s *Store[V]) Open(ctx context.Context, ids ...string) (*Record[V], error) {
	found, err := s.load(ctx, ids, true)
	if err != nil {
		return nil, err
	}
	for _, r := range found {
		if r == nil {
			continue
		}
		if err := open(s.kind.Secrets(&r.Value), s.ring, s.place(r.ID)); err != nil {
			r = s.masked(r)
			r.Broken = err
		}
		return r, nil
	}
	return nil, nil
}

// Page returns a page of records with their states, secrets masked: the stand-in, unless a record is stored
// instead, then all in the order of their ids. Pages count from 0; size is 1 to 1000, zero means 20.
func (s *Store[V]) Page(ctx context.Context, number, size int) (Page[V], error) {
	number, size = max(0, number), min(size, 1000)
	if size < 1 {
		size = 20
	}
	ids, total, err := s.ids(ctx, number*size, size)
	if err != nil {
		return Page[V]{}, err
	}
	found, err := s.load(ctx, ids, true)
	if err != nil {
		return Page[V]{}, err
	}
	p := Page[V]{Records: make([]*Record[V], 0, len(found)), Total: total, Number: number,
		Pages: (total + size - 1) / size}
	for _, r := range found {
		if r != nil { // else it was deleted just now
			p.Records = append(p.Records, s.masked(r))
		}
	}
	return p, nil
}

// Map returns show's results for the records of a page.
func Map[V, T any](p Page[V], show func(*Record[V]) T) []T {
	shown := make([]T, len(p.Records))
	for i, r := range p.Records {
		shown[i] = show(r)
	}
	return shown
}

// Count returns the number of records, a stand-in included.
func (s *Store[V]) Count(ctx context.Context) (int, error) {
	_, total, err := s.ids(ctx, 0, 1)
	return total, err
}

// Each calls do for all records, without their states, secrets masked. The stored records come in the order
// of their ids, then the stand-in, unless a record is stored instead. A record added while it runs may be
// missed. Each ends with the first error of do.
func (s *Store[V]) Each(ctx context.Context, do func(*Record[V]) error) error {
	standIn := s.standIn
	err := s.each(ctx, func(r *Record[V]) error {
		if standIn != nil && r.ID == standIn.ID {
			standIn = nil
		}
		return do(s.masked(r))
	})
	if err != nil || standIn == nil {
		return err
	}
	return do(s.masked(standIn))
}

// each calls do for the stored records, with their secrets sealed.
func (s *Store[V]) each(ctx context.Context, do func(*Record[V]) error) error {
	for last := ""; ; {
		ids, err := s.after(ctx, last, scanPage)
		if err != nil {
			return err
		}
		found, err := s.load(ctx, ids, false)
		if err != nil {
			return err
		}
		for _, r := range found {
			if r == nil || !r.Stored() { // deleted just now
				continue
			}
			if err := do(r); err != nil {
				return err
			}
		}
		if len(ids) < scanPage {
			return nil
		}
		last = ids[len(ids)-1]
	}
}

// loadOne returns a record with its secrets sealed; nil if there is none.
func (s *Store[V]) loadOne(ctx context.Context, id string, state bool) (*Record[V], error) {
	found, err := s.load(ctx, []string{id}, state)
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

// masked returns a copy of a record with its secrets masked.
func (s *Store[V]) masked(r *Record[V]) *Record[V] {
	shown := *r
	for _, secret := range s.kind.Secrets(&shown.Value) {
		secret.mask()
	}
	return &shown
}

// doing adds the operation to an error.
func (s *Store[V]) doing(err error, what, id string) error {
	return fmt.Errorf("%s %s %s: %w", what, s.kind.Name, id, err)
}

// failed is doing for an error of Redis.
func (s *Store[V]) failed(err error, what, id string) error {
	return redisdb.Failed(err, "%s %s %s", what, s.kind.Name, id)
}
