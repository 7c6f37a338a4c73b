package bleve

import (
	"context"
	"strconv"
	"sync"

	"github.com/blevesearch/bleve/v2/index/scorch"
)

// columns holds, for each segment, the acceptance times of its documents, in Unix milliseconds. Segments
// never change, so a column is read once. It is dropped when its segment is merged.
type columns struct {
	mu  sync.Mutex
	all map[uint64][]int64
}

func newColumns() *columns { return &columns{all: map[uint64][]int64{}} }

// of returns a segment's column.
func (c *columns) of(ctx context.Context, segment *scorch.SegmentSnapshot) ([]int64, error) {
	c.mu.Lock()
	column, ok := c.all[segment.Id()]
	c.mu.Unlock()
	if ok {
		return column, nil
	}
	column, err := readColumn(ctx, segment)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[segment.Id()] = column
	return column, nil
}

// keep drops the columns of missing segments.
func (c *columns) keep(segments []*scorch.SegmentSnapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) <= len(segments) {
		return
	}
	kept := make(map[uint64][]int64, len(segments))
	for _, s := range segments {
		if column, ok := c.all[s.Id()]; ok {
			kept[s.Id()] = column
		}
	}
	c.all = kept
}

// readColumn inverts the dictionary of times.
func readColumn(ctx context.Context, segment *scorch.SegmentSnapshot) ([]int64, error) {
	column := make([]int64, segment.FullSize())
	terms, err := newTerms(segment, fieldAt)
	if err != nil {
		return nil, err
	}
	err = terms.each(ctx, "", func(term string, numbers numbers) error {
		at, err := strconv.ParseInt(term, 16, 64)
		if err != nil {
			return err
		}
		numbers.each(func(n uint32) { column[n] = at })
		return nil
	})
	return column, err
}
