package suppression

import (
	"context"
	"slices"
)

// Page is a part of a list.
type Page struct {
	Entries []Entry
	Next    string // where the list goes on; empty: this was all
}

const (
	defaultPage = 20
	maxPage     = 1000
	// lookedGroups bounds the work of one page: a thirty-second of all entries. Only a search by domain gets so far.
	lookedGroups = groups * shards / 32
)

// List gives entries with their evidence, expired ones that are not swept away yet included, from a cursor on (empty: the beginning). Size is
// 1 to 1,000; zero means 20. A page may have fewer entries, even none, while Next says that the list goes on: a search by domain looks at
// so many entries for each page. Every entry that is there from the first page to the last is given once; the order has no meaning.
func (s *Store) List(ctx context.Context, f Filter, cursor string, size int) (Page, error) {
	f, err := f.normal()
	if err != nil {
		return Page{}, err
	}
	at, err := parsePosition(cursor)
	if err != nil {
		return Page{}, err
	}
	if size = min(size, maxPage); size < 1 {
		size = defaultPage
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
	return s.page(ctx, f, at, size)
}

func (s *Store) page(ctx context.Context, f Filter, at position, size int) (Page, error) {
	w, err := s.walk(ctx, f, at)
	if err != nil {
		return Page{}, err
	}
	var rows []row
	next := ""
	for len(rows) < size {
		if w.looked >= lookedGroups && !w.done() {
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
	if len(rows) > size || len(rows) == size && !w.done() {
		last := rows[size-1]
		next = position{last.shard, last.bucket / groupSize, last.order()}.String()
		rows = rows[:size]
	}
	entries, err := s.entries(ctx, rows)
	return Page{Entries: entries, Next: next}, err
}

// Walk calls fn with every entry of a filter, as [Store.List] does, using little memory however many there are. It stops at fn's first error.
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

// Find gives all that is there about an address, in all scopes, with its evidence: its own entries and those of its domain, the strongest
// first, expired ones that are not swept away yet included. It answers "why is this person not mailed?".
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
	return s.entries(ctx, rows)
}
