package suppression

import (
	"context"
	"slices"
)

// Page is a part of a list.
type Page struct {
	Entries []Entry
	Next    string // cursor of the next page; empty: this was the last
}

const (
	defaultPage = 20
	maxPage     = 1000
	// lookedGroups bounds the work of one page: a thirty-second of all entries. Only a search by domain
	// reaches it.
	lookedGroups = groups * shards / 32
)

// List returns entries with their evidence from a cursor on (empty: the beginning), including expired ones
// that are not swept yet. size is 1 to 1,000; zero means 20. A page may have fewer entries, even none, while
// Next is not empty: a search by domain reads a bounded number of entries a page. An entry that exists from
// the first page to the last is returned once. The order has no meaning.
func (s *Store) List(ctx context.Context, f Filter, cursor string, size int) (Page, error) {
	f, err := f.normal()
	if err != nil {
		return Page{}, err
	}
	at, err := parsePosition(cursor)
	if err != nil {
		return Page{}, err
	}
	if f.Address != "" {
		rows, err := s.rowsOf(ctx, f.Address)
		if err != nil {
			return Page{}, err
		}
		rows = slices.DeleteFunc(rows, func(r row) bool { return !f.matches(&r) })
		entries, err := s.entries(ctx, rows)
		return Page{Entries: entries}, err
	}
	return s.page(ctx, f, at, pageSize(size))
}

func (s *Store) page(ctx context.Context, f Filter, at position, size int) (Page, error) {
	w, err := s.walk(ctx, f, at)
	if err != nil {
		return Page{}, err
	}
	var rows []row
	next := ""
	for len(rows) < size {
		if w.looked >= lookedGroups && w.seek() {
			next = w.at.String()
			break
		}
		more, err := w.next(ctx)
		if err != nil {
			return Page{}, err
		}
		if more == nil {
			break
		}
		rows = append(rows, more...)
	}
	if len(rows) > size || len(rows) == size && w.seek() {
		last := rows[size-1]
		next = position{last.shard, last.bucket / groupSize, last.order()}.String()
		rows = rows[:size]
	}
	entries, err := s.entries(ctx, rows)
	return Page{Entries: entries, Next: next}, err
}

// Walk calls fn with every entry of a filter, in little memory. It stops at the first error of fn.
func (s *Store) Walk(ctx context.Context, f Filter, fn func(Entry) error) error {
	f, err := f.normal()
	if err != nil {
		return err
	}
	w, err := s.walk(ctx, f, position{})
	if err != nil {
		return err
	}
	for {
		rows, err := w.next(ctx)
		if err != nil {
			return err
		}
		if rows == nil {
			return nil
		}
		entries, err := s.entries(ctx, rows)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := fn(e); err != nil {
				return err
			}
		}
	}
}

// Find returns all entries of an address and of its domain, in all scopes, with their evidence, the strongest
// first. It includes expired ones that are not swept yet. It shows why an address is not mailed.
func (s *Store) Find(ctx context.Context, address string) ([]Entry, error) {
	f, err := Filter{Address: address}.normal()
	if err != nil {
		return nil, err
	}
	rows, err := s.rowsOf(ctx, f.Address, domainOf(f.Address))
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(rows, func(a, b row) int { return b.reason.strength() - a.reason.strength() })
	erased, err := s.findErased(ctx, f.Address)
	if err != nil {
		return nil, err
	}
	entries, err := s.entries(ctx, rows)
	return slices.Concat(erased, entries), err
}
