package bleve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/blevesearch/bleve/v2/index/scorch/mergeplan"
	index "github.com/blevesearch/bleve_index_api"
	segment "github.com/blevesearch/scorch_segment_api/v2"

	"github.com/postroom/postroom/outbox/search"
)

// Reclaim asks for deleted files again after a pause that doubles up to the longest.
const (
	firstPause   = 10 * time.Millisecond
	longestPause = time.Second
)

// mergeNothing lets any number of segments be.
var mergeNothing = mergeplan.MergePlanOptions{
	CalcBudget: func(int64, int64, *mergeplan.MergePlanOptions) int { return math.MaxInt },
}

// Reclaim implements search.Index. It merges the segments that have deleted documents, until their files are
// gone. Writers and searches continue. A file that a search reads may stay until that search ends.
func (s *Store) Reclaim(ctx context.Context) error {
	s.reclaiming.Lock() // the engine refuses a second merge of all segments at a time
	defer s.reclaiming.Unlock()
	var former []string
	if err := s.read(func(e *engine) (err error) {
		// a merge that began before the documents were deleted has ended after this one, which merges nothing
		if err := e.scorch.ForceMerge(ctx, &mergeNothing); err != nil {
			return fmt.Errorf("wait for a merge in the search index %s: %w", s.dir, err)
		}
		former, err = e.reclaimable()
		return err
	}); err != nil {
		return err
	}
	for pause := firstPause; len(former) > 0; pause = min(2*pause, longestPause) {
		merge := false
		if err := s.write(ctx, func(inUse, _ *engine) (err error) {
			merge, err = inUse.stir(ctx, former)
			return err
		}); err != nil {
			return err
		}
		if merge {
			if err := s.read(func(e *engine) error { return e.scorch.ForceMerge(ctx, nil) }); err != nil {
				return fmt.Errorf("merge the segments of the search index %s: %w", s.dir, err)
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		former = slices.DeleteFunc(former, func(path string) bool {
			_, err := os.Stat(path)
			return errors.Is(err, os.ErrNotExist)
		})
	}
	return nil
}

// reclaimable returns the files that have bytes of deleted documents: of segments with some, and of segments
// that were merged already.
func (e *engine) reclaimable() ([]string, error) {
	snapshot, err := e.snapshot()
	if err != nil {
		return nil, err
	}
	defer snapshot.Close()
	clean := map[string]bool{}
	for _, one := range snapshot.Segments() {
		if file, ok := one.Segment().(segment.PersistedSegment); ok && one.LiveSize() == one.FullSize() {
			clean[file.Path()] = true
		}
	}
	files, err := filepath.Glob(filepath.Join(e.path, "*.zap"))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(files, func(path string) bool { return clean[path] }), nil
}

// stir writes a batch: only after one the engine looks for files to delete. If a segment still has one of the
// files, it reports that a merge is due, and the batch is a document written again: a single segment is never
// merged.
func (e *engine) stir(ctx context.Context, former []string) (merge bool, err error) {
	snapshot, err := e.snapshot()
	if err != nil {
		return false, err
	}
	defer snapshot.Close()
	for _, one := range snapshot.Segments() {
		file, ok := one.Segment().(segment.PersistedSegment)
		live := one.DocNumbersLive()
		if !ok || live.IsEmpty() || !slices.Contains(former, file.Path()) {
			continue
		}
		d, err := source(one, uint64(live.Maximum()))
		if err != nil {
			return false, err
		}
		return true, errors.Join(ctx.Err(), e.put([]search.Document{d}))
	}
	return false, e.write(index.NewBatch())
}
