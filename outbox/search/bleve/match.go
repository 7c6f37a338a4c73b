package bleve

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	segment "github.com/blevesearch/scorch_segment_api/v2"

	"github.com/postroom/postroom/outbox/search/query"
)

// matcher finds documents of one segment. The caller may change returned bitmaps.
type matcher struct {
	ctx     context.Context
	segment *scorch.SegmentSnapshot
	column  []int64
}

// match finds the documents that match a query.
func (m *matcher) match(n query.Node) (*roaring.Bitmap, error) {
	if err := m.ctx.Err(); err != nil {
		return nil, err
	}
	switch n := n.(type) {
	case query.All:
		return m.all(), nil
	case query.None:
		return roaring.New(), nil
	case query.Term:
		return m.term(string(n.Field), n.Value)
	case query.Prefix:
		return m.prefix(string(n.Field), n.Value)
	case query.Phrase:
		if n.Prefix {
			return m.beginning(string(n.Field), n.Words)
		}
		return m.phrase(string(n.Field), n.Words)
	case query.Created:
		return m.created(n), nil
	case query.Not:
		found, err := m.match(n.Part)
		if err != nil {
			return nil, err
		}
		all := m.all()
		all.AndNot(found)
		return all, nil
	case query.And:
		return m.and(n)
	case query.Or:
		return m.or(n)
	}
	return nil, fmt.Errorf("a query has a step of unknown kind, %T", n)
}

func (m *matcher) and(parts []query.Node) (*roaring.Bitmap, error) {
	var found *roaring.Bitmap
	for _, part := range parts {
		more, err := m.match(part)
		if err != nil {
			return nil, err
		}
		if found == nil {
			found = more
		} else {
			found.And(more)
		}
		if found.IsEmpty() {
			break
		}
	}
	return found, nil
}

func (m *matcher) or(parts []query.Node) (*roaring.Bitmap, error) {
	found := roaring.New()
	for _, part := range parts {
		more, err := m.match(part)
		if err != nil {
			return nil, err
		}
		found.Or(more)
	}
	return found, nil
}

// all returns the documents that are not deleted.
func (m *matcher) all() *roaring.Bitmap {
	found := roaring.New()
	found.AddRange(0, uint64(m.segment.FullSize()))
	if deleted := m.segment.Deleted(); deleted != nil {
		found.AndNot(deleted)
	}
	return found
}

func (m *matcher) term(field, value string) (*roaring.Bitmap, error) {
	found := roaring.New()
	t, err := newTerms(m.segment, field)
	if err != nil {
		return nil, err
	}
	with, err := t.with(clear(value))
	if with.one {
		found.Add(with.single)
	} else if with.bitmap != nil {
		found.Or(with.bitmap)
	}
	return found, err
}

// prefix finds documents by many words, each in few documents, so it adds them one by one.
func (m *matcher) prefix(field, value string) (*roaring.Bitmap, error) {
	t, err := newTerms(m.segment, field)
	if err != nil {
		return nil, err
	}
	marked := make([]uint64, (m.segment.FullSize()+63)/64)
	err = t.each(m.ctx, clear(value), func(_ string, with numbers) error {
		with.each(func(n uint32) { marked[n/64] |= 1 << (n % 64) })
		return nil
	})
	return roaring.FromDense(marked, true), err
}

// created compares acceptance times, from their column.
func (m *matcher) created(c query.Created) *roaring.Bitmap {
	from, until := bound(c.From, 0), bound(c.Until, 1<<62)
	found, run := roaring.New(), make([]uint32, 0, 1024)
	for n, at := range m.column {
		if at < from || at >= until {
			continue
		}
		if run = append(run, uint32(n)); len(run) == cap(run) {
			found.AddMany(run)
			run = run[:0]
		}
	}
	found.AddMany(run)
	if deleted := m.segment.Deleted(); deleted != nil {
		found.AndNot(deleted)
	}
	return found
}

func bound(at time.Time, none int64) int64 {
	if at.IsZero() {
		return none
	}
	return at.UnixMilli()
}

// phrase finds the documents with all words, then compares the words' positions.
func (m *matcher) phrase(field string, words []string) (*roaring.Bitmap, error) {
	var candidates *roaring.Bitmap
	for _, word := range words {
		with, err := m.term(field, word)
		if err != nil {
			return nil, err
		}
		if candidates == nil {
			candidates = with
		} else {
			candidates.And(with)
		}
		if candidates.IsEmpty() {
			return candidates, nil
		}
	}
	places := make([]segment.PostingsIterator, len(words))
	for i, word := range words {
		list, err := postingsOf(m.segment, field, word)
		if err != nil {
			return nil, err
		}
		places[i] = list.Iterator(false, false, true, nil)
	}
	return m.inARow(candidates, places)
}

// beginning finds words in a row whose last is the beginning of a word.
func (m *matcher) beginning(field string, words []string) (*roaring.Bitmap, error) {
	last := len(words) - 1
	first, err := m.phrase(field, words[:last])
	if err != nil || first.IsEmpty() {
		return first, err
	}
	t, err := newTerms(m.segment, field)
	if err != nil {
		return nil, err
	}
	var ends []string
	err = t.each(m.ctx, words[last], func(word string, with numbers) error {
		beside := false
		with.each(func(n uint32) { beside = beside || first.Contains(n) })
		if beside {
			ends = append(ends, strings.Clone(word))
		}
		return nil
	})
	found := roaring.New()
	for _, word := range ends {
		more, failed := m.phrase(field, append(words[:last:last], word))
		if failed != nil {
			return nil, failed
		}
		found.Or(more)
	}
	return found, err
}

// inARow keeps the candidates in which the words are consecutive.
func (m *matcher) inARow(candidates *roaring.Bitmap, places []segment.PostingsIterator) (*roaring.Bitmap,
	error) {
	found := roaring.New()
	var rows, next []uint64 // last positions of rows that start with the first word
	for it, i := candidates.Iterator(), 0; it.HasNext(); i++ {
		if i%256 == 0 && m.ctx.Err() != nil {
			return nil, m.ctx.Err()
		}
		number := it.Next()
		for w, words := range places {
			posting, err := words.Advance(uint64(number))
			if err != nil {
				return nil, err
			}
			next = next[:0]
			if posting != nil && posting.Number() == uint64(number) {
				next = follow(next, rows, posting.Locations(), w == 0)
			}
			if rows, next = next, rows; len(rows) == 0 {
				break
			}
		}
		if len(rows) > 0 {
			found.Add(number)
		}
	}
	return found, nil
}

// follow returns the positions of a word right after the rows; for the first word, all its positions. Both
// are sorted.
func follow(next, rows []uint64, places []segment.Location, first bool) []uint64 {
	for i := 0; len(places) > 0 && (first || i < len(rows)); {
		switch at := places[0].Pos(); {
		case first || at == rows[i]+1:
			next, places = append(next, at), places[1:]
		case at > rows[i]+1:
			i++
		default:
			places = places[1:]
		}
	}
	return next
}
