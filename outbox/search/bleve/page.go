package bleve

import (
	"cmp"
	"container/heap"
	"context"
	"strings"

	"github.com/blevesearch/bleve/v2/index/scorch"

	"github.com/postroom/postroom/outbox/search"
)

// candidate is a document that may be on the page.
type candidate struct {
	score   float64
	at      int64
	id      string // read only if needed for the order; empty if not yet
	segment *scorch.SegmentSnapshot
	number  uint32
}

// name returns the queue id.
func (c *candidate) name() (string, error) {
	if c.id == "" {
		id, err := c.segment.DocID(uint64(c.number))
		if err != nil {
			return "", err
		}
		c.id = string(id)
	}
	return c.id, nil
}

// order compares a and b: negative if a comes first.
func order(a, b *candidate) (int, error) {
	if c := cmp.Compare(b.score, a.score); c != 0 {
		return c, nil
	}
	if c := cmp.Compare(b.at, a.at); c != 0 {
		return c, nil
	}
	left, err := a.name()
	if err != nil {
		return 0, err
	}
	right, err := b.name()
	return strings.Compare(right, left), err
}

// first is a heap of the first candidates so far, with the last of them on top.
type first struct {
	list []*candidate
	err  error // from reading an id
}

func (f *first) Len() int      { return len(f.list) }
func (f *first) Swap(i, j int) { f.list[i], f.list[j] = f.list[j], f.list[i] }
func (f *first) Push(x any)    { f.list = append(f.list, x.(*candidate)) }
func (f *first) Less(i, j int) bool {
	c, err := order(f.list[i], f.list[j])
	if err != nil {
		f.err = err
	}
	return c > 0
}

func (f *first) Pop() any {
	last := f.list[len(f.list)-1]
	f.list = f.list[:len(f.list)-1]
	return last
}

// page reads the documents of the page, in order.
func page(ctx context.Context, found []part, s search.Query) ([]search.Hit, error) {
	top, err := foremost(ctx, found, s)
	if err != nil {
		return nil, err
	}
	last := len(top.list) - s.Skip
	if last <= 0 {
		return nil, nil
	}
	hits := make([]search.Hit, last)
	for i := last - 1; i >= 0; i-- {
		c := heap.Pop(top).(*candidate)
		if hits[i].Document, err = source(c.segment, uint64(c.number)); err != nil {
			return nil, err
		}
		hits[i].Score = c.score
	}
	return hits, top.err
}

// foremost finds the candidates up to the end of the page.
func foremost(ctx context.Context, found []part, s search.Query) (*first, error) {
	top, want := &first{}, s.Skip+s.Size
	var limit *candidate
	if s.After != nil {
		limit = &candidate{score: s.After.Score, at: s.After.Created, id: s.After.ID}
	}
	var next candidate
	for _, f := range found {
		for it, i := f.numbers.Iterator(), 0; it.HasNext(); i++ {
			if i%4096 == 0 && ctx.Err() != nil {
				return nil, ctx.Err()
			}
			number := it.Next()
			next = candidate{score: f.scores[number], at: f.column[number], segment: f.segment, number: number}
			if limit != nil {
				if c, err := order(limit, &next); err != nil {
					return nil, err
				} else if c >= 0 {
					continue
				}
			}
			if top.Len() < want {
				kept := next
				heap.Push(top, &kept)
				continue
			}
			c, err := order(&next, top.list[0])
			if err != nil {
				return nil, err
			}
			if c < 0 {
				*top.list[0] = next
				heap.Fix(top, 0)
			}
		}
	}
	return top, top.err
}
