package bleve

import (
	"context"
	"errors"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	segment "github.com/blevesearch/scorch_segment_api/v2"
)

// terms is the dictionary of a field in one segment.
type terms struct {
	dictionary segment.TermDictionary
	deleted    *roaring.Bitmap

	list     segment.PostingsList     // reused
	postings segment.PostingsIterator // reused
}

func newTerms(s *scorch.SegmentSnapshot, field string) (*terms, error) {
	d, err := s.Segment().Dictionary(field)
	return &terms{dictionary: d, deleted: s.Deleted()}, err
}

// numbers is the documents of a segment with a term: a read-only bitmap, or a single document.
type numbers struct {
	bitmap *roaring.Bitmap
	single uint32
	one    bool
}

// each visits the documents, in order.
func (n numbers) each(visit func(uint32)) {
	if n.one {
		visit(n.single)
		return
	}
	if n.bitmap != nil {
		for it := n.bitmap.Iterator(); it.HasNext(); {
			visit(it.Next())
		}
	}
}

// in returns the number of documents that found contains.
func (n numbers) in(found *roaring.Bitmap) int {
	switch {
	case n.one && found.Contains(n.single):
		return 1
	case n.bitmap != nil:
		return int(n.bitmap.AndCardinality(found))
	}
	return 0
}

// postingsOf returns the documents of a segment with a word, with its frequencies and positions.
func postingsOf(s *scorch.SegmentSnapshot, field, word string) (segment.PostingsList, error) {
	d, err := s.Segment().Dictionary(field)
	if err != nil {
		return nil, err
	}
	return d.PostingsList([]byte(word), s.Deleted(), nil)
}

var errUnknownPostings = errors.New("the engine answers postings of an unknown kind")

// with returns the documents with a term that are not deleted. The result is valid until the next call.
func (t *terms) with(term string) (numbers, error) {
	list, err := t.dictionary.PostingsList([]byte(term), t.deleted, t.list)
	if err != nil || list.Count() == 0 {
		return numbers{}, err
	}
	t.list = list
	t.postings = list.Iterator(false, false, false, t.postings)
	postings, ok := t.postings.(segment.OptimizablePostingsIterator)
	if !ok {
		return numbers{}, errUnknownPostings
	}
	if n, one := postings.DocNum1Hit(); one {
		return numbers{single: uint32(n), one: true}, nil
	}
	return numbers{bitmap: postings.ActualBitmap()}, nil
}

// each visits the terms with a prefix, in order.
func (t *terms) each(ctx context.Context, prefix string, visit func(string, numbers) error) error {
	begin, end := []byte(nil), []byte(nil)
	if prefix != "" {
		begin, end = []byte(prefix), after(prefix)
	}
	it := t.dictionary.AutomatonIterator(nil, begin, end)
	for i := 0; ; i++ {
		if i%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		entry, err := it.Next()
		if err != nil || entry == nil {
			return err
		}
		found, err := t.with(entry.Term)
		if err != nil {
			return err
		}
		if err := visit(entry.Term, found); err != nil {
			return err
		}
	}
}

// after returns the first text after all texts with a prefix. UTF-8 has no byte 0xff, so the last byte can be
// incremented.
func after(prefix string) []byte {
	end := []byte(prefix)
	end[len(end)-1]++
	return end
}
